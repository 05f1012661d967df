// What is left: one gauge each for the dataset, the analyst, and every block.

import { get, of } from "./api.js";
import { h, show } from "./dom.js";

export function gauge(found, label) {
  const percent = Math.min(100, Math.ceil(1000 * found.share) / 10);
  const words = found.remaining?.text.split("\n") ?? [];
  return h("div", { class: "gauge" },
    h("div", { class: "row" }, h("b", {}, label ?? found.name), h("span", {}, `${percent} % used`)),
    h("meter", { min: "0", max: "100", low: "60", high: "85", optimum: "0", value: String(percent),
      "aria-label": `${label ?? found.name}: ${percent} % used` }),
    h("p", {}, words[0] ?? "No limit of its own."),
    h("small", {}, [found.budget ? `Budget ${found.budget.text}. ` : "", `Spent ${found.spent.text}.`]));
}

export async function balanceView(main, state) {
  const found = await get(of(state.dataset.name, "balance"));
  const blocks = [...found.blocks].sort((a, b) => b.share - a.share);
  const shown = blocks.slice(0, 24);
  show(main, h("h1", {}, "Balance"),
    h("section", { class: "card gauges", "aria-label": "Dataset and analyst" },
      gauge(found.dataset, `Dataset ${state.dataset.name}`),
      found.analyst ? gauge(found.analyst, `Your allocation (${state.dataset.analyst})`) : null),
    found.entities.length ? h("section", { class: "card", "aria-label": "People in several datasets" },
      h("h2", {}, "People in several datasets"),
      h("p", {}, "What the same people lose in all datasets that are about them is counted together."),
      h("div", { class: "gauges" }, found.entities.map((e) => h("div", {}, gauge(e, `Each ${e.name}, in all datasets`),
        h("ul", {}, e.datasets.map((d) => h("li", {}, `${d.name}: ${d.spent.text}`))))))) : null,
    blocks.length ? h("section", { class: "card", "aria-label": "Blocks" },
      h("h2", {}, "Blocks"),
      h("p", {}, "People in different blocks pay separately: a question about one block leaves the others as they are."),
      h("div", { class: "gauges" }, shown.map((b) => gauge(b))),
      blocks.length > shown.length ? h("p", { class: "quiet" },
        `${blocks.length - shown.length} more blocks have used less.`) : null) : null);
}
