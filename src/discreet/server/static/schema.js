// What is public: tables, columns, bounds, allowed values, and who one person is.

import { quoteName, quoteValue } from "./complete.js";
import { h, show, table } from "./dom.js";

const FEW_VALUES = 40;

/** @param {Api.Table} t */
const badge = (t) => h("span", { class: `badge ${t.public ? "free" : "yes"}` }, t.free ? "free" : t.public ? "public" : "private");

/** @param {HTMLElement} main @param {import("./app.js").Shown} state */
export async function schemaView(main, state) {
  const { schema } = state;
  show(main, h("h1", {}, "Data"),
    h("p", {}, `Everything here is public. What is promised: ${schema.promise}.`),
    [...schema.tables, ...schema.free].map((t) => h("section", { class: "card", "aria-label": t.name },
      h("h2", {}, t.name, " ", badge(t)),
      t.unit_text ? h("p", {}, t.unit_text) : null,
      t.blocks.length ? h("p", {}, `Blocks: ${t.blocks.join(", ")}. A question that cannot touch a block does not pay for it.`) : null,
      table(`Columns of ${t.name}`, ["column", "type", "what it may hold"],
        t.columns.map((c) => [
          h("td", {}, h("code", {}, c.name), c.unit ? h("span", { class: "badge" }, "unit") : null),
          c.kind, h("td", {}, c.text, values(c))])))));
}

/** @param {Api.Column} column */
function values(column) {
  if (!column.values?.length) return null;
  const more = (column.values_count ?? 0) - column.values.length;
  return h("details", {}, h("summary", {}, `${column.values_count} allowed values`),
    h("p", { class: "values" }, column.values.map((v) => h("code", {}, v === null ? "NULL" : v)),
      more > 0 ? ` and ${more} more` : null));
}

/**
 * The schema beside the editor: a click puts a name, or a value, where the cursor is.
 * @param {Api.Schema} schema
 * @param {(word: string) => void} insert
 */
export function schemaPanel(schema, insert) {
  const put = (/** @type {string} */ word, /** @type {string} */ text, /** @type {string} */ title) => h("button", { type: "button", class: "put", title, onclick: () => insert(word) }, text);
  const wide = window.matchMedia("(min-width: 64rem)").matches;
  return h("details", { class: "panel card", open: wide }, h("summary", {}, h("h2", {}, "Tables")),
    schema.tables.map((t, i) => h("details", { open: i === 0 },
      h("summary", {}, h("b", {}, t.name), " ", badge(t)),
      h("p", { class: "actions" }, put(quoteName(t.name), `Insert ${t.name}`, t.unit_text)),
      h("ul", {}, t.columns.map((c) => h("li", {},
        put(quoteName(c.name), c.name, `Insert ${c.name}`), h("small", {}, c.text),
        c.values?.length ? h("details", {}, h("summary", {}, `${c.values_count} values`),
          h("p", { class: "values" }, c.values.slice(0, FEW_VALUES).map((v) => put(quoteValue(v), v === null ? "NULL" : String(v), "Insert the value")),
            (c.values_count ?? 0) > FEW_VALUES ? ` and ${(c.values_count ?? 0) - FEW_VALUES} more` : null)) : null))))));
}
