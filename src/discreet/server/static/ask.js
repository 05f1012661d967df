// The workbench: the schema beside the editor, live offers, the answer below.

import { answerView } from "./answer.js";
import { ask as send, get, of, Refused, send as post } from "./api.js";
import { Editor } from "./editor.js";
import { field, h, refusalCard, show, tell } from "./dom.js";
import { picture } from "./picture.js";
import { schemaPanel } from "./schema.js";

const PAUSE = 250;

/** @typedef {{ question: string, mode: string, amount: string, delta: string, choice: string }} Draft */
/** @typedef {{ me: any, picked: string | null, dataset: any, schema: any, draft: Draft | null }} State */

/**
 * The view in which most of the time is spent.
 * @param {HTMLElement} main
 * @param {State} state
 */
export async function ask(main, state) {
  const { dataset, schema } = state;
  state.draft ??= { question: schema.examples[0] ?? "", mode: "epsilon", amount: "0.1", delta: "", choice: "" };
  const draft = state.draft;
  const price = h("div", { class: "price", "aria-live": "polite" });
  const result = h("section", { class: "result", "aria-label": "Answer" });
  const left = h("p", { class: "left quiet" });
  const button = h("button", { class: "main", type: "submit" }, "Ask");
  const slide = slider(dataset.name, draft, (point) => spend.slide(point));
  let waiting, pending;
  let known = { question: "", choices: [] }; // the ways to an answer, before one was chosen

  const editor = new Editor({ schema, value: draft.question,
    onchange: (text) => {
      if (text !== draft.question) draft.choice = ""; // it was of another question
      draft.question = text;
      soon();
    }, onrun: () => run() });
  const spend = offer(draft, () => soon());

  function soon() {
    waiting?.abort(); // what it says is of a text that is no more
    clearTimeout(pending);
    pending = setTimeout(quote, PAUSE);
  }

  async function quote() {
    waiting?.abort();
    waiting = new AbortController();
    const { signal } = waiting;
    if (!editor.value.trim()) {
      slide.hide();
      return show(price, h("p", { class: "quiet" }, "Write a question to see its price."));
    }
    try {
      const found = await post("POST", of(dataset.name, "explain"), body(draft), { signal });
      editor.underline(null);
      if (!draft.choice || known.question !== draft.question) known = { question: draft.question, choices: found.choices };
      show(price, quoted(found, known.choices, draft, (choice) => { draft.choice = choice; quote(); }));
      button.textContent = found.free ? "Ask (free)" : "Ask";
      await slide.follow(draft.question, signal);
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      if (!(error instanceof Refused)) throw error;
      slide.hide();
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
    if (button.disabled) return; // one at a time, by the keyboard too
    waiting?.abort(); // a price that comes late would stand where a refusal is told
    clearTimeout(pending);
    button.disabled = true;
    const asked = body(draft);
    show(result, h("p", { class: "card quiet" }, "Charging, computing, adding noise…"));
    try {
      const answer = await send(dataset.name, asked, {
        onprogress: (job) => show(result, h("label", { class: "card" }, `Working (${job.state})… `,
          h("progress", { max: "1", value: job.progress })))});
      draft.choice = "";
      show(result, answerView(answer, dataset.name, asked));
      tell(answer.replayed ? "Answered before: this cost nothing." : `Answered. It cost ${answer.paid.text}.`, { seen: true });
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
    h("div", { class: "bench" },
      schemaPanel(schema, (word) => editor.insert(word)),
      h("div", { class: "work" },
        h("form", { class: "card", onsubmit: run }, editor.element,
          h("div", { class: "offer" }, spend.fields, button), slide.element, left),
        h("section", { class: "card", "aria-label": "Price" }, price),
        result)));
  editor.draw();
  await Promise.all([quote(), balance()]);
}

/** What is sent: the question and exactly one kind of offer; none for what is known. @param {Draft} draft */
export function body(draft) {
  /** @type {Record<string, any>} */
  const offered = { question: draft.question };
  if (draft.choice === "free") return offered;
  if (draft.mode !== "statement") offered[draft.mode] = draft.amount || "0";
  if (draft.delta) offered.delta = draft.delta;
  if (draft.choice === "new") offered.fresh = true;
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
  /** What a refusal says would do, at a click. */
  function take(name, value) {
    if (name === "delta") delta.value = draft.delta = value;
    else { set(name); amount.value = draft.amount = value; }
    changed();
  }
  /** A point of the curve: its price, or its margin where margins are what is offered. */
  function slide(point) {
    const margin = Object.values(point.margins).find((m) => m);
    const within = draft.mode === "within" && margin;
    take(within ? "within" : "epsilon", within ? String(Math.ceil(margin)) : point.epsilon);
  }
  return { fields, set: take, slide };
}

/** Price against accuracy: a slider over the points of the curve, and the curve. */
function slider(dataset, draft, picked) {
  const range = h("input", { type: "range", min: "0", max: "1", step: "1", "aria-label": "Between price and accuracy",
    oninput: () => say(), onchange: () => picked(points[Number(range.value)]) });
  const words = h("output", {});
  const drawn = h("div", {});
  const more = h("details", { ontoggle: () => draw() }, h("summary", {}, "Accuracy against price"), drawn);
  const element = h("div", { class: "slider", hidden: true },
    h("div", { class: "ends" }, h("small", {}, "cheaper"), range, h("small", {}, "more accurate")), words, more);
  let points = [], of_ = "", shown = "";

  function say() {
    const point = points[Number(range.value)];
    if (!point) return;
    const text = `ε = ${point.epsilon}: ${Object.entries(point.words).map(([n, w]) => `${n} ${w}`).join(", ")}`;
    words.textContent = text;
    range.setAttribute("aria-valuetext", text);
  }

  function draw() {
    if (!more.open || shown === of_) return;
    shown = of_;
    show(drawn, picture(of(dataset, "curve"), { body: { question: of_, ...(draft.delta ? { delta: draft.delta } : {}) }, alt: "Accuracy against price" }));
  }

  return {
    element,
    hide: () => { element.hidden = true; },
    async follow(question, signal) {
      if (question !== of_ || element.hidden) {
        await new Promise((later) => { setTimeout(later, PAUSE); });
        if (signal.aborted) return; // somebody is typing still
        try {
          const asked = { question, ...(draft.delta ? { delta: draft.delta } : {}) };
          ({ points } = await post("POST", of(dataset, "curve"), asked, { signal }));
        } catch (error) {
          if (error instanceof Refused) { // an offer in the statement, or what only δ pays for
            element.hidden = true;
            return;
          }
          throw error;
        }
        of_ = question;
        range.max = String(points.length - 1);
      }
      element.hidden = false;
      range.value = String(nearest(points, draft));
      say();
      draw();
    },
  };
}

/** The point of the curve that is nearest to what is offered. */
export function nearest(points, draft) {
  const amount = Number(draft.amount);
  if (!points.length || !(amount > 0)) return 0;
  const of_ = (p) => (draft.mode === "within" ? Object.values(p.margins).find((m) => m) ?? 1 : Number(p.epsilon));
  const apart = points.map((p) => Math.abs(Math.log(of_(p) / amount)));
  return apart.indexOf(Math.min(...apart));
}

const WAYS = { free: "Free", improve: "Improve", new: "New" };

/** Which way a choice is: what is known, an improvement of it, or a new measurement. */
export function wayOf(choice) {
  if (choice.free) return "free";
  return choice.source.startsWith("improves") ? "improve" : "new";
}

function quoted(found, choices, draft, choose) {
  const state = found.free ? ["free", draft.choice === "free" ? "free: it is known" : "free: answered before"]
    : found.affordable ? ["yes", "affordable"] : ["no", "more than is left"];
  return [
    h("p", { class: "cost" }, h("span", { class: "label" }, "Price "), h("b", {}, found.free ? found.price.text : found.charge.text), " ",
      h("span", { class: `badge ${state[0]}` }, state[1])),
    h("ul", { class: "margins" }, found.columns.filter((c) => c.role === "value").map((c) =>
      h("li", {}, h("b", {}, c.name), " ", c.margin_text ?? "computed from the others, free"))),
    choices.length > 1 ? ways(found, choices, draft, choose) : null,
    found.notes.length ? h("details", {}, h("summary", {}, "What the margins do not tell"),
      h("ul", {}, found.notes.map((note) => h("li", {}, note)))) : null,
    h("details", {}, h("summary", {}, "How it is computed"), h("pre", { class: "scroll", tabindex: "0" }, found.text)),
  ];
}

/** Free, improve or new: what each costs and is worth; the chosen one is what is asked. */
function ways(found, choices, draft, choose) {
  const by = new Map(choices.map((c) => [wayOf(c), c]));
  const now = draft.choice || (found.free ? "free" : by.has("improve") ? "improve" : "new");
  return h("div", { class: "ways", role: "group", "aria-label": "Ways to an answer" },
    [...by].map(([way, c]) => h("button", { type: "button", "aria-pressed": String(way === now),
      onclick: () => choose(way) },
    h("b", {}, WAYS[way]), h("span", {}, c.free ? "costs nothing" : c.charge.text),
    h("small", {}, Object.entries(c.margins).map(([n, m]) => `${n} ± ${m.toLocaleString("en")}`).join(", "), " · ", c.source))),
    draft.choice ? h("button", { type: "button", class: "quiet", onclick: () => choose("") }, "Let the offer decide") : null);
}
