// An answer: the chart, the table with margins, what it cost, and its files.

import { download, of } from "./api.js";
import { chart } from "./chart.js";
import { h, table, tell } from "./dom.js";

export function answerView(answer, dataset) {
  const path = of(dataset, "answers", answer.id);
  const save = (label, accept, ending, from = path) => h("button", { type: "button", class: "quiet",
    onclick: () => download(from, accept, `answer-${answer.id}.${ending}`).catch((e) => tell(e.message)) }, label);
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
    answer.notes.length ? h("ul", { class: "notes" }, answer.notes.map((n) => h("li", {}, n))) : null,
    h("p", { class: "actions" }, save("CSV", "text/csv", "csv"),
      save("Arrow", "application/vnd.apache.arrow.stream", "arrow"),
      save("Certificate", "application/json", "json", `${path}/certificate`)));
}
