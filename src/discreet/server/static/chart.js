// Charts with error bars, drawn from the answer's own shape.

import { h, svg } from "./dom.js";

const WIDE = 640, PLOT = 220, LEFT = 64, RIGHT = 16, TOP = 16;
const SHOWN = 40;

/** The picture of an answer, or null when a table says it better. */
export function chart(answer) {
  const { kind } = answer.chart;
  if (kind === "number") return numbers(answer);
  if (kind === "bars" || kind === "line" || kind === "grouped" || kind === "histogram") {
    const panels = kind === "histogram" ? histograms(answer) : answer.chart.y.map((y) => series(answer, y));
    return h("div", { class: "charts" }, panels.filter((p) => p.points.length).map((panel) => draw(panel, kind)));
  }
  return null;
}

function place(answer, name) {
  return answer.columns.findIndex((column) => column.name === name);
}

function numbers(answer) {
  const values = answer.columns.map((column, i) => [column, i]).filter(([c]) => c.role === "value");
  return h("div", { class: "numbers" }, values.map(([column, i]) =>
    h("figure", { class: "number" }, h("figcaption", {}, column.name),
      h("span", {}, answer.cells[0]?.[i] ?? "—"))));
}

function series(answer, y) {
  const [x, split, at] = [place(answer, answer.chart.x), answer.chart.series ? place(answer, answer.chart.series) : -1, place(answer, y)];
  const unit = answer.columns[at].margin_unit;
  const points = answer.rows.map((row, i) => ({
    x: text(row[x]), series: split < 0 ? null : text(row[split]), y: row[at], said: answer.cells[i][at],
    ...ends(answer.intervals[i][at]),
  })).filter((p) => typeof p.y === "number");
  return { title: `${y} by ${[answer.chart.x, answer.chart.series].filter(Boolean).join(" and ")}`, points, unit };
}

function histograms(answer) {
  const at = place(answer, answer.chart.y[0]);
  const edges = answer.chart.edges ?? [];
  const margin = answer.margins[0]?.[at] ?? 0;
  const points = (answer.rows[0]?.[at] ?? []).map((count, i) => ({
    x: `${edges[i] ?? i}–${edges[i + 1] ?? ""}`, series: null, y: count, low: count - margin, high: count + margin,
    said: `${count.toLocaleString("en")} ± ${margin.toLocaleString("en")}`,
  }));
  return [{ title: answer.chart.y[0], points, unit: "value" }];
}

const text = (value) => (value === null ? "(none)" : String(value));

function draw(panel, kind) {
  const names = [...new Set(panel.points.map((p) => p.x))].slice(0, SHOWN);
  const parts = [...new Set(panel.points.map((p) => p.series))];
  const points = panel.points.filter((p) => names.includes(p.x));
  const low = Math.min(0, ...points.map((p) => p.low ?? p.y));
  const high = Math.max(1e-9, ...points.map((p) => p.high ?? p.y));
  const ticks = nice(low, high);
  const [first, last] = [ticks[0], ticks[ticks.length - 1]];
  const down = (y) => TOP + PLOT * (1 - (y - first) / (last - first));
  const step = (WIDE - LEFT - RIGHT) / names.length;
  const across = (p) => {
    const inside = (parts.indexOf(p.series) + 0.5) / parts.length;
    return LEFT + step * (names.indexOf(p.x) + 0.1 + 0.8 * inside);
  };
  const slanted = names.some((n) => n.length * 7 > step);
  const tall = TOP + PLOT + (slanted ? 70 : 28);
  const marks = kind === "line"
    ? [path(points, parts, across, down)]
    : points.map((p) => bar(p, parts, across, down, (step * 0.8) / parts.length));
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${tall}`, role: "img",
    "aria-label": `${panel.title}; the table beside it has every value` },
    axis(ticks, down), marks, points.map((p) => error(p, across, down)), labels(names, step, slanted));
  const drawn = panel.unit === "value" || points.some((p) => p.low !== null);
  const margins = drawn ? "with 95 % margins" : `95 % margins in ${panel.unit}: see the table`;
  return h("figure", {}, h("figcaption", {}, `${panel.title}, ${margins}`,
    parts.length > 1 ? h("span", { class: "legend" }, parts.map((p, i) =>
      h("span", {}, h("i", { class: `swatch s${i % 6}` }), p))) : null), picture,
    panel.points.length > points.length ? h("small", {}, `The first ${SHOWN} of the groups.`) : null);
}

function bar(p, parts, across, down, width) {
  const [zero, top] = [down(0), down(p.y)];
  return svg("rect", { class: `bar s${parts.indexOf(p.series) % 6}`, x: across(p) - width / 2 + 1,
    width: Math.max(1, width - 2), y: Math.min(zero, top), height: Math.max(0.5, Math.abs(zero - top)) });
}

function path(points, parts, across, down) {
  return parts.map((part, i) => svg("polyline", { class: `line s${i % 6}`, points: points
    .filter((p) => p.series === part).map((p) => `${across(p)},${down(p.y)}`).join(" ") }));
}

/** The ends of a bar of error, on the value's axis: none where margins are in ranks or rows, or have no end. */
const ends = (interval) => ({ low: interval?.low ?? null, high: interval?.high ?? null });

function error(p, across, down) {
  const x = across(p);
  const title = svg("title", {}, `${p.x}${p.series ? `, ${p.series}` : ""}: ${p.said}`);
  if (p.low === null || p.high === null) return svg("g", {}, title);
  const [high, low] = [down(p.high), down(p.low)];
  return svg("g", { class: "error" }, title,
    svg("path", { d: `M${x} ${high}V${low}M${x - 4} ${high}H${x + 4}M${x - 4} ${low}H${x + 4}` }));
}

function axis(ticks, down) {
  return svg("g", { class: "axis" }, ticks.map((t) => svg("g", {},
    svg("line", { x1: LEFT, x2: WIDE - RIGHT, y1: down(t), y2: down(t), class: t === 0 ? "zero" : "" }),
    svg("text", { x: LEFT - 8, y: down(t) + 4, "text-anchor": "end" }, short(t)))));
}

function labels(names, step, slanted) {
  const every = Math.ceil(names.length / 20);
  return svg("g", { class: "axis" }, names.map((name, i) => {
    if (i % every) return null;
    const x = LEFT + step * (i + 0.5), y = TOP + PLOT + 18;
    const cut = name.length > 14 ? `${name.slice(0, 13)}…` : name;
    return slanted
      ? svg("text", { x, y, "text-anchor": "end", transform: `rotate(-35 ${x} ${y})` }, cut)
      : svg("text", { x, y, "text-anchor": "middle" }, cut);
  }));
}

/** Round steps that cover low..high. */
export function nice(low, high) {
  const rough = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const ticks = [];
  for (let i = Math.floor(low / step); i <= Math.ceil(high / step); i++) ticks.push(i * step);
  return ticks;
}

export function short(value) {
  return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 }).format(value);
}

/** A cumulative curve over time, for the curator. */
export function curve(points, title) {
  if (points.length < 2) return h("p", { class: "quiet" }, "Not enough days to draw yet.");
  const drawn = points.map((p) => ({ x: p.at.slice(0, 16).replace("T", " "), series: null, y: 100 * p.share, low: null, high: null, said: `${(100 * p.share).toLocaleString("en")} %` }));
  const figure = draw({ title, points: drawn, unit: "value" }, "line");
  figure.querySelector("figcaption").textContent = title;
  return figure;
}
