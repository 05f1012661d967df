// The door: every request carries the key, every refusal has one shape.

const KEY = "discreet-key";

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (/** @type {string} */ value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** A refusal of the server: code, title, what, why, fix, perhaps place and rewriting. */
export class Refused extends Error {
  /** @param {number} status @param {Api.Refusal} refusal */
  constructor(status, refusal) {
    super(refusal.what);
    this.status = status;
    this.refusal = refusal;
  }
}

/**
 * What the address says of a sign-in that failed, by its code.
 * @type {Record<string, Api.Refusal>}
 */
export const SIGN_IN_REFUSED = {
  A20: {
    code: "A20", title: "a sign-in that cannot be completed",
    what: "the provider's answer does not belong to a sign-in that this browser began, is too old, or cannot be verified.",
    why: "whoever is let in by mistake could spend what the people in the data may lose.",
    fix: "sign in again; if it stays so, ask the curator.",
  },
  A21: {
    code: "A21", title: "nobody who may ask here",
    what: "the provider knows you, and none of your groups there may ask here, or your name is somebody else's.",
    why: "who may ask about the people in the data is the curator's decision.",
    fix: "ask the curator: for a group that may ask, or for a key.",
  },
};

/** @type {Api.Refusal} */
const UNREACHABLE = {
  code: "A17", title: "the server cannot be reached",
  what: "the server cannot be reached.",
  why: "a question that was charged is not charged again.",
  fix: "check that it is running, then ask again.",
};

/**
 * @typedef {{ method?: string, body?: any, signal?: AbortSignal, accept?: string, headers?: Record<string, string> }} Options
 * @param {string} path
 * @param {Options} options
 * @returns {Promise<Response>}
 */
async function request(path, { method = "GET", body, signal, accept = "application/json", headers = {} }) {
  let response;
  try {
    response = await fetch(path, {
      method, signal, cache: "no-store",
      headers: {
        Accept: accept, "Discreet-Page": "1", ...headers, // a browser that signed in is believed beside it only
        ...(key.get() ? { Authorization: `Bearer ${key.get()}` } : {}),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (aborted(error)) throw error;
    throw new Refused(0, UNREACHABLE);
  }
  if (!response.ok) {
    const refusal = await response.json().catch(() => UNREACHABLE);
    signal?.throwIfAborted();
    throw new Refused(response.status, refusal);
  }
  return response;
}

/**
 * Whether it was we who gave a request up.
 * @param {unknown} error
 */
export function aborted(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** @param {string} path @param {Options} [options] @returns {Promise<any>} */
export async function get(path, options) {
  return (await request(path, options ?? {})).json();
}

/** @param {string} method @param {string} path @param {any} [body] @param {Options} [options] @returns {Promise<any>} */
export async function send(method, path, body, options = {}) {
  const response = await request(path, { method, body, ...options });
  return response.status === 204 ? null : response.json();
}

/** @param {string} dataset @param {...string} parts */
export const of = (dataset, ...parts) =>
  ["/v1/datasets", encodeURIComponent(dataset), ...parts].join("/");

/**
 * Ask, and wait for a long question; a retry of the same request never pays twice.
 * @param {string} dataset
 * @param {object} question
 * @param {{ onprogress?: (job: Api.Job) => void }} options
 * @returns {Promise<Api.Answer | Api.Told>}
 */
export async function ask(dataset, question, { onprogress }) {
  const headers = { "Idempotency-Key": [...crypto.getRandomValues(new Uint8Array(16))].join(".") };
  let answer, again;
  do { // a statement has a job for each of its questions; what is answered is free
    answer = await send("POST", of(dataset, "ask"), { ...question, wait_s: 10 }, { headers });
    again = answer.again;
    while (answer.state === "queued" || answer.state === "running") {
      onprogress?.(answer);
      answer = await get(of(dataset, "jobs", `${answer.id}?wait_s=5`));
    }
  } while (again);
  if (answer.state === undefined) return answer;
  return get(of(dataset, "answers", answer.id));
}

/**
 * Have something computed that is no question, and come back for it as long as it takes.
 * @param {string} dataset
 * @param {string[]} parts
 * @param {object} body
 */
export async function compute(dataset, parts, body) {
  let found = await send("POST", of(dataset, ...parts), { ...body, wait_s: 10 });
  while (found.state === "running") found = await get(of(dataset, "works", `${found.id}?wait_s=10`));
  return found;
}

/**
 * What a path holds, in another form than JSON; given a body, what is answered to it.
 * @param {string} path
 * @param {string} accept
 * @param {object} [body]
 */
export async function blob(path, accept, body) {
  const response = await request(path, { accept, body, method: body ? "POST" : "GET" });
  return { data: await response.blob(), headers: response.headers };
}

/**
 * Save what a path holds as a file; given a body, what is answered to it.
 * @param {string} path
 * @param {string} accept
 * @param {string} name
 * @param {object} [body]
 */
export async function download(path, accept, name, body) {
  saveAs((await blob(path, accept, body)).data, name);
}

/**
 * Save a blob as a file.
 * @param {Blob} blob
 * @param {string} name
 */
export function saveAs(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
