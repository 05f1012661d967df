// Compose a question, see its price and margin while typing, ask it.

import { answerView } from "./answer.js";
import { ask as send, get, of, Refused, send as post } from "./api.js";
import { Editor } from "./editor.js";
import { field, h, refusalCard, show, tell } from "./dom.js";

const PAUSE = 250;

/** The view in which most of the time is spent. */
export async function ask(main, state) {
  const { dataset, schema } = state;
  state.draft ??= { question: schema.examples[0] ?? "", mode: "epsilon", amount: "0.1", delta: "" };
  const draft = state.draft;
  const price = h("div", { class: "price", "aria-live": "polite" });
  const result = h("section", { class: "result", "aria-label": "Answer" });
  const left = h("p", { class: "left quiet" });
  const button = h("button", { class: "main", type: "submit" }, "Ask");
  let waiting, pending;

  const editor = new Editor({ words: words(schema), value: draft.question,
    onchange: (text) => { draft.question = text; soon(); }, onrun: () => run() });
  const spend = offer(draft, () => soon());

  function soon() {
    waiting?.abort(); // what it says is of a text that is no more
    clearTimeout(pending);
    pending = setTimeout(quote, PAUSE);
  }

  async function quote() {
    waiting?.abort();
    waiting = new AbortController();
    if (!editor.value.trim()) return show(price, h("p", { class: "quiet" }, "Write a question to see its price."));
    try {
      const found = await post("POST", of(dataset.name, "explain"), body(draft), { signal: waiting.signal });
      editor.underline(null);
      show(price, quoted(found));
      button.textContent = found.free ? "Ask (free)" : "Ask";
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      if (!(error instanceof Refused)) throw error;
      refused(error.refusal, draft.question);
    }
    return undefined;
  }

  function refused(told, question) {
    // What can be offered is a button here, and is called as it is on the button.
    const refusal = { ...told, fix: Object.entries(told.offer ?? {}).reduce((words, [name, amount]) =>
      words.replace(`"${name}": "${amount}"`, `${SIGNS[name] ?? name} ${amount}`), told.fix) };
    editor.underline(question === editor.value ? refusal.place : null);
    const use = refusal.rewriting && h("button", { type: "button", class: "fix",
      onclick: () => { editor.value = refusal.rewriting; editor.area.focus(); } }, "Use this instead");
    const offers = Object.entries(refusal.offer ?? {}).map(([name, amount]) => h("button", { type: "button",
      class: "fix", onclick: () => spend.set(name, amount) }, `Offer ${SIGNS[name] ?? name} ${amount}`));
    show(price, refusalCard(refusal, ...(use ? [h("code", { class: "rewriting" }, refusal.rewriting), use] : []),
      ...offers));
  }

  async function run(event) {
    event?.preventDefault();
    waiting?.abort(); // a price that comes late would stand where a refusal is told
    clearTimeout(pending);
    button.disabled = true;
    const asked = body(draft);
    show(result, h("p", { class: "quiet" }, "Charging, computing, adding noise…"));
    try {
      const answer = await send(dataset.name, asked, {
        onprogress: (job) => show(result, h("label", {}, `Working (${job.state})… `,
          h("progress", { max: "1", value: job.progress })))});
      show(result, answerView(answer, dataset.name, asked));
      tell(answer.replayed ? "Answered before: this cost nothing." : `Answered. It cost ${answer.paid.text}.`);
      await balance();
      soon();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const same = asked.question === editor.value; // else what is priced is another question
      show(result, same ? null : refusalCard(error.refusal));
      if (same) refused(error.refusal, asked.question);
    } finally {
      button.disabled = false;
    }
  }

  async function balance() {
    try {
      const found = await get(of(dataset.name, "balance"));
      const own = found.analyst?.budget ? found.analyst : found.dataset;
      const gauge = found.entities.reduce((most, e) => (e.share > most.share ? e : most), own);
      show(left, h("b", {}, "Left: "), gauge.remaining?.text.split("\n")[0] ?? found.text);
    } catch (error) {
      // A line that is missing is no reason to take the question or the answer away.
      if (!(error instanceof Refused) || error.status === 401) throw error;
      show(left, error.refusal.what);
    }
  }

  show(main, h("h1", {}, "Ask"),
    h("form", { class: "card", onsubmit: run }, editor.element,
      h("div", { class: "offer" }, spend, button), left),
    h("section", { class: "card", "aria-label": "Price" }, price),
    result);
  editor.draw();
  await Promise.all([quote(), balance()]);
}

/** What is sent: the question and exactly one kind of offer. */
export function body(draft) {
  const offered = { question: draft.question };
  if (draft.mode !== "statement") offered[draft.mode] = draft.amount || "0";
  if (draft.delta) offered.delta = draft.delta;
  return offered;
}

const MODES = {
  epsilon: ["spend ε", "Smaller is more private and less accurate."],
  within: ["be within ±", "At 95 % confidence, for the least price."],
  rho: ["spend ρ", "For Gaussian noise, where many questions follow."],
  statement: ["what the SQL says", "OPTIONS(epsilon = …) inside the statement."],
};

const SIGNS = { epsilon: "ε =", rho: "ρ =", delta: "δ =", within: "±" };

function offer(draft, changed) {
  const hint = h("small", {});
  const amount = h("input", { value: draft.amount, inputmode: "decimal", size: "8",
    oninput: (event) => { draft.amount = event.target.value; changed(); } });
  const delta = h("input", { value: draft.delta, inputmode: "decimal", size: "8", placeholder: "none",
    oninput: (event) => { draft.delta = event.target.value; changed(); } });
  const mode = h("select", { onchange: (event) => set(event.target.value) },
    Object.entries(MODES).map(([name, [words]]) => h("option", { value: name }, words)));
  const box = field("Amount", amount);
  function set(name) {
    if (draft.mode !== name && name !== "statement") amount.value = draft.amount = name === "within" ? "50" : "0.1";
    draft.mode = mode.value = name;
    hint.textContent = MODES[name][1];
    box.hidden = name === "statement";
    changed();
  }
  mode.value = draft.mode;
  hint.textContent = MODES[draft.mode][1];
  box.hidden = draft.mode === "statement";
  const fields = [field("I want to", mode), box, field("δ, if groups are private", delta), h("div", { class: "hint" }, hint)];
  // What a refusal says would do, at a click.
  fields.set = (name, value) => {
    if (name === "delta") delta.value = draft.delta = value;
    else { set(name); amount.value = draft.amount = value; }
    changed();
  };
  return fields;
}

function quoted(found) {
  const state = found.free ? ["free", "free: answered before"]
    : found.affordable ? ["yes", "affordable"] : ["no", "more than is left"];
  return [
    h("p", { class: "cost" }, h("span", { class: "label" }, "Price "), h("b", {}, found.price.text), " ",
      h("span", { class: `badge ${state[0]}` }, state[1])),
    h("ul", { class: "margins" }, found.columns.filter((c) => c.role === "value").map((c) =>
      h("li", {}, h("b", {}, c.name), " ", c.margin_text ?? "computed from the others, free"))),
    found.notes.length ? h("details", {}, h("summary", {}, "What the margins do not tell"),
      h("ul", {}, found.notes.map((note) => h("li", {}, note)))) : null,
    h("details", {}, h("summary", {}, "How it is computed"), h("pre", { class: "scroll", tabindex: "0" }, found.text)),
  ];
}

function words(schema) {
  const tables = schema.tables.map((t) => ({ word: t.name, kind: "table", hint: t.public ? "public table" : "private table" }));
  const columns = schema.tables.flatMap((t) => t.columns.map((c) => ({ word: c.name, kind: "column", hint: `${c.text} · ${t.name}` })));
  const functions = [...schema.aggregates, ...schema.functions].map((f) => ({ word: f.name, kind: "function", hint: f.meaning }));
  const keywords = schema.keywords.map((k) => ({ word: k, kind: "keyword", hint: "" }));
  const seen = new Set();
  return [...columns, ...tables, ...functions, ...keywords].filter((w) => !seen.has(w.word) && seen.add(w.word));
}
