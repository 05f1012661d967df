// An answer: the chart, the table with margins, what it cost, and its files.

import { download, of, saveAs } from "./api.js";
import { chart } from "./chart.js";
import { h, table, tell } from "./dom.js";

/** ``asked`` is what was sent: a statement has no file of its own, and is asked again, for free. */
export function answerView(answer, dataset, asked) {
  const stored = answer.id !== null;
  const path = stored ? of(dataset, "answers", answer.id) : of(dataset, "ask");
  const name = stored ? `answer-${answer.id}` : "statement";
  const save = (label, accept, ending, from = path) => h("button", { type: "button", class: "quiet",
    onclick: () => download(from, accept, `${name}.${ending}`, stored ? undefined : asked)
      .catch((e) => tell(e.message)) }, label);
  const certificate = stored
    ? save("Certificate", "application/json", "json", `${path}/certificate`)
    : h("button", { type: "button", class: "quiet", onclick: () => saveAs(new Blob(
      [JSON.stringify(answer.certificate, null, 2)], { type: "application/json" }), `${name}.json`) }, "Certificate");
  const numeric = answer.columns.map((c) => c.role === "value" || c.kind === "integer" || c.kind === "decimal");
  return h("article", { class: "card answer" },
    h("h2", {}, "Answer ", answer.replayed ? h("span", { class: "badge free" }, "replayed, free") : null),
    chart(answer),
    answer.rows.length
      ? table(`Answer to: ${answer.question}`, answer.columns.map((c, i) =>
        h("th", { scope: "col", class: numeric[i] ? "right" : "" }, c.name)), answer.cells.map((row) =>
        row.map((cell, i) => h("td", { class: numeric[i] ? "right" : "" }, cell))))
      : h("p", {}, "No group is common enough to be shown."),
    h("p", { class: "cost" }, "± at 95 % confidence. ",
      answer.replayed ? `Cost nothing this time; it cost ${answer.price.text}.` : `Cost ${answer.paid.text}.`),
    answer.parts?.length > 1 ? h("ol", { class: "parts" }, answer.parts.map((p) => h("li", {}, h("code", {}, p.question),
      p.replayed ? " (answered before, free)" : ` (${p.price.text})`))) : null,
    answer.notes.length ? h("ul", { class: "notes" }, answer.notes.map((n) => h("li", {}, n))) : null,
    h("p", { class: "actions" }, save("CSV", "text/csv", "csv"),
      save("Arrow", "application/vnd.apache.arrow.stream", "arrow"),
      certificate));
}
