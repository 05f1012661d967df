// The page's functions that decide something, by themselves: run by test_scripts.py under Node.js.

import assert from "node:assert/strict";
import test from "node:test";

const at = (name) => import(new URL(`../../src/discreet/server/static/${name}`, import.meta.url));
globalThis.window = { matchMedia: () => ({ matches: false, addEventListener() {} }) };
const { complete, place, quoteName, quoteValue, scope } = await at("complete.js");
const { order } = await at("dom.js");
const { body, nearest, wayOf } = await at("ask.js");
const { addressOf, tabbed } = await at("answer.js");
const { amount, count, shares } = await at("balance.js");
const { pace, shareOut } = await at("curator.js");
const { besides, sentences } = await at("meaning.js");
const { declare, readCard } = await at("releases.js");
const { readChecks, readSettings, shown } = await at("runs.js");

const column = (name, values = null) => ({ name, text: "text", kind: "text", values });
const schema = {
  tables: [
    { name: "patients", public: false, columns: [column("city", ["Oslo", "L'Aquila", null]), column("age"), column("Über")] },
    { name: "visits", public: false, columns: [column("cost"), column("reason", ["flu"])] },
  ],
  aggregates: [{ name: "COUNT", meaning: "" }, { name: "AVG", meaning: "" }],
  functions: [{ name: "ABS", meaning: "" }, { name: "CONCAT", meaning: "" }],
  keywords: ["SELECT", "FROM", "WHERE", "GROUP", "BY", "AS", "AND"],
};
/** The words offered at the bar. */
const offered = (text) => {
  const cursor = text.indexOf("|");
  return complete(text.replace("|", ""), cursor, schema).words.map((w) => w.word);
};

test("after FROM and JOIN stand tables, and nothing else", () => {
  assert.deepEqual(offered("SELECT COUNT(*) FROM |"), ["patients", "visits"]);
  assert.deepEqual(offered("SELECT COUNT(*) FROM pa|"), ["patients"]);
  assert.deepEqual(offered("SELECT COUNT(*) FROM visits JOIN p| USING (x)"), ["patients"]);
});

test("columns are those of the tables that the statement names, also before FROM", () => {
  assert.deepEqual(offered("SELECT c| FROM visits"), ["cost", "COUNT", "CONCAT"]);
  assert.deepEqual(offered("SELECT ci|"), ["city"]);
  assert.deepEqual(offered("SELECT ci| FROM visits"), []);
  assert.deepEqual(offered("SELECT v.c| FROM visits AS v"), ["cost"]);
  assert.deepEqual(offered("SELECT p.| FROM patients p, visits v"), ["city", "age", '"Über"']);
});

test("aggregates stand where they may", () => {
  assert.ok(offered("SELECT A| FROM patients").includes("AVG"));
  assert.deepEqual(offered("SELECT COUNT(*) FROM patients WHERE a|"), ["age", "ABS", "AS", "AND"]);
  assert.ok(!offered("SELECT COUNT(*) FROM patients GROUP BY a|").includes("AVG"));
});

test("after a comparison stand the declared values, quoted", () => {
  assert.deepEqual(offered("SELECT COUNT(*) FROM patients WHERE city = |"), ["'Oslo'", "'L''Aquila'", "NULL"]);
  assert.deepEqual(offered("SELECT COUNT(*) FROM patients WHERE city = 'O|"), ["'Oslo'"]);
  assert.deepEqual(offered("SELECT COUNT(*) FROM patients WHERE city IN ('Oslo', '|"), ["'Oslo'", "'L''Aquila'"]);
  assert.deepEqual(offered("SELECT COUNT(*) FROM patients WHERE city NOT IN (|"), ["'Oslo'", "'L''Aquila'", "NULL"]);
});

test("nothing is offered in comments, texts and new names", () => {
  for (const text of ["SELECT 'cit|", "SELECT 1 -- cit|", "SELECT /* cit|", "SELECT COUNT(*) AS a|", "SELECT 1 LIMIT c|"]) {
    assert.deepEqual(offered(text), [], text);
  }
  assert.deepEqual(offered("SE|"), ["SELECT"]);
  assert.deepEqual(offered("|"), []);
});

test("a place says what is replaced", () => {
  assert.deepEqual(place("SELECT cit", 10), { typed: "cit", from: 7, role: "SELECT" });
  assert.equal(place("SELECT a FROM t WHERE x = 'Os", 29).typed, "'Os");
});

test("names and values are quoted as SQL reads them", () => {
  assert.equal(quoteName("city"), "city");
  assert.equal(quoteName('a "b"'), '"a ""b"""');
  assert.equal(quoteValue("it's"), "'it''s'");
  assert.equal(quoteValue(true), "TRUE");
  assert.equal([...scope('SELECT 1 FROM "visits" w', schema).keys()].join(), "visits,w");
});

test("rows are sorted by value, and back; what is missing comes last", () => {
  const rows = [[10, "b"], [9, null], [null, "a"], [100, "C"]];
  assert.deepEqual(order(rows, 0, false), [1, 0, 3, 2]);
  assert.deepEqual(order(rows, 0, true), [3, 0, 1, 2]);
  assert.deepEqual(order(rows, 1, false), [2, 0, 3, 1]);
  assert.deepEqual(order(rows, -1, true), [0, 1, 2, 3]);
});

test("exactly one offer is sent; none for what is known", () => {
  const draft = { question: "q", mode: "epsilon", amount: "0.3", delta: "1e-9", choice: "" };
  assert.deepEqual(body(draft), { question: "q", epsilon: "0.3", delta: "1e-9" });
  assert.deepEqual(body({ ...draft, choice: "free" }), { question: "q" });
  assert.deepEqual(body({ ...draft, delta: "", choice: "new" }), { question: "q", epsilon: "0.3", fresh: true });
  assert.deepEqual(body({ ...draft, mode: "statement", delta: "" }), { question: "q" });
});

test("the slider stands at the point that is nearest by ratio", () => {
  const points = [["0.1", 30], ["0.2", 15], ["0.5", 6]].map(([epsilon, n]) => ({ epsilon, margins: { n } }));
  assert.equal(nearest(points, { mode: "epsilon", amount: "0.15" }), 1);
  assert.equal(nearest(points, { mode: "within", amount: "7" }), 2);
  assert.equal(nearest(points, { mode: "epsilon", amount: "x" }), 0);
  assert.equal(nearest([], { mode: "epsilon", amount: "1" }), 0);
});

test("choices are told apart", () => {
  assert.equal(wayOf({ free: true, source: "from answer #4." }), "free");
  assert.equal(wayOf({ free: false, source: "improves answer #4, which stays valid" }), "improve");
  assert.equal(wayOf({ free: false, source: "a new measurement" }), "new");
});

test("an answer has an address, and a table that can be pasted", () => {
  assert.equal(addressOf("my clinic", { id: "12" }), "#answer/my%20clinic/12");
  assert.equal(addressOf("c", { id: null, question: "a/b?" }, { epsilon: "0.1", fresh: true }), "#ask/c/?question=a%2Fb%3F&epsilon=0.1");
  assert.equal(tabbed({ columns: [{ name: "a" }, { name: "b" }], cells: [["x\ty", "1 ± 2"]] }), "a\tb\nx y\t1 ± 2");
});

test("amounts, shares and how often a question could be paid for", () => {
  assert.equal(amount("3/4"), 0.75);
  assert.equal(amount(null), Infinity);
  const found = { spent: { epsilon: "1", rho: "1/8" }, remaining: { epsilon: "3", rho: "7/8" } };
  assert.deepEqual(shares(found), { pure: 0.25, concentrated: 0.125 });
  assert.equal(shares({ ...found, remaining: { epsilon: null, rho: "0" } }).pure, null);
  assert.equal(count({ epsilon: "1/10", rho: "1/20" }, [{ epsilon: "1", rho: "1/10" }]), 10);
  assert.equal(count({ epsilon: "1/10", rho: "1/200" }, [{ epsilon: "1", rho: "1/10" }, { epsilon: "0.3", rho: "0" }]), 3);
});

test("the pace of spending", () => {
  const now = Date.parse("2026-05-30T00:00:00Z");
  const points = [{ at: "2026-05-01T00:00:00Z", share: 0.2 }, { at: "2026-05-29T00:00:00Z", share: 0.3 }];
  assert.match(pace(points, now), /30 % is used, 10 % in the last week: .* about 49 days/);
  assert.match(pace(points.slice(0, 1), now), /nothing in the last week/);
  assert.equal(pace([], now), "Nothing was spent yet.");
});

test("what is left of a budget, shared out", () => {
  // 0.3 of epsilon over thirty: 0.01 each; rho of 0.06 lets each be sqrt(2 * 0.06 / 30), more.
  assert.deepEqual(shareOut({ epsilon: "3/10", rho: "0" }, 30).each, 0.01);
  assert.ok(Math.abs(shareOut({ epsilon: "3/10", rho: "0.06" }, 30).each - 0.0632455532) < 1e-9);
  assert.ok(Math.abs(shareOut({ epsilon: null, rho: "0.06" }, 30).margin - 47.36663) < 1e-4);
  assert.deepEqual(shareOut({ epsilon: "0", rho: "0" }, 5), { each: 0, margin: Infinity });
  assert.equal(shareOut({ epsilon: "1", rho: "0" }, Number("")), null);
  assert.equal(shareOut({ epsilon: "1", rho: "0" }, NaN), null);
});

test("what a run is opened with, as it was typed", () => {
  assert.deepEqual(readSettings("runs", { threshold: " 500 ", epsilon: "1/3", at_most: "3" }), { threshold: "500", epsilon: "1/3", at_most: 3 });
  assert.deepEqual(readSettings("choose", { epsilon: "0.1", k: "2" }), { epsilon: "0.1", k: 2 });
  assert.deepEqual(readSettings("median", { epsilon: "1", delta: "1e-9", bound: " " }), { epsilon: "1", delta: "1e-9" });
  assert.deepEqual(readChecks('{"old": {"bound": 3}}'), { old: { bound: 3 } });
  assert.equal(readChecks("select 1"), "select 1");
  assert.throws(() => readChecks("old"), /neither SQL nor JSON/);
  assert.equal(shown(1234.56789), "1,234.57");
  assert.equal(shown(null), "unknown");
});

test("what a release is declared as, and its card", () => {
  const typed = { name: " by_city ", kind: "hierarchy", of: "visits", columns: "land, city,", epsilon: "1/3", delta: "" };
  assert.deepEqual(declare(typed), { name: "by_city", kind: "hierarchy", of: "visits", settings: { epsilon: "1/3", by: ["land", "city"] } });
  assert.deepEqual(declare({ ...typed, kind: "synthetic", columns: "", delta: "1e-9" }).settings, { epsilon: "1/3", delta: "1e-9" });
  const tree = { ...typed, geography: " places", totals: "N = 365, S/b=7,", steps: "" };
  assert.deepEqual(declare(tree).settings, { epsilon: "1/3", geography: "places", totals: { N: 365, "S/b": 7 }, by: ["land", "city"] });
  assert.deepEqual(declare({ ...tree, totals: "N, S=many" }).settings.totals, { N: "", S: "many" }); // refused by the server, unpaid
  assert.deepEqual(declare({ ...typed, kind: "counter", steps: "2" }).settings, { epsilon: "1/3", steps_per_unit: 2, by: ["land", "city"] });
  assert.deepEqual(readCard("# a\n\n**Promise.** `b`\ngoes on\n\n| stage | loss |\n| --- | --- |\n| x | ε |\n\n**Not.**\n- one\n  more\n- two\n\nend\n"), [
    { kind: "words", lines: ["Promise. b", "goes on"] }, { kind: "rows", lines: ["| stage | loss |", "| x | ε |"] },
    { kind: "words", lines: ["Not."] }, { kind: "points", lines: ["- one more", "- two"] }, { kind: "words", lines: ["end"] }]);
});

test("what is bounded of taking part stands beside what is bounded of values", () => {
  const both = [["epsilon", "1"], ["presence: a", "2"], ["presence: b", "3"], ["value: a", "4"], ["value: b", "5"]];
  assert.deepEqual(besides(both), [["a", "2", "4"], ["b", "3", "5"]]);
  assert.deepEqual(besides(both.slice(3)), [["a", "", "4"], ["b", "", "5"]]); // neighbours that are changed, not removed
  assert.deepEqual(sentences("At most 1.649 times. Ever; δ = 1e-9. So."), ["At most 1.649 times.", "Ever; δ = 1e-9.", "So."]);
});
