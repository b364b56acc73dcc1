// SPDX-License-Identifier: Apache-2.0
// The rules as they were loaded, and loading them again.

import { ask, poll } from "./api.js";
import { h, say } from "./dom.js";
import { count, dateTime, duration } from "./format.js";

export class Rules {
  constructor(live) {
    this.live = live;
    this.name = "Rules";
  }

  show(main, signal) {
    this.signal = signal;
    this.facts = h("dl", { id: "rules" });
    this.errors = h("div", { id: "rules-errors", role: "status" });
    this.button = h("button", { type: "button", id: "reload", class: "main", onclick: () => this.reload() }, "Reload the rules");
    main.replaceChildren(h("section", { class: "panel" }, h("h2", null, "Rules"), this.facts,
      h("div", { class: "row" }, this.live.may.may_change ? this.button
        : h("p", { class: "muted" }, "This dashboard is read-only: a reload needs ", h("code", null, "server.admin.token"), ", a Unix socket, or SIGHUP."),
      h("a", { href: "#limits" }, "The limits in them")), this.errors));
    this.again = poll(() => this.load(), 2, signal, this.live.problem);
  }

  // The first press says what happens, the second one does it.
  async reload() {
    if (!this.asked) {
      this.asked = true;
      this.button.textContent = "Read the file and put it in force?";
      setTimeout(() => this.unask(), 8000);
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
    this.asked = false;
    this.button.textContent = "Reload the rules";
  }

  async load() {
    const rules = await ask("/v1/rules", { signal: this.signal });
    const facts = [["file", rules.file ?? (rules.from_environment ? "the environment" : "none: nothing is limited")],
      ["limits", count(rules.limits)], ["loaded", dateTime(rules.loaded_s)],
      ["reloads", `${count(rules.reloads)}, and ${count(rules.failed_reloads)} that failed${rules.took_ms > 0 ? `; the last one took ${duration(rules.took_ms)}` : ""}`],
      ["now", rules.running ? "the file is being read" : rules.errors ? "the rules before the last reload are in use" : "the file as it was loaded is in use"]];
    this.facts.replaceChildren(...facts.flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
    const text = rules.errors ?? "";
    if (this.errors.dataset.text === text) return;
    this.errors.dataset.text = text;
    this.errors.replaceChildren(...(text ? [h("h3", { class: "bad" }, "The last reload failed"), h("pre", { tabindex: 0 }, text)] : []));
  }
}
