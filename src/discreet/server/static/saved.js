// Saved questions; a folder of them is a dashboard, which never pays by being looked at.

import { addressOf } from "./answer.js";
import { ask, get, of, Refused, send } from "./api.js";
import { h, refusalCard, show, table, tell } from "./dom.js";
import { picture } from "./picture.js";

const FEW_ROWS = 8;
const DRAWN = ["bars", "line", "grouped", "histogram"];

/** @param {HTMLElement} main @param {import("./app.js").Shown} state */
export async function savedView(main, state) {
  const dataset = state.dataset.name;
  const wanted = decodeURIComponent(location.hash.split("/")[1] ?? "");
  const board = h("div", { class: "board" });

  async function draw() {
    /** @type {Api.SavedList} */
    const { saved } = await get(of(dataset, "saved"));
    const folders = [...new Set(saved.map((one) => one.folder))];
    const folder = folders.includes(wanted) ? wanted : folders[0];
    const mine = saved.filter((one) => one.folder === folder);
    show(main, h("h1", {}, "Saved questions"),
      saved.length ? h("p", {}, "Looking is free: what is known is told, and nothing is paid until you say so. ",
        "When the data change, a question here waits for its price.")
        : h("p", { class: "card quiet" }, "Nothing is saved yet: below an answer, choose “Save the question”."),
      folders.length > 1 || folders[0] ? h("nav", { "aria-label": "Folders" }, h("ul", {}, folders.map((name) =>
        h("li", {}, h("a", { href: `#saved/${encodeURIComponent(name)}`, "aria-current": name === folder ? "page" : null },
          name || "no folder"))))) : null,
      board);
    const cards = mine.map((one) => card(one));
    show(board, cards.map((c) => c.element));
    for (const one of cards) { // one after the other: a dashboard is no flood
      if (!board.isConnected) return;
      await one.refresh();
    }
  }

  /** @param {Api.Saved} one */
  function card(one) {
    const place = h("div", {}, h("p", { class: "quiet" }, "Looking up what is known…"));
    /** @param {Record<string, any>} offer */
    async function refresh(offer = {}) {
      try {
        const answer = await ask(dataset, { question: one.question, ...offer }, {});
        if ("cost" in answer) return show(place, table("Answer", answer.columns, answer.cells)); // of a release or a survey
        show(place, told(answer));
        if (Object.keys(offer).length) tell(answer.replayed ? "This cost nothing." : `Answered. It cost ${answer.paid.text}.`, { seen: true });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (error.refusal.code !== "Q43") return show(place, refusalCard(error.refusal));
        const found = await quote();
        if (found?.free) show(place, h("button", { type: "button", onclick: () => refresh(one.offer) }, "Show it, free"));
        else show(place, h("p", { class: "quiet" }, "Not known for the data as they are now."), pay(refresh));
      }
      return undefined;
    }
    /**
     * What it would cost; nothing, for a statement whose questions were all answered.
     * @returns {Promise<Api.Explanation | null>}
     */
    async function quote() {
      try {
        return await send("POST", of(dataset, "explain"), { question: one.question, ...one.offer });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return null;
      }
    }
    const offered = Object.entries(one.offer);
    const pay = (/** @type {typeof refresh} */ again) => (offered.length ? h("button", { type: "button", onclick: () => again(one.offer) },
      `Ask for ${offered.map(([n, amount]) => `${SIGNS[n] ?? n} ${amount}`).join(", ")}`) : null);
    /** @param {Api.Answer} answer */
    function told(answer) {
      const path = answer.id === null ? of(dataset, "ask") : of(dataset, "answers", answer.id);
      const again = answer.id === null ? { question: one.question } : undefined;
      const few = answer.cells.slice(0, FEW_ROWS);
      return [
        DRAWN.includes(answer.chart.kind) && answer.rows.length
          ? picture(`${path}?y=${encodeURIComponent(answer.chart.y[0])}`, { body: again, alt: one.name })
          : table(`Answer to ${one.name}`, answer.columns.map((c) => c.name), few),
        h("p", { class: "row" }, h("small", {}, few.length < answer.cells.length ? `${answer.cells.length} rows. ` : "", "± at 95 %."),
          h("a", { href: addressOf(dataset, answer, one.offer) }, "Open"))];
    }
    const element = h("section", { class: "card", "aria-label": one.name },
      h("div", { class: "row" }, h("h2", {}, one.name), h("span", { class: "actions" },
        h("button", { type: "button", class: "quiet", onclick: () => edit(one) }, "Edit"),
        h("button", { type: "button", class: "quiet", onclick: async () => {
          await send("DELETE", of(dataset, "saved", one.id));
          tell(`${one.name} is removed; its answers stay.`);
          await draw();
        } }, "Remove"))), place);
    return { element, refresh };
  }

  /** @param {Api.Saved} one */
  function edit(one) {
    const [mode, amount] = Object.entries(one.offer).find(([n]) => n !== "delta") ?? ["epsilon", "0.1"];
    state.draft = { question: one.question, mode, amount: String(amount), delta: String(one.offer.delta ?? ""), choice: "" };
    location.hash = "#ask";
  }

  await draw();
}

/** @type {Record<string, string>} */
const SIGNS = { epsilon: "ε =", rho: "ρ =", delta: "δ =", within: "±" };
