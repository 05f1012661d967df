// Elements from names, properties and children; nothing is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** h("button", { class: "plain", onclick: f }, "Ask") */
export function h(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

/** The same for pictures. */
export function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
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

/** A labelled input. */
export function field(label, input, hint) {
  input.id ||= `f${field.count = (field.count || 0) + 1}`;
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

/** Say something once, aloud too. */
export function tell(text) {
  const told = document.getElementById("told");
  told.textContent = text;
  told.classList.add("shown");
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => told.classList.remove("shown"), 6000);
}
