// Topics with their sizes; one topic with its partitions and configs.

import { Component, Load, Refused, Table, html, link } from "../base.js";
import { count, size } from "../format.js";
import { NewTopic, TopicChanges } from "./changes.js";

const flag = (number, kind) => (number ? html`<span class=${kind}>${count(number)}</span>` : count(0));

const TOPICS = [
  { key: "name", name: "Topic", cell: (row) => html`<a href=${link(["topics", row.name])}>${row.name}</a>${row.is_internal ? html` <span class="mark quiet">internal</span>` : ""}` },
  { key: "partitions", name: "Partitions", is_number: true, cell: (row) => count(row.partitions) },
  { key: "replication_factor", name: "Replicas", is_number: true },
  { key: "under_replicated", name: "Under-replicated", is_number: true, cell: (row) => flag(row.under_replicated, "warn") },
  { key: "offline", name: "Without a leader", is_number: true, cell: (row) => flag(row.offline, "bad") },
  { key: "bytes", name: "Size", is_number: true, cell: (row) => size(row.bytes) },
  { name: "Records", cell: (row) => html`<a href=${link(["topics", row.name, "records"])}>show<span class="skip"> the records of ${row.name}</span></a>` },
];

/** A list whose filter is part of the URL. */
export class Filtered extends Component {
  render() {
    const { rows, columns, caption, place, query, of } = this.props;
    const wanted = query.get("q") ?? "";
    const found = rows.filter((row) => of(row).toLowerCase().includes(wanted.toLowerCase()));
    const onInput = (event) => history.replaceState(null, "", link(place, { q: event.target.value }));
    const change = (event) => {
      onInput(event);
      query.set("q", event.target.value);
      this.setState({});
    };
    return html`<div class="tools"><label>Filter ( / )<input type="search" value=${wanted} onInput=${change} /></label>
        <span class="quiet" role="status">${count(found.length)} of ${count(rows.length)}</span></div>
      <${Table} caption=${caption} rows=${found} columns=${columns} />`;
  }
}

export function Topics({ query }) {
  const draw = (data) => html`<${Refused} refused=${data.refused} />
    <div class="tools"><${NewTopic} /></div>
    <${Filtered} rows=${data.data} columns=${TOPICS} caption="Topics" place=${["topics"]} query=${query} of=${(row) => row.name} />`;
  return html`<h1>Topics</h1><${Load} path="/topics" draw=${draw} />`;
}

function replicas(row) {
  const out = row.replicas.filter((id) => !row.isr.includes(id));
  const named = (ids, kind, words) => (ids.length ? html` <span class=${kind}>${words}: ${ids.join(", ")}</span>` : "");
  return html`${row.replicas.join(", ")}${named(out, "warn", "not in sync")}${named(row.offline, "bad", "offline")}`;
}

const records = (row) => {
  if (row.error) return html`<span class="bad">${row.error}</span>`;
  return row.end_offset === null ? "–" : count(BigInt(row.end_offset) - BigInt(row.start_offset ?? 0));
};

const PARTITIONS = [
  { key: "partition", name: "Partition" },
  { key: "leader", name: "Leader", cell: (row) => row.leader ?? html`<span class="bad">none</span>` },
  { name: "Replicas", cell: replicas },
  { name: "ISR", cell: (row) => row.isr.join(", ") },
  { key: "start_offset", name: "First offset", is_number: true, cell: (row) => count(row.start_offset) },
  { key: "end_offset", name: "End offset", is_number: true, cell: (row) => count(row.end_offset) },
  { name: "Offsets", is_number: true, cell: records },
  { key: "bytes", name: "Size", is_number: true, cell: (row) => size(row.bytes) },
];

const CONFIGS = [
  { key: "name", name: "Config" },
  { key: "value", name: "Value", cell: (row) => html`<span class="plain">${row.is_sensitive ? "hidden" : (row.value ?? "null")}</span>` },
  { key: "source", name: "From", cell: (row) => html`<span class=${row.source === "DEFAULT_CONFIG" ? "quiet" : ""}>${row.source}</span>` },
];

export function Topic({ name }) {
  const draw = (data, again) => html`<${Refused} refused=${data.refused} />
    <${TopicChanges} name=${name} data=${data} again=${again} />
    <p><a href=${link(["topics", name, "records"])}>Records</a> <span class="quiet">· id ${data.id}</span></p>
    <h2>Partitions</h2>
    <${Table} caption="Partitions" rows=${data.partitions} columns=${PARTITIONS} />
    ${data.configs && html`<h2>Configs</h2><${Table} caption="Configs" rows=${data.configs} columns=${CONFIGS} />`}`;
  return html`<h1>${name}</h1><${Load} path=${`/topics/${encodeURIComponent(name)}`} isLive draw=${draw} />`;
}
