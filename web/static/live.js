// Keeps a page as it is now. One tab of a browser listens to the event stream and tells the others, since browsers
// allow few connections to a host; events only say that something changed, and the page's own part is asked for anew.
"use strict";
(() => {
  const root = document.documentElement.dataset.root;
  const live = document.getElementById("live");
  const button = document.getElementById("live-state");
  const updated = document.getElementById("updated");
  const kinds = ["settings", "results", "rejections", "untuned", "files", "jobs", "log"];
  const leastPause = 500;
  const pollPause = 5000;
  const silence = 10000;
  const mostFading = 500;
  const channel = "BroadcastChannel" in window ? new BroadcastChannel(`tensorplay:${document.documentElement.dataset.instance}`) : null;

  let isPaused = false;
  let isStale = false;
  let isLeaving = false;
  let isBusy = false;
  let timer = 0;
  let last = Date.now();
  let lastHeard = 0;
  let source = null;
  let state = "connecting";

  const show = (next) => {
    state = next;
    button.dataset.state = isPaused ? "paused" : next;
    button.querySelector(".text").textContent = isPaused ? "paused" : next;
    button.setAttribute("aria-pressed", String(isPaused));
  };
  const stamp = () => {
    const seconds = Math.round((Date.now() - last) / 1000);
    updated.textContent = `${new Date(last).toLocaleTimeString("en-GB")} (${seconds} s ago)`;
  };

  // What changed in a table is seen at a glance; times change by themselves.
  const shown = () => new Map([...live.querySelectorAll("tr[id]")].map((row) => [row.id, [...row.cells].map((cell) => cell.textContent)]));
  const fade = (before) => {
    if (!before.size || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const color = getComputedStyle(live).getPropertyValue("--changed");
    const changed = [...live.querySelectorAll("tr[id]")].flatMap((row) => [...row.cells].filter((cell, at) => !cell.querySelector("time") && before.get(row.id)?.[at] !== cell.textContent));
    if (changed.length <= mostFading) for (const cell of changed) cell.animate([{ backgroundColor: color, offset: 0 }], 1500);
  };

  const refresh = async () => {
    timer = 0;
    if (isPaused || isLeaving || document.hidden) { isStale = true; return; }
    if (isBusy) { isStale = true; return; }
    isBusy = true;
    isStale = false;
    const url = new URL(location.href);
    url.hash = "";
    url.searchParams.set("_partial", "1");
    try {
      const answer = await fetch(url, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        const text = await answer.text();
        const before = shown();
        await htmx.swap({ target: live, text, swap: "innerMorph", sourceElement: live, transition: false });
        last = Date.now();
        TensorPlay.showTimes();
        fade(before);
        TensorPlay.sample();
        stamp();
      } else if (answer.status >= 500) show("reconnecting");
    } catch { show("reconnecting"); }
    isBusy = false;
    if (isStale) soon();
  };
  const soon = () => {
    if (!timer) timer = setTimeout(refresh, Math.max(0, leastPause - (Date.now() - last)));
  };
  TensorPlay.refresh = soon;
  // What a page shows may be gone before another is opened.
  TensorPlay.leave = (leaving) => { isLeaving = leaving; };

  const heard = (kind) => {
    lastHeard = Date.now();
    show("live");
    if (kind === "all" || live.dataset.kinds.split(" ").includes(kind)) soon();
  };
  const tell = (kind) => { heard(kind); channel?.postMessage(kind); };
  channel?.addEventListener("message", (event) => heard(event.data));

  // The Accept of a native EventSource is what proxies take for a stream; nothing else passes through all of them.
  const listen = () => {
    source?.close();
    let wasOpen = false;
    const opened = new EventSource(`${root}api/v1/events`);
    source = opened;
    opened.addEventListener("hello", () => { tell(wasOpen ? "all" : "hello"); wasOpen = true; });
    for (const kind of kinds) opened.addEventListener(kind, () => tell(kind));
    opened.addEventListener("resync", () => tell("all"));
    opened.addEventListener("bye", () => { opened.close(); source = null; show("reconnecting"); });
    opened.addEventListener("error", () => show(opened.readyState === EventSource.CLOSED ? "polling" : "reconnecting"));
  };
  const lead = () => {
    if (navigator.locks && channel) {
      const name = `tensorplay:${document.documentElement.dataset.instance}`;
      navigator.locks.request(name, () => { listen(); setInterval(() => channel.postMessage("beat"), 4000); return new Promise(() => {}); });
      return;
    }
    // Elsewhere, as over plain http on another host, each tab that is seen has a stream of its own.
    if (!document.hidden) listen();
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) { source?.close(); source = null; } else listen();
    });
  };

  button.addEventListener("click", () => { isPaused = !isPaused; show(state); if (!isPaused) soon(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isStale) soon(); });
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  setInterval(() => {
    stamp();
    const isSilent = !source && Date.now() - lastHeard > silence;
    const isBroken = source && source.readyState !== EventSource.OPEN && Date.now() - lastHeard > silence;
    if (isSilent || isBroken) { show("polling"); if (Date.now() - last > pollPause) soon(); }
    if (source && source.readyState === EventSource.CLOSED && Date.now() - lastHeard > 3 * silence) { lastHeard = Date.now(); listen(); }
    // Counts and elapsed times change without an event.
    const every = live.querySelector("[data-every]")?.dataset.every;
    if (every && Date.now() - last >= 1000 * Number(every)) soon();
  }, 1000);
  show("connecting");
  lead();
})();
