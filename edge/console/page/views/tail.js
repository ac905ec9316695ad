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

/** Asks on until `wanted` records are found or all is read. */
export class Search extends Component {
  state = { rows: [], records: 0, bytes: 0, partitions: [], left: 0, next: null, error: null, isBusy: true };
  run = 0;

  componentDidMount() {
    this.start();
  }

  componentWillUnmount() {
    this.run = -1;
  }

  componentDidUpdate(/** @type {any} */ before) {
    if (before.path !== this.props.path) this.start();
  }

  start() {
    this.setState({ rows: [], records: 0, bytes: 0, partitions: [], left: 0, next: null, error: null });
    this.goOn(null, this.props.wanted);
  }

  stop() {
    this.run += 1;
    this.setState({ isBusy: false });
  }

  /** @param {string | null} from @param {number} wanted how many records more */
  async goOn(from, wanted) {
    const mine = (this.run += 1);
    let cursor = from;
    let found = 0;
    this.setState({ isBusy: true, error: null });
    try {
      do {
        const more = cursor ? `&cursor=${encodeURIComponent(cursor)}` : "";
        const told = await ask(`${this.props.path}${more}`);
        if (mine !== this.run) return;
        found += told.data.length;
        cursor = told.next;
        this.setState({
          rows: [...this.state.rows, ...told.data].slice(0, KEPT),
          records: this.state.records + Number(told.scanned.records),
          bytes: this.state.bytes + Number(told.scanned.bytes),
          partitions: told.partitions,
          left: told.not_scanned,
          next: told.next,
        });
      } while (cursor && found < wanted && this.state.rows.length < KEPT);
    } catch (error) {
      if (mine === this.run) this.setState({ error });
    }
    if (mine === this.run) this.setState({ isBusy: false });
  }

  render() {
    const { rows, records, bytes, partitions, left, next, error, isBusy } = this.state;
    const isFull = rows.length >= KEPT;
    const words = [
      `${count(rows.length)} found`,
      `${count(records)} records (${size(bytes)}) scanned`,
      left ? `${count(left)} offsets not scanned` : "all scanned",
    ];
    const troubles = partitions.filter((row) => row.trouble);
    return html`<div aria-busy=${isBusy}>
      ${error && html`<${Trouble} error=${error} />`}
      ${troubles.map((row) => html`<div class="notice note">Partition ${row.partition} is not scanned from offset ${String(row.next)} on: ${row.trouble}</div>`)}
      <p class="quiet"><span role="status">${words.join(" · ")}</span>
        ${isBusy && html` <button onClick=${() => this.stop()}>Stop</button>`}
        ${!isBusy && next && !isFull && html` <button onClick=${() => this.goOn(next, this.props.wanted)}>Search on</button>`}</p>
      ${isFull && html`<p class="warn">The first ${count(KEPT)} are shown. Begin further on, or look for a longer text.</p>`}
      <${Table} caption="Records" rows=${rows} columns=${this.props.columns} empty=${isBusy ? "Searching …" : "Nothing was found."} />
    </div>`;
  }
}
