// What was seen in the lab: attacks on unprotected systems, and what is left of them with ε.

import { h } from "./dom.js";

const PICTURES = [
  ["reconstruct", "Too many answers, too accurate: of sums that are off by less than the square root of the number of people "
    + "almost every secret is found; far above it, no more than by guessing."],
  ["trace", "Were you in the study? By 2,500 exact means every member is told from others; "
    + "with ε = 1 none is told more often than the dotted line allows."],
  ["separate", "Why ask a curator: one question needs a handful of people, whatever the number of columns; "
    + "a table published beforehand, or reports randomised by each person, need exponentially more."],
];

/** Pictures of runs of `discreet lab`, each a file that can be opened. */
export function labPictures() {
  return h("section", { class: "card", "aria-label": "Seen in the lab" },
    h("h2", {}, "Seen in the lab"),
    h("p", {}, "Attacks that were run, on made-up people, against answers without noise and against ours. ",
      h("code", {}, "discreet lab"), " runs them again; for a curator ",
      h("code", {}, "discreet lab reconstruct -s SESSION"), " attacks a copy of their own table."),
    h("div", { class: "lab" }, PICTURES.map(([name, words]) => h("figure", {},
      h("a", { href: `/static/lab-${name}-light.svg` }, h("picture", {},
        h("source", { srcset: `/static/lab-${name}-dark.svg`, media: "(prefers-color-scheme: dark)" }),
        h("img", { class: "meaning", src: `/static/lab-${name}-light.svg`, alt: words, loading: "lazy" }))),
      h("figcaption", {}, words)))));
}
