// Shows each <time> in UTC, in the zone of the reader, or as how long ago it was.
"use strict";
(() => {
  const select = document.getElementById("time-mode");
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

  const ago = (date) => {
    const seconds = (date - Date.now()) / 1000;
    const [unit, length] = units.find(([, each]) => Math.abs(seconds) >= each) ?? units.at(-1);
    return relative.format(Math.round(seconds / length), unit);
  };
  const pad = (number) => String(number).padStart(2, "0");
  const local = (date) => {
    const day = [date.getFullYear(), pad(date.getMonth() + 1), pad(date.getDate())].join("-");
    const zone = -date.getTimezoneOffset();
    const sign = zone < 0 ? "-" : "+";
    const offset = `${sign}${pad(Math.floor(Math.abs(zone) / 60))}:${pad(Math.abs(zone) % 60)}`;
    return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())} ${offset}`;
  };
  const utc = (date) => `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;

  TensorPlay.showTimes = () => {
    const show = { local, relative: ago }[select.value] ?? utc;
    for (const each of document.querySelectorAll("time[datetime]")) {
      const date = new Date(each.dateTime);
      if (Number.isNaN(date.getTime())) continue;
      const text = show(date);
      if (each.textContent !== text) each.textContent = text;
      each.title = utc(date);
    }
  };
  const kept = TensorPlay.recall("time");
  if (["utc", "local", "relative"].includes(kept)) select.value = kept;
  select.addEventListener("change", () => {
    TensorPlay.keep("time", select.value);
    TensorPlay.showTimes();
  });
  setInterval(() => { if (select.value === "relative") TensorPlay.showTimes(); }, 5000);
  TensorPlay.showTimes();
})();
