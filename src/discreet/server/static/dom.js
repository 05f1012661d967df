// Elements from names, properties and children; nothing is ever parsed as HTML.

/** h("button", { class: "plain", onclick: f }, "Ask") */
export function h(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

function filled(element, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replace everything inside an element. */
export function show(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** A refusal as a card: what, why, and what to do instead. */
export function refusalCard(refusal, ...actions) {
  // A rewriting that can be clicked is shown there; the words around it stay.
  const instead = refusal.rewriting && actions.length
    ? refusal.fix.replace(refusal.rewriting, "").trim() : refusal.fix;
  return h("div", { class: "refusal", role: "alert" },
    h("p", { class: "what" }, h("span", { class: "code" }, refusal.code), " ", refusal.what),
    h("p", {}, h("b", {}, "Why: "), refusal.why),
    h("p", {}, h("b", {}, "Instead: "), instead),
    actions.length ? h("p", { class: "actions" }, actions) : null);
}

let fields = 0;

/** A labelled input. @param {string} label @param {any} input @param {string} [hint] */
export function field(label, input, hint) {
  input.id ||= `f${fields += 1}`;
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input,
    hint ? h("small", {}, hint) : null);
}

/** A table with a caption that only screen readers need. */
export function table(caption, columns, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((c) => (c instanceof Node ? c : h("th", { scope: "col" }, c))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) =>
        cell instanceof HTMLTableCellElement ? cell : h("td", {}, cell)))))));
}

/** A table whose columns sort by their values at a click on their names, and back. */
export function sortable(caption, columns, cells, values) {
  const body = h("tbody", {});
  const numeric = (c) => c.role === "value" || c.kind === "integer" || c.kind === "decimal";
  const heads = columns.map((column, place) => {
    const button = h("button", { type: "button", class: "sort", onclick: () => turn(place) }, column.name);
    return h("th", { scope: "col", class: numeric(column) ? "right" : "", "aria-sort": "none" }, button);
  });
  let sorted = -1, falling = false;
  function turn(place) {
    [sorted, falling] = sorted !== place ? [place, false] : falling ? [-1, false] : [place, true];
    draw();
  }
  function draw() {
    heads.forEach((head, i) => head.setAttribute("aria-sort",
      i !== sorted ? "none" : falling ? "descending" : "ascending"));
    show(body, order(values, sorted, falling).map((i) => h("tr", {}, cells[i].map((cell, place) =>
      h("td", { class: numeric(columns[place]) ? "right" : "" }, cell)))));
  }
  draw();
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, heads)), body));
}

/** The numbers of rows in the order of one of their columns; what is missing comes last. */
export function order(values, place, falling) {
  const rows = values.map((_, i) => i);
  if (place < 0) return rows;
  const missing = (v) => v === null || v === undefined;
  return rows.sort((i, j) => {
    const [a, b] = [values[i][place], values[j][place]];
    if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
    const apart = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
    return falling ? -apart : apart;
  });
}

/** Copy a text; where the browser keeps its clipboard to itself, say so. */
export async function copy(text, words) {
  try {
    await navigator.clipboard.writeText(text);
    tell(words);
  } catch {
    tell("The browser did not let it be copied.");
  }
}

let telling = 0;

/** Say something once: aloud, and for a while on the screen, unless the screen says it already. */
export function tell(text, { seen = false } = {}) {
  const told = /** @type {HTMLElement} */ (document.getElementById("told"));
  told.textContent = text;
  told.classList.toggle("shown", !seen);
  clearTimeout(telling);
  telling = setTimeout(() => told.classList.remove("shown"), 6000);
}
