// Changes: each goes to the REST API as JSON, with the token in a cookie that no script can read. What a button calls
// is its value, which a browser that runs no script sends with a form.
"use strict";
(() => {
  const root = document.documentElement.dataset.root;
  const toasts = document.getElementById("toasts");
  const tokenDialog = document.getElementById("token-dialog");
  const tokenField = document.getElementById("token");
  const sureDialog = document.getElementById("sure-dialog");

  const toast = (text, isBad = false) => {
    const each = document.createElement("p");
    each.textContent = text;
    if (isBad) each.className = "bad";
    toasts.append(each);
    setTimeout(() => each.remove(), isBad ? 9000 : 4000);
  };
  // Over plain http on another host there is no clipboard.
  const keepText = (text) => {
    const refuse = () => toast("The browser does not allow it.", true);
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => toast("Copied."), refuse);
    else refuse();
  };
  const asked = (dialog) => new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok"), { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
  const isSure = (text, yes) => {
    document.getElementById("sure-text").textContent = text;
    document.getElementById("sure-yes").textContent = yes ?? "Go on";
    return asked(sureDialog);
  };
  // What people are told, of which the pages without a script say the same.
  const words = JSON.parse(document.documentElement.dataset.words);
  const doneText = (path, told) => {
    const kind = /^files\/[^/?]+\/(load|save)$/.exec(path)?.[1];
    if (kind === "load" && !(told.merged || told.replaced || told.kept || told.pinned || told.rejected)) return words["load-nothing"];
    return kind && told ? words[kind].replace(/\{(\w+)\}/g, (_, name) => told[name] ?? "?") : "Done.";
  };
  const placeText = ({ loc, msg }) => {
    const text = msg.replace(/^\w+ should /, "must ").replace(/^must match pattern .*$/s, "has letters, or a form, that it may not have");
    return `${loc.slice(1).join(" ")} ${text}`;
  };

  const signIn = async () => {
    const wrong = document.getElementById("token-wrong");
    wrong.textContent = "";
    while (await asked(tokenDialog)) {
      const token = tokenField.value.trim();
      tokenField.value = "";
      // Another character than these would not be a header.
      if (/^[\x21-\x7e]+$/.test(token)) {
        const answer = await fetch(`${root}login`, { method: "POST", headers: { "X-TensorPlay-Token": token } });
        if (answer.ok) return true;
        wrong.textContent = answer.status === 429 ? "Too many wrong tokens; wait a minute." : "This is not the token of this process.";
      } else wrong.textContent = "A token has no such characters.";
    }
    return false;
  };
  const detailOf = async (answer) => {
    try {
      const problem = await answer.json();
      const code = problem.type?.split(":").pop();
      const places = (problem.errors ?? []).map(placeText);
      return places.length && code === "invalid" ? places.join("; ") : words[code] ?? problem.detail;
    } catch { return `The service answered ${answer.status}.`; }
  };
  /** What was answered, {} where that was nothing; null where it was refused, which a person has been told. */
  const send = async (method, url, body, match, isNew = false) => {
    const headers = { Accept: "application/json" };
    if (isNew) headers["If-None-Match"] = "*";
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (match) headers["If-Match"] = match;
    for (;;) {
      let answer;
      try {
        answer = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
      } catch {
        toast("The service does not answer; its process may have ended.", true);
        return null;
      }
      if (answer.status === 401 && await signIn()) continue;
      if (!answer.ok) {
        if (answer.status !== 401) toast(await detailOf(answer), true);
        return null;
      }
      if (answer.status === 207) {
        const refused = (await answer.json()).items.filter((each) => each.status >= 400);
        if (refused.length) {
          toast(`Not on rank ${refused.map((each) => each.local_rank).join(", ")}: ${refused[0].body?.detail ?? "refused"}`, true);
          return null;
        }
      }
      return answer.status === 200 || answer.status === 201 ? answer.json().catch(() => ({})) : {};
    }
  };
  // What is pressed once more before it is answered is meant once: twice, the second answer would be that it is done.
  const busy = new WeakSet();
  const once = async (element, work) => {
    if (busy.has(element)) return;
    busy.add(element);
    try { await work(); } finally { busy.delete(element); }
  };
  const act = (element, call) => once(element, () => carryOut(element, call));
  const carryOut = async (element, { method, path, body, match, sure, yes, go }) => {
    if (sure && !await isSure(sure, yes)) return;
    element.setAttribute("aria-busy", "true");
    if (go) TensorPlay.leave(true);
    const told = await send(method, `${root}api/v1/${path}`, body, match);
    element.removeAttribute("aria-busy");
    if (!told) { TensorPlay.leave(false); TensorPlay.refresh(); return; }
    // Until the other page is there, this one does nothing more.
    if (go) { location.href = root + go; return new Promise(() => {}); }
    toast(doneText(path, told));
    TensorPlay.refresh();
  };

  // A file that is there stays as it is: the service is asked for a new one.
  const saveAs = (form, { method, path }) => once(form, async () => {
    const { name, device } = form.elements;
    const body = device ? { device: device.value } : {};
    const url = `${root}api/v1/${path.replace("{name}", encodeURIComponent(name.value))}`;
    const told = await send(method, url, body, undefined, true);
    if (told) {
      toast(doneText("files/x/save", told).replace(/^Saved/, `Saved as ${name.value}`));
      form.reset();
    }
    TensorPlay.refresh();
  });

  const valueOf = (kind, text) => {
    if (kind === "boolean") return text === "true";
    if (kind === "integer" || kind === "number") return text === "" ? null : Number(text);
    if (kind === "names") return text.split(",").map((each) => each.trim()).filter(Boolean);
    return text;
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[form=do]");
    if (button) {
      event.preventDefault();
      act(button, JSON.parse(button.value));
    }
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      const rows = [...document.querySelectorAll(`${copy.dataset.copy} tr`)];
      keepText(rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim()).join("\t")).join("\n"));
    }
    const code = event.target.closest("[data-copy-code]");
    if (code) keepText(code.parentElement.querySelector("pre").textContent);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const button = form.querySelector("button[name=call]");
    const call = button && JSON.parse(button.value);
    if ("form" in form.dataset) {
      event.preventDefault();
      const fields = Object.entries(call.fields).map(([name, kind]) => [name, valueOf(kind, form.elements[name].value)]);
      act(form, { ...call, body: Object.fromEntries(fields) });
    } else if ("save" in form.dataset) {
      event.preventDefault();
      saveAs(form, call);
    } else if ("tune" in form.dataset) {
      event.preventDefault();
      const chosen = [...form.querySelectorAll("[name=pick]:checked")].map(({ value }) => {
        const comma = value.indexOf(",");
        return { op: value.slice(0, comma), params: value.slice(comma + 1) };
      });
      if (chosen.length) act(form, { ...call, body: { ...call.body, source: { signatures: chosen } } });
      else toast("Choose at least one signature.", true);
    } else if (form.method === "get") {
      // What was left empty need not be in the address.
      for (const each of form.querySelectorAll("[name]")) if (each.value === "") each.disabled = true;
      setTimeout(() => { for (const each of form.querySelectorAll("[name]:disabled")) each.disabled = false; });
    }
  });
  // In a row it chooses; else it would send the form, and so begin to measure.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches("input[type=checkbox]")) return;
    event.preventDefault();
    event.target.click();
  });
  document.addEventListener("change", (event) => {
    if (event.target.id === "pick-all") {
      for (const each of document.querySelectorAll("[name=pick]")) each.checked = event.target.checked;
    }
  });
})();
