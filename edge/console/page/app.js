// The console: which view the URL names, the keys, the theme.

import { Component, html, place, render } from "./base.js";
import { Group, Groups } from "./views/groups.js";
import { Overview } from "./views/overview.js";
import { Quorum } from "./views/quorum.js";
import { Records } from "./views/records.js";
import { Topic, Topics } from "./views/topics.js";

const VIEWS = [
  ["", "Overview", "o"],
  ["topics", "Topics", "t"],
  ["groups", "Groups", "g"],
  ["quorum", "Quorum", "q"],
];

const KEYS = [
  ["/", "search in the list"],
  ["g o, g t, g g, g q", "overview, topics, groups, quorum"],
  ["j, k", "next, previous row"],
  ["Enter", "open it"],
  ["?", "these keys"],
  ["Esc", "close, or leave the search"],
];

const THEMES = ["system", "light", "dark"];

/** @param {string} theme */
function applyTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function view({ segments, query }) {
  const [first, second, third] = segments;
  if (!first) return html`<${Overview} />`;
  if (first === "topics" && third === "records") return html`<${Records} topic=${second} query=${query} />`;
  if (first === "topics" && second) return html`<${Topic} name=${second} />`;
  if (first === "topics") return html`<${Topics} query=${query} />`;
  if (first === "groups" && second) return html`<${Group} name=${second} />`;
  if (first === "groups") return html`<${Groups} query=${query} />`;
  if (first === "quorum") return html`<${Quorum} />`;
  return html`<h1>No such view</h1><p><a href="#/">Overview</a></p>`;
}

class App extends Component {
  state = { at: place(), theme: localStorage.getItem("theme") ?? "system" };

  componentDidMount() {
    applyTheme(this.state.theme);
    window.addEventListener("hashchange", () => {
      this.setState({ at: place() });
      document.querySelector("main")?.focus();
    });
    window.addEventListener("keydown", (event) => onKey(event));
  }

  turnTheme() {
    const theme = THEMES[(THEMES.indexOf(this.state.theme) + 1) % THEMES.length];
    localStorage.setItem("theme", theme);
    applyTheme(theme);
    this.setState({ theme });
  }

  render() {
    const { at, theme } = this.state;
    const current = at.segments[0] ?? "";
    const item = ([path, name]) => html`<a href=${`#/${path}`} aria-current=${path === current ? "page" : undefined}>${name}</a>`;
    return html`<a class="skip" href="#main" onClick=${skip}>To the content</a>
      <header>
        <strong>Barnabas</strong>
        <nav aria-label="Views">${VIEWS.map(item)}</nav>
        <button onClick=${() => this.turnTheme()}>Theme: ${theme}</button>
        <button onClick=${openHelp} aria-label="Keys">?</button>
      </header>
      <main id="main" tabindex="-1">${view(at)}</main>
      <dialog id="help" aria-labelledby="keys">
        <h2 id="keys">Keys</h2>
        <dl class="keys">${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
        <form method="dialog"><button>Close</button></form>
      </dialog>`;
  }
}

/** The URL's fragment names the view, so the browser's own jump is not used. @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.querySelector("main")?.focus();
}

const openHelp = () => /** @type {HTMLDialogElement | null} */ (document.querySelector("#help"))?.showModal();

let isAfterG = false;

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  // A dialog has the keys for itself.
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, select, textarea")) return;
  if (isAfterG) {
    isAfterG = false;
    const found = VIEWS.find(([, , key]) => key === event.key);
    if (found) location.hash = `#/${found[0]}`;
    return;
  }
  if (event.key === "g") isAfterG = true;
  else if (event.key === "?") openHelp();
  else if (event.key === "/") {
    event.preventDefault();
    document.querySelector("input[type=search]")?.focus();
  } else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
}

/** To the next row's link. @param {number} by */
function step(by) {
  const links = [...document.querySelectorAll("main tbody a, main tbody summary")];
  const at = links.indexOf(/** @type {Element} */ (document.activeElement));
  const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1);
  /** @type {HTMLElement | undefined} */ (links[next])?.focus();
}

render(html`<${App} />`, document.getElementById("app"));
