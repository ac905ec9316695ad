// What every view uses: drawing, loading, sorting, the place in the URL.

import { Component, h, render } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";
import { ask } from "./api.js";

export const html = htm.bind(h);
export { Component, render };

const AGAIN_MS = 5000;

/** The place in the URL: `#/topics/a%2Fb?from=oldest`. */
export function place() {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const segments = path.split("/").filter(Boolean);
  return { segments: segments.map(decodeURIComponent), query: new URLSearchParams(query ?? "") };
}

/** @param {string[]} segments @param {Record<string, string>} [query] */
export function link(segments, query = {}) {
  const pairs = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${segments.map(encodeURIComponent).join("/")}${pairs ? `?${pairs}` : ""}`;
}

/** Asks for `path` and draws what came; again every five seconds where `isLive` and the page is seen. */
export class Load extends Component {
  state = { data: null, error: null, at: 0 };
  asked = 0;
  timer = 0;

  componentDidMount() {
    this.load();
    this.timer = window.setInterval(() => {
      if (this.props.isLive && document.visibilityState === "visible") this.load();
    }, AGAIN_MS);
  }

  componentWillUnmount() {
    this.asked = -1;
    window.clearInterval(this.timer);
  }

  componentDidUpdate(/** @type {any} */ before) {
    if (before.path !== this.props.path) {
      this.setState({ data: null, error: null });
      this.load();
    }
  }

  async load() {
    if (this.asked < 0) return;
    const mine = (this.asked += 1);
    try {
      const data = await ask(this.props.path);
      if (mine === this.asked) this.setState({ data, error: null, at: Date.now() });
    } catch (error) {
      // What was seen last stays, below the reason why it is old.
      if (mine === this.asked) this.setState({ error });
    }
  }

  render() {
    const { data, error } = this.state;
    return html`<div aria-busy=${!data && !error}>
      ${error && html`<${Trouble} error=${error} />`}
      ${!data && !error && html`<p class="quiet">Loading …</p>`}
      ${data && this.props.draw(data, () => this.load())}
    </div>`;
  }
}

export function Trouble({ error }) {
  const kafka = error.kafka ? html` <span class="mark">${error.kafka}</span>` : "";
  return html`<div class="notice" role="alert"><strong>${error.title ?? "Error"}</strong>${kafka}<div>${error.message}</div></div>`;
}

/** Parts that the caller may not see. @param {{refused: Record<string, string>}} props */
export function Refused({ refused }) {
  const parts = Object.entries(refused ?? {});
  if (!parts.length) return null;
  return html`<div class="notice note">Not shown: ${parts.map(([part, code]) => `${part} (${code})`).join(", ")}</div>`;
}

/**
 * A table: `columns` are { key, name, is_number, cell(row), text(row) }. The first column is each row's header.
 * Sorted by a click on a column; at most `SHOWN` rows are drawn at a time.
 */
export class Table extends Component {
  state = { by: null, isDown: false, shown: SHOWN };

  rows() {
    const { rows } = this.props;
    const { by, isDown } = this.state;
    if (!by) return rows;
    const sign = isDown ? -1 : 1;
    const value = (row) => row[by] ?? -1;
    return [...rows].sort((one, other) => {
      const [left, right] = [value(one), value(other)];
      return sign * (typeof left === "string" ? left.localeCompare(String(right)) : Number(left > right) - Number(left < right));
    });
  }

  sort(key) {
    const { by, isDown } = this.state;
    this.setState({ by: key, isDown: by === key ? !isDown : false });
  }

  render() {
    const { columns, caption, empty } = this.props;
    const { by, isDown, shown } = this.state;
    const rows = this.rows();
    const head = (column) => {
      const sorted = by === column.key ? (isDown ? "descending" : "ascending") : undefined;
      const mark = by === column.key ? (isDown ? " ▼" : " ▲") : "";
      const name = column.key ? html`<button class="sort" onClick=${() => this.sort(column.key)}>${column.name}${mark}</button>` : column.name;
      return html`<th scope="col" class=${column.is_number ? "number" : ""} aria-sort=${sorted}>${name}</th>`;
    };
    const cell = (column, at, row) => {
      const inner = column.cell ? column.cell(row) : String(row[column.key] ?? "–");
      const kind = column.is_number ? "number" : "";
      return at === 0 ? html`<th scope="row" class=${kind}>${inner}</th>` : html`<td class=${kind}>${inner}</td>`;
    };
    return html`<div class="scroll"><table>
        <caption class="skip">${caption}</caption>
        <thead><tr>${columns.map(head)}</tr></thead>
        <tbody>
          ${rows.slice(0, shown).map((row) => html`<tr>${columns.map((column, at) => cell(column, at, row))}</tr>`)}
          ${!rows.length && html`<tr><td colspan=${columns.length} class="quiet">${empty ?? "None."}</td></tr>`}
        </tbody>
      </table></div>
      ${rows.length > shown && html`<p><button onClick=${() => this.setState({ shown: shown + SHOWN })}>Show more (${rows.length - shown} left)</button></p>`}`;
  }
}

const SHOWN = 250;
