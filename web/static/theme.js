// Runs before anything is drawn, so that no page flashes in the other theme.
"use strict";
window.TensorPlay = {
  /** A choice that this browser keeps; nothing where storage is off. */
  recall(name) {
    try { return localStorage.getItem(`tensorplay.${name}`); } catch { return null; }
  },
  keep(name, value) {
    try { localStorage.setItem(`tensorplay.${name}`, value); } catch { /* then it holds for this page alone */ }
  },
};
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const themes = ["auto", "light", "dark"];
  let theme = TensorPlay.recall("theme");
  const apply = () => {
    if (!themes.includes(theme)) theme = "auto";
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = `Theme: ${theme}`;
    document.dispatchEvent(new CustomEvent("tensorplay:theme"));
  };
  TensorPlay.nextTheme = () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    TensorPlay.keep("theme", theme);
    apply();
  };
  apply();
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme")?.addEventListener("click", TensorPlay.nextTheme);
  });
})();
