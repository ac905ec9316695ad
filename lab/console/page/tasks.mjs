// Tasks in the console's page: by mouse, by keys alone, in both themes and three widths; axe on every view; attacks by
// what records contain.
//
// node tasks.mjs URL PID PICTURES: PID is the node, which is stopped and continued at the end.

import { readFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.MODULES}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [url, pid, pictures] = process.argv.slice(2);

let passed = 0;
let failed = 0;
const troubles = [];

function row(name, isRight, seen = "") {
  if (isRight) passed += 1;
  else failed += 1;
  console.log(`${isRight ? "ok    " : "FAILED"} ${name}${isRight ? "" : `: ${seen}`}`);
}

async function task(name, work) {
  try {
    const seen = await work();
    row(name, seen === undefined || seen === true, seen);
  } catch (error) {
    row(name, false, String(error).split("\n")[0]);
  }
}

const VIEWS = [
  ["overview", "#/"],
  ["topics", "#/topics"],
  ["topic", "#/topics/orders"],
  ["change", "#/topics/sensor-001", "text=Change a config …"],
  ["records", "#/topics/orders/records?from=oldest"],
  ["search", "#/topics/orders/records?text=order&from=oldest"],
  ["tail", "#/topics/orders/records?tail=1"],
  ["groups", "#/groups"],
  ["group", "#/groups/billing"],
  ["quorum", "#/quorum"],
];

async function opened(browser, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && !/the server responded/i.test(message.text()) && troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("dialog", (dialog) => {
    troubles.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => request.url().startsWith(url) || troubles.push(`asked ${request.url()}`));
  return page;
}

async function visit(page, hash) {
  await page.goto(`${url}/${hash}`);
  await page.waitForSelector("main [aria-busy=false]");
}

/** A record, as a program sends it. */
async function produce(topic, value) {
  const { data } = await (await fetch(`${url}/v3/clusters`)).json();
  const body = JSON.stringify({ value: { type: "STRING", data: value } });
  const place = `${url}/v3/clusters/${data[0].cluster_id}/topics/${topic}/records`;
  await fetch(place, { method: "POST", headers: { "Content-Type": "application/json" }, body });
}

const text = (page, selector = "main") => page.locator(selector).first().innerText();

async function byMouse(page) {
  await visit(page, "#/");
  await task("overview counts", async () => /brokers/.test(await text(page)) && /anonymous/.test(await text(page)));
  await task("from overview to a topic's records", async () => {
    await page.click("nav >> text=Topics");
    await page.click("text=orders");
    await page.waitForSelector("h2 >> text=Partitions");
    await page.click("main >> text='Records'");
    await page.waitForSelector("table >> text=tombstone");
  });
  await task("null, empty and tombstone differ", async () => {
    const seen = await text(page, "table");
    return /null: tombstone/.test(seen) && /empty/.test(seen) && /null/.test(seen);
  });
  await task("numbers are shown as they were written", async () => {
    await visit(page, "#/topics/orders/records?from=oldest&partition=1");
    await page.locator("summary").first().click();
    const seen = await text(page, "details pre");
    return seen.includes("9223372036854775807") && seen.includes("18446744073709551615") && seen.includes("1e400");
  });
  await task("hex", async () => {
    await page.selectOption("select >> nth=2", "hex");
    await page.waitForFunction(() => location.hash.includes("as=hex"));
    await page.waitForFunction(() => document.querySelector("details pre")?.textContent.startsWith("000000  7b"));
  });
  await task("MessagePack, and what is none", async () => {
    await visit(page, "#/topics/orders/records?from=oldest&partition=0&as=msgpack");
    await page.locator("summary >> text=no MessagePack").first().waitFor();
    await visit(page, "#/topics/orders/records?from=oldest&partition=0&as=base64");
    return (await text(page, "table")).includes("AAECAwT/gIA=");
  });
  await task("a search by a field of JSON", async () => {
    await visit(page, "#/topics/orders/records?from=oldest");
    await page.fill("main input[type=text]", "order = 17");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[role=status] >> text=1 found");
    return page.url().includes("json=order") && page.url().includes("value=17");
  });
  await task("an expression that is none is explained", async () => {
    await visit(page, "#/topics/orders/records?from=oldest&regex=(");
    await page.waitForSelector("[role=alert] >> text=regex");
  });
  await task("a search finds, and says what it scanned", async () => {
    await visit(page, "#/topics/orders/records?from=oldest");
    await page.fill("main input[type=search]", "plain te");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[role=status] >> text=1 found");
    const seen = await text(page);
    return /all scanned/.test(seen) && /plain text/.test(seen) && page.url().includes("text=plain+te");
  });
  await task("a live tail shows what comes", async () => {
    await visit(page, "#/topics/audit.log/records");
    await page.click("text=Live tail");
    await page.waitForSelector("[role=status] >> text=live");
    await produce("audit.log", "it came");
    await page.waitForSelector("table >> text=it came");
    await page.click("text=Pause");
    await produce("audit.log", "unseen");
    await page.waitForSelector("[role=status] >> text=1 not shown while paused");
  });
  await task("configs have their origin", async () => {
    await visit(page, "#/topics/orders");
    return /retention.ms\s+86400000\s+DYNAMIC_TOPIC_CONFIG/.test(await text(page, "main"));
  });
  await task("a group's lag", async () => {
    await visit(page, "#/groups/billing");
    return /records behind/.test(await text(page)) && /Empty/.test(await text(page));
  });
  await task("a group's member", async () => {
    await visit(page, "#/groups/payers");
    return /127\.0\.0\.1/.test(await text(page));
  });
  await task("the quorum's leader", async () => {
    await visit(page, "#/quorum");
    return /leader/.test(await text(page, "table"));
  });
  await task("a topic that is not there", async () => {
    await visit(page, "#/topics/absent");
    return /UNKNOWN_TOPIC_OR_PARTITION/.test(await text(page, "[role=alert]"));
  });
}

/** Changes: each is previewed, with its command line, before it is made. */
async function changes(page) {
  const dialog = (words) => page.waitForSelector(`dialog.change[open] >> text=${words}`);
  await task("make a topic", async () => {
    await visit(page, "#/topics");
    await page.click("text=Make a topic …");
    await page.fill("dialog >> label:has-text('Name') >> input", "by-page");
    await page.fill("dialog >> label:has-text('Partitions') >> input", "2");
    await page.fill("dialog >> textarea", "retention.ms=7000");
    await page.click("dialog >> text=Preview");
    await dialog("This would be done");
    const seen = await text(page, "dialog.change");
    if (!/--create --topic by-page --partitions 2 --config retention.ms=7000/.test(seen)) return seen;
    await page.click("dialog >> button.danger");
    await dialog("Done.");
    await page.click("dialog >> text=Close");
    await page.waitForSelector("h1 >> text=by-page");
    await page.waitForSelector("h2 >> text=Partitions");
  });
  await task("change a config", async () => {
    await page.click("text=Change a config …");
    await page.selectOption("dialog >> select", "retention.ms");
    await page.fill("dialog >> label:has-text('New value') >> input", "8000");
    await page.click("dialog >> text=Preview");
    await dialog("7000 (DYNAMIC_TOPIC_CONFIG) → 8000");
    await page.click("dialog >> button.danger");
    await dialog("Done.");
    await page.click("dialog >> text=Close");
    await page.waitForSelector("td >> text=8000");
  });
  await task("a bad value is refused by the preview", async () => {
    await page.click("text=Change a config …");
    await page.selectOption("dialog >> select", "retention.ms");
    await page.fill("dialog >> label:has-text('New value') >> input", "x");
    await page.click("dialog >> text=Preview");
    await dialog("INVALID_CONFIG");
    await page.click("dialog >> text=Cancel");
    await page.waitForSelector("dialog.change", { state: "hidden" });
  });
  await task("empty a topic", async () => {
    await produce("by-page", "one");
    await page.click("text=Delete records …");
    await page.click("dialog >> text=Preview");
    await dialog("1 records are deleted");
    await page.fill("dialog >> label:has-text('Type') >> input", "by-page");
    await page.click("dialog >> button.danger");
    await dialog("Done.");
    await page.click("dialog >> text=Close");
  });
  await task("delete a topic: only with its name", async () => {
    await page.click("text=Delete the topic …");
    await dialog("This would be done");
    if (await page.isEnabled("dialog >> button.danger")) return "it can be deleted without the name";
    await page.fill("dialog >> label:has-text('Type') >> input", "by-pag");
    await page.keyboard.press("Enter");
    if (await page.isEnabled("dialog >> button.danger")) return "it can be deleted by half the name";
    await page.fill("dialog >> label:has-text('Type') >> input", "by-page");
    await page.click("dialog >> button.danger");
    await dialog("Done.");
    await page.click("dialog >> text=Close");
    await page.waitForSelector("h1 >> text=Topics");
    await visit(page, "#/topics?q=by-page");
    await page.waitForSelector("[role=status] >> text=0 of");
  });
  await task("reset a group's offsets", async () => {
    await visit(page, "#/groups/billing");
    await page.click("text=Reset offsets …");
    await page.selectOption("dialog >> select >> nth=0", "latest");
    await page.click("dialog >> text=Preview");
    await dialog("--reset-offsets --to-latest --all-topics --execute");
    await page.click("dialog >> button.danger");
    await dialog("Done.");
    await page.click("dialog >> text=Close");
  });
  await task("a group with members says why it is not reset", async () => {
    await visit(page, "#/groups/payers");
    await page.click("text=Reset offsets …");
    await page.click("dialog >> text=Preview");
    await dialog("NON_EMPTY_GROUP");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog.change", { state: "hidden" });
  });
}

async function byKeys(page) {
  await visit(page, "#/");
  await task("keys: topics, search, open, records", async () => {
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.waitForSelector("h1 >> text=Topics");
    await page.waitForSelector("input[type=search]");
    await page.keyboard.press("/");
    await page.keyboard.type("payme");
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForSelector("h1 >> text=payments");
  });
  await task("the URL has the filter", async () => {
    await page.goBack();
    await page.waitForSelector("input[type=search]");
    return (await page.inputValue("input[type=search]")) === "payme" || page.url();
  });
  await task("keys: help", async () => {
    await page.locator("main").focus();
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog[open]", { state: "hidden" });
  });
  await task("keys: every view", async () => {
    for (const [key, name] of [["g", "Groups"], ["q", "Quorum"], ["o", "Overview"]]) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.waitForSelector(`h1 >> text=${name}`);
    }
  });
}

async function attacks(page) {
  await visit(page, "#/topics/orders/records?from=oldest&partition=0");
  await task("records make no elements", async () => (await page.locator("main img, main script, main b:not(.long)").count()) === 0);
  await task("a hostile record is shown as text", async () => (await text(page)).includes("<script>alert(1)</script>"));
  await task("a long record says that it is cut", async () => (await page.locator("details >> text=The first").count()) === 1);
  await task("a hostile name in the URL is text", async () => {
    await visit(page, `#/topics/${encodeURIComponent("<img src=x onerror=alert(1)>")}`);
    return (await page.locator("main img").count()) === 0;
  });
}

async function views(browser) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [400, 900, 1400]) {
      const page = await opened(browser, { colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
      for (const [name, hash, press] of VIEWS) {
        await visit(page, hash);
        if (press) await page.click(press);
        if (pictures) await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${width}.png`, fullPage: width === 1400 });
        await page.evaluate(axe);
        const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
        const words = found.violations.map((one) => `${one.id} (${one.nodes.map((node) => node.target).join(" ")})`);
        row(`axe: ${name}, ${colorScheme}, ${width}`, !words.length, words.join(", "));
        const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        row(`no sideways scrolling: ${name}, ${colorScheme}, ${width}`, over <= 0, over);
      }
      await page.context().close();
    }
  }
}

/** The node stands still: the page says so, keeps what it has, and goes on by itself. */
async function standstill(page) {
  await visit(page, "#/quorum");
  process.kill(Number(pid), "SIGSTOP");
  await task("a page without its node keeps what it shows", async () => {
    await page.waitForTimeout(1000);
    return /high watermark/.test(await text(page));
  });
  process.kill(Number(pid), "SIGCONT");
  await task("the page goes on when the node does", async () => {
    await page.waitForTimeout(6000);
    return (await page.locator("[role=alert]").count()) === 0;
  });
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  if (pictures) mkdirSync(pictures, { recursive: true });
  const page = await opened(browser, { viewport: { width: 1400, height: 900 } });
  await byMouse(page);
  await byKeys(page);
  await attacks(page);
  await changes(page);
  await standstill(page);
  await views(browser);
  row("no error, no dialog, no request to another host", !troubles.length, troubles.slice(0, 3).join(" | "));
} finally {
  await browser.close();
}
console.log(`console: ${passed} passed, ${failed} failed`);
process.exitCode = failed || !passed ? 1 : 0;
