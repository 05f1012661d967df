// A text area that colours SQL, underlines what is refused, and completes names.

import { h, show } from "./dom.js";

const TOKEN = /(--[^\n]*)|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\d+(?:\.\d+)?)|([A-Za-z_][A-Za-z0-9_]*)|(\s+)|(.)/gs;
const CLASSES = ["comment", "text", "name", "number"];

export class Editor {
  /** words: [{ word, kind, hint }]; onchange(text) after each edit, onrun() on Ctrl+Enter. */
  constructor({ words, value = "", onchange, onrun }) {
    this.words = words;
    this.keywords = new Set(words.filter((w) => w.kind !== "column" && w.kind !== "table")
      .map((w) => w.word.toUpperCase()));
    this.onchange = onchange;
    this.place = null;
    this.shown = [];
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

  /** Underline from start to stop (in code points, as the server counts), or nothing. */
  underline(place) {
    if (place) {
      const units = (n) => [...this.value].slice(0, n).join("").length;
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
      parts.push(...this.cut(token, match.index, word));
    }
    show(this.paint, parts);
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(this.area.scrollHeight + 2, 420)}px`;
    this.scrolled();
  }

  cut(token, start, kind) {
    const [from, to] = this.place ?? [-1, -1];
    const low = Math.max(from - start, 0);
    const high = Math.min(to - start, token.length);
    const span = (text, wrong) => {
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

  typed() {
    const before = this.value.slice(0, this.area.selectionStart);
    return /[A-Za-z_][A-Za-z0-9_]*$/.exec(before)?.[0] ?? "";
  }

  wantsTable() {
    const before = this.value.slice(0, this.area.selectionStart - this.typed().length);
    return /\b(FROM|JOIN)\s+$/i.test(before);
  }

  suggest() {
    const typed = this.typed().toLowerCase();
    const starts = typed
      ? this.words.filter((w) => w.word.toLowerCase().startsWith(typed) && w.word.toLowerCase() !== typed)
      : [];
    if (this.wantsTable()) starts.sort((a, b) => (b.kind === "table") - (a.kind === "table"));
    this.shown = starts.slice(0, 8);
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

  accept(i) {
    const typed = this.typed();
    const end = this.area.selectionStart;
    this.area.setRangeText(this.shown[i].word, end - typed.length, end, "end");
    this.close();
    this.draw();
    this.onchange?.(this.value);
  }

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
