// Draws the calls a second and the time saved of the last two minutes on the overview, from what each refresh brings.
"use strict";
(() => {
  const names = ["replayed", "first_choice", "selected_in_process", "fallback"];
  const labels = ["recorded winner", "first choice", "in process", "after a failure"];
  const most = 60;
  const data = [[], [], [], [], []];
  let before = null;
  const saved = [[], []];
  let plot = null;
  let line = null;

  const color = (place) => getComputedStyle(document.documentElement).getPropertyValue(`--series-${place + 1}`).trim();
  const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // As the other times of the page: by the 24 hour clock, and of the zone that was chosen.
  const clock = (seconds) => {
    const moment = new Date(seconds * 1000);
    return document.getElementById("time-mode").value === "utc" ? moment.toISOString().slice(11, 19) : moment.toLocaleTimeString(undefined, { hour12: false });
  };
  const draw = () => {
    const place = document.getElementById("calls-chart");
    if (!place || !window.uPlot || data[0].length < 2) return;
    if (plot && plot.root.parentNode === place) { plot.setData(data); return; }
    const axis = { stroke: read("--quiet-seen"), grid: { stroke: read("--line-seen"), width: 1 }, ticks: { show: false } };
    plot = new uPlot({
      width: place.clientWidth || 320,
      height: 150,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [{ ...axis, size: 32, space: 80, incrs: [1, 2, 5, 10, 15, 30, 60, 300, 3600, 86400], values: (_, seconds) => seconds.map(clock) }, { ...axis, size: 44 }],
      series: [{}, ...names.map((_, each) => ({ label: labels[each], stroke: color(each), width: 2, points: { show: false } }))],
    }, data, place);
  };
  const drawSaved = () => {
    const place = document.getElementById("saved-chart");
    if (!place || !window.uPlot || saved[0].length < 2) return;
    if (line && line.root.parentNode === place) { line.setData(saved); return; }
    line = new uPlot({
      width: place.clientWidth || 56,
      height: 24,
      legend: { show: false },
      cursor: { show: false },
      padding: [2, 0, 2, 0],
      scales: { y: { range: (_, low, high) => (high > low ? [low, high] : [low - 1, high + 1]) } },
      axes: [{ show: false }, { show: false }],
      series: [{}, { stroke: color(0), width: 2, points: { show: false } }],
    }, saved, place);
  };
  TensorPlay.sample = () => {
    const pulse = document.getElementById("pulse");
    if (!pulse) return;
    const now = Date.now() / 1000;
    const counts = JSON.parse(pulse.dataset.stats);
    if (before && now - before.now > 0.2) {
      data[0].push(now);
      names.forEach((name, each) => data[each + 1].push(Math.max(0, counts[name] - before.counts[name]) / (now - before.now)));
      if (data[0].length > most) for (const each of data) each.shift();
      saved[0].push(now);
      saved[1].push(Number(pulse.dataset.saved));
      if (saved[0].length > most) for (const each of saved) each.shift();
      draw();
      drawSaved();
    }
    before = { now, counts };
  };
  const anew = () => { plot?.destroy(); line?.destroy(); plot = line = null; draw(); drawSaved(); };
  document.addEventListener("tensorplay:theme", anew);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", anew);
  addEventListener("resize", anew);
  TensorPlay.sample();
})();
