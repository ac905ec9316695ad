// Records of a topic, from where the URL says. A record's bytes are drawn as text, never as HTML.

import { Component, Load, Table, html, link } from "../base.js";
import { DECODERS } from "../decode.js";
import { bytes, count, indented, shown, size, time } from "../format.js";
import { Search, Tail } from "./tail.js";

const PREVIEW = 160;

/** What the console has decoded, or why it has not. A part without such is drawn as its bytes. */
function Decoded({ decoded }) {
  const { format, schema_id, json, trouble } = decoded;
  const mark = html`<span class="mark quiet">${schema_id === null ? format : `${format}, schema ${String(schema_id)}`}</span> `;
  if (json === null) return html`${mark}<span class="warn">${trouble}</span>`;
  const shownBytes = new TextEncoder().encode(json).length;
  const cut = shownBytes < decoded.size ? html`<p class="warn">The first ${size(shownBytes)} of ${size(decoded.size)}</p>` : "";
  if (!cut && json.length <= PREVIEW) return html`${mark}<span class="plain">${json}</span>`;
  return html`${mark}<details><summary>${json.slice(0, PREVIEW)}…</summary>${cut}<pre aria-label="JSON">${indented(json)}</pre></details>`;
}

/** Null, empty, or the bytes: three different things. */
function Part({ part, mode, isKey, decoded }) {
  if (part === null) return html`<span class="mark quiet">${isKey ? "null" : "null: tombstone"}</span>`;
  if (part.size === 0) return html`<span class="mark quiet">empty</span>`;
  // What could not be decoded is shown with the reason, and its bytes after it.
  const isWanted = decoded && mode === "auto";
  if (isWanted && decoded.json !== null) return html`<${Decoded} decoded=${decoded} />`;
  if (isWanted) return html`<${Decoded} decoded=${decoded} /><${Part} part=${part} mode=${mode} isKey=${isKey} />`;
  const data = bytes(part.base64);
  const { kind, text } = shown(data, mode);
  const cut = data.length < part.size ? html`<p class="warn">The first ${size(data.length)} of ${size(part.size)}</p>` : "";
  const line = text.replace(/\s+/g, " ");
  if (!cut && line.length <= PREVIEW && line === text) return html`<span class="plain">${text}</span>`;
  return html`<details><summary>${line.slice(0, PREVIEW)}${line.length > PREVIEW ? "…" : ""}</summary>${cut}<pre aria-label=${kind}>${text}</pre></details>`;
}

const header = (mode) => ({ key, value }) => html`<div><${Part} part=${key} mode="text" isKey /> = <${Part} part=${value} mode=${mode} isKey /></div>`;

function about(row) {
  const marks = [row.control && `control: ${row.control}`, row.is_transactional && "transactional", row.codec !== "none" && row.codec];
  return marks.filter(Boolean).map((mark) => html`<span class="mark quiet">${mark}</span> `);
}

const columns = (mode) => [
  { key: "timestamp_ms", name: "Time", cell: (row) => html`${time(row.timestamp_ms)}${row.is_append_time ? html` <span class="mark quiet">append</span>` : ""}` },
  { key: "partition", name: "Partition", is_number: true },
  { key: "offset", name: "Offset", is_number: true, cell: (row) => String(row.offset) },
  { name: "Key", cell: (row) => (row.control ? "–" : html`<${Part} part=${row.key} mode=${mode} isKey decoded=${row.decoded_key} />`) },
  { name: "Value", cell: (row) => (row.control ? "–" : html`<${Part} part=${row.value} mode=${mode} decoded=${row.decoded_value} />`) },
  { name: "Headers", cell: (row) => row.headers.map(header(mode)) },
  { name: "Marks", cell: about },
];

/** What the console makes of keys and values, by its word in the URL. @type {[string, string][]} */
const DECODES = [
  ["auto", "internal topics, schemas"],
  ["none", "nothing"],
  ["schema", "by the schema's id"],
  ["consumer_offsets", "as __consumer_offsets"],
  ["transaction_state", "as __transaction_state"],
  ["share_group_state", "as __share_group_state"],
  ["cluster_metadata", "as metadata records"],
];

/** @param {URLSearchParams} query */
const searches = (query) => Boolean(query.get("text") || query.get("regex") || query.get("json"));

/** @type {Record<string, string>} */
const SIGNS = { "=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge" };

/** The test of a field as it is typed. @param {URLSearchParams} query */
function field(query) {
  const sign = Object.keys(SIGNS).find((sign) => SIGNS[sign] === query.get("op"));
  return sign ? `${query.get("json")} ${sign} ${query.get("value") ?? ""}` : (query.get("json") ?? "");
}

/** From which text of the form an instant is meant: local time, as the input gives it. */
const instant = (text) => String(new Date(text).getTime() || "");

export class Records extends Component {
  go(changes) {
    const now = Object.fromEntries(this.props.query);
    location.hash = link(["topics", this.props.topic, "records"], { ...now, ...changes });
  }

  form() {
    const { query } = this.props;
    const isTail = query.get("tail") === "1";
    // A search reads forwards, and begins at the oldest record.
    const isSearch = searches(query);
    const from = query.get("from") ?? (isSearch ? "oldest" : "newest");
    const pick = (name) => (event) => this.go({ [name]: event.target.value });
    const option = (value, name) => html`<option value=${value}>${name}</option>`;
    return html`<div class="tools">
      <button onClick=${() => this.go({ tail: isTail ? "" : "1" })} aria-pressed=${isTail}>Live tail</button>
      <label>Contains<input type="search" maxlength="256" value=${query.get("text") ?? query.get("regex") ?? ""} onChange=${(event) => this.contains(event.target.value, this.match())} /></label>
      ${!isTail && html`<label>From<select value=${from} onChange=${pick("from")}>
        ${!isSearch && option("newest", "newest")}${option("oldest", "oldest")}${option("offset", "offset")}${option("time", "time")}
      </select></label>`}
      ${!isTail && from === "offset" && html`<label>Offset<input type="number" min="0" value=${query.get("offset") ?? "0"} onChange=${pick("offset")} /></label>`}
      ${!isTail && from === "time" && html`<label>Time<input type="datetime-local" step="1" onChange=${(event) => this.go({ time: instant(event.target.value) })} /></label>`}
      <label>Partition<input type="number" min="0" placeholder="all" value=${query.get("partition") ?? ""} onChange=${pick("partition")} /></label>
      <label>At most<select value=${query.get("limit") ?? "50"} onChange=${pick("limit")}>${["50", "100", "250", "500"].map((value) => option(value, value))}</select></label>
      <label>Show as<select value=${query.get("as") ?? "auto"} onChange=${pick("as")}>
        ${option("auto", "automatic")}${option("text", "text")}${option("json", "JSON")}${option("hex", "hex")}
        ${Object.entries(DECODERS).map(([mode, { name }]) => option(mode, name))}
      </select></label>
      <label>Decode<select value=${query.get("decode") ?? "auto"} onChange=${pick("decode")}>
        ${DECODES.map(([value, name]) => option(value, name))}
      </select></label>
      <label>Match<select value=${this.match()} onChange=${(event) => this.contains(query.get("text") ?? query.get("regex") ?? "", event.target.value)}>
        ${option("text", "text")}${option("case", "text of either case")}${option("regex", "expression (RE2)")}
      </select></label>
      <label>In<select value=${query.get("in") ?? ""} onChange=${pick("in")}>
        ${option("", "key, value, headers")}${option("key", "key")}${option("value", "value")}${option("headers", "headers")}
      </select></label>
      <label>JSON field<input type="text" maxlength="256" placeholder="customer.id = 7" value=${field(query)} onChange=${(event) => this.field(event.target.value)} /></label>
    </div>`;
  }

  match() {
    const { query } = this.props;
    if (query.get("regex")) return "regex";
    return query.get("ignore_case") === "true" ? "case" : "text";
  }

  /** A search reads forwards. */
  oldest(isOn) {
    const isNewest = (this.props.query.get("from") ?? "newest") === "newest";
    return isOn && isNewest ? { from: "oldest" } : {};
  }

  /** @param {string} words @param {string} match */
  contains(words, match) {
    const isRegex = match === "regex";
    this.go({
      text: isRegex ? "" : words,
      regex: isRegex ? words : "",
      ignore_case: match === "case" ? "true" : "",
      ...(words ? this.oldest(true) : { in: "" }),
    });
  }

  /** @param {string} words `path`, or `path = value` */
  field(words) {
    const found = words.trim().match(/^(\S+?)\s*(!=|<=|>=|=|<|>)\s*(.*)$/s);
    const [, json, sign, value] = found ?? [null, words.trim(), "", ""];
    this.go({ json: json ?? "", op: SIGNS[sign ?? ""] ?? "", value: value ?? "", ...this.oldest(Boolean(json)) });
  }

  /** The URL's own words, without how it is shown. */
  path() {
    const { query, topic } = this.props;
    const asked = new URLSearchParams(query);
    const place = `/topics/${encodeURIComponent(topic)}`;
    asked.delete("as");
    if (!asked.get("decode")) asked.set("decode", "auto");
    if (!asked.get("text") && !asked.get("regex")) asked.delete("in");
    if (query.get("tail") === "1") {
      for (const name of ["tail", "from", "offset", "time", "limit"]) asked.delete(name);
      return `${place}/tail?${asked}`;
    }
    if (asked.get("from") === "offset" && !asked.get("offset")) asked.set("offset", "0");
    if (asked.get("from") === "time" && !asked.get("time")) asked.set("time", String(Date.now() - 900_000));
    if (!searches(asked)) return `${place}/records?${asked}`;
    if ((asked.get("from") ?? "newest") === "newest") asked.set("from", "oldest");
    return `${place}/search/stream?${asked}`;
  }

  /** One partition can be read on from where this page ends. */
  more(data) {
    const [only] = data.partitions;
    if (data.partitions.length !== 1 || !only || only.next >= only.end) return null;
    const further = () => this.go({ from: "offset", offset: String(only.next), partition: String(only.partition) });
    return html`<p><button onClick=${further}>Next records, from offset ${String(only.next)}</button></p>`;
  }

  draw(data, again) {
    const mode = this.props.query.get("as") ?? "auto";
    const troubles = data.partitions.filter((row) => row.trouble);
    return html`<p class="quiet" role="status">${count(data.data.length)} records <button onClick=${again}>Read again</button></p>
      ${troubles.map((row) => html`<div class="notice note">Partition ${row.partition} cannot be read further: ${row.trouble}</div>`)}
      <${Table} caption="Records" rows=${data.data} columns=${columns(mode)} empty="No records from there on." />
      ${this.more(data)}`;
  }

  body() {
    const { query, topic } = this.props;
    const rows = columns(query.get("as") ?? "auto");
    if (query.get("tail") === "1") {
      const why = `/topics/${encodeURIComponent(topic)}/records?limit=1&partition=${query.get("partition") ?? ""}`;
      return html`<${Tail} path=${this.path()} why=${why} columns=${rows} />`;
    }
    if (searches(query)) {
      const path = this.path();
      return html`<${Search} path=${path} why=${path.replace("/search/stream?", "/search?")} columns=${rows} />`;
    }
    return html`<${Load} path=${this.path()} draw=${(data, again) => this.draw(data, again)} />`;
  }

  render() {
    const { topic } = this.props;
    return html`<h1><a href=${link(["topics", topic])}>${topic}</a>: records</h1>
      ${this.form()}
      ${this.body()}`;
  }
}
