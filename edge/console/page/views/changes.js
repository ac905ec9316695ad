// The changes that the views offer.

import { html, link } from "../base.js";
import { Change, number, pairs } from "../change.js";
import { count, size } from "../format.js";

const of = (topic) => `/topics/${encodeURIComponent(topic)}`;

export function NewTopic() {
  const request = ({ name, partitions, replicas, configs }) => ({
    method: "POST",
    path: "/topics",
    body: { name, partitions: number(partitions), replication_factor: number(replicas), configs: pairs(configs) },
  });
  const draw = ({ name, partitions, replication_factor: replicas }) =>
    html`<p>Topic <strong>${name}</strong> with ${count(partitions)} partitions and ${count(replicas)} replicas of each.</p>`;
  const fields = [
    { name: "name", label: "Name" },
    { name: "partitions", label: "Partitions", kind: "number", help: "default" },
    { name: "replicas", label: "Replicas", kind: "number", help: "default" },
    { name: "configs", label: "Configs, one name=value a line", kind: "lines" },
  ];
  const done = ({ name }) => {
    location.hash = link(["topics", name]);
  };
  return html`<${Change} name="Make a topic" fields=${fields} request=${request} draw=${draw} done=${done} />`;
}

export function TopicChanges({ name, data, again }) {
  const names = (data.configs ?? []).filter((config) => !config.is_read_only).map((config) => config.name);
  const config = {
    fields: [
      { name: "config", label: "Config", options: names, value: names[0] },
      { name: "value", label: "New value" },
      { name: "isReset", label: "Reset to its default", kind: "checkbox", value: false },
    ],
    request: ({ config: key, value, isReset }) => ({ method: "PATCH", path: `${of(name)}/configs`, body: { configs: { [key]: isReset ? null : value } } }),
    draw: ({ changes }) =>
      changes.map((row) => html`<p><strong>${row.name}</strong>: ${row.before ?? "null"} (${row.source}) → ${row.after ?? "its default"}</p>`),
  };
  const records = {
    fields: [
      { name: "partition", label: "Partition", kind: "number", help: "all" },
      { name: "offset", label: "Before the offset", kind: "number", help: "all records" },
    ],
    request: ({ partition, offset }) => ({ method: "POST", path: `${of(name)}/delete-records`, body: deleted(data.partitions, partition, offset) }),
    draw: ({ partitions, records: number }) =>
      html`<p>${count(number)} records are deleted:</p>
        <ul>${partitions.map((row) => html`<li>partition ${row.partition}: the first offset ${String(row.before)} → ${String(row.after)}</li>`)}</ul>`,
  };
  const topic = {
    request: () => ({ method: "DELETE", path: of(name) }),
    draw: (told) =>
      html`<p>Topic <strong>${name}</strong> with ${count(told.partitions)} partitions and ${count(told.records)} records${told.bytes === null ? "" : ` (${size(told.bytes)})`} is deleted.</p>`,
    done: () => {
      location.hash = "#/topics";
    },
  };
  return html`<div class="tools">
    ${names.length > 0 && html`<${Change} name="Change a config" ...${config} done=${again} />`}
    <${Change} name="Delete records" confirm=${name} ...${records} done=${again} />
    <${Change} name="Delete the topic" confirm=${name} ...${topic} />
  </div>`;
}

/** All, those of one partition, or those before an offset in each partition that is meant. */
function deleted(partitions, partition, offset) {
  if (partition === "" && offset === "") return { all: true };
  const meant = partitions.filter((row) => partition === "" || String(row.partition) === String(partition));
  // A partition that is not there is for the console to refuse.
  const rows = meant.length ? meant : [{ partition, end_offset: 0 }];
  return { offsets: Object.fromEntries(rows.map((row) => [row.partition, offset === "" ? Number(row.end_offset) : Number(offset)])) };
}

export function GroupChanges({ data, again }) {
  const topics = [...new Set(data.partitions.map((row) => row.topic))];
  const fields = [
    { name: "to", label: "To", options: ["earliest", "latest", "offset", "time", "shift"], value: "earliest" },
    { name: "value", label: "Offset, or by how many" },
    { name: "time", label: "Time", kind: "datetime-local" },
    { name: "topic", label: "Topic", options: ["all", ...topics], value: "all" },
    { name: "partition", label: "Partition", kind: "number", help: "all" },
  ];
  const request = ({ to, value, time, topic, partition }) => ({
    method: "POST",
    path: `/groups/${encodeURIComponent(data.id)}/reset-offsets`,
    body: {
      to,
      value: to === "time" ? new Date(time).getTime() || undefined : number(value),
      topic: topic === "all" ? undefined : topic,
      partition: number(partition),
    },
  });
  const draw = ({ partitions }) =>
    html`<ul>${partitions.map((row) => html`<li>${row.topic}, partition ${row.partition}: ${row.before === null ? "nothing" : String(row.before)} → ${String(row.after)}</li>`)}</ul>`;
  return html`<div class="tools"><${Change} name="Reset offsets" fields=${fields} request=${request} draw=${draw} done=${again} /></div>`;
}
