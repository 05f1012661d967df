// What was asked before; looking again is free.

import { answerView } from "./answer.js";
import { get, of } from "./api.js";
import { h, refusalCard, show } from "./dom.js";

const STATES = { answered: "yes", open: "", burnt: "no", refused: "no", closed: "yes" };

export async function historyView(main, state) {
  const list = h("ol", { class: "history" });
  const result = h("section", { "aria-label": "Answer", class: "result" });
  const more = h("button", { class: "quiet", onclick: () => page() }, "Earlier questions");
  let next = null;

  async function page() {
    const before = next ? `&before=${next}` : "";
    const found = await get(`${of(state.dataset.name, "transcript")}?limit=25${before}`);
    next = found.next;
    more.hidden = !next;
    list.append(...found.entries.map(entry));
    if (!list.children.length) list.append(h("li", { class: "quiet" }, "Nothing was asked yet."));
  }

  function entry(e) {
    return h("li", { class: "card" },
      h("div", { class: "row" },
        h("span", {}, h("time", { datetime: e.at }, new Date(e.at).toLocaleString("en-GB")), ` · ${e.analyst} `),
        h("span", { class: `badge ${STATES[e.state]}` }, e.code ? `${e.state}: ${e.code}` : e.state)),
      e.question ? h("pre", { class: "question", tabindex: "0" }, e.question)
        : h("p", { class: "quiet" }, `${e.count.toLocaleString("en-GB")} more; only the first of a kind are kept each day.`),
      h("div", { class: "row" }, h("small", {}, e.state === "refused" ? "cost nothing" : `cost ${e.price.text}`),
        h("span", { class: "actions" },
          e.question ? h("button", { class: "quiet", onclick: () => again(e) }, "Edit") : null,
          e.answer && e.shown ? h("button", { class: "quiet", onclick: () => open(e) }, "Show again, free") : null)));
  }

  function again(e) {
    const [mode, amount] = Object.entries(e.spend).find(([name]) => name !== "delta" && name !== "confidence") ?? ["epsilon", "0.1"];
    const plain = typeof amount === "object" ? amount[""] ?? Object.values(amount)[0] : amount;
    state.draft = { question: e.question, mode, amount: String(plain), delta: e.spend.delta ?? "" };
    location.hash = "#ask";
  }

  async function open(e) {
    try {
      show(result, answerView(await get(of(state.dataset.name, "answers", e.answer)), state.dataset.name));
    } catch (error) {
      show(result, refusalCard(error.refusal));
    }
    result.scrollIntoView();
  }

  show(main, h("h1", {}, "History"), result, list, more);
  await page();
}
