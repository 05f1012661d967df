// What does this ε mean, in one picture.

import { get, Refused } from "./api.js";
import { field, h, refusalCard, show, table } from "./dom.js";
import { labPictures } from "./lab.js";

/**
 * A text by its sentences.
 * @param {string} text
 */
export function sentences(text) {
  return text.split(/(?<=\.) (?=\p{Lu})/u);
}

/**
 * What is bounded of one's taking part beside what is bounded of one's values.
 * @param {[string, string][]} rows
 */
export function besides(rows) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const [name, much] of rows) {
    const [of, what] = name.includes(": ") ? name.split(": ", 2) : ["", name];
    if (of) found.set(what, [...(found.get(what) ?? (of === "value" ? [""] : [])), much]);
  }
  return [...found].map(([what, cells]) => [what, ...cells]);
}

/** @param {HTMLElement} main */
export async function meaningView(main) {
  const picture = h("div", {});
  const epsilon = h("input", { value: "0.5", inputmode: "decimal", size: "8", oninput: () => soon() });
  const delta = h("input", { value: "1e-9", inputmode: "decimal", size: "8", oninput: () => soon() });
  const neighbours = h("select", { onchange: () => draw() },
    h("option", { value: "add/remove" }, "one unit added or removed"),
    h("option", { value: "change-one" }, "one unit changed"));
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let pending;
  const soon = () => { clearTimeout(pending); pending = setTimeout(draw, 250); };

  async function draw() {
    const query = new URLSearchParams({ epsilon: epsilon.value, delta: delta.value || "0",
      neighbours: neighbours.value });
    try {
      const found = await get(`/v1/meaning?${query}`);
      const [first, ...others] = sentences(found.meaning);
      show(picture,
        h("p", { class: "lead" }, first),
        h("img", { class: "meaning", src: `/v1/meaning.svg?${query}`,
          alt: "How far a belief that one person took part, or about what their data say, can move, and how often a guess can be right." }),
        table("What it bounds", ["at most", "whether you took part", "what your data say"], besides(found.table)),
        h("details", {}, h("summary", {}, "The same in words"), others.map((words) => h("p", {}, words))));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      show(picture, refusalCard(error.refusal));
    }
  }

  show(main, h("h1", {}, "What ε means"),
    h("section", { class: "card" },
      h("p", {}, "ε bounds what one person's taking part adds to what anyone can learn about them, whatever is known already. "
        + "It does not bound what the data teach about everybody, which holds for them as well, in the data or not."),
      h("div", { class: "offer" }, field("ε", epsilon), field("δ", delta), field("neighbours", neighbours)), picture),
    labPictures());
  await draw();
}
