// The cluster at one look: brokers, what is wrong, disks.

import { Load, Refused, Table, html } from "../base.js";
import { count, size } from "../format.js";

const card = (name, value, kind = "") => html`<li><b class=${kind}>${value}</b><span class="quiet">${name}</span></li>`;

function used({ total_bytes: total, usable_bytes: usable }) {
  if (total === null || usable === null) return "–";
  const share = Math.round((1 - usable / total) * 100);
  return html`<progress max="100" value=${share} aria-label="used"></progress> ${share} %`;
}

const BROKERS = [
  { key: "id", name: "Broker" },
  { key: "host", name: "Address", cell: (row) => `${row.host}:${row.port}` },
  { key: "rack", name: "Rack" },
  { key: "leads", name: "Leads", is_number: true, cell: (row) => count(row.leads) },
  { key: "replicas", name: "Replicas", is_number: true, cell: (row) => count(row.replicas) },
];

const DISKS = [
  { key: "path", name: "Log directory" },
  { key: "broker", name: "Broker" },
  { key: "total_bytes", name: "Size", is_number: true, cell: (row) => size(row.total_bytes) },
  { key: "usable_bytes", name: "Free", is_number: true, cell: (row) => size(row.usable_bytes) },
  { name: "Used", cell: used },
  { key: "error", name: "State", cell: (row) => (row.error ? html`<span class="bad">${row.error}</span>` : html`<span class="good">online</span>`) },
];

function draw(data) {
  const wrong = (number) => (number ? "bad" : "good");
  return html`<${Refused} refused=${data.refused} />
    <ul class="cards">
      ${card("brokers", count(data.brokers.length))}
      ${card("topics", count(data.topics))}
      ${card("partitions", count(data.partitions))}
      ${card("under-replicated", count(data.under_replicated), wrong(data.under_replicated))}
      ${card("without a leader", count(data.offline), wrong(data.offline))}
      ${card("offline replicas", count(data.offline_replicas), wrong(data.offline_replicas))}
      ${card("groups", count(data.groups))}
      ${card("quorum's leader", data.quorum ? data.quorum.leader_id : "–")}
      ${card("cluster", data.cluster_id, "long")}
      ${card("you are", data.user ?? "anonymous", "long")}
    </ul>
    <h2>Brokers</h2>
    <${Table} caption="Brokers" rows=${data.brokers} columns=${BROKERS} />
    ${data.log_dirs && html`<h2>Disks</h2><${Table} caption="Log directories" rows=${data.log_dirs} columns=${DISKS} />`}`;
}

export const Overview = () => html`<h1>Overview</h1><${Load} path="/overview" isLive draw=${draw} />`;
