// Asks the console's API. Whole numbers beyond 2^53 come as BigInt, so that no offset changes.

/** @param {string} key @param {any} value @param {{source?: string}} [context] */
function exact(key, value, context) {
  const isInexact = typeof value === "number" && !Number.isSafeInteger(value);
  return isInexact && context?.source && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
}

/** JSON with every whole number as it was written. @param {string} text */
export const read = (text) => JSON.parse(text, exact);

/** An answer that is an error: the title, what the broker said, Kafka's name of it. */
export class Problem extends Error {
  /** @param {{title?: string, detail?: string, kafka_error?: string, status?: number}} document */
  constructor(document) {
    super(document.detail || document.title || "the console does not answer");
    this.title = document.title || "Not reached";
    this.kafka = document.kafka_error;
    this.status = document.status || 0;
  }
}

/** The last answer: a view that asks again gets the body only after a change. */
let last = { path: "", tag: "", document: null };

let isOnlyRead = false;
/** Whether the console refuses changes, as far as its answers have said. */
export const isReadOnly = () => isOnlyRead;

/** @param {string} path behind /api/v1 @param {RequestInit} how */
async function send(path, how) {
  try {
    const answer = await fetch(`/api/v1${path}`, how);
    isOnlyRead = answer.headers.get("Barnabas-Read-Only") === "true";
    return answer;
  } catch {
    throw new Problem({ title: "Not reached", detail: "The console does not answer. Is its process running?" });
  }
}

/** @param {Response} answer */
async function documentOf(answer) {
  const text = await answer.text();
  let document;
  try {
    document = read(text);
  } catch {
    throw new Problem({ title: answer.statusText, status: answer.status, detail: "The answer is no JSON." });
  }
  if (!answer.ok) throw new Problem(document);
  return document;
}

/** @param {string} path behind /api/v1 */
export async function ask(path) {
  const before = last;
  const known = before.path === path && before.tag ? { "If-None-Match": before.tag } : {};
  const answer = await send(path, { headers: { Accept: "application/json", ...known } });
  if (answer.status === 304) return before.document;
  const document = await documentOf(answer);
  last = { path, tag: answer.headers.get("ETag") ?? "", document };
  return document;
}

/** Asks for a change. @param {string} method @param {string} path behind /api/v1 @param {unknown} [body] */
export async function change(method, path, body) {
  const headers = { Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
  return documentOf(await send(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }));
}
