// Numbers, sizes, times and bytes as text. Nothing here makes HTML: what comes out is drawn as text nodes.

import { DECODERS } from "./decode.js";

const whole = new Intl.NumberFormat("en");

/** @param {number|bigint|null|undefined} number */
export const count = (number) => (number === null || number === undefined ? "–" : whole.format(number));

/** @param {number|null|undefined} bytes */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let value = Number(bytes);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024) return `${unit === "B" ? value : value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} TiB`;
}

/** Local time with milliseconds. @param {number} ms */
export function time(ms) {
  if (ms === null || ms === undefined || ms < 0) return "–";
  const date = new Date(Number(ms));
  if (Number.isNaN(date.getTime())) return String(ms);
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** @param {string} base64 */
export const bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

/** Offset, sixteen bytes, and their letters. @param {Uint8Array} data */
export function hex(data) {
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const row = [...data.slice(at, at + 16)];
    const numbers = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = row.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${numbers.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

/** UTF-8, or null where it is none. @param {Uint8Array} data */
export function text(data) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return null;
  }
}

/** Indents JSON without reading its numbers: each token stays as it was written. @param {string} source */
export function indented(source) {
  let [out, depth] = ["", 0];
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const token of source.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? []) {
    if (token === "{" || token === "[") {
      depth += 1;
      out += token + line();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      out = /[{[]\s*$/.test(out) ? out.trimEnd() + token : out + line() + token;
    } else {
      out += token === "," ? token + line() : token === ":" ? ": " : token;
    }
  }
  return out;
}

/** As one of the decoders says; where it cannot, the reason and hex. @param {Uint8Array} data @param {string} mode */
function decoded(data, mode) {
  const { name, decode } = DECODERS[mode];
  try {
    const text = decode(data);
    return { kind: name, text: /^[{[]/.test(text) ? indented(text) : text };
  } catch (error) {
    return { kind: "hex", text: `no ${name}: ${error.message}\n${hex(data)}` };
  }
}

/** How bytes are shown: `auto` picks JSON, then text, then hex. @param {Uint8Array} data @param {string} mode */
export function shown(data, mode) {
  if (Object.hasOwn(DECODERS, mode)) return decoded(data, mode);
  if (mode === "hex") return { kind: "hex", text: hex(data) };
  const plain = text(data);
  if (plain === null) return { kind: "hex", text: hex(data) };
  if (mode === "text") return { kind: "text", text: plain };
  try {
    const value = JSON.parse(plain);
    if (mode === "json" || (typeof value === "object" && value !== null)) return { kind: "JSON", text: indented(plain) };
  } catch {
    // It is no JSON.
  }
  return { kind: "text", text: plain };
}
