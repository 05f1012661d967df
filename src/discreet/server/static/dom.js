// Elements from names, properties and children; nothing is ever parsed as HTML.

/**
 * @typedef {(event: any) => unknown} Happens
 * @typedef {{ [name: string]: any, onclick?: Happens, oninput?: Happens, onchange?: Happens, onsubmit?: Happens,
 *   onkeydown?: Happens, onscroll?: Happens, onblur?: Happens, ontoggle?: Happens, onmousedown?: Happens }} Properties
 */

/**
 * h("button", { class: "plain", onclick: f }, "Ask")
 * @template {keyof HTMLElementTagNameMap} N
 * @param {N} name
 * @param {Properties} properties
 * @param {...any} children
 * @returns {HTMLElementTagNameMap[N]}
 */
export function h(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Properties} properties
 * @param {any[]} children
 * @returns {E}
 */
function filled(element, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") Object.assign(element, { [key]: value });
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

/** @param {Element} element @param {any[]} children */
function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Replace everything inside an element.
 * @param {Element} element
 * @param {...any} children
 */
export function show(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * A refusal as a card: what, why, and what to do instead.
 * @param {Api.Refusal} refusal
 * @param {...any} actions
 */
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

/** A table with more rows than this scrolls by itself: what comes after it stays in reach. */
const LONG = 24;

let fields = 0;

/**
 * A labelled input.
 * @param {string} label
 * @param {HTMLElement} input
 * @param {string} [hint]
 */
export function field(label, input, hint) {
  input.id ||= `f${fields += 1}`;
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input,
    hint ? h("small", {}, hint) : null);
}

/**
 * A table with a caption that only screen readers need.
 * @param {string} caption
 * @param {any[]} columns
 * @param {any[][]} rows
 */
export function table(caption, columns, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((c) => (c instanceof Node ? c : h("th", { scope: "col" }, c))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) =>
        cell instanceof HTMLTableCellElement ? cell : h("td", {}, cell)))))));
}

/**
 * A table whose columns sort by their values at a click on their names, and back.
 * @param {string} caption
 * @param {Api.AnswerColumn[]} columns
 * @param {string[][]} cells
 * @param {any[][]} values
 */
export function sortable(caption, columns, cells, values) {
  const body = h("tbody", {});
  const numeric = columns.map((_, i) => values.every((row) => typeof (row[i] ?? 0) === "number"));
  const heads = columns.map((column, place) => {
    const button = h("button", { type: "button", class: "sort", onclick: () => turn(place) }, column.name);
    return h("th", { scope: "col", class: numeric[place] ? "right" : "", "aria-sort": "none" }, button);
  });
  let sorted = -1, falling = false;
  /** @param {number} place */
  function turn(place) {
    [sorted, falling] = sorted !== place ? [place, false] : falling ? [-1, false] : [place, true];
    draw();
  }
  function draw() {
    heads.forEach((head, i) => head.setAttribute("aria-sort",
      i !== sorted ? "none" : falling ? "descending" : "ascending"));
    show(body, order(values, sorted, falling).map((i) => h("tr", {}, cells[i].map((cell, place) =>
      h("td", { class: numeric[place] ? "right" : "" }, cell)))));
  }
  draw();
  return h("div", { class: values.length > LONG ? "scroll long" : "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, heads)), body));
}

/**
 * The numbers of rows in the order of one of their columns; what is missing comes last.
 * @param {any[][]} values
 * @param {number} place
 * @param {boolean} falling
 */
export function order(values, place, falling) {
  const rows = values.map((_, i) => i);
  if (place < 0) return rows;
  const missing = (/** @type {any} */ v) => v === null || v === undefined;
  return rows.sort((i, j) => {
    const [a, b] = [values[i][place], values[j][place]];
    if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
    const apart = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
    return falling ? -apart : apart;
  });
}

/**
 * Do what a button asks for, once at a time: what is paid for is not paid for twice by a second click.
 * @param {HTMLButtonElement} button
 * @param {() => Promise<unknown>} work
 */
export async function during(button, work) {
  if (button.disabled) return;
  button.disabled = true;
  try {
    await work();
  } finally {
    button.disabled = false;
  }
}

/**
 * Copy a text; where the browser keeps its clipboard to itself, say so.
 * @param {string} text
 * @param {string} words
 */
export async function copy(text, words) {
  try {
    await navigator.clipboard.writeText(text);
    tell(words);
  } catch {
    tell("The browser did not let it be copied.");
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let telling;

/**
 * Say something once: aloud, and for a while on the screen, unless the screen says it already.
 * @param {string} text
 */
export function tell(text, { seen = false } = {}) {
  const told = /** @type {HTMLElement} */ (document.getElementById("told"));
  told.textContent = text;
  told.classList.toggle("shown", !seen);
  clearTimeout(telling);
  telling = setTimeout(() => told.classList.remove("shown"), 6000);
}
