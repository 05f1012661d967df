// What is public: tables, columns, bounds, allowed values, and who one person is.

import { h, show, table } from "./dom.js";

export async function schemaView(main, state) {
  const { schema } = state;
  show(main, h("h1", {}, "Data"),
    h("p", {}, `Everything here is public. What is promised: ${schema.promise}.`),
    schema.tables.map((t) => h("section", { class: "card", "aria-label": t.name },
      h("h2", {}, t.name, " ", h("span", { class: `badge ${t.public ? "free" : "yes"}` }, t.public ? "public" : "private")),
      t.unit_text ? h("p", {}, t.unit_text) : null,
      t.blocks.length ? h("p", {}, `Blocks: ${t.blocks.join(", ")}. A question that cannot touch a block does not pay for it.`) : null,
      table(`Columns of ${t.name}`, ["column", "type", "what it may hold"],
        t.columns.map((c) => [
          h("td", {}, h("code", {}, c.name), c.unit ? h("span", { class: "badge" }, "unit") : null),
          c.kind, h("td", {}, c.text, values(c))])))));
}

function values(column) {
  if (!column.values?.length) return null;
  const more = column.values_count - column.values.length;
  return h("details", {}, h("summary", {}, `${column.values_count} allowed values`),
    h("p", { class: "values" }, column.values.map((v) => h("code", {}, v === null ? "NULL" : v)),
      more > 0 ? ` and ${more} more` : null));
}
