// Asks the console's API. Whole numbers beyond 2^53 come as BigInt, so that no offset changes.

/** @param {string} key @param {any} value @param {{source?: string}} [context] */
function exact(key, value, context) {
  const isInexact = typeof value === "number" && !Number.isSafeInteger(value);
  return isInexact && context?.source && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
}

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

/** The last answer: a view that asks again gets it anew only where it has changed. */
let last = { path: "", tag: "", document: null };

/** @param {string} path behind /api/v1 */
export async function ask(path) {
  let answer;
  const before = last;
  const known = before.path === path && before.tag ? { "If-None-Match": before.tag } : {};
  try {
    answer = await fetch(`/api/v1${path}`, { headers: { Accept: "application/json", ...known } });
  } catch {
    throw new Problem({ title: "Not reached", detail: "The console does not answer. Is its process running?" });
  }
  if (answer.status === 304) return before.document;
  const text = await answer.text();
  let document;
  try {
    document = JSON.parse(text, exact);
  } catch {
    throw new Problem({ title: answer.statusText, status: answer.status, detail: "The answer is no JSON." });
  }
  if (!answer.ok) throw new Problem(document);
  last = { path, tag: answer.headers.get("ETag") ?? "", document };
  return document;
}
