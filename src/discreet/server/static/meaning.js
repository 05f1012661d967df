// What does this ε mean, in one picture.

import { get } from "./api.js";
import { field, h, refusalCard, show, table } from "./dom.js";
import { labPictures } from "./lab.js";

export async function meaningView(main) {
  const picture = h("div", {});
  const epsilon = h("input", { value: "0.5", inputmode: "decimal", size: "8", oninput: () => soon() });
  const delta = h("input", { value: "1e-9", inputmode: "decimal", size: "8", oninput: () => soon() });
  const neighbours = h("select", { onchange: () => draw() },
    h("option", { value: "add/remove" }, "one unit added or removed"),
    h("option", { value: "change-one" }, "one unit changed"));
  let pending;
  const soon = () => { clearTimeout(pending); pending = setTimeout(draw, 250); };

  async function draw() {
    const query = new URLSearchParams({ epsilon: epsilon.value, delta: delta.value || "0",
      neighbours: neighbours.value });
    try {
      const found = await get(`/v1/meaning?${query}`);
      show(picture,
        h("p", { class: "lead" }, found.meaning),
        h("img", { class: "meaning", src: `/v1/meaning.svg?${query}`,
          alt: "How far a belief that one person took part, or about what their data say, can move, and how often a guess can be right." }),
        table("What it bounds", ["what", "at most"], found.table.map(([what, much]) => [what, much])));
    } catch (error) {
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
