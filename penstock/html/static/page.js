// The chart of a group, and what a browser has to be told before somebody logs in. All else is HTML.
"use strict";
(() => {
  const insecure = document.getElementById("insecure");
  if (insecure && !window.isSecureContext) insecure.hidden = false;

  const place = document.getElementById("chart");
  if (!place) return;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const width = () => Math.max(200, place.clientWidth);
  const whole = (u, values) => values.map((value) => (Number.isInteger(value) ? value.toLocaleString("en") : ""));
  let points = JSON.parse(place.dataset.points);
  let plot = null;

  const draw = () => {
    if (plot) plot.destroy();
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    plot = new uPlot({
      width: width(),
      height: 220,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      fmtDate: (template) => uPlot.fmtDate(template),
      scales: { y: { range: (u, low, high) => [0, Math.max(1, high * 1.08)] } },
      axes: [
        { ...axis, values: "{HH}:{mm}:{ss}", space: 80, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600] },
        { ...axis, size: 64, values: whole },
      ],
      series: [
        { label: "UTC", value: "{HH}:{mm}:{ss}" },
        { label: "Lag", stroke: color("--lag"), width: 2, points: { show: points[0].length < 3 } },
        { label: "Pending", stroke: color("--pending"), width: 2, points: { show: points[0].length < 3 } },
      ],
    }, points, place);
  };

  draw();
  dark.addEventListener("change", draw);
  window.addEventListener("resize", () => plot.setSize({ width: width(), height: 220 }));
  place.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.successful) return;
    points = JSON.parse(event.detail.xhr.responseText);
    plot.setData(points);
  });
})();
