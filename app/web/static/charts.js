// Charts of the pages. Each stands beside its numbers, which need no script.
"use strict";
(() => {
  const HEIGHT = 260;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const percent = (value) => `${+(100 * value).toFixed(1)} %`;
  const short = (value) => (value === null ? "–" : `${+value.toPrecision(3)}`);

  const two = (number) => String(number).padStart(2, "0");
  const day = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const clock = (date) => `${two(date.getHours())}:${two(date.getMinutes())}`;
  const seconds = (date) => `${clock(date)}:${two(date.getSeconds())}`;
  const moment = (at) => `${day(new Date(1000 * at))} ${clock(new Date(1000 * at))}`;
  // Times of an axis; a new day also shows its date.
  const days = (_, ticks) => ticks.map((at, index) => {
    const date = new Date(1000 * at), before = index && new Date(1000 * ticks[index - 1]);
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 60;
    if (step >= 86400) return day(date).slice(5);
    const time = step < 60 ? seconds(date) : clock(date);
    return before && day(before) === day(date) ? time : `${time}\n${day(date).slice(5)}`;
  });

  const axes = (x, y, more = {}) => [x, y].map((label) => ({
    label,
    stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    size: label === y ? 64 : 40,
    ...(more[label] ?? {}),
  }));

  const CHARTS = {
    "burn-down"({ left, forecast }) {
      const points = left.map(([at, share]) => [at, share, null]);
      if (forecast) {
        points[points.length - 1][2] = forecast[0][1];
        const span = Math.max(left[left.length - 1][0] - left[0][0], 20);
        const [x0, y0] = forecast[0], [x1] = forecast[1];
        const x = Math.min(x1, x0 + 2 * span);
        points.push([x, null, y0 * (1 - (x - x0) / (x1 - x0))]);
      }
      const columns = [0, 1, 2].map((i) => points.map((point) => point[i]));
      return {
        data: columns,
        scales: { y: { range: [0, 1] } },
        axes: axes("", "left", { left: { values: (_, ticks) => ticks.map(percent) }, "": { values: days } }),
        series: [
          { label: "at", value: (_, at) => (at === null ? "–" : moment(at)) },
          { label: "left", stroke: colour("--accent"), width: 2, fill: colour("--accent-soft"),
            points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }), value: (_, v) => (v === null ? "–" : percent(v)) },
          { label: "at this pace", stroke: colour("--quiet"), dash: [5, 4], width: 1.5, points: { show: false },
            value: (_, v) => (v === null ? "–" : percent(v)) },
        ],
      };
    },
    tradeoff({ alpha, beta, promised_beta }) {
      const shown = (_, v) => (v === null ? "–" : percent(v));
      const shares = { values: (_, ticks) => ticks.map(percent) };
      return {
        data: [alpha, beta, promised_beta],
        scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1] } },
        axes: axes("wrongly accused", "missed", { "wrongly accused": shares, missed: shares }),
        series: [
          { label: "wrongly accused", value: shown },
          { label: "missed", stroke: colour("--accent"), width: 2, fill: colour("--accent-soft"), value: shown },
          { label: "if used up", stroke: colour("--quiet"), dash: [5, 4], width: 1.5, value: shown },
        ],
      };
    },
    "error-price"({ epsilon, error, unit, now }) {
      const mark = epsilon.map((value) => (value === now ? error[epsilon.indexOf(now)] : null));
      return {
        data: [epsilon, error, mark],
        scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
        axes: axes("price ε", unit),
        series: [
          { label: "price ε", value: (_, v) => short(v) },
          { label: `± ${unit}`, stroke: colour("--accent"), width: 2, value: (_, v) => short(v) },
          { label: "now", stroke: colour("--much"), width: 0, points: { show: true, size: 10 }, value: (_, v) => short(v) },
        ],
      };
    },
  };

  function draw(figure) {
    const source = figure.querySelector("script");
    if (!source) return;
    drawn.get(figure)?.destroy();
    const { data, ...options } = CHARTS[figure.dataset.chart](JSON.parse(source.textContent));
    const size = { width: Math.max(figure.clientWidth, 200), height: HEIGHT };
    drawn.set(figure, new uPlot({ ...size, ...options, padding: [10, 22, 0, 0], cursor: { drag: { x: false } } }, data, figure));
  }

  function drawAll() {
    for (const figure of drawn.keys()) {
      if (!figure.isConnected) { drawn.get(figure).destroy(); drawn.delete(figure); }
    }
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      if (!drawn.has(figure)) draw(figure);
    }
  }

  const redraw = () => { for (const figure of [...drawn.keys()]) if (figure.isConnected) draw(figure); };
  let waiting;
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(redraw, 100); });
  dark.addEventListener("change", redraw);
  document.addEventListener("htmx:after:swap", drawAll);
  drawAll();
})();
