// The metadata quorum: voters and observers, and how far each is.

import { Load, Table, html } from "../base.js";
import { count, time } from "../format.js";

const REPLICAS = [
  { key: "id", name: "Node" },
  { key: "role", name: "Role" },
  { key: "log_end_offset", name: "Log end", is_number: true, cell: (row) => count(row.log_end_offset) },
  { key: "lag", name: "Behind", is_number: true, cell: (row) => html`<span class=${row.lag ? "warn" : "good"}>${count(row.lag)}</span>` },
  { key: "last_caught_up_ms", name: "Caught up at", cell: (row) => time(row.last_caught_up_ms) },
  { key: "directory", name: "Directory id" },
];

function draw(data) {
  const roles = (rows, role) => rows.map((row) => ({ ...row, role: row.id === data.leader_id ? "leader" : role }));
  const rows = [...roles(data.voters, "voter"), ...roles(data.observers, "observer")];
  return html`<ul class="cards">
      <li><b>${data.leader_id}</b><span class="quiet">leader</span></li>
      <li><b>${count(data.leader_epoch)}</b><span class="quiet">epoch</span></li>
      <li><b>${count(data.high_watermark)}</b><span class="quiet">high watermark</span></li>
      <li><b>${count(data.voters.length)}</b><span class="quiet">voters</span></li>
    </ul>
    <h2>Replicas of the metadata log</h2><${Table} caption="Replicas" rows=${rows} columns=${REPLICAS} />`;
}

export const Quorum = () => html`<h1>Quorum</h1><${Load} path="/quorum" isLive draw=${draw} />`;
