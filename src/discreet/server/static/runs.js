// Runs: opened and paid for once, asked many times; and what is released once and is no question.

import { compute, of, Refused, send } from "./api.js";
import { during, field, h, refusalCard, show, table, tell } from "./dom.js";

/**
 * @typedef {{ name: string, about: string, settings: [string, string, string][], label?: string, hint?: string, once?: boolean,
 *   asked: (text: string) => object, said: (found: any) => string[], told: (found: any) => string, stands?: (found: any) => string }} Kind
 */

/**
 * Of each kind: its words, what is said when it is opened, where it is, and what it tells.
 * @type {Record<string, Kind>}
 */
const KINDS = {
  runs: {
    name: "Watch", about: "Which numbers are above a threshold? Paid once, however much is asked.",
    settings: [["threshold", "Threshold", "500"], ["epsilon", "ε for the whole run", "0.1"], ["at_most", "How often “above” may be told", "3"]],
    asked: (question) => ({ question }),
    said: (/** @type {Api.WatchExplanation} */ found) => [`margin ±${shown(found.margin)} for 1,000 questions`, `theorem: α = ${shown(found.theorem_margin)}`],
    told: (/** @type {Api.Verdicts} */ found) => found.verdicts.map((one) => [...one.group, one.above ? "above" : "below"].join(": ")).join("; "),
    stands: (found) => `${found.asked} asked, ${found.remaining} more may be above`,
  },
  interviews: {
    name: "Interview", about: "Numbers with noise, while one person moves all of them together by no more than you say.",
    settings: [["sensitivity", "Joint sensitivity", "6"], ["epsilon", "ε for the whole run", "0.1"]],
    asked: (question) => ({ questions: [question] }),
    said: (/** @type {Api.InterviewExplanation} */ found) => [`margin ±${shown(found.margin)} each`, `one person moves these by at most ${shown(found.joint)}`],
    told: (/** @type {Api.InterviewReply} */ found) => found.values.map((value, i) => [...(found.groups[i] ?? []), shown(value)].join(": ")).join("; ") + ` (± ${shown(found.margin)})`,
    stands: (found) => `${found.asked} asked, joint sensitivity ${shown(found.joint)}`,
  },
  choose: {
    name: "Choose", about: "Which group has the largest number? Paid by how far one person moves one of the numbers.",
    settings: [["epsilon", "ε", "0.1"], ["k", "How many", "1"]],
    asked: (question) => ({ candidates: question }),
    said: (/** @type {Api.ChoiceExplanation} */ found) => [`at most ${shown(found.margin)} below the best`, `theorem: ${shown(found.theorem_margin)}`],
    told: (/** @type {Api.Chosen} */ found) => found.chosen.join(", "),
    once: true,
  },
  quality: {
    name: "Quality", about: "How many people stand in the way of a property? One person moves each number by little.",
    settings: [["epsilon", "ε", "0.1"]],
    label: "Properties, in SQL or JSON", hint: "SELECT DISTANCE_TO_MAXIMUM(age, 110) AS old FROM people; or by name, with table, property and columns.",
    asked: (text) => ({ checks: readChecks(text) }),
    said: (/** @type {Api.QualityExplanation} */ found) => [`margin ±${shown(found.margin)} each`],
    told: (/** @type {Api.QualityReport} */ found) => Object.entries(found.distances).map(([name, number]) => `${name}: ${shown(number)}`).join("; ") + ` (± ${shown(found.margin)})`,
    once: true,
  },
  median: {
    name: "Median", about: "A median with noise that fits the data, or only if it moves by at most a bound that you propose.",
    settings: [["epsilon", "ε", "0.5"], ["delta", "δ", "1e-9"], ["bound", "Proposed bound, or nothing", ""]],
    label: "One MEDIAN, in SQL", hint: "Of one value for each person.",
    asked: (question) => ({ question }),
    said: (/** @type {Api.MedianExplanation} */ found) => [found.by, `margin ${found.margin === null ? "not public: it fits the data" : `±${shown(found.margin)}`}`],
    told: (/** @type {Api.RobustMedian} */ found) => found.value === null ? "no answer: the proposed bound may not hold" : shown(found.value) + (found.margin === null ? "" : ` (± ${shown(found.margin)})`),
    once: true,
  },
};
const WHOLE = ["at_most", "k"];
const OPTIONAL = ["bound"];

/**
 * A number as it is read: not more digits than it has.
 * @param {number | string | null | undefined} number
 */
export function shown(number) {
  return number === null || number === undefined ? "unknown" : Number(number).toLocaleString("en", { maximumSignificantDigits: 6 });
}

/**
 * What is sent when a run is opened: exact numbers as they were typed; what may be left out, if it is.
 * @param {string} kind
 * @param {Record<string, string>} values
 */
export function readSettings(kind, values) {
  const named = KINDS[kind].settings.map(([name]) => name).filter((name) => values[name].trim() || !OPTIONAL.includes(name));
  return Object.fromEntries(named.map((name) =>
    [name, WHOLE.includes(name) ? Number.parseInt(values[name], 10) : values[name].trim()]));
}

/**
 * Properties in SQL as they are typed; by name as JSON, or a refusal in the shape of the server's.
 * @param {string} text
 */
export function readChecks(text) {
  if (/^\s*select\b/i.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Refused(0, {
      code: "P4", title: "an argument that is none", what: "the properties are neither SQL nor JSON.",
      why: "each is read by name, with its table and columns.", fix: "write SELECT DISTANCE_TO_MAXIMUM(age, 110) FROM people.",
    });
  }
}

/** @param {HTMLElement} place @param {import("./app.js").Shown} state */
export async function runsView(place, { dataset }) {
  const choice = h("select", { onchange: draw }, Object.entries(KINDS).map(([kind, { name }]) => h("option", { value: kind }, name)));
  const inputs = h("div", { class: "fields" }), about = h("p", { class: "quiet" }), price = h("div", { "aria-live": "polite" });
  const question = h("textarea", { rows: "3", spellcheck: "false", value: "" });
  const typed = h("div", {});
  const open = h("div", {});
  show(place, h("h1", {}, "Runs"),
    h("section", { class: "card", "aria-label": "Open a run" }, field("Kind", choice), about, inputs, typed,
      h("p", { class: "actions" },
        h("button", { class: "quiet", type: "button", onclick: () => trying(explain) }, "Price"),
        h("button", { class: "main", type: "button", onclick: (event) => during(event.target, () => trying(begin)) }, "Pay and ask")),
      price),
    open);
  draw();

  function draw() {
    const kind = KINDS[choice.value];
    about.textContent = kind.about;
    show(typed, field(kind.label ?? "A question, in SQL", question, kind.hint ?? "One COUNT or SUM, or one for each public group."));
    show(inputs, kind.settings.map(([name, label, usual]) => field(label, h("input", { name, value: usual, inputmode: "decimal" }))));
    show(price);
    show(open);
  }

  function settings() {
    const values = Object.fromEntries([...inputs.querySelectorAll("input")].map((input) => [input.name, input.value]));
    return readSettings(choice.value, values);
  }

  /** @param {() => Promise<void>} work */
  async function trying(work) {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      show(price, refusalCard(error.refusal));
    }
  }

  async function explain() {
    const kind = KINDS[choice.value];
    const found = await send("POST", of(dataset.name, choice.value, "explain"), { ...settings(), ...kind.asked(question.value) });
    show(price, h("p", { class: "cost" }, h("b", {}, found.loss.text ?? `ε = ${found.loss.epsilon}`)), kind.said(found).map((words) => h("p", {}, words)));
  }

  async function begin() {
    const kind = KINDS[choice.value], where = choice.value;
    if (kind.once) {
      const found = await compute(dataset.name, [where], { ...settings(), ...kind.asked(question.value) });
      show(open, told([[question.value, kind.told(found)]]));
      tell(`${kind.name}: ${kind.told(found)}`, { seen: true });
      return;
    }
    await explain(); // what is refused is refused unpaid
    const run = await send("POST", of(dataset.name, where), settings());
    /** @type {[string, string][]} */
    const lines = [];
    let next = run.asked; // with its number, a question that is sent again is told the same
    const go = async () => {
      const text = question.value; // somebody may type on while it is asked
      const found = await compute(dataset.name, [where, run.id, "ask"], { question: text, number: next });
      next = found.asked;
      lines.push([text, kind.told(found)]);
      stand(found);
      tell(kind.told(found), { seen: true });
    };
    /** @type {(found: any) => void} */
    const stand = (found) => show(open, h("section", { class: "card", "aria-label": "An open run" },
      h("h2", {}, `${kind.name} ${run.id}`), h("p", {}, kind.stands?.(found)), told(lines),
      found.ended ? h("p", {}, `over: ${found.ended}`) : h("p", { class: "actions" },
        h("button", { class: "main", type: "button", onclick: (event) => during(event.target, () => trying(go)) }, "Ask the question above"),
        h("button", { class: "quiet", type: "button", onclick: () => trying(async () => stand(await send("DELETE", of(dataset.name, where, run.id)))) }, "End it"))));
    stand(run);
    await go();
  }
}

/** @param {[string, string][]} lines */
function told(lines) {
  return table("What was told", ["question", "told"], lines.map(([question, words]) => [h("code", {}, question), words]));
}
