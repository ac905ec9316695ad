// Groups of every kind; a consumer group with its members and its lag.

import { Load, Table, html, link } from "../base.js";
import { count } from "../format.js";
import { GroupChanges } from "./changes.js";
import { Filtered } from "./topics.js";

const isOfConsumers = (row) => ["", "classic", "consumer"].includes(row.type.toLowerCase()) && ["", "consumer"].includes(row.protocol);

const GROUPS = [
  { key: "id", name: "Group", cell: (row) => (isOfConsumers(row) ? html`<a href=${link(["groups", row.id])}>${row.id}</a>` : row.id) },
  { key: "type", name: "Type" },
  { key: "protocol", name: "Protocol" },
  { key: "state", name: "State" },
];

export function Groups({ query }) {
  const draw = (data) => html`<${Filtered} rows=${data.data} columns=${GROUPS} caption="Groups" place=${["groups"]} query=${query} of=${(row) => row.id} />`;
  return html`<h1>Groups</h1><${Load} path="/groups" isLive draw=${draw} />`;
}

const MEMBERS = [
  { key: "id", name: "Member" },
  { key: "instance", name: "Static id" },
  { key: "client", name: "Client" },
  { key: "host", name: "Host" },
  { key: "partitions", name: "Partitions", is_number: true },
];

const LAGS = [
  { key: "topic", name: "Topic", cell: (row) => html`<a href=${link(["topics", row.topic])}>${row.topic}</a>` },
  { key: "partition", name: "Partition", is_number: true },
  { key: "current_offset", name: "Committed", is_number: true, cell: (row) => count(row.current_offset) },
  { key: "end_offset", name: "End", is_number: true, cell: (row) => (row.error ? html`<span class="bad">${row.error}</span>` : count(row.end_offset)) },
  { key: "lag", name: "Lag", is_number: true, cell: (row) => html`<span class=${row.lag ? "warn" : ""}>${count(row.lag)}</span>` },
  { key: "member", name: "Read by", cell: (row) => row.member ?? "–" },
];

function draw(data, again) {
  return html`<ul class="cards">
      <li><b class="long">${data.state}</b><span class="quiet">state</span></li>
      <li><b>${count(data.total_lag)}</b><span class="quiet">records behind</span></li>
      <li><b>${count(data.members.length)}</b><span class="quiet">members</span></li>
      <li><b>${data.coordinator}</b><span class="quiet">coordinator</span></li>
      <li><b class="long">${data.assignor || "–"}</b><span class="quiet">assignor (${data.type} protocol)</span></li>
    </ul>
    <${GroupChanges} data=${data} again=${again} />
    <h2>Members</h2><${Table} caption="Members" rows=${data.members} columns=${MEMBERS} />
    <h2>Lag</h2><${Table} caption="Lag" rows=${data.partitions} columns=${LAGS} />`;
}

export const Group = ({ name }) => html`<h1>${name}</h1><${Load} path=${`/groups/${encodeURIComponent(name)}`} isLive draw=${draw} />`;
