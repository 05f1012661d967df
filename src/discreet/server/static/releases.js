// Releases: what was published once and for all; asked for free, downloaded, and made by curators.

import { download, get, of, Refused, send } from "./api.js";
import { during, field, h, refusalCard, show, table, tell } from "./dom.js";

const KINDS = [
  ["synthetic", "rows like the table's"], ["marginals", "counts by sets of columns"], ["ranges", "counts between any two values"],
  ["prefixes", "counts up to any value"], ["hierarchy", "counts on a tree of columns"], ["counter", "counts step by step"],
];
const BY = ["ranges", "prefixes", "hierarchy", "counter"];

/**
 * What is declared: names with commas between as lists, amounts as they were typed, nothing that is empty.
 * @param {Record<string, string>} typed
 */
export function declare({ name, kind, of: table, columns, epsilon, delta, geography = "", totals = "", steps = "" }) {
  const listed = columns.split(",").map((one) => one.trim()).filter(Boolean);
  /** @type {Record<string, any>} */
  const settings = { epsilon: epsilon.trim() };
  if (delta.trim()) settings.delta = delta.trim();
  if (geography.trim()) settings.geography = geography.trim();
  const known = totals.split(",").map((one) => one.split("=").map((part) => part.trim())).filter(([path]) => path);
  if (known.length) settings.totals = Object.fromEntries(known.map(([path, count]) => [path, /^\d+$/.test(count ?? "") ? Number(count) : count ?? ""]));
  if (steps.trim()) settings.steps_per_unit = /^\d+$/.test(steps.trim()) ? Number(steps) : steps.trim();
  if (listed.length) settings[BY.includes(kind) ? "by" : "columns"] = listed;
  return { name: name.trim(), kind, of: table.trim(), settings };
}

/**
 * A card by its parts, without the marks of Markdown: paragraphs, points of lists, rows of tables.
 * Its name stands above it already.
 * @typedef {{ kind: "words" | "points" | "rows", lines: string[] }} CardPart
 * @param {string} text
 */
export function readCard(text) {
  /** @type {CardPart[]} */
  const parts = [];
  let apart = true; // a part begins anew after an empty line
  for (const line of text.replace(/^# .*\n/, "").replaceAll("**", "").replaceAll("`", "").split("\n")) {
    const kind = line.startsWith("|") ? "rows" : line.startsWith("- ") ? "points" : "words";
    const last = parts.at(-1);
    if (!line.trim()) apart = true;
    else if (kind === "rows" && /^\|[ |:-]+\|$/.test(line)) apart = false; // the line under a heading
    else if (!apart && last && line.startsWith(" ")) last.lines.push(`${last.lines.pop()} ${line.trim()}`);
    else if (!apart && last?.kind === kind) last.lines.push(line);
    else {
      parts.push({ kind, lines: [line] });
      apart = false;
    }
  }
  return parts;
}

/** @param {CardPart} part */
function drawPart({ kind, lines }) {
  if (kind === "points") return h("ul", {}, lines.map((line) => h("li", {}, line.slice(2))));
  if (kind === "words") return h("p", {}, lines.join(" "));
  const [head, ...rows] = lines.map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
  return table(head.join(", "), head, rows);
}

/** @param {HTMLElement} place @param {import("./app.js").Shown} state */
export async function releasesView(place, { dataset }) {
  const list = h("div", {}), one = h("div", { "aria-live": "polite" });
  const curates = dataset.role === "curator";
  show(place, h("h1", {}, "Releases"),
    h("p", {}, "A release was paid for once, and is public: whatever is asked of it is free. Its margin says what it promises."),
    list, one, curates ? make() : null);
  await draw();

  async function draw() {
    /** @type {Api.Releases} */
    const { releases } = await get(of(dataset.name, "releases"));
    show(list, releases.length
      ? table("Releases", ["name", "kind", "of", "look"], releases.map((found) => [found.name, found.kind, h("code", {}, found.of),
          h("button", { class: "quiet", type: "button", onclick: () => trying(one, () => open(found)) }, "Open")]))
      : h("p", { class: "card quiet" }, "Nothing was released yet."));
  }

  /** @param {Api.Release} found */
  async function open(found) {
    const path = of(dataset.name, "releases", found.name);
    const { card } = await get(`${path}/card`);
    const question = h("textarea", { rows: "3", spellcheck: "false" });
    question.value = `SELECT COUNT(*) AS n FROM ${found.name}`;
    const answer = h("div", {});
    const ask = async () => {
      /** @type {Api.Told} */
      const told = await send("POST", `${path}/ask`, { question: question.value });
      show(answer, table("What the release says", told.columns, told.cells), told.notes.map((words) => h("p", { class: "quiet" }, words)));
      tell(told.notes.join(" "), { seen: true });
    };
    const step = async () => {
      await send("POST", `${path}/step`, {});
      tell("The next step is published.", { seen: true });
      await open(found);
    };
    show(one, h("section", { class: "card", "aria-label": `Release ${found.name}` }, h("h2", {}, found.name),
      readCard(card).map(drawPart),
      field("A question about it, in SQL", question, "Free, however often."),
      h("p", { class: "actions" },
        h("button", { class: "main", type: "button", onclick: () => trying(answer, ask) }, "Ask for free"),
        h("button", { class: "quiet", type: "button", onclick: () => trying(answer, () => download(`${path}/folder`, "application/zip", `${found.name}.zip`)) }, "Download the folder"),
        curates && found.kind === "counter" ? h("button", { class: "quiet", type: "button", onclick: (event) => during(event.target, () => trying(answer, step)) }, "Publish the next step") : null),
      answer));
  }

  function make() {
    const input = (/** @type {string} */ name, /** @type {string} */ usual) => h("input", { name, value: usual, autocomplete: "off" });
    const only = (/** @type {string} */ which, /** @type {HTMLElement[]} */ ...fields) => h("div", { class: "fields whole", "data-kind": which }, ...fields);
    const kind = h("select", { name: "kind" }, KINDS.map(([word, says]) => h("option", { value: word }, `${word}: ${says}`)));
    const form = h("div", { class: "fields" }, field("Name", input("name", ""), "Small letters, digits and _."), field("Kind", kind),
      field("Of", input("of", ""), "A table, or a SELECT with one row for each person."),
      field("Columns", input("columns", ""), "With commas between; of a tree from the top down."),
      field("ε", input("epsilon", "0.1")), field("δ", input("delta", ""), "Given one, noise is Gaussian."),
      only("hierarchy", field("Places", input("geography", ""), "A public table that lists them; if left out, all combinations."),
        field("Known totals", input("totals", ""), "Public from elsewhere, with commas between: north=365, south/bath=12.")),
      only("counter", field("Steps per person", input("steps", ""), "In how many steps one is counted at most; steps then share their noise, which is Gaussian.")));
    const choose = () => form.querySelectorAll("[data-kind]").forEach((/** @type {any} */ at) => { at.hidden = at.dataset.kind !== kind.value; });
    kind.addEventListener("change", choose);
    choose();
    const said = h("div", { "aria-live": "polite" });
    const asked = () => [...form.querySelectorAll("input, select")].filter((at) => !at.closest("[hidden]"));
    const wanted = () => declare(Object.fromEntries(asked().map((/** @type {any} */ at) => [at.name, at.value])));
    const plan = async () => {
      /** @type {Api.ReleasePlan} */
      const found = await send("POST", of(dataset.name, "releases", "plan"), wanted());
      show(said, h("p", {}, h("b", {}, found.loss.text)), h("p", {}, `For each ${found.unit}, with up to ${found.rows_per_unit === 1 ? "one row" : `${found.rows_per_unit} rows`}. Nothing was charged.`),
        table("Stages", ["stage", "costs", "what"], found.stages.map((part) => [part.name, part.loss, part.says])));
    };
    const publish = async () => {
      await plan(); // what is refused is refused unpaid
      show(said, h("p", { class: "quiet" }, "Charging, measuring, adding noise, publishing…"));
      const made = await send("POST", of(dataset.name, "releases"), wanted());
      show(said);
      tell(`${made.declared.name} is published.`, { seen: true });
      await draw();
      await open({ name: made.declared.name, kind: made.declared.kind, of: made.declared.of });
    };
    return h("section", { class: "card", "aria-label": "Make a release" }, h("h2", {}, "Make a release"), form,
      h("p", { class: "actions" },
        h("button", { class: "quiet", type: "button", onclick: () => trying(said, plan) }, "Price"),
        h("button", { class: "main", type: "button", onclick: (event) => during(event.target, () => trying(said, publish)) }, "Pay and publish")),
      said);
  }
}

/** @param {HTMLElement} place @param {() => Promise<void>} work */
async function trying(place, work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    show(place, refusalCard(error.refusal));
  }
}
