// What fits where the cursor is: pure functions of the text, the place and the schema.

/**
 * @typedef {{ word: string, kind: string, hint: string }} Word
 * @typedef {Pick<Api.Column, "name" | "text" | "kind" | "values">} Column
 * @typedef {Pick<Api.Table, "name" | "public"> & { columns: Column[] }} Table
 * @typedef {Pick<Api.Word, "name" | "meaning">} Named
 * @typedef {{ tables: Table[], aggregates: Named[], functions: Named[], keywords: string[] }} Schema
 */

const TOKEN = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|[A-Za-z_][\w$]*|\d+(?:\.\d+)?|<>|<=|>=|!=|\s+|./g;
const NAME = /^(?:[A-Za-z_][\w$]*|".*")$/s;
const CLAUSES = new Set(["SELECT", "FROM", "JOIN", "WHERE", "GROUP", "HAVING", "ORDER", "ON", "USING", "LIMIT", "WITH", "BY"]);
const NO_ALIAS = new Set([...CLAUSES, "AS", "LEFT", "UNION", "INNER", "CROSS", "AND", "OR"]);
const MOST = 8;

/** @param {string} text */
function tokens(text) {
  return [...text.matchAll(TOKEN)].map((m) => ({ text: m[0], at: m.index ?? 0 }));
}

const plain = (/** @type {string} */ name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name);
const solid = (/** @type {{ text: string }} */ t) => !/^(\s|--|\/\*)/.test(t.text);

/**
 * The tables that a statement names, by the names they have in it.
 * @param {string} text
 * @param {Schema} schema
 * @returns {Map<string, Table>}
 */
export function scope(text, schema) {
  const known = new Map(schema.tables.map((t) => [t.name.toLowerCase(), t]));
  const found = new Map();
  const all = tokens(text).filter(solid);
  all.forEach((token, i) => {
    const before = all[i - 1]?.text.toUpperCase();
    const table = known.get(plain(token.text).toLowerCase());
    if (!table || (before !== "FROM" && before !== "JOIN" && before !== ",")) return;
    found.set(table.name.toLowerCase(), table);
    const next = all[i + 1]?.text.toUpperCase() === "AS" ? all[i + 2] : all[i + 1];
    if (next && NAME.test(next.text) && !NO_ALIAS.has(next.text.toUpperCase())) {
      found.set(plain(next.text).toLowerCase(), table);
    }
  });
  return found;
}

/** @param {string} name */
export function quoteName(name) {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/**
 * A value as it is typed in SQL.
 * @param {any} value
 */
export function quoteValue(value) {
  if (value === null) return "NULL";
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value).toUpperCase();
}

/**
 * Where the cursor is: the part of a word before it, and what may stand there.
 * @param {string} text
 * @param {number} cursor
 * @returns {{ typed: string, from: number, role: string, of?: string }}
 */
export function place(text, cursor) {
  const before = tokens(text.slice(0, cursor));
  const last = before.at(-1);
  const here = { typed: "", from: cursor };
  if (last && /^(--|\/\*)/.test(last.text) && !/\*\/$/.test(last.text) && !last.text.endsWith("\n")) {
    return { ...here, role: "comment" };
  }
  let rest = before;
  if (last && (/^[A-Za-z_]/.test(last.text) || (last.text.startsWith("'") && !closed(last.text)))) {
    here.typed = last.text;
    here.from = last.at;
    rest = before.slice(0, -1);
  }
  const solids = rest.filter(solid).map((t) => t.text);
  const [one, two] = [solids.at(-1)?.toUpperCase() ?? "", solids.at(-2) ?? ""];
  if (one === ".") return { ...here, role: "column", of: plain(two) };
  const compared = comparedColumn(solids);
  if (compared) return { ...here, role: "value", of: plain(compared) };
  if (here.typed.startsWith("'")) return { ...here, role: "text" };
  if (one === "FROM" || one === "JOIN") return { ...here, role: "table" };
  if (one === "AS") return { ...here, role: "new name" };
  if (!solids.length || one === ";") return { ...here, role: "start" };
  return { ...here, role: clause(solids) };
}

/** @param {string} text */
function closed(text) {
  return text.length > 1 && text.endsWith("'") && (text.match(/'/g) ?? []).length % 2 === 0;
}

/**
 * The column whose value comes next: after city =, or in city IN ('Oslo',
 * @param {string[]} solids
 */
function comparedColumn(solids) {
  let i = solids.length - 1;
  if (["=", "<>", "!="].includes(solids[i])) return NAME.test(solids[i - 1] ?? "") ? solids[i - 1] : null;
  while (i > 0 && (solids[i] === "," || /^('|\d)/.test(solids[i]))) i -= 1;
  if (solids[i] !== "(" || solids[i - 1]?.toUpperCase() !== "IN") return null;
  const at = solids[i - 2]?.toUpperCase() === "NOT" ? i - 3 : i - 2;
  return NAME.test(solids[at] ?? "") ? solids[at] : null;
}

/** @param {string[]} solids */
function clause(solids) {
  let depth = 0;
  for (let i = solids.length - 1; i >= 0; i -= 1) {
    const word = solids[i].toUpperCase();
    if (word === ")") depth += 1;
    else if (word === "(") depth = Math.max(0, depth - 1);
    else if (depth === 0 && CLAUSES.has(word)) return word === "BY" ? (solids[i - 1]?.toUpperCase() ?? "BY") : word;
  }
  return "SELECT";
}

/** @param {Column} c @param {string} table @returns {Word} */
const columnWord = (c, table) => ({ word: quoteName(c.name), kind: "column", hint: `${c.text} · ${table}` });

/**
 * The words that may stand at a place, best first, without those that do not begin as typed.
 * @param {string} text
 * @param {number} cursor
 * @param {Schema} schema
 * @returns {{ from: number, words: Word[] }}
 */
export function complete(text, cursor, schema) {
  const here = place(text, cursor);
  const typed = here.typed.toLowerCase();
  const inside = scope(text, schema);
  const found = candidates(here, inside, schema);
  const asked = typed || here.role === "value" || here.of !== undefined || here.role === "table";
  const seen = new Set();
  const words = !asked ? [] : found.filter((w) => {
    const word = w.word.toLowerCase();
    return word.startsWith(typed) && word !== typed && !seen.has(word) && seen.add(word);
  });
  return { from: here.from, words: words.slice(0, MOST) };
}

/**
 * @param {{ role: string, of?: string }} here
 * @param {Map<string, Table>} inside
 * @param {Schema} schema
 * @returns {Word[]}
 */
function candidates({ role, of }, inside, schema) {
  const tables = inside.size ? [...new Set(inside.values())] : schema.tables;
  const columns = tables.flatMap((t) => t.columns.map((c) => columnWord(c, t.name)));
  const named = (/** @type {Named[]} */ list, /** @type {string} */ kind) =>
    list.map((f) => ({ word: f.name, kind, hint: f.meaning }));
  const keywords = schema.keywords.map((k) => ({ word: k, kind: "keyword", hint: "" }));
  const functions = named(schema.functions, "function");
  const aggregates = named(schema.aggregates, "function");
  if (role === "value") {
    const column = tables.flatMap((t) => t.columns).find((c) => c.name.toLowerCase() === of?.toLowerCase());
    const values = (column?.values ?? []).map((v) => ({ word: quoteValue(v), kind: "value", hint: `a value of ${column?.name}` }));
    return values.length ? values : [...columns, ...functions];
  }
  if (role === "column") {
    const table = inside.get((of ?? "").toLowerCase());
    return table ? table.columns.map((c) => columnWord(c, table.name)) : [];
  }
  if (role === "table" || role === "FROM" || role === "JOIN") {
    const all = schema.tables.map((t) => ({ word: quoteName(t.name), kind: "table", hint: t.public ? "public table" : "private table" }));
    return role === "table" ? all : [...all, ...keywords];
  }
  if (role === "start") return keywords.filter((k) => ["SELECT", "WITH", "EXPLAIN"].includes(k.word));
  if (role === "comment" || role === "text" || role === "new name" || role === "LIMIT") return [];
  if (role === "WHERE" || role === "ON" || role === "USING" || role === "GROUP") return [...columns, ...functions, ...keywords];
  return [...columns, ...aggregates, ...functions, ...keywords];
}
