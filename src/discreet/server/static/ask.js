// The workbench: the schema beside the editor, live offers, the answer below.

import { answerView } from "./answer.js";
import { aborted, ask as send, get, of, Refused, send as post } from "./api.js";
import { Editor } from "./editor.js";
import { field, h, refusalCard, show, table, tell } from "./dom.js";
import { picture } from "./picture.js";
import { schemaPanel } from "./schema.js";

const PAUSE = 250;

/** @typedef {import("./app.js").Draft} Draft */
/** @typedef {import("./app.js").Shown} Shown */

/**
 * The view in which most of the time is spent.
 * @param {HTMLElement} main
 * @param {Shown} state
 */
export async function ask(main, state) {
  const { dataset } = state;
  const schema = { ...state.schema, tables: [...state.schema.tables, ...state.schema.free] };
  state.draft ??= { question: schema.examples[0] ?? "", mode: "epsilon", amount: "0.1", delta: "", choice: "" };
  const draft = state.draft;
  const price = h("div", { class: "price", "aria-live": "polite" });
  const result = h("section", { class: "result", "aria-label": "Answer" });
  const left = h("p", { class: "left quiet" });
  const button = h("button", { class: "main", type: "submit" }, "Ask");
  const slide = slider(dataset.name, draft, (point) => spend.slide(point));
  /** @type {AbortController | undefined} */
  let waiting;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let pending;
  /** @type {{ question: string, choices: Api.Explanation["choices"] }} */
  let known = { question: "", choices: [] };
  let priced = ""; // what the price that is shown was asked for // the ways to an answer, before one was chosen

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
      const asked = body(draft);
      /** @type {Api.Explanation | Api.FreeExplanation} */
      const found = await post("POST", of(dataset.name, "explain"), asked, { signal });
      priced = JSON.stringify(asked);
      editor.underline(null);
      if (!("price" in found)) { // of a release or a survey
        slide.hide();
        button.textContent = "Ask (free)";
        return show(price, quotedFree(found));
      }
      if (!draft.choice || known.question !== draft.question) known = { question: draft.question, choices: found.choices };
      show(price, quoted(found, known.choices, draft, (choice) => { draft.choice = choice; quote(); }));
      button.textContent = found.free ? "Ask (free)" : "Ask";
      await slide.follow(draft.question, signal);
    } catch (error) {
      if (aborted(error)) return undefined;
      if (!(error instanceof Refused)) throw error;
      slide.hide();
      refused(error.refusal, draft.question);
    }
    return undefined;
  }

  /** @param {Api.Refusal} told @param {string} question */
  function refused(told, question) {
    // What can be offered is a button here, and is called as it is on the button.
    const refusal = { ...told, fix: Object.entries(told.offer ?? {}).reduce((words, [name, amount]) =>
      words.replace(`"${name}": "${amount}"`, `${SIGNS[name] ?? name} ${amount}`), told.fix) };
    editor.underline(question === editor.value ? refusal.place : null);
    const { rewriting } = refusal;
    const use = rewriting && h("button", { type: "button", class: "fix",
      onclick: () => { editor.value = rewriting; editor.area.focus(); } }, "Use this instead");
    const offers = Object.entries(refusal.offer ?? {}).map(([name, amount]) => h("button", { type: "button",
      class: "fix", onclick: () => spend.set(name, amount) }, `Offer ${SIGNS[name] ?? name} ${amount}`));
    show(price, refusalCard(refusal, ...(use ? [h("code", { class: "rewriting" }, rewriting), use] : []),
      ...offers));
  }

  /** @param {Event} [event] */
  async function run(event) {
    event?.preventDefault();
    if (button.disabled) return; // one at a time, by the keyboard too
    waiting?.abort(); // a price that comes late would stand where a refusal is told
    clearTimeout(pending);
    button.disabled = true;
    const asked = body(draft);
    if (priced !== JSON.stringify(asked)) show(price); // it was the price of another text
    show(result, h("p", { class: "card quiet" }, "Charging, computing, adding noise…"));
    try {
      const answer = await send(dataset.name, asked, {
        onprogress: (job) => show(result, h("label", { class: "card" }, `Working (${job.state})… `,
          h("progress", { max: "1", value: job.progress })))});
      draft.choice = "";
      if ("cost" in answer) { // of a release or a survey
        show(result, h("article", { class: "card" }, h("h2", {}, "Answer"), table("What it says", answer.columns, answer.cells),
          answer.notes.map((words) => h("p", { class: "quiet" }, words))));
        tell(answer.notes.join(" "), { seen: true });
        return;
      }
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
      /** @type {Api.Balance} */
      const found = await get(of(dataset.name, "balance"));
      /** @type {Api.Gauge} */
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

/**
 * What is sent: the question and exactly one kind of offer; none for what is known.
 * @param {Draft} draft
 */
export function body(draft) {
  /** @type {Record<string, any>} */
  const offered = { question: draft.question };
  if (draft.choice === "free") return offered;
  if (draft.mode !== "statement") offered[draft.mode] = draft.amount || "0";
  if (draft.delta) offered.delta = draft.delta;
  if (draft.choice === "new") offered.fresh = true;
  return offered;
}

/** @type {Record<string, [string, string]>} */
const MODES = {
  epsilon: ["spend ε", "Smaller is more private and less accurate."],
  within: ["be within ±", "At 95 % confidence, for the least price."],
  rho: ["spend ρ", "For Gaussian noise, where many questions follow."],
  statement: ["what the SQL says", "OPTIONS(epsilon = …) inside the statement."],
};

/** @type {Record<string, string>} */
const SIGNS = { epsilon: "ε =", rho: "ρ =", delta: "δ =", within: "±" };

/**
 * What is offered, and in which way.
 * @param {Draft} draft
 * @param {() => void} changed
 */
function offer(draft, changed) {
  const hint = h("small", {});
  const amount = h("input", { value: draft.amount, inputmode: "decimal", size: "8",
    oninput: (event) => { draft.amount = event.target.value; changed(); } });
  const delta = h("input", { value: draft.delta, inputmode: "decimal", size: "8", placeholder: "none",
    oninput: (event) => { draft.delta = event.target.value; changed(); } });
  const mode = h("select", { onchange: (event) => set(event.target.value) },
    Object.entries(MODES).map(([name, [words]]) => h("option", { value: name }, words)));
  const box = field("Amount", amount);
  /** @param {string} name */
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
  /**
   * What a refusal says would do, at a click.
   * @param {string} name
   * @param {string} value
   */
  function take(name, value) {
    if (name === "delta") delta.value = draft.delta = value;
    else { set(name); amount.value = draft.amount = value; }
    changed();
  }
  /**
   * A point of the curve: its price, or its margin where margins are what is offered.
   * @param {Api.CurvePoint} point
   */
  function slide(point) {
    const margin = Object.values(point.margins).find((m) => m);
    const within = draft.mode === "within" && margin;
    take(within ? "within" : "epsilon", within ? String(Math.ceil(margin)) : point.epsilon);
  }
  return { fields, set: take, slide };
}

/**
 * Price against accuracy: a slider over the points of the curve, and the curve.
 * @param {string} dataset
 * @param {Draft} draft
 * @param {(point: Api.CurvePoint) => void} picked
 */
function slider(dataset, draft, picked) {
  /** @type {HTMLInputElement} */
  const range = h("input", { type: "range", min: "0", max: "1", step: "1", "aria-label": "Between price and accuracy",
    oninput: () => say(), onchange: () => picked(points[Number(range.value)]) });
  const words = h("output", {});
  const drawn = h("div", {});
  const more = h("details", { ontoggle: () => draw() }, h("summary", {}, "Accuracy against price"), drawn);
  const element = h("div", { class: "slider", hidden: true },
    h("div", { class: "ends" }, h("small", {}, "cheaper"), range, h("small", {}, "more accurate")), words, more);
  /** @type {Api.CurvePoint[]} */
  let points = [];
  let of_ = "", shown = "";

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
    /** @param {string} question @param {AbortSignal} signal */
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

/**
 * The point of the curve that is nearest to what is offered.
 * @param {Pick<Api.CurvePoint, "epsilon" | "margins">[]} points
 * @param {Pick<Draft, "mode" | "amount">} draft
 */
export function nearest(points, draft) {
  const amount = Number(draft.amount);
  if (!points.length || !(amount > 0)) return 0;
  const of_ = (/** @type {Pick<Api.CurvePoint, "epsilon" | "margins">} */ p) => (draft.mode === "within" ? Object.values(p.margins).find((m) => m) ?? 1 : Number(p.epsilon));
  const apart = points.map((p) => Math.abs(Math.log(of_(p) / amount)));
  return apart.indexOf(Math.min(...apart));
}

/** @type {Record<string, string>} */
const WAYS = { free: "Free", improve: "Improve", new: "New" };

/**
 * Which way a choice is: what is known, an improvement of it, or a new measurement.
 * @param {Record<string, any>} choice
 */
export function wayOf(choice) {
  if (choice.free) return "free";
  return choice.source.startsWith("improves") ? "improve" : "new";
}

/** @param {Api.FreeExplanation} found */
function quotedFree(found) {
  return [h("p", { class: "cost" }, h("span", { class: "label" }, "Price "), h("b", {}, "nothing"), " ",
    h("span", { class: "badge free" }, "free: it is public")),
  h("ul", {}, found.notes.map((note) => h("li", {}, note)))];
}

/**
 * @param {Api.Explanation} found
 * @param {Api.Explanation["choices"]} choices
 * @param {Draft} draft
 * @param {(choice: string) => void} choose
 */
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

/**
 * Free, improve or new: what each costs and is worth; the chosen one is what is asked.
 * @param {Api.Explanation} found
 * @param {Api.Explanation["choices"]} choices
 * @param {Draft} draft
 * @param {(choice: string) => void} choose
 */
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
