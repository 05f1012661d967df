// What was asked before; looking again is free.

import { addressOf } from "./answer.js";
import { get, of } from "./api.js";
import { field, h, show } from "./dom.js";

/** @type {Record<string, string>} */
const STATES = { answered: "yes", open: "", burnt: "no", refused: "no", closed: "yes" };
const PAUSE = 250;

/** @param {HTMLElement} main @param {import("./app.js").Shown} state */
export async function historyView(main, state) {
  const list = h("ol", { class: "history" });
  const more = h("button", { class: "quiet", onclick: () => page() }, "Earlier questions");
  const words = h("input", { type: "search", maxlength: "200", placeholder: "words of the question", oninput: () => soon() });
  /** @type {string | null} */
  let next = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let pending;
  let turn = 0;

  const soon = () => { clearTimeout(pending); pending = setTimeout(begin, PAUSE); };
  async function begin() {
    next = null;
    turn += 1;
    await page();
  }

  async function page() {
    const mine = turn;
    more.hidden = true;
    if (!next) show(list, h("li", { class: "quiet" }, "Looking…"));
    const query = new URLSearchParams({ limit: "25", ...(next ? { before: next } : {}), ...(words.value ? { contains: words.value } : {}) });
    /** @type {Api.Transcript} */
    const found = await get(`${of(state.dataset.name, "transcript")}?${query}`);
    if (mine !== turn) return; // another search began
    if (!next) list.replaceChildren();
    next = found.next;
    more.hidden = !next;
    list.append(...found.entries.map(entry));
    if (!list.children.length) {
      list.append(h("li", { class: "quiet" }, words.value ? (next ? "Nothing here yet; look further back." : "No question has these words.") : "Nothing was asked yet."));
    }
  }

  /** @param {Api.Entry} e */
  function entry(e) {
    return h("li", { class: "card" },
      h("div", { class: "row" },
        h("span", {}, h("time", { datetime: e.at }, new Date(e.at).toLocaleString("en-GB")), ` · ${e.analyst} `),
        h("span", { class: `badge ${STATES[e.state]}` }, e.code ? `${e.state}: ${e.code}` : e.state)),
      e.question ? h("pre", { class: "question", tabindex: "0" }, e.question)
        : h("p", { class: "quiet" }, `${e.count.toLocaleString("en-GB")} more; only the first of a kind are kept each day.`),
      h("div", { class: "row" }, h("small", {}, e.state === "refused" ? "cost nothing" : `cost ${e.price?.text}`),
        h("span", { class: "actions" },
          e.question ? h("button", { class: "quiet", onclick: () => again(e) }, "Edit") : null,
          e.answer && e.shown ? h("a", { class: "button quiet", href: addressOf(state.dataset.name, { id: e.answer }) }, "Show again, free") : null)));
  }

  /** @param {Api.Entry} e */
  function again(e) {
    const [mode, amount] = Object.entries(e.spend).find(([name]) => name !== "delta" && name !== "confidence") ?? ["epsilon", "0.1"];
    const plain = typeof amount === "object" ? amount[""] ?? Object.values(amount)[0] : amount;
    state.draft = { question: e.question, mode, amount: String(plain), delta: e.spend.delta ?? "", choice: "" };
    location.hash = "#ask";
  }

  show(main, h("h1", {}, "History"), field("Search", words), list, more);
  await page();
}
