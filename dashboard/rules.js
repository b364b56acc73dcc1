// SPDX-License-Identifier: Apache-2.0
// The rules as they were loaded, loading them again, and what they make of a request.

import { ask, poll } from "./api.js";
import { difference, hunks } from "./difference.js";
import { h, say } from "./dom.js";
import { Explain } from "./explain.js";
import { count, dateTime, duration } from "./format.js";

const SIGNS = { same: " ", gone: "−", new: "+" };
const WORDS = { same: "", gone: "removed: ", new: "added: " };

// Lines with their numbers; null stands for lines that are left out.
function numbered(lines, id, label) {
  return h("div", { class: "scroll lines", id, tabindex: 0, role: "region", "aria-label": label }, lines.map((line) => (line === null
    ? h("div", { class: "muted" }, "…")
    : h("div", { class: `line-${line.kind}` }, h("span", { class: "number", "aria-hidden": "true" }, String(line.after ?? line.before)),
      h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[line.kind]), WORDS[line.kind] ? h("span", { class: "skip" }, WORDS[line.kind]) : null, h("code", null, line.text)))));
}

export class Rules {
  constructor(live) {
    this.live = live;
    this.name = "Rules";
  }

  show(main, signal, of) {
    this.signal = signal;
    this.facts = h("dl", { id: "rules" });
    this.errors = h("div", { id: "rules-errors", role: "status" });
    this.changes = h("div", { id: "rules-changes" });
    this.text = h("div");
    this.loaded = this.reloads = undefined;
    this.button = h("button", { type: "button", id: "reload", class: "main", onclick: () => this.reload() }, "Reload the rules");
    main.replaceChildren(h("section", { class: "panel" }, h("h2", null, "Rules"), this.facts,
      h("div", { class: "row" }, this.live.may.may_change ? this.button
        : h("p", { class: "muted" }, "This dashboard is read-only: a reload needs ", h("code", null, "server.admin.token"), ", a Unix socket, or SIGHUP."),
      h("button", { type: "button", id: "rules-compare", onclick: () => this.compare() }, "What would a reload change?"),
      h("a", { href: "#limits" }, "The limits in them")), this.errors, this.changes),
    new Explain(signal, of).element,
    h("section", { class: "panel" }, h("h2", null, "The text as loaded"), this.text));
    this.again = poll(() => this.load(), 20, signal, this.live.problem);
  }

  // A reload is in the next snapshot.
  onSnapshot({ reloads }) {
    const state = JSON.stringify(reloads);
    if (this.reloads !== undefined && this.reloads !== state) this.again();
    this.reloads = state;
  }

  async loadText(loaded) {
    if (this.loaded === loaded) return;
    this.loaded = loaded;
    this.changes.replaceChildren();
    const { text } = await ask("/v1/rules/text", { signal: this.signal });
    this.text.replaceChildren(text === null ? h("p", { class: "muted" }, "There is none that can be shown: the file is too large, or no text of YAML.")
      : numbered(text.replace(/\n$/, "").split("\n").map((line, i) => ({ kind: "same", text: line, after: i + 1 })), "rules-text", "The rules as loaded"));
  }

  async compare() {
    const button = document.getElementById("rules-compare");
    button.disabled = true;
    try {
      const [loaded, now] = await Promise.all([ask("/v1/rules/text", { signal: this.signal }), ask("/v1/rules/file", { signal: this.signal })]);
      this.showChanges(loaded.text, now);
    } catch (error) {
      if (error.name !== "AbortError") this.changes.replaceChildren(h("p", { class: "bad", role: "status" }, error.message));
    }
    button.disabled = false;
  }

  showChanges(loaded, { text, same, errors }) {
    const parts = [h("h3", null, "What a reload would change")];
    if (errors) parts.push(h("p", { class: "bad" }, "Nothing: the file has errors, and the rules in use would stay."), h("pre", { tabindex: 0 }, errors));
    if (same) parts.push(h("p", null, "Nothing: the file is as it was loaded. Files that it names may differ."));
    else if (text === null || loaded === null) parts.push(h("p", null, "The file differs; it cannot be shown."));
    else if (text === loaded) parts.push(h("p", null, "The file differs in what is hidden here, a secret or a comment."));
    else parts.push(numbered(hunks(difference(loaded.replace(/\n$/, ""), text.replace(/\n$/, ""))), "rules-difference", "What differs between the rules as loaded and the file"));
    this.changes.replaceChildren(...parts);
    say(parts[1].textContent);
  }

  // The first press says what happens, the second one does it.
  async reload() {
    if (!this.asked) {
      this.asked = true;
      this.button.textContent = "Read the file and put it in force?";
      this.unasks = setTimeout(() => this.unask(), 8000);
      return;
    }
    this.unask();
    this.button.disabled = true;
    try {
      await ask("/v1/rules/reload", { method: "POST", body: { by: "dashboard" } });
      say("The rules are being read.");
      this.again();
    } catch (error) {
      this.live.problem(error.message);
    }
    this.button.disabled = false;
  }

  unask() {
    clearTimeout(this.unasks);
    this.asked = false;
    this.button.textContent = "Reload the rules";
  }

  async load() {
    const rules = await ask("/v1/rules", { signal: this.signal });
    await this.loadText(`${rules.loaded_s} ${rules.reloads}`);
    const facts = [["file", rules.file ?? (rules.from_environment ? "the environment" : "none: nothing is limited")],
      ["limits", count(rules.limits)], ["loaded", dateTime(rules.loaded_s)],
      ["reloads", `${count(rules.reloads)}, and ${count(rules.failed_reloads)} that failed${rules.took_ms > 0 ? `; the last one took ${duration(rules.took_ms)}` : ""}${rules.asked_by ? `; the last one over this listener was asked for by ${rules.asked_by}` : ""}`],
      ["now", rules.running ? "the file is being read" : rules.errors ? "the rules before the last reload are in use" : "the file as it was loaded is in use"]];
    this.facts.replaceChildren(...facts.flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
    const text = rules.errors ?? "";
    if (this.errors.dataset.text === text) return;
    this.errors.dataset.text = text;
    this.errors.replaceChildren(...(text ? [h("h3", { class: "bad" }, "The last reload failed"), h("pre", { tabindex: 0 }, text)] : []));
  }
}
