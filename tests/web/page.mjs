// Drives the page in a real Chromium against a running server, and holds what it says against the API. Run by hand, on smollm2:
//   node tests/web/page.mjs ADDRESS PACKAGES SCREENSHOTS
// PACKAGES is a folder in which npm installed playwright-core and axe-core; SCREENSHOTS is filled. Ends with 1 where one fails.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import path from "node:path";

const [address, packages, screenshots] = process.argv.slice(2);
const require = createRequire(path.join(packages, "package.json"));
const {chromium} = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const kPrompt = "Reply politely to this email: “Can we meet tomorrow?”";

const browser = await chromium.launch({executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"]});

async function open(options = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, bypassCSP: options.bypassCSP, ...options});
  const page = await context.newPage();
  page.problems = [];
  page.foreign = [];
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("request", (request) => !request.url().startsWith(address) && !request.url().startsWith("data:") && page.foreign.push(request.url()));
  await page.goto(address);
  await page.getByRole("heading", {name: "couplet"}).waitFor();
  return page;
}

async function prepare(page, text, {maxTokens = 24, temperature = 0} = {}) {
  const conversation = page.locator("main:not([hidden])");
  if (!(await conversation.getByLabel("most tokens").isVisible())) await conversation.getByText("Settings").click();
  await conversation.getByLabel("most tokens").fill(String(maxTokens));
  await conversation.getByLabel("temperature").fill(String(temperature));
  await conversation.getByRole("textbox", {name: "Your message"}).fill(text);
}

const press = (page) => page.locator("main:not([hidden])").getByRole("button", {name: "Send"}).click();

async function send(page, text, options) {
  await prepare(page, text, options);
  await press(page);
}

const lastTurn = (page) => page.locator("main:not([hidden]) article").last();
const finished = (page) => page.locator("main:not([hidden]) article[aria-busy=false]").last().waitFor({timeout: 120_000});

async function ask(route, body) {
  const reply = await fetch(address + route, {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body)});
  assert.equal(reply.status, 200, await reply.clone().text());
  return reply.json();
}

const messages = [{role: "user", content: kPrompt}];

async function theReplyIsTheApis() {
  const page = await open();
  await send(page, kPrompt);
  await finished(page);
  const whole = await ask("/v1/chat/completions", {messages, max_tokens: 24, temperature: 0, logprobs: true, top_logprobs: 5});
  const choice = whole.choices[0];
  const tokens = lastTurn(page).locator(".token");
  assert.equal((await tokens.allTextContents()).join(""), choice.message.content);
  assert.equal(await tokens.count(), whole.usage.completion_tokens);
  const prompt = await ask("/tokenize", {messages, with_pieces: true});
  assert.equal(await lastTurn(page).locator(".chip").count(), prompt.tokens.length);
  assert.equal(prompt.tokens.length, whole.usage.prompt_tokens);

  // A token's alternatives and their probabilities.
  await tokens.nth(3).click();
  const shares = await lastTurn(page).locator(".alternatives .share").allTextContents();
  const expected = choice.logprobs.content[3].top_logprobs.map(({logprob}) => 100 * Math.exp(logprob));
  shares.slice(0, expected.length).forEach((text, i) => assert.ok(Math.abs(parseFloat(text) - expected[i]) <= 0.51, `${text} for ${expected[i]}`));

  // The table's counts.
  const row = (name) => lastTurn(page).locator("tr", {hasText: name}).locator("td").allTextContents();
  const counts = await row("tokens / passes");
  assert.equal(counts[0], `${whole.usage.prompt_tokens} / 1`);
  assert.equal(counts[1], `${whole.usage.completion_tokens - 1} / ${whole.usage.completion_tokens - 1}`);

  // A prompt token's id and probability.
  await lastTurn(page).locator(".chip").nth(5).hover();
  const detail = lastTurn(page).locator(".detail").first();
  await detail.getByText(/probability/).waitFor();
  const scored = await ask("/v1/completions", {prompt: prompt.tokens.map(({id}) => id), max_tokens: 0, echo: true, logprobs: 0});
  const text = await detail.textContent();
  assert.match(text, new RegExp(`id ${prompt.tokens[5].id},`));
  const said = parseFloat(text.match(/probability ([\d.]+) %/)[1]), is = 100 * Math.exp(scored.choices[0].logprobs.token_logprobs[5]);
  assert.ok(Math.abs(said - is) <= Math.max(0.51, 0.06 * is), `${said} for ${is}`);

  // Another choice: what comes is the continuation of that prefix.
  const other = lastTurn(page).locator(".alternatives button:not([disabled]):not(.close)").first();
  await other.click();
  await page.locator("article .token.picked").waitFor();
  await finished(page);
  assert.equal(await lastTurn(page).locator(".token.kept").count(), 4);
  await page.screenshot({path: path.join(screenshots, "reply.png"), fullPage: true});
  assert.deepEqual(page.problems, []);
  assert.deepEqual(page.foreign, []);
}

async function severalShareSteps() {
  const page = await open();
  await prepare(page, `Sum this up: ${"The tide comes and goes, and ships with it. ".repeat(60)}`, {maxTokens: 40});
  await page.getByRole("button", {name: "New"}).click();
  await send(page, "Tell me a long story about the sea.", {maxTokens: 1500});
  await page.getByRole("button", {name: "Conversation 1"}).click();
  await press(page);
  await finished(page);
  const shared = await lastTurn(page).locator("tr", {hasText: "steps shared with others"}).locator("td").allTextContents();
  assert.ok(Number(shared[0]) > 0 && Number(shared[1]) > 0, `steps were shared: ${shared}`);
  assert.match(await lastTurn(page).locator("canvas").getAttribute("aria-label"), /2 lanes/);
  await page.screenshot({path: path.join(screenshots, "shared.png"), fullPage: true});
  assert.deepEqual(page.problems, []);
}

async function keyboardAlone() {
  const page = await open();
  await page.keyboard.press("Tab");
  await send(page, "Name three colours.", {maxTokens: 12});
  await finished(page);
  await lastTurn(page).locator(".token").first().focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await lastTurn(page).locator(".alternatives").waitFor();
  await page.keyboard.press("Escape");
  await lastTurn(page).locator(".alternatives").waitFor({state: "detached"});
}

async function looks(name, options) {
  const page = await open({...options, bypassCSP: true});  // for axe's script, which the page's policy would not run
  await send(page, kPrompt);
  await finished(page);
  await lastTurn(page).locator(".token").nth(2).click();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(overflow <= 0, `${name}: ${overflow} pixels wider than the window`);
  await page.screenshot({path: path.join(screenshots, `${name}.png`), fullPage: true});
  await page.addScriptTag({content: axe});
  const {violations} = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter(({impact}) => ["serious", "critical"].includes(impact));
  assert.deepEqual(serious.map(({id, nodes}) => [id, nodes.slice(0, 3).map(({html}) => html.slice(0, 160))]), [], name);
}

const tests = {
  theReplyIsTheApis, severalShareSteps, keyboardAlone,
  looksLight: () => looks("light", {colorScheme: "light"}),
  looksDark: () => looks("dark", {colorScheme: "dark"}),
  looksOnAPhone: () => looks("phone", {viewport: {width: 375, height: 760}, colorScheme: "light"}),
};
let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.stack ?? error}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
