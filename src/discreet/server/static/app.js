// The page: who is signed in, which dataset, which view.

import { answerView } from "./answer.js";
import { get, key, of, Refused, send, SIGN_IN_REFUSED } from "./api.js";
import { ask as askView } from "./ask.js";
import { balanceView } from "./balance.js";
import { analystsView, datasetsView, ledgerView } from "./curator.js";
import { field, h, refusalCard, show } from "./dom.js";
import { historyView } from "./history.js";
import { meaningView } from "./meaning.js";
import { releasesView } from "./releases.js";
import { runsView } from "./runs.js";
import { savedView } from "./saved.js";
import { schemaView } from "./schema.js";

/**
 * @typedef {{ question: string, mode: string, amount: string, delta: string, choice: string }} Draft
 * @typedef {{ me: Api.Me | null, picked: string | null, dataset: Api.Grant | null, schema: Api.Schema | null, draft: Draft | null }} State
 * @typedef {State & { me: Api.Me, dataset: Api.Grant, schema: Api.Schema }} Shown
 * @typedef {{ name: string, draw: (place: HTMLElement, state: Shown) => Promise<void>, roles?: string[], unlisted?: boolean }} View
 */

/** @type {Record<string, View>} */
const VIEWS = {
  ask: { name: "Ask", draw: askView, roles: ["analyst", "curator"] },
  runs: { name: "Runs", draw: runsView, roles: ["analyst", "curator"] },
  releases: { name: "Releases", draw: releasesView },
  saved: { name: "Saved", draw: savedView, roles: ["analyst", "curator"] },
  history: { name: "History", draw: historyView },
  balance: { name: "Balance", draw: balanceView },
  data: { name: "Data", draw: schemaView },
  meaning: { name: "What ε means", draw: meaningView },
  analysts: { name: "Analysts", draw: analystsView, roles: ["curator", "auditor"] },
  ledger: { name: "Ledger", draw: ledgerView, roles: ["curator", "auditor"] },
  datasets: { name: "Datasets", draw: datasetsView, roles: ["curator"] },
  answer: { name: "Answer", draw: storedView, unlisted: true },
};

const top = /** @type {HTMLElement} */ (document.getElementById("top"));
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
/** @type {State} */
const NOBODY = { me: null, picked: null, dataset: null, schema: null, draft: null };
const state = { ...NOBODY };

/** The dataset and the rest of an address: #answer/clinic/12, #ask/clinic/?question=... */
function address() {
  const [view, name = "", rest = ""] = location.hash.slice(1).split("/");
  return { view, name: decodeURIComponent(name), rest };
}

/**
 * What an address asks, to be priced and, at a click, asked.
 * @param {string} rest
 */
function readDraft(rest) {
  const given = new URLSearchParams(rest);
  const [mode, amount] = [...given].find(([name]) => ["epsilon", "rho", "within"].includes(name)) ?? ["epsilon", "0.1"];
  return { question: given.get("question") ?? "", mode, amount, delta: given.get("delta") ?? "", choice: "" };
}

/**
 * An answer at its own address.
 * @param {HTMLElement} place
 * @param {Shown} state
 */
async function storedView(place, { dataset }) {
  /** @type {Api.Answer} */
  const answer = await get(of(dataset.name, "answers", encodeURIComponent(address().rest)));
  show(place, h("h1", {}, `Answer ${answer.id}`),
    h("section", { class: "card", "aria-label": "Question" }, h("pre", { class: "question", tabindex: "0" }, answer.question),
      h("p", { class: "actions" }, h("button", { class: "quiet", onclick: () => {
        state.draft = { question: answer.question, mode: "epsilon", amount: "0.1", delta: "", choice: "" };
        location.hash = "#ask";
      } }, "Ask something like it"), answer.at ? h("time", { datetime: answer.at, class: "quiet" }, new Date(answer.at).toLocaleString("en-GB")) : null)),
    answerView(answer, dataset.name, undefined));
}

/** Sign out. */
export async function leave() {
  if (!key.get()) await send("POST", "/v1/sign-out").catch(() => {}); // signed in with a provider
  key.forget();
  Object.assign(state, NOBODY);
  history.replaceState(null, "", location.pathname);
  signIn();
}

/** What a view may use, once somebody is here. */
function entered() {
  const { me, dataset, schema } = state;
  return me && dataset && schema ? /** @type {Shown} */ (state) : null;
}

function current() {
  const name = location.hash.slice(1).split("/")[0];
  return Object.hasOwn(VIEWS, name) && allowed(VIEWS[name]) ? name : Object.keys(VIEWS).find((n) => allowed(VIEWS[n])) ?? "data";
}

/** @param {View} view */
function allowed(view) {
  return !view.roles || view.roles.includes(state.dataset?.role ?? "");
}

/** @param {Shown} now */
function header(now) {
  const here = current();
  const choose = h("select", { "aria-label": "Dataset", onchange: (event) => pick(event.target.value) },
    now.me.datasets.map((d) => h("option", { value: d.name }, d.name)));
  choose.value = now.dataset.name;
  show(top,
    h("div", { class: "bar" },
      h("a", { class: "brand", href: "#ask" }, "discreet"),
      choose,
      h("span", { class: "who" }, `${now.dataset.analyst} (${now.dataset.role})`),
      h("button", { class: "quiet", onclick: leave }, "Sign out")),
    h("nav", { "aria-label": "Views" }, h("ul", {}, Object.entries(VIEWS)
      .filter(([, view]) => allowed(view) && !view.unlisted)
      .map(([name, view]) => h("li", {}, h("a", { href: `#${name}`,
        "aria-current": name === here ? "page" : null }, view.name))))));
}

async function draw() {
  const now = entered();
  if (!now) return undefined; // somebody is signing in
  const name = current();
  const { view, name: wanted, rest } = address();
  if ((view === "ask" || view === "answer") && wanted !== now.dataset.name && now.me.datasets.some((d) => d.name === wanted)) {
    return pick(wanted);
  }
  if (view === "ask" && rest.startsWith("?")) {
    state.draft = readDraft(rest);
    history.replaceState(null, "", "#ask"); // what is written from here on is another question
  }
  header(now);
  document.title = `${VIEWS[name].name} · discreet`;
  // A place of its own: what comes late is drawn where nobody looks, not over the next view.
  const place = h("div", {}, h("p", { class: "quiet" }, "Loading…"));
  show(main, place);
  main.focus(); // now, not when all is loaded: by then somebody is typing
  try {
    await VIEWS[name].draw(place, now);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (!place.isConnected) return undefined;
    if (error.status === 401) return signIn(error.refusal);
    show(place, h("h1", {}, VIEWS[name].name), refusalCard(error.refusal));
  }
  return undefined;
}

/** @param {string} name */
async function pick(name) {
  state.picked = name;
  const schema = await get(of(name));
  if (state.picked !== name) return; // another was picked since, or nobody is here
  Object.assign(state, { dataset: state.me?.datasets.find((d) => d.name === name) ?? null, schema, draft: null });
  await draw();
}

/** @param {Api.Refusal} [refusal] */
function signIn(refusal) {
  show(top, h("div", { class: "bar" }, h("span", { class: "brand" }, "discreet")));
  document.title = "Sign in · discreet";
  const input = h("input", { type: "password", autocomplete: "current-password", required: true,
    placeholder: "discreet_…" });
  const problem = h("div", {}, refusal ? refusalCard(forPeople(refusal)) : null);
  const form = h("form", { class: "card narrow", onsubmit: (event) => enter(event, input, problem) },
    h("h1", {}, "Sign in"),
    h("p", {}, "Ask questions about people; what any one of them adds to the answers is bounded. ",
      "Every answer comes with its margin and its price."),
    field("Your key", input, "The curator gave it to you; it is kept until this tab closes."),
    problem,
    h("button", { class: "main" }, "Sign in"));
  const other = h("section", { class: "card narrow", "aria-label": "Sign in with a provider", hidden: true });
  show(main, form, other);
  input.focus();
  offerProvider(other);
}

/**
 * What programs send in a header people type.
 * @param {Api.Refusal} refusal
 * @returns {Api.Refusal}
 */
function forPeople(refusal) {
  return refusal.code === "A10" ? { ...refusal, fix: "type the key that the curator gave you, or ask for another." } : refusal;
}

/**
 * Beside the key, a provider to sign in with, where the server has one.
 * @param {HTMLElement} place
 */
async function offerProvider(place) {
  const found = await get("/v1/sign-in").catch(() => null);
  if (!found?.available) return;
  show(place, h("h2", {}, "Without a key"),
    h("p", {}, h("a", { class: "button", href: "/v1/sign-in/begin" }, `Sign in with ${found.provider}`)));
  place.hidden = false;
}

/** @param {Event} event @param {HTMLInputElement} input @param {HTMLElement} problem */
async function enter(event, input, problem) {
  event.preventDefault();
  key.set(input.value.trim());
  try {
    await start();
  } catch (error) {
    key.forget();
    if (!(error instanceof Refused)) throw error;
    show(problem, refusalCard(forPeople(error.refusal)));
  }
}

async function start() {
  /** @type {Api.Me} */
  const me = await get("/v1/me");
  state.me = me;
  await pick(me.datasets[0].name);
}

// "Skip to the content" goes to #main, which is no view: it stays where it is.
window.addEventListener("hashchange", () => (location.hash === "#main" ? undefined : draw()));
const { view: first, name: code } = address();
if (first === "refused") {
  history.replaceState(null, "", location.pathname);
  signIn(Object.hasOwn(SIGN_IN_REFUSED, code) ? SIGN_IN_REFUSED[code] : undefined);
} else if (key.get()) start().catch((error) => signIn(error.refusal));
else {
  signIn(); // at once: who comes with a key is typing it already
  enterSignedIn();
}

/** Whether somebody has signed in with a provider is nothing that a script can see: ask. */
async function enterSignedIn() {
  const found = await get("/v1/sign-in").catch(() => null);
  if (found?.available) await start().catch(() => null);
}
