// SPDX-License-Identifier: Apache-2.0
// One key: every limit it meets, how full, when free, its denials, its standing.

import { ask, poll, query } from "./api.js";
import { denialRow, denialTable } from "./denials.js";
import { bar, h, setRows, table } from "./dom.js";
import { count, duration } from "./format.js";
import { limitLink, shownName } from "./names.js";

export class Key {
  constructor(live) {
    this.live = live;
    this.name = "Key";
  }

  show(main, signal, of) {
    const input = h("input", { id: "key-text", type: "search", value: of, size: 30, placeholder: "user=ann, or ann" });
    const form = h("form", { class: "row", onsubmit: (event) => {
      event.preventDefault();
      location.hash = `#key/${encodeURIComponent(input.value.trim())}`;
    } }, h("label", null, "Key or caller, or one value of it ", input), h("button", { type: "submit", class: "main" }, "Show"));
    this.limits = table("Limits that the key meets", [{ title: "limit", left: true }, { title: "key", left: true }, "used", "all free in",
      "last minute", "last hour", "last day", { title: "mostly on", left: true }], "key-limits");
    this.denials = denialTable("key-denials");
    const actions = h("div", { class: "row" });
    main.replaceChildren(h("section", { class: "panel" }, h("h2", null, of || "One key"), form, actions),
      h("section", { class: "panel" }, h("h2", null, "Limits that it meets"), this.limits.element),
      h("section", { class: "panel" }, h("h2", null, "Recent denials"), this.denials.element));
    if (!of) {
      setRows(this.limits.body, [], "Give a key, or press one in another view.", 8);
      setRows(this.denials.body, [], "Give a key, or press one in another view.", 10);
      input.focus();
      return;
    }
    if (this.live.may.standing)
      actions.append(h("a", { href: `#standing/${encodeURIComponent(of)}` }, "Its standing: ban, throttle or trust it"));
    poll(() => this.load(of, signal), 5, signal, this.live.problem);
  }

  async load(key, signal) {
    const found = await ask(query("/v1/use/key", { key }), { signal });
    const counts = (window) => (window ? `${count(window.requests)}${window.denied > 0 ? `, ${count(window.denied)} denied` : ""}` : "–");
    setRows(this.limits.body, found.limits.map((limit) => ({
      id: `${limit.limit}\n${limit.key}`, left: [0, 1, 7],
      cells: [limitLink(limit.limit, limit), shownName(limit),
        bar(limit.used_percent, `${count(limit.used)} of ${count(limit.capacity)}`, limit.used_percent >= 100), duration(limit.reset_after_ms),
        counts(limit.minute), counts(limit.hour), counts(limit.day), limit.route ?? "–"],
    })), "No limit has met this key in the last day, or it was not among the busiest.", 8);
    setRows(this.denials.body, found.denials.map(denialRow), "No denial of it, or asked for by it, is kept.", 10);
  }
}
