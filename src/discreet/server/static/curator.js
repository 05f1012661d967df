// For the curator and the auditor: analysts and limits, the live ledger, spending over time.

import { get, of, Refused, send } from "./api.js";
import { field, h, refusalCard, show, tell } from "./dom.js";
import { amount, gauge } from "./balance.js";
import { picture } from "./picture.js";

const budget = (/** @type {string} */ epsilon, /** @type {string} */ delta) => (epsilon ? { epsilon, delta: delta || "0" } : null);

/**
 * Run an action; a refusal is shown where it belongs.
 * @param {HTMLElement} place
 * @param {() => Promise<void>} action
 */
async function attempt(place, action) {
  show(place);
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    show(place, refusalCard(error.refusal));
  }
}

// --- analysts ---------------------------------------------------------------------------------

/** @param {HTMLElement} main @param {import("./app.js").Shown} state */
export async function analystsView(main, state) {
  const may = state.dataset.role === "curator";
  const path = (/** @type {string[]} */ ...parts) => of(state.dataset.name, "analysts", ...parts);
  const problem = h("div", {});
  const shown = h("div", {});
  const list = h("div", { class: "people" });
  const common = h("section", { class: "card", "aria-label": "Groups", hidden: true });

  async function draw() {
    /** @type {Api.Analysts} */
    const { analysts, groups } = await get(path());
    show(common, groups.length ? [h("h2", {}, "Groups"),
      h("p", {}, "What the analysts of a group pay counts for its common limit, too. Groups are declared in discreet.toml."),
      h("div", { class: "gauges" }, groups.map((g) => (g.together ? gauge(g.together, `Group ${g.name}, together`)
        : h("div", { class: "gauge" }, h("b", {}, `Group ${g.name}`), h("p", {}, "No common limit.")))))] : []);
    common.hidden = !groups.length;
    show(list, analysts.map((one) => person(one, groups)));
  }

  /** @param {Api.Analyst} one @param {Api.Group[]} groups */
  function person(one, groups) {
    const here = path(encodeURIComponent(one.name));
    const epsilon = h("input", { value: one.limit?.epsilon ?? "", size: "8", placeholder: "none", inputmode: "decimal" });
    const delta = h("input", { value: one.limit?.delta ?? "", size: "10", placeholder: "0" });
    const change = (/** @type {object} */ body, /** @type {string} */ words) => attempt(problem, async () => { await send("PATCH", here, body); await draw(); tell(words); });
    return h("section", { class: "card", "aria-label": one.name },
      h("h2", {}, one.name, " ", h("span", { class: "badge" }, one.role),
        one.disabled ? h("span", { class: "badge no" }, "disabled") : null),
      h("p", {}, `Spent ${one.spent.text}. `, one.limit ? `Limit ${one.limit.text}. ` : "No limit of their own. ",
        one.expires ? `Until ${one.expires.slice(0, 10)}. ` : "", one.identity ? `Signs in with the provider, which knows them as ${one.identity.split("#").slice(1).join("#")}. ` : "",
        one.group && !may ? `In the group ${one.group}. ` : ""),
      may && groups.length && one.role === "analyst" ? h("p", {}, field(`Group of ${one.name}`, groupOf(one, groups, change))) : null,
      h("p", {}, keys(one)),
      may ? h("ul", { class: "keys" }, one.keys.filter((k) => !k.revoked).map((k) => h("li", {}, h("code", {}, k.id),
        k.at ? ` made ${k.at.slice(0, 10)}` : "", k.expires ? `, until ${k.expires.slice(0, 10)} ` : " ",
        h("button", { class: "quiet small", "aria-label": `Revoke key ${k.id} of ${one.name}`, onclick: () => attempt(problem, async () => {
          await send("DELETE", of(state.dataset.name, "keys", k.id));
          await draw();
          tell(`A key of ${one.name} opens nothing any more.`);
        }) }, "Revoke")))) : null,
      may && one.role === "analyst" ? h("form", { class: "offer", onsubmit: (event) => {
        event.preventDefault();
        change({ limit: budget(epsilon.value, delta.value) }, `The limit of ${one.name} is set.`);
      } }, field(`ε limit of ${one.name}`, epsilon), field(`δ limit of ${one.name}`, delta),
        h("button", {}, "Set limit")) : null,
      may ? h("p", { class: "actions" },
        h("button", { class: "quiet", onclick: () => newKey(one.name) }, "New key"),
        one.role === "curator" || one.disabled ? null : h("button", { class: "quiet",
          onclick: () => change({ disabled: true }, `${one.name} is disabled.`) }, "Disable")) : null);
  }

  /** @param {Api.Analyst} one @param {Api.Group[]} groups @param {(body: object, words: string) => unknown} change */
  function groupOf(one, groups, change) {
    /** @type {HTMLSelectElement} */
    const choose = h("select", { onchange: () => change({ group: choose.value || null }, `${one.name} is in ${choose.value || "no group"} now.`) },
      h("option", { value: "" }, "none"), groups.map((g) => h("option", { value: g.name }, g.name)));
    choose.value = one.group ?? "";
    return choose;
  }

  const newKey = (/** @type {string} */ name) => attempt(problem, async () => {
    const made = await send("POST", path(encodeURIComponent(name), "keys"), {});
    show(shown, h("div", { class: "card", role: "status" }, h("p", {}, `The key of ${name}. It is shown once; copy it now.`),
      h("code", { class: "key" }, made.key)));
    await draw();
  });

  const name = h("input", { required: true, size: "14" });
  const role = h("select", {}, ["analyst", "auditor", "curator"].map((r) => h("option", {}, r)));
  const epsilon = h("input", { size: "8", placeholder: "none", inputmode: "decimal" });
  const delta = h("input", { size: "10", placeholder: "0" });
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    attempt(problem, async () => {
      await send("POST", path(), { name: name.value, role: role.value, limit: budget(epsilon.value, delta.value) });
      await newKey(name.value);
      name.value = "";
    });
  };
  show(main, h("h1", {}, "Analysts"),
    h("p", {}, "Limits may add up to more than the dataset's budget, which always wins."),
    may ? h("form", { class: "card", onsubmit: add }, h("h2", {}, "Add someone"),
      h("div", { class: "offer" }, field("Name", name), field("Role", role), field("ε limit", epsilon),
        field("δ limit", delta), h("button", { class: "main" }, "Add and make a key"))) : null,
    common, problem, shown, list);
  await draw();
}

const PAGE = 50, NEWEST = 1e15, WEEK_MS = 7 * 24 * 3600e3;

/**
 * How long the budget lasts, if people go on as in the last week that was charged.
 * @param {{ at: string, share: number }[]} points
 */
export function pace(points, now = Date.now()) {
  const share = points.at(-1)?.share;
  if (share === undefined) return "Nothing was spent yet.";
  const before = points.filter((p) => now - Date.parse(p.at) > WEEK_MS).at(-1)?.share ?? 0;
  const spent = Math.max(0, share - before);
  const used = `${(100 * share).toLocaleString("en", { maximumFractionDigits: 1 })} % is used`;
  if (spent <= 0) return `${used}; nothing in the last week.`;
  const weeks = (1 - share) / spent;
  return `${used}, ${(100 * spent).toLocaleString("en", { maximumFractionDigits: 1 })} % in the last week: at that pace the rest lasts ${
    weeks > 520 ? "more than ten years" : `about ${Math.max(0, Math.floor(7 * weeks)).toLocaleString("en")} days`}.`;
}

// --- ledger -----------------------------------------------------------------------------------

/** @param {HTMLElement} main @param {import("./app.js").Shown} state */
export async function ledgerView(main, state) {
  const path = (/** @type {string[]} */ ...parts) => of(state.dataset.name, ...parts);
  const verdict = h("div", { role: "status" });
  const rows = h("tbody", {});
  const older = h("button", { class: "quiet", onclick: () => back() }, "Older records");
  let first = 0, last = 0;

  const line = (/** @type {Api.Record} */ record) => h("tr", {}, h("td", { class: "right" }, record.sequence), h("td", {}, record.kind),
    h("td", {}, h("time", { datetime: record.at }, record.at.slice(0, 19).replace("T", " "))),
    h("td", {}, h("details", {}, h("summary", {}, summary(record)), h("pre", {}, JSON.stringify(record.body, null, 2)))),
    h("td", { class: "digest" }, h("code", {}, record.digest.slice(0, 12))));

  /** What is new, above; the page is never more than one request behind. */
  async function follow() {
    /** @type {Api.Records} */
    const found = await get(`${path("records")}?after=${last}&limit=200`);
    last = Math.max(last, found.last);
    rows.prepend(...found.records.reverse().map(line));
  }

  /** A page further back, below. */
  async function back() {
    /** @type {Api.Records} */
    const found = await get(`${path("records")}?before=${first || NEWEST}&limit=${PAGE}`);
    first = found.first;
    last = Math.max(last, found.last);
    rows.append(...found.records.reverse().map(line));
    older.hidden = first <= 1;
  }

  async function verify() {
    show(verdict, "Verifying…");
    await attempt(verdict, async () => {
      const found = await send("POST", path("verify"));
      show(verdict, h("p", { class: `badge ${found.holds ? "yes" : "no"}` }, found.holds ? "The chain holds." : "The chain is broken."),
        h("p", {}, found.text));
    });
  }

  const told = await get(`${path("spending")}?by=day`);
  show(main, h("h1", {}, "Ledger"),
    h("section", { class: "card", "aria-label": "Verification" }, h("p", {}, "Every record carries the hash of the one before it."),
      h("p", { class: "actions" }, h("button", { class: "main", onclick: verify }, "Verify the chain"),
        state.dataset.role === "curator" ? h("button", { class: "quiet", onclick: () => attempt(verdict, async () => {
          const made = await send("POST", path("checkpoints"), {});
          show(verdict, h("p", {}, `Signed checkpoint at record ${made.sequence}. Give it to your auditor.`));
        }) }, "Sign a checkpoint") : null), verdict),
    h("section", { class: "card", "aria-label": "Spending" }, h("h2", {}, "Spending over time"),
      picture(`${path("spending")}?by=hour`, { alt: "Spent over time" }), h("p", {}, pace(told.points))),
    h("section", { class: "card", "aria-label": "Records" }, h("h2", {}, "Records"),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Records of the ledger" },
        h("table", {}, h("thead", {}, h("tr", {}, ["number", "kind", "when (UTC)", "what", "digest"].map((c) => h("th", { scope: "col" }, c)))), rows)), older));
  await back();
  const timer = setInterval(() => (rows.isConnected ? follow().catch(() => {}) : clearInterval(timer)), 3000);
}

/** @param {Api.Record} record */
function summary(record) {
  const { analyst, question, name } = record.body ?? {};
  const words = [analyst, name, question].filter((w) => typeof w === "string").join(": ");
  return words.length > 60 ? `${words.slice(0, 59)}…` : words || "details";
}

// --- datasets ---------------------------------------------------------------------------------

/** @param {HTMLElement} main */
export async function datasetsView(main) {
  /** @type {Api.Datasets} */
  const { datasets } = await get("/v1/datasets");
  /** @type {Api.Balance[]} */
  const gauges = await Promise.all(datasets.map((d) => get(of(d.name, "balance"))));
  show(main, h("h1", {}, "Datasets"), datasets.map((d, i) =>
    h("section", { class: "card", "aria-label": d.name }, h("h2", {}, d.name),
      h("p", {}, `Tables: ${d.tables.join(", ")}. Answers leave at multiples of ${d.deadline_s} s.`),
      gauge(gauges[i].dataset, "Budget"), budgetPlan(d.name, gauges[i].dataset.remaining))));
}

/**
 * What each of so many questions may cost, if what is left is shared out evenly: by the sum of ε or by
 * that of ρ, whichever lets each be larger; and about how far off a count of people would be then.
 * @param {{ epsilon: string | null, rho: string }} left
 * @param {number} questions
 */
export function shareOut(left, questions) {
  if (!(questions >= 1)) return null;
  const pure = left.epsilon === null ? 0 : amount(left.epsilon) / questions;
  const concentrated = Math.sqrt(2 * Math.max(0, amount(left.rho)) / questions);
  const each = Math.max(pure, concentrated);
  return each > 0 ? { each, margin: Math.log(20) / each } : { each: 0, margin: Infinity };
}

/**
 * A plan for the rest of the budget: over how many weeks, with how many questions in each.
 * @param {string} name
 * @param {Api.Remaining | null} left
 */
function budgetPlan(name, left) {
  if (!left) return null;
  const weeks = h("input", { type: "number", min: "1", max: "5200", value: "52" });
  const asked = h("input", { type: "number", min: "1", max: "1000000", value: "20" });
  const told = h("p", { role: "status" });
  const draw = () => {
    const found = shareOut(left, Number(weeks.value) * Number(asked.value));
    const rounded = (/** @type {number} */ x) => x.toLocaleString("en", { maximumSignificantDigits: 3 });
    show(told, !found ? "Say for how many weeks, and how many questions in each." : found.each === 0 ? "Nothing is left to plan with."
      : `Each new question may cost ε = ${rounded(found.each)}: a count of people, one row each, is then off by at most about ${rounded(found.margin)} in 95 of 100 cases. What is asked again is free.`);
  };
  weeks.addEventListener("input", draw);
  asked.addEventListener("input", draw);
  draw();
  return h("details", {}, h("summary", {}, "Plan the rest of the budget"),
    h("div", { class: "offer" }, field(`Weeks that ${name} has to last`, weeks), field(`New questions a week about ${name}`, asked)), told);
}

/** @param {Api.Analyst} one */
function keys(one) {
  const valid = one.keys.filter((k) => !k.revoked).length;
  return valid === 1 ? "1 key." : `${valid} keys.`;
}
