// What the keyboard does; `?` shows it.
"use strict";
(() => {
  const places = { o: "", r: "results", u: "untuned", x: "rejections", j: "jobs", n: "ranks", s: "settings", e: "events", d: "devices" };
  const root = document.documentElement.dataset.root;
  const help = document.getElementById("help-dialog");
  let row = null;
  let waitsForPlace = false;

  const step = (by) => {
    const rows = [...document.querySelectorAll("table.rows tbody tr")];
    if (!rows.length) return;
    const at = rows.indexOf(row);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))];
    row?.classList.remove("at");
    row = next;
    row.classList.add("at");
    const target = row.querySelector("a, input") ?? row;
    if (target === row) row.tabIndex = -1;
    target.focus();
    row.scrollIntoView({ block: "nearest" });
  };
  const actions = {
    "/": () => document.getElementById("filter")?.focus(),
    j: () => step(1),
    k: () => step(-1),
    p: () => document.getElementById("live-state").click(),
    t: () => TensorPlay.nextTheme(),
    "?": () => help.showModal(),
  };
  document.getElementById("help-open").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input:not([type=checkbox]), select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (waitsForPlace) {
      waitsForPlace = false;
      if (event.key in places) location.href = root + places[event.key];
      return;
    }
    if (event.key === "g") { waitsForPlace = true; return; }
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); }
  });
})();
