// A change: a form, what the change would do and the command line that does the same, then the change itself.

import { change, isReadOnly } from "./api.js";
import { Component, Trouble, html } from "./base.js";

/**
 * A button that opens the form. `fields` are { name, label, kind, options, value, help }; `request(values)` gives
 * { method, path, body }; `draw(told)` shows what comes of it. Where `confirm` is set, it has to be typed.
 */
export class Change extends Component {
  state = { isOpen: false, values: {}, told: null, isDone: false, error: null, typed: "", isBusy: false };
  /** @type {HTMLDialogElement | null} */
  dialog = null;

  open() {
    const values = Object.fromEntries((this.props.fields ?? []).map((field) => [field.name, field.value ?? ""]));
    this.setState({ isOpen: true, values, told: null, isDone: false, error: null, typed: "" }, () => {
      this.dialog?.showModal();
      if (!this.props.fields?.length) this.send(true);
    });
  }

  closed() {
    const { isDone, told } = this.state;
    this.setState({ isOpen: false });
    if (isDone) this.props.done?.(told);
  }

  set(name, value) {
    // What was previewed is another change now.
    this.setState({ values: { ...this.state.values, [name]: value }, told: null, error: null });
  }

  async send(isDry) {
    this.setState({ isBusy: true, error: null });
    try {
      const { method, path, body } = this.props.request(this.state.values);
      const told = await change(method, `${path}?dryRun=${isDry}`, body);
      this.setState({ told, isDone: !isDry, isBusy: false });
    } catch (error) {
      this.setState({ error, isBusy: false });
    }
  }

  field({ name, label, kind, options, help }) {
    const value = this.state.values[name];
    const take = (event) => this.set(name, kind === "checkbox" ? event.target.checked : event.target.value);
    const isOff = this.state.isDone || this.state.isBusy;
    if (options) {
      return html`<label>${label}<select value=${value} onChange=${take} disabled=${isOff}>
        ${options.map((option) => html`<option value=${option}>${option}</option>`)}</select></label>`;
    }
    if (kind === "lines") return html`<label>${label}<textarea rows="3" value=${value} onInput=${take} disabled=${isOff}></textarea></label>`;
    return html`<label>${label}<input type=${kind ?? "text"} value=${value} checked=${value === true} onInput=${take} placeholder=${help ?? ""} disabled=${isOff} /></label>`;
  }

  /** @param {Event} event */
  submit(event) {
    event.preventDefault();
    const { told, isDone, isBusy, typed } = this.state;
    const isSure = !told || !this.props.confirm || typed === this.props.confirm;
    if (!isBusy && !isDone && isSure) this.send(!told);
  }

  buttons() {
    const { told, isDone, isBusy, typed } = this.state;
    const { confirm } = this.props;
    if (isDone) return null;
    if (!told) return html`<button type="submit" disabled=${isBusy}>Preview</button>`;
    return html`${confirm && html`<label>Type ${confirm} to go on<input type="text" autocomplete="off" value=${typed} onInput=${(event) => this.setState({ typed: event.target.value })} /></label>`}
      <button type="submit" class="danger" disabled=${isBusy || (confirm && typed !== confirm)}>${this.props.name}</button>`;
  }

  form() {
    const { told, isDone, error } = this.state;
    const { name, fields, draw } = this.props;
    return html`<form onSubmit=${(event) => this.submit(event)}>
      <h2>${name}</h2>
      <div class="fields">${(fields ?? []).map((field) => this.field(field))}</div>
      ${error && html`<${Trouble} error=${error} />`}
      ${told && html`<div role="status"><p><strong>${isDone ? "Done." : "This would be done:"}</strong></p>
        ${draw(told)}
        <p>The same by command line:</p><pre>${told.command}</pre></div>`}
      <div class="tools">${this.buttons()}<button type="button" onClick=${() => this.dialog?.close()}>${isDone ? "Close" : "Cancel"}</button></div>
    </form>`;
  }

  render() {
    if (isReadOnly()) return null;
    const keep = (element) => {
      this.dialog = element;
    };
    return html`<button onClick=${() => this.open()}>${this.props.name} …</button>
      ${this.state.isOpen && html`<dialog class="change" ref=${keep} aria-label=${this.props.name} onClose=${() => this.closed()}>${this.form()}</dialog>`}`;
  }
}

/** Lines `name=value` as an object. @param {string} text */
export function pairs(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => [line.split("=")[0].trim(), line.split("=").slice(1).join("=").trim()]));
}

/** A number as it was typed, or nothing. @param {string} text */
export const number = (text) => (String(text).trim() === "" ? undefined : Number(text));
