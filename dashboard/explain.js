// SPDX-License-Identifier: Apache-2.0
// What the rules make of a request: a form, and the answer as `weir explain` prints it. Nothing is
// charged. What is asked is in the address, so that a link shows the same; but no secret is.

import { ask } from "./api.js";
import { h, say } from "./dom.js";
import { count } from "./format.js";

// Parts of a request that are one line each, as in addresses and in the API.
const PARTS = [["method", "Method", 8, "GET"], ["path", "Path", 30, "/search/shoes?q=1"], ["host", "Host", 20, "api.example.com"],
  ["ip", "Client's address", 18, "192.0.2.7"], ["cost", "Cost", 6, "1"]];
const LISTS = [["header", "Header fields, one a line", "user-agent: curl/8.0", ":"],
  ["attribute", "Attributes, one a line", "user=ann", "="]];
const TEXT_PARTS = PARTS.filter(([name]) => name !== "cost");

// Pairs of a text that has one a line. Throws with the line that is none.
function pairsOf(text, mark, what) {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.map((line, i) => ({ line, cut: line.indexOf(mark), i })).filter(({ line }) => line).map(({ line, cut, i }) => {
    if (cut < 1) throw new Error(`${what}, line ${i + 1}: "${line}" has no "${mark}" behind a name`);
    return [line.slice(0, cut).trim(), line.slice(cut + 1).trim()];
  });
}

// An object; the API joins header fields that are given more than once, JSON has a name once.
function objectOf(pairs, what) {
  const object = {};
  for (const [name, value] of pairs) {
    if (Object.hasOwn(object, name)) throw new Error(`${what}: ${name} is given twice`);
    object[name] = value;
  }
  return object;
}

// Where a value of a denial belongs in a request; null: no request says it.
function placeOf({ kind, as, value }, path) {
  if (typeof value !== "string") return null;
  const attribute = as ?? kind;
  if (attribute.startsWith("client.ip")) return ["ip", value.replace(/\/\d+$/, "")];
  if (attribute.startsWith("header.")) return ["header", `${attribute.slice(7)}: ${value}`];
  if (attribute.startsWith("path.")) return ["path", path?.replace(new RegExp(`:${attribute.slice(5)}(?=/|$)`), () => value)];
  return TEXT_PARTS.some(([name]) => name === attribute) ? [attribute, value] : ["attribute", `${attribute}=${value}`];
}

// The address that explains a request like the one that was denied, as far as it is known: a route
// matches itself.
export function explainLink(denial) {
  const chosen = new URLSearchParams();
  if (denial.route) chosen.set("path", denial.route);
  const known = new Set();
  for (const one of [...(denial.values ?? []), ...(denial.caller ?? [])]) {
    const [name, value] = placeOf(one, chosen.get("path")) ?? [];
    if (!value || known.has(`${name} ${value}`)) continue;
    known.add(`${name} ${value}`);
    if (name === "header" || name === "attribute") chosen.append(name, value);
    else chosen.set(name, value);
  }
  if (denial.cost > 1) chosen.set("cost", String(denial.cost));
  return h("a", { href: `#rules?${chosen}`, "aria-label": `Explain the request of ${denial.key || "this denial"}` }, "explain");
}

export class Explain {
  // `of`: what the address chooses, "?path=/login&attribute=user%3Dann"; "": nothing.
  constructor(signal, of) {
    this.signal = signal;
    const chosen = new URLSearchParams(of.startsWith("?") ? of : "");
    this.fields = new Map([
      ...PARTS.map(([name, , size, example]) => [name, h("input", { id: `explain-${name}`, type: "text", size, placeholder: example, value: chosen.get(name) ?? "", autocomplete: "off", spellcheck: "false" })]),
      ...LISTS.map(([name, , example]) => [name, h("textarea", { id: `explain-${name}`, rows: 2, cols: 36, placeholder: example, spellcheck: "false" }, chosen.getAll(name).join("\n"))])]);
    this.problem = h("p", { class: "bad", role: "alert", id: "explain-problem", hidden: true });
    this.answer = h("div", { id: "explain-answer" });
    this.button = h("button", { type: "submit", class: "main", id: "explain-show" }, "Explain");
    this.link = h("input", { id: "explain-link", type: "text", readonly: true, size: 40, "aria-label": "A link to this explanation", hidden: true });
    const label = ([name, title]) => h("label", { class: "over" }, title, this.fields.get(name));
    const form = h("form", { id: "explain", onsubmit: (event) => {
      event.preventDefault();
      this.explain();
    } }, h("div", { class: "row" }, PARTS.map(label)), h("div", { class: "row" }, LISTS.map(label)),
    h("div", { class: "row" }, this.button, h("button", { type: "button", id: "explain-share", onclick: () => this.share() }, "Copy a link"), this.link));
    this.element = h("section", { class: "panel", id: "explain-panel" }, h("h2", null, "Explain a request"),
      h("p", { class: "muted" }, "Which limits it meets, with which keys, why the others do not apply, and what they would decide now. Nothing is charged."),
      form, this.problem, this.answer);
    if (chosen.size > 0) {
      this.explain();
      requestAnimationFrame(() => this.element.scrollIntoView());
    }
  }

  // The request as the API takes it. Throws what is wrong and where.
  request() {
    const request = {};
    for (const [name] of TEXT_PARTS) if (this.fields.get(name).value) request[name] = this.fields.get(name).value.trim();
    const cost = this.fields.get("cost").value.trim();
    if (cost && !/^\d{1,15}$/.test(cost)) throw new Error(`Cost: a whole number, not "${cost}"`);
    if (cost) request.cost = Number(cost);
    for (const [name, , , mark] of LISTS) {
      const what = name === "header" ? "Header fields" : "Attributes";
      const pairs = pairsOf(this.fields.get(name).value, mark, what);
      if (pairs.length > 0) request[`${name}s`] = objectOf(pairs, what);
    }
    return request;
  }

  async explain() {
    const asked = this.asked = {};
    this.button.disabled = true;
    try {
      const request = this.request();
      const answer = await ask("/v1/explain", { method: "POST", body: request, signal: this.signal });
      if (asked !== this.asked) return;
      this.show(answer);
      this.remember(request, answer.secret);
      this.fail("");
    } catch (error) {
      if (error.name !== "AbortError" && asked === this.asked) this.fail(error.message);
    }
    this.button.disabled = false;
  }

  fail(text) {
    this.problem.textContent = text;
    this.problem.hidden = !text;
    if (text) this.answer.replaceChildren();
  }

  show({ denied, verdict, caller, limits, penalties, left_out: left }) {
    const text = (title, lines) => (lines ? [h("h3", null, title), h("pre", { class: "wrapped" }, lines)] : []);
    const joined = (applies) => limits.filter((limit) => limit.applies === applies).map((limit) => limit.text).join("");
    const others = limits.filter((limit) => !limit.applies);
    this.answer.replaceChildren(h("p", { id: "explain-verdict", class: denied ? "bad" : "ok" }, h("strong", null, verdict)),
      ...text("The caller", caller), ...text("Limits that apply", joined(true)), ...text("Penalties", penalties),
      ...(others.length > 0 ? [h("details", null, h("summary", null, others.length + left === 1 ? "1 limit that does not apply, and why" : `${count(others.length + left)} limits that do not apply, and why`),
        h("pre", { class: "wrapped" }, joined(false)),
        ...(left > 0 ? [h("p", { class: "muted" }, `And ${count(left)} more, which are not shown.`)] : []))] : []));
    say(verdict);
  }

  // The address without what is secret.
  remember(request, secret) {
    const hidden = new Set(secret);
    const chosen = new URLSearchParams(PARTS.filter(([name]) => request[name] !== undefined).map(([name]) => [name, String(request[name])]));
    for (const [name, value] of Object.entries(request.headers ?? {})) if (!hidden.has(`header.${name.toLowerCase()}`)) chosen.append("header", `${name}: ${value}`);
    for (const [name, value] of Object.entries(request.attributes ?? {})) if (!hidden.has(name)) chosen.append("attribute", `${name}=${value}`);
    this.left = secret.length > 0;
    history.replaceState(null, "", chosen.size > 0 ? `#rules?${chosen}` : "#rules");
  }

  async share() {
    await this.explain();
    if (!this.problem.hidden) return;
    this.link.value = location.href;
    this.link.hidden = false;
    this.link.select();
    const without = this.left ? " It has no secrets: give them again where you open it." : "";
    try {
      await navigator.clipboard.writeText(location.href);
      say(`The link is copied.${without}`);
    } catch {
      say(`Copy the link from the field.${without}`); // no clipboard without TLS
    }
  }
}
