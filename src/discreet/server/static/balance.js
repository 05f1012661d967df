// What is left, and what that means: both currencies, every block, over time, in one's own questions.

import { get, of } from "./api.js";
import { h, show, table } from "./dom.js";
import { picture } from "./picture.js";

const RECENT = 5, SHADES = 10, FEW_BLOCKS = 16;

/** @param {Api.Gauge} found @param {string} [label] */
export function gauge(found, label) {
  const percent = Math.min(100, Math.ceil(1000 * found.share) / 10);
  const words = found.remaining?.text.split("\n") ?? [];
  return h("div", { class: "gauge" },
    h("div", { class: "row" }, h("b", {}, label ?? found.name), h("span", {}, `${percent} % used`)),
    h("meter", { min: "0", max: "100", low: "60", high: "85", optimum: "0", value: String(percent),
      "aria-label": `${label ?? found.name}: ${percent} % used` }),
    h("p", {}, words[0] ?? "No limit of its own."),
    h("small", {}, [found.budget ? `Budget ${found.budget.text}. ` : "", `Spent ${found.spent.text}.`]),
    found.budget && found.remaining ? currencies(found.spent, found.budget, found.remaining) : null);
}

/**
 * An exact amount, as the server writes it, for a picture.
 * @param {string | null | undefined} text
 */
export function amount(text) {
  if (text === null || text === undefined) return Infinity;
  const [above, below] = String(text).split("/");
  return Number(above) / Number(below ?? 1);
}

/**
 * What a percentage is of: the sum of ε, and the sum of ρ, each against what it may reach.
 * @param {{ spent: Pick<Api.Price, "epsilon" | "rho">, remaining: Pick<Api.Remaining, "epsilon" | "rho"> }} found
 */
export function shares(found) {
  const share = (/** @type {string | null} */ spent, /** @type {string | null} */ left) => {
    const [s, l] = [amount(spent), amount(left)];
    if (s === Infinity || left === null) return null;
    return s + l > 0 ? Math.min(1, s / (s + l)) : 0;
  };
  return { pure: share(found.spent.epsilon, found.remaining.epsilon), concentrated: share(found.spent.rho, found.remaining.rho) };
}

/** @param {Api.Price} spent @param {Api.Budget} budget @param {Api.Remaining} remaining */
function currencies(spent, budget, remaining) {
  const { pure, concentrated } = shares({ spent, remaining });
  const percent = (/** @type {number} */ x) => `${(100 * x).toLocaleString("en", { maximumFractionDigits: 1 })} %`;
  const said = [
    pure === null ? null : `Added up as ε: ${percent(pure)} of ε = ${budget.epsilon ?? "∞"}.`,
    concentrated === null || !(amount(remaining.rho) > 0 || amount(spent.rho) > 0) ? null
      : `Added up as ρ: ${percent(concentrated)} of what the same promise allows.`,
  ].filter(Boolean);
  return said.length ? h("details", {}, h("summary", {}, "What the percentage means"),
    h("ul", {}, said.map((s) => h("li", {}, s))),
    h("p", {}, "Losses are added up both ways, and a question is admitted if either sum still fits; the percentage is the smaller share.")) : null;
}

/** @param {HTMLElement} main @param {import("./app.js").Shown} state */
export async function balanceView(main, state) {
  const path = (/** @type {string[]} */ ...parts) => of(state.dataset.name, ...parts);
  /** @type {Api.Balance} */
  const found = await get(path("balance"));
  const affordable = h("div", {}, h("p", { class: "quiet" }, "Looking at recent questions…"));
  const own = state.dataset.role === "analyst";
  show(main, h("h1", {}, "Balance"),
    h("section", { class: "card gauges", "aria-label": "Dataset and analyst" },
      gauge(found.dataset, `Dataset ${state.dataset.name}`),
      found.analyst ? gauge(found.analyst, `Your allocation (${state.dataset.analyst})`) : null,
      found.group ? gauge(found.group, `Your group ${found.group.name}, together`) : null),
    h("section", { class: "card", "aria-label": "Still affordable" }, h("h2", {}, "What is still affordable"), affordable),
    h("section", { class: "card", "aria-label": "Spending" }, h("h2", {}, own ? "What you spent, over time" : "Spending over time"),
      picture(`${path("spending")}?by=hour`, { alt: "Spent over time" })),
    found.entities.length ? h("section", { class: "card", "aria-label": "People in several datasets" },
      h("h2", {}, "People in several datasets"),
      h("p", {}, "What the same people lose in all datasets that are about them is counted together."),
      h("div", { class: "gauges" }, found.entities.map((e) => h("div", {}, gauge(e, `Each ${e.name}, in all datasets`),
        h("ul", {}, e.datasets.map((d) => h("li", {}, `${d.name}: ${d.spent.text}`))))))) : null,
    found.blocks.length ? blocks(found.blocks) : null);
  const tightest = [found.dataset, found.analyst, found.group, ...found.entities].flatMap((g) => g?.remaining ?? []);
  const { entries } = await get(`${path("transcript")}?limit=100`);
  show(affordable, repeats(entries, tightest));
}

/**
 * Every block as a cell of a strip, by name; darker is fuller.
 * @param {Api.Gauge[]} found
 */
function blocks(found) {
  const named = found.length <= FEW_BLOCKS; // more names than that are no strip any more
  const ordered = [...found].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  return h("section", { class: "card", "aria-label": "Blocks" }, h("h2", {}, "Blocks"),
    h("p", {}, "People in different blocks pay separately: a question about one block leaves the others as they are."),
    h("ol", { class: named ? "strip named" : "strip" }, ordered.map((b) => {
      const text = `${b.name}: ${Math.min(100, Math.ceil(1000 * b.share) / 10)} % used`;
      return h("li", { title: text }, h("i", { class: `cell heat${Math.min(SHADES, Math.ceil(SHADES * b.share))}` }),
        named ? h("small", { "aria-hidden": "true" }, b.name) : null, h("span", { class: "hidden" }, text));
    })),
    h("p", { class: "scale" }, h("small", {}, "unused"), [...Array(SHADES + 1).keys()].map((i) => h("i", { class: `heat${i}` })), h("small", {}, "used up")),
    h("details", {}, h("summary", {}, "The fullest blocks, in words"), h("div", { class: "gauges" },
      [...found].sort((a, b) => b.share - a.share).slice(0, 24).map((b) => gauge(b)))));
}

/**
 * How often each of the recent questions could be paid for again, measured anew.
 * @param {Pick<Api.Price, "epsilon" | "rho">} price
 * @param {Pick<Api.Remaining, "epsilon" | "rho">[]} left
 */
export function count(price, left) {
  const times = left.map((g) => Math.max(
    g.epsilon === null || !price.epsilon ? 0 : Math.floor(amount(g.epsilon) / amount(price.epsilon) + 1e-9),
    price.rho && amount(price.rho) > 0 ? Math.floor(amount(g.rho) / amount(price.rho) + 1e-9) : 0));
  return Math.min(...times);
}

/** @param {Api.Entry[]} entries @param {Api.Remaining[]} left */
function repeats(entries, left) {
  const seen = new Set();
  const paid = entries.filter((e) => e.question && e.price && e.state === "answered" && !seen.has(e.question) && seen.add(e.question)).slice(0, RECENT);
  if (!paid.length) return h("p", { class: "quiet" }, "Ask something first: then this says how often you could ask it anew.");
  return [h("p", {}, "Recent questions, measured anew at the same price (asked again as they are, they are free):"),
    table("Recent questions and how often they could be paid for", ["question", "price", "about so many more"], paid.map((e) =>
      [h("td", {}, h("code", {}, e.question)), e.price?.text, h("td", { class: "right" }, e.price ? count(e.price, left).toLocaleString("en") : "")]))];
}
