// An answer: the chart, the table with margins, what it cost, what it promises, and its files.

import { download, of, Refused, saveAs, send } from "./api.js";
import { copy, field, h, refusalCard, show, sortable, tell } from "./dom.js";
import { picture } from "./picture.js";

const DRAWN = ["bars", "line", "grouped", "histogram"];
const MOST_PICTURES = 4;
const OFFERED = ["epsilon", "rho", "within", "delta"];

/**
 * The address of an answer: of a stored one its number. A statement is computed from stored answers
 * and is none itself: its address is its text with what was offered, to be asked again, for free.
 * @param {string} dataset
 * @param {{ id: string | null, question?: string }} answer
 * @param {Record<string, any>} [asked]
 */
export function addressOf(dataset, answer, asked = {}) {
  const name = encodeURIComponent(dataset);
  if (answer.id !== null) return `#answer/${name}/${answer.id}`;
  const offered = OFFERED.filter((one) => typeof asked[one] === "string").map((one) => [one, asked[one]]);
  return `#ask/${name}/?${new URLSearchParams([["question", answer.question ?? ""], ...offered])}`;
}

/**
 * ``asked`` is what was sent: a statement has no file of its own, and is asked again, for free.
 * @param {Api.Answer} answer
 * @param {string} dataset
 * @param {Record<string, any>} [asked]
 */
export function answerView(answer, dataset, asked) {
  const stored = answer.id !== null;
  const path = answer.id !== null ? of(dataset, "answers", answer.id) : of(dataset, "ask");
  const again = stored ? undefined : asked ?? { question: answer.question };
  const name = stored ? `answer-${answer.id}` : "statement";
  const link = addressOf(dataset, answer, asked);
  const save = (/** @type {string} */ label, /** @type {string} */ accept, /** @type {string} */ ending, from = path) => h("button", { type: "button", class: "quiet",
    onclick: () => download(from, accept, `${name}.${ending}`, again).catch((e) => tell(e.message)) }, label);
  const json = (/** @type {string} */ label, /** @type {any} */ value, /** @type {string} */ ending) => h("button", { type: "button", class: "quiet", onclick: () => saveAs(
    new Blob([JSON.stringify(value, null, 2)], { type: "application/json" }), `${name}${ending}.json`) }, label);
  const pictures = DRAWN.includes(answer.chart.kind) && answer.rows.length ? answer.chart.y : [];
  return h("article", { class: "card answer" },
    h("header", { class: "row" },
      h("h2", {}, "Answer ", answer.replayed ? h("span", { class: "badge free" }, "replayed, free") : null),
      h("p", { class: "actions" },
        h("a", { href: link }, stored ? `Answer ${answer.id}` : "Its address"),
        h("button", { type: "button", class: "quiet", onclick: () => copy(new URL(link, location.href).href, "The address is copied.") }, "Copy link"))),
    answer.chart.kind === "number" ? numbers(answer) : null,
    pictures.length ? h("div", { class: "charts" }, pictures.slice(0, MOST_PICTURES).map((y) =>
      picture(`${path}?y=${encodeURIComponent(y)}`, { body: again, alt: `${y}; the table has every value` }))) : null,
    answer.rows.length
      ? sortable(`Answer to: ${answer.question}`, answer.columns, answer.cells, answer.rows)
      : h("p", {}, "No group is common enough to be shown."),
    h("p", { class: "cost" }, "± at 95 % confidence. ",
      answer.replayed ? `Cost nothing this time; it cost ${answer.price.text}.` : `Cost ${answer.paid.text}.`),
    answer.parts && answer.parts.length > 1 ? h("ol", { class: "parts" }, answer.parts.map((p) => h("li", {}, h("code", {}, p.question),
      p.replayed ? " (answered before, free)" : ` (${p.price.text})`))) : null,
    answer.notes.length ? h("ul", { class: "notes" }, answer.notes.map((n) => h("li", {}, n))) : null,
    h("details", {}, h("summary", {}, "What is promised: the certificate"),
      h("pre", { class: "scroll", tabindex: "0" }, JSON.stringify(answer.certificate, null, 2))),
    h("div", { class: "row" },
      h("p", { class: "actions", role: "group", "aria-label": "Save as a file" },
        save("CSV", "text/csv", "csv"),
        save("XLSX", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
        save("Arrow", "application/vnd.apache.arrow.stream", "arrow"),
        save("Parquet", "application/vnd.apache.parquet", "parquet"),
        json("JSON", answer, ""),
        pictures.length ? save("SVG", "image/svg+xml", "svg") : null,
        stored ? save("Certificate", "application/json", "json", `${path}/certificate`)
          : json("Certificate", answer.certificate, "-certificate")),
      h("p", { class: "actions" },
        h("button", { type: "button", class: "quiet", onclick: () => copy(tabbed(answer), "The table is copied.") }, "Copy table"),
        asked ? keep(dataset, asked) : null)));
}

/**
 * The table as spreadsheets paste it.
 * @param {{ columns: { name: string }[], cells: (string | null)[][] }} answer
 */
export function tabbed(answer) {
  const line = (/** @type {(string | null)[]} */ cells) => cells.map((c) => String(c ?? "").replaceAll(/[\t\n\r]/g, " ")).join("\t");
  return [line(answer.columns.map((c) => c.name)), ...answer.cells.map(line)].join("\n");
}

/** @param {Api.Answer} answer */
function numbers(answer) {
  const values = answer.columns.map((column, i) => ({ column, i })).filter(({ column }) => column.role === "value");
  return h("div", { class: "numbers" }, values.map(({ column, i }) =>
    h("figure", { class: "number" }, h("figcaption", {}, column.name),
      h("span", {}, answer.cells[0]?.[i] ?? "—"))));
}

/**
 * A small form that keeps the question under a name; with an offer, so that it can be asked anew.
 * @param {string} dataset
 * @param {Record<string, any>} asked
 */
function keep(dataset, asked) {
  const name = h("input", { required: true, maxlength: "100", size: "16" });
  const folder = h("input", { maxlength: "100", size: "16", placeholder: "none" });
  const problem = h("div", {});
  const box = h("details", { class: "keep" }, h("summary", {}, "Save the question"),
    h("form", { class: "offer", onsubmit: async (event) => {
      event.preventDefault();
      const { epsilon, rho, within, delta } = asked;
      try {
        await send("POST", of(dataset, "saved"), { name: name.value, folder: folder.value,
          question: asked.question, offer: { epsilon, rho, within, delta } });
        box.open = false;
        tell(`Saved as ${name.value}.`);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        show(problem, refusalCard(error.refusal));
      }
    } }, field("Name", name), field("Folder", folder), h("button", { class: "quiet" }, "Save"), problem));
  return box;
}
