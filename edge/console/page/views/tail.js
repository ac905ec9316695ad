// New records as they come, and a search through a topic. Both keep a bounded number of rows and say what they left
// out.

import { Component, Table, Trouble, html } from "../base.js";
import { Problem, ask, read } from "../api.js";
import { count, size } from "../format.js";

const KEPT = 500;

/** The last records of a topic, while they come. */
export class Tail extends Component {
  state = { rows: [], skipped: 0, troubles: [], isPaused: false, left: 0, error: null, isOpen: false };
  /** @type {EventSource | null} */
  source = null;
  onHide = () => (document.visibilityState === "hidden" ? this.close() : this.open());

  componentDidMount() {
    document.addEventListener("visibilitychange", this.onHide);
    this.open();
  }

  componentWillUnmount() {
    document.removeEventListener("visibilitychange", this.onHide);
    this.close();
  }

  componentDidUpdate(/** @type {any} */ before) {
    if (before.path === this.props.path) return;
    this.close();
    this.at = "";
    this.setState({ rows: [], skipped: 0, troubles: [], left: 0, error: null });
    this.open();
  }

  /** Where the last event was: a page that was hidden goes on there. */
  at = "";

  open() {
    if (this.source) return;
    const { path } = this.props;
    const from = this.at ? `${path.includes("?") ? "&" : "?"}from=${encodeURIComponent(this.at)}` : "";
    const source = new EventSource(`/api/v1${path}${from}`);
    this.source = source;
    source.onopen = () => this.setState({ isOpen: true, error: null });
    source.onerror = () => {
      this.setState({ isOpen: false });
      // The browser tries again by itself, but not after a refusal: the records say why.
      if (source.readyState === EventSource.CLOSED) this.explain();
    };
    source.addEventListener("records", (event) => this.take(event));
    source.addEventListener("problem", (event) => {
      this.close();
      this.setState({ error: new Problem(read(event.data)) });
    });
  }

  close() {
    this.source?.close();
    this.source = null;
    this.setState({ isOpen: false });
  }

  async explain() {
    try {
      await ask(this.props.why);
      this.setState({ error: new Problem({ title: "Ended", detail: "The tail has ended. Too many may run: try again." }) });
    } catch (error) {
      this.setState({ error });
    }
  }

  /** @param {MessageEvent} event */
  take(event) {
    this.at = event.lastEventId;
    const { data, skipped, troubles } = read(event.data);
    const missed = Object.values(skipped).reduce((sum, offsets) => sum + Number(offsets), 0);
    const { isPaused, rows, left } = this.state;
    const kept = isPaused ? rows : [...[...data].reverse(), ...rows].slice(0, KEPT);
    const named = Object.entries(troubles).map(([partition, words]) => `partition ${partition}: ${words}`);
    this.setState({
      rows: kept,
      skipped: this.state.skipped + missed,
      left: isPaused ? left + data.length : 0,
      troubles: [...named, ...this.state.troubles].slice(0, 5),
    });
  }

  render() {
    const { rows, skipped, troubles, isPaused, left, error, isOpen } = this.state;
    const words = [
      isOpen ? "live" : "not connected",
      `${count(rows.length)} records shown, the newest first, ${count(KEPT)} at most`,
      skipped && `${count(skipped)} skipped`,
      left && `${count(left)} not shown while paused`,
    ];
    return html`<div aria-busy="false">
      ${error && html`<${Trouble} error=${error} />`}
      ${troubles.map((words) => html`<div class="notice note">Cannot be read: ${words}</div>`)}
      <p class="quiet"><span role="status">${words.filter(Boolean).join(" · ")}</span>
        <button onClick=${() => this.setState({ isPaused: !isPaused, left: 0 })} aria-pressed=${isPaused}>${isPaused ? "Go on" : "Pause"}</button></p>
      <${Table} caption="Records" rows=${rows} columns=${this.props.columns} empty="Nothing has come yet." />
    </div>`;
  }
}

/** How a search read a partition, in words. @param {any[]} partitions */
function ways(partitions) {
  const of = (/** @type {string} */ word) => partitions.filter((row) => row.by.includes(word));
  const fetched = [...new Set(of("fetch").map((row) => row.leader))].sort((one, other) => one - other);
  return [
    of("segments").length && `${count(of("segments").length)} partitions read from this node's segments`,
    fetched.length && `fetched from ${fetched.length === 1 ? "broker" : "brokers"} ${fetched.join(", ")}`,
  ];
}

const WHY = { all: "", limit: "ended at the limit", time: "ended after its time", stopped: "stopped" };

/** A search through whole partitions: what it finds while it goes on, and what it has not scanned. */
export class Search extends Component {
  state = { rows: [], figures: null, before: { records: 0, bytes: 0 }, end: null, error: null, isBusy: true };
  /** @type {EventSource | null} */
  source = null;

  componentDidMount() {
    this.start();
  }

  componentWillUnmount() {
    this.close();
  }

  componentDidUpdate(/** @type {any} */ before) {
    if (before.path !== this.props.path) this.start();
  }

  start() {
    this.close();
    this.setState({ rows: [], figures: null, before: { records: 0, bytes: 0 }, end: null, error: null });
    this.open(null);
  }

  /** @param {string | null} cursor where the search before ended */
  open(cursor) {
    const source = new EventSource(`/api/v1${this.props.path}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
    this.source = source;
    this.setState({ isBusy: true, error: null, end: null });
    source.addEventListener("progress", (event) => this.setState({ figures: read(event.data) }));
    source.addEventListener("records", (event) => this.setState({ rows: [...this.state.rows, ...read(event.data).data].slice(0, KEPT) }));
    source.addEventListener("end", (event) => {
      const end = read(event.data);
      this.close();
      this.setState({ end, figures: end, isBusy: false });
    });
    source.addEventListener("problem", (event) => {
      this.close();
      this.setState({ error: new Problem(read(event.data)), isBusy: false });
    });
    source.onerror = () => {
      // A search that was cut does not begin again by itself.
      this.close();
      this.explain();
    };
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  stop() {
    this.close();
    this.setState({ isBusy: false, end: { why: "stopped", partitions: [], gaps: [], gaps_left_out: 0, next: null } });
  }

  goOn() {
    const { end, figures, before } = this.state;
    const { records, bytes } = figures.scanned;
    this.setState({ before: { records: before.records + Number(records), bytes: before.bytes + Number(bytes) } });
    this.open(end.next);
  }

  /** Asks for a part of it: the answer says what is wrong. */
  async explain() {
    try {
      await ask(this.props.why);
      this.setState({ error: new Problem({ title: "Ended", detail: "The search has ended. Too many may run: try again." }), isBusy: false });
    } catch (error) {
      this.setState({ error, isBusy: false });
    }
  }

  render() {
    const { rows, figures, before, end, error, isBusy } = this.state;
    const isFull = rows.length >= KEPT;
    const scanned = figures?.scanned ?? { records: 0, bytes: 0 };
    const done = BigInt(figures?.offsets.done ?? 0);
    const all = BigInt(figures?.offsets.of ?? 0);
    const words = [
      `${count(rows.length)} found`,
      `${count(before.records + Number(scanned.records))} records (${size(before.bytes + Number(scanned.bytes))}) scanned`,
      figures && (all > done ? `${count(all - done)} of ${count(all)} offsets not scanned` : "all scanned"),
      end && WHY[end.why],
      ...(end ? ways(end.partitions) : []),
    ];
    const troubles = (end?.partitions ?? []).filter((row) => row.trouble);
    return html`<div aria-busy=${isBusy}>
      ${error && html`<${Trouble} error=${error} />`}
      ${troubles.map((row) => html`<div class="notice note">Partition ${row.partition} is not scanned from offset ${String(row.next)} on: ${row.trouble}</div>`)}
      ${(end?.gaps ?? []).map((gap) => html`<div class="notice note">Partition ${gap.partition} is not scanned from offset ${String(gap.from)} to ${String(gap.to)}: ${gap.why}</div>`)}
      ${isBusy && all > 0n && html`<progress max="1000" value=${Number((done * 1000n) / all)} aria-label="scanned"></progress>`}
      <p class="quiet"><span role="status">${words.filter(Boolean).join(" · ")}</span>
        ${isBusy && html` <button onClick=${() => this.stop()}>Stop</button>`}
        ${!isBusy && end?.next && !isFull && html` <button onClick=${() => this.goOn()}>Search on</button>`}
        ${!isBusy && end?.why === "stopped" && html` <button onClick=${() => this.start()}>Search again</button>`}</p>
      ${isFull && html`<p class="warn">The first ${count(KEPT)} are shown. Begin further on, or look for a longer text.</p>`}
      <${Table} caption="Records" rows=${rows} columns=${this.props.columns} empty=${isBusy ? "Searching …" : "Nothing was found."} />
    </div>`;
  }
}
