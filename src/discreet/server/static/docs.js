// The interface over HTTP, read off the document that the server itself is checked against.

import { h, show, table } from "./dom.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));

/**
 * A type of the document in words: text, a list of numbers, an object by its name.
 * @param {any} schema
 * @returns {string}
 */
export function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf ?? schema.oneOf) return (schema.anyOf ?? schema.oneOf).map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((/** @type {any} */ v) => JSON.stringify(v)).join(", ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${typeOf(schema.items) || "anything"}`;
  return schema.type ?? "anything";
}

/**
 * The operations of a document by their tag, in its order.
 * @param {{ paths: Record<string, Record<string, any>> }} document_
 */
export function operations(document_) {
  const found = new Map();
  for (const [path, methods] of Object.entries(document_.paths)) {
    for (const [method, one] of Object.entries(methods)) {
      const tag = one.tags?.[0] ?? "page";
      found.set(tag, [...(found.get(tag) ?? []), { path, method: method.toUpperCase(), ...one }]);
    }
  }
  return found;
}

/** @param {any} one */
function operation(one) {
  const sent = one.requestBody?.content?.["application/json"]?.schema;
  const parameters = (one.parameters ?? []).filter((/** @type {any} */ p) => p.in !== "path");
  return h("details", { class: "card", id: one.operationId },
    h("summary", {}, h("b", {}, one.method), " ", h("code", {}, one.path)),
    h("p", {}, one.description ?? one.summary ?? ""),
    one.security ? null : h("p", { class: "quiet" }, "No key."),
    parameters.length ? table(`Parameters of ${one.method} ${one.path}`, ["parameter", "in", "type", "what"], parameters.map((/** @type {any} */ p) =>
      [h("td", {}, h("code", {}, p.name)), p.in, typeOf(p.schema), p.description ?? p.schema?.description ?? ""])) : null,
    sent ? h("p", {}, "Takes ", reference(sent), ".") : null,
    table(`Answers of ${one.method} ${one.path}`, ["status", "what", "forms"], Object.entries(one.responses).map((/** @type {[string, any]} */ [status, r]) =>
      [status, r.description ?? "", h("td", {}, Object.entries(r.content ?? {}).map((/** @type {[string, any]} */ [form, { schema }], i) =>
        [i ? h("br") : null, h("code", {}, form), schema ? [" ", reference(schema)] : null]))])));
}

/** @param {any} schema */
function reference(schema) {
  const name = typeOf(schema);
  return schema.$ref ? h("a", { href: `#type-${name}` }, name) : name;
}

/** @param {[string, any]} one */
function type([name, schema]) {
  const needed = new Set(schema.required ?? []);
  return h("details", { class: "card", id: `type-${name}` }, h("summary", {}, h("b", {}, name)),
    h("p", {}, schema.description ?? ""),
    table(`Fields of ${name}`, ["field", "type", "what"], Object.entries(schema.properties ?? {}).map((/** @type {[string, any]} */ [field, s]) =>
      [h("td", {}, h("code", {}, field), needed.has(field) ? h("span", { class: "badge" }, "needed") : null), typeOf(s), s.description ?? ""])));
}

/** Open what the address names. */
function reveal() {
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted instanceof HTMLDetailsElement) {
    wanted.open = true;
    wanted.scrollIntoView();
  }
}

async function draw() {
  const found = await (await fetch("/v1/openapi.json")).json();
  show(main, h("h1", {}, "The interface"),
    found.info.description.trim().split("\n\n").map((/** @type {string} */ p) => h("p", {}, p.replaceAll("`", ""))),
    h("p", {}, "The same as a document: ", h("a", { href: "/v1/openapi.json" }, "/v1/openapi.json"), "."),
    [...operations(found)].map(([tag, list]) => h("section", { "aria-label": tag }, h("h2", {}, tag), list.map(operation))),
    h("section", { "aria-label": "types" }, h("h2", {}, "types"), Object.entries(found.components.schemas).map(type)));
  reveal();
}

window.addEventListener("hashchange", reveal);
draw();
