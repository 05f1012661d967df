// A text area that colours SQL, underlines what is refused, and completes names.

import { complete } from "./complete.js";
import { h, show } from "./dom.js";

const TOKEN = /(--[^\n]*)|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\d+(?:\.\d+)?)|([A-Za-z_][A-Za-z0-9_]*)|(\s+)|(.)/gs;
const CLASSES = ["comment", "text", "name", "number"];

export class Editor {
  /**
   * onchange(text) after each edit, onrun() on Ctrl+Enter.
   * @param {{ schema: Api.Schema, value?: string, onchange?: (text: string) => void, onrun?: () => void }} given
   */
  constructor({ schema, value = "", onchange, onrun }) {
    this.schema = schema;
    this.keywords = new Set([...schema.aggregates, ...schema.functions].map((f) => f.name.toUpperCase())
      .concat(schema.keywords));
    this.onchange = onchange;
    /** @type {[number, number] | null} */
    this.place = null;
    /** @type {import("./complete.js").Word[]} */
    this.shown = [];
    this.from = 0;
    this.chosen = 0;
    this.area = h("textarea", {
      id: "sql", class: "sql", spellcheck: "false", autocapitalize: "off", autocomplete: "off",
      rows: "5", "aria-autocomplete": "list", "aria-controls": "completions",
      "aria-describedby": "sql-help", value,
      oninput: () => this.edited(), onscroll: () => this.scrolled(),
      onkeydown: (event) => this.key(event, onrun), onblur: () => this.close(),
    });
    this.paint = h("pre", { class: "paint", "aria-hidden": "true" });
    this.list = h("ul", { id: "completions", class: "completions", role: "listbox",
      "aria-label": "Completions", hidden: true });
    this.element = h("div", { class: "editor" },
      h("label", { for: "sql" }, "Your question, in SQL"),
      h("div", { class: "paper" }, this.paint, this.area, this.list),
      h("small", { id: "sql-help" },
        "Tab completes, Ctrl+Enter asks, Escape then Tab leaves the editor."));
    this.draw();
  }

  get value() { return this.area.value; }

  set value(text) {
    this.area.value = text;
    this.place = null;
    this.close();
    this.draw();
    this.onchange?.(text);
  }

  /**
   * Underline from start to stop (in code points, as the server counts), or nothing.
   * @param {number[] | null | undefined} place
   */
  underline(place) {
    if (place) {
      const units = (/** @type {number} */ n) => [...this.value].slice(0, n).join("").length;
      this.place = [units(place[0]), Math.max(units(place[1]), units(place[0]) + 1)];
    } else this.place = null;
    this.area.setAttribute("aria-invalid", this.place ? "true" : "false");
    this.draw();
  }

  edited() {
    this.place = null;
    this.draw();
    this.suggest();
    this.onchange?.(this.value);
  }

  draw() {
    const parts = [];
    for (const match of `${this.value}\n`.matchAll(TOKEN)) {
      const group = match.slice(1).findIndex((x) => x !== undefined);
      const token = match[0];
      const word = group === 4 && this.keywords.has(token.toUpperCase()) ? "keyword" : CLASSES[group];
      parts.push(...this.cut(token, match.index ?? 0, word));
    }
    show(this.paint, parts);
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(this.area.scrollHeight + 2, 420)}px`;
    this.scrolled();
  }

  /** @param {string} token @param {number} start @param {string} kind */
  cut(token, start, kind) {
    const [from, to] = this.place ?? [-1, -1];
    const low = Math.max(from - start, 0);
    const high = Math.min(to - start, token.length);
    const span = (/** @type {string} */ text, /** @type {boolean} */ wrong) => {
      const classes = [kind, wrong ? "wrong" : ""].filter(Boolean).join(" ");
      return classes ? h("span", { class: classes }, text) : text;
    };
    if (low >= high) return [span(token, false)];
    return [token.slice(0, low) && span(token.slice(0, low), false),
      span(token.slice(low, high), true),
      token.slice(high) && span(token.slice(high), false)].filter(Boolean);
  }

  scrolled() {
    this.paint.scrollTop = this.area.scrollTop;
    this.paint.scrollLeft = this.area.scrollLeft;
  }

  // --- completion ---------------------------------------------------------------------------

  suggest() {
    const found = complete(this.value, this.area.selectionStart, this.schema);
    this.from = found.from;
    this.shown = found.words;
    this.chosen = 0;
    this.list.hidden = !this.shown.length;
    show(this.list, this.shown.map((w, i) => h("li", {
      id: `completion-${i}`, role: "option", "aria-selected": String(i === this.chosen),
      onmousedown: (event) => { event.preventDefault(); this.accept(i); },
    }, h("span", {}, w.word), h("small", {}, w.hint))));
    this.mark();
  }

  mark() {
    [...this.list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === this.chosen)));
    if (this.list.hidden) this.area.removeAttribute("aria-activedescendant");
    else this.area.setAttribute("aria-activedescendant", `completion-${this.chosen}`);
  }

  close() {
    this.shown = [];
    this.list.hidden = true;
    this.mark();
  }

  /** @param {number} i */
  accept(i) {
    const { word, kind } = this.shown[i];
    this.area.setRangeText(kind === "function" ? `${word}(` : word, this.from, this.area.selectionStart, "end");
    this.close();
    this.draw();
    this.onchange?.(this.value);
  }

  /**
   * Put a word where the cursor is, with room around it.
   * @param {string} word
   */
  insert(word) {
    const [start, end] = [this.area.selectionStart, this.area.selectionEnd];
    const [before, after] = [this.value.slice(0, start), this.value.slice(end)];
    const text = `${/[\w)'"]$/.test(before) ? " " : ""}${word}${/^[\w('"]/.test(after) ? " " : ""}`;
    this.area.setRangeText(text, start, end, "end");
    this.area.focus();
    this.edited();
    this.close();
  }

  /** @param {KeyboardEvent} event @param {(() => void) | undefined} onrun */
  key(event, onrun) {
    const open = !this.list.hidden;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.close();
      onrun?.();
    } else if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : this.shown.length - 1;
      this.chosen = (this.chosen + step) % this.shown.length;
      this.mark();
    } else if (open && event.key === "Tab") {
      event.preventDefault();
      this.accept(this.chosen);
    } else if (open && event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
  }
}
