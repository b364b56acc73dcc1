// SPDX-License-Identifier: Apache-2.0
// All limits of the rules, and one limit: its numbers, its traffic, its keys.

import { ask, poll, query, Refused } from "./api.js";
import { Chart } from "./chart.js";
import { bar, h, setRows, table } from "./dom.js";
import { count, duration, percent, rate } from "./format.js";
import { keyLink } from "./names.js";
import { blankUnknown, Series } from "./series.js";

// Rows that are drawn at once; a filter finds the others.
const ROWS_MAX = 200;

export class Limits {
  constructor(live) {
    this.live = live;
    this.name = "Limits";
  }

  show(main, signal, of) {
    this.signal = signal;
    this.one = of;
    if (of) this.showOne(main);
    else this.showAll(main);
  }

  showAll(main) {
    this.filter = h("input", { type: "search", id: "limit-filter", oninput: () => this.draw(), "aria-label": "Filter by name" });
    this.table = table("Limits", [{ title: "limit", left: true }, { title: "algorithm", left: true }, { title: "key", left: true },
      { title: "rate", left: true }, "allowed", "denied", "share denied", { title: "notes", left: true }], "limits");
    this.note = h("p", { class: "muted", role: "status" });
    main.replaceChildren(h("section", { class: "panel" }, h("h2", null, "Limits"),
      h("div", { class: "row" }, h("label", null, "Name has ", this.filter)), this.table.element, this.note));
    poll(async () => {
      this.limits = (await ask("/v1/limits", { signal: this.signal })).limits;
      this.draw();
      return 10 + this.limits.length / 10; // 1,000 limits are as much as half an hour of snapshots
    }, 10, this.signal, this.live.problem);
  }

  draw() {
    const wanted = this.filter.value.toLowerCase();
    const found = (this.limits ?? []).filter((limit) => limit.name.toLowerCase().includes(wanted))
      .sort((a, b) => b.denied - a.denied || b.allowed - a.allowed);
    setRows(this.table.body, found.slice(0, ROWS_MAX).map((limit) => ({
      id: limit.name, left: [0, 1, 2, 3, 7],
      cells: [h("a", { href: `#limits/${encodeURIComponent(limit.name)}` }, limit.name), limit.algorithm, limit.key.join(", ") || "one for all", rate(limit),
        count(limit.allowed), count(limit.denied), percent(limit.denied, checks(limit)), notes(limit)],
    })), this.limits ? "No limit has such a name." : "The rules have no limits.", 8);
    this.note.textContent = found.length > ROWS_MAX ? `${ROWS_MAX} of ${found.length} are shown: those denied most.` : "";
  }

  showOne(main) {
    this.facts = h("dl");
    this.traffic = new Chart("Checks a second", [{ field: "denied", name: "denied", kind: "bad" }, { field: "shadow_denied", name: "would be denied (shadow)", kind: "other" },
      { field: "allowed", name: "allowed", kind: "good" }],
      { stacked: true, show: count });
    this.distinct = new Chart("Distinct keys", [{ field: "distinct_keys", name: "keys", kind: "other" }], { show: count });
    this.window = h("select", { onchange: () => this.again() }, ["minute", "hour", "day"].map((name) => h("option", null, name)));
    this.by = h("select", { onchange: () => this.again() }, ["share", "requests", "cost", "denied"].map((name) => h("option", null, name)));
    this.keys = table(`Keys of ${this.one}`, [{ title: "key", left: true }, "requests", "cost", "denied", "used", "all free in"], "limit-keys");
    main.replaceChildren(
      h("section", { class: "panel" }, h("h2", null, this.one), this.facts),
      h("div", { class: "two" }, this.traffic.element, this.distinct.element),
      h("section", { class: "panel" }, h("h2", null, "Keys"),
        h("div", { class: "row" }, h("label", null, "of the last ", this.window), h("label", null, "by ", this.by)), this.keys.element));
    this.series = new Series({ limit: this.one }, this.signal);
    this.again = poll(() => this.loadOne(), 5, this.signal, this.live.problem);
  }

  async ask(name) {
    try {
      return await ask(`/v1/limits/${encodeURIComponent(name)}`, { signal: this.signal });
    } catch (error) {
      throw error.status === 404 ? new Refused(404, `The rules have no limit "${name}".`) : error;
    }
  }

  async loadOne() {
    const { signal, one } = this;
    const limit = await this.ask(one);
    const [series, top] = await Promise.all([this.series.load(),
      ask(query("/v1/use/top", { limit: one, window: this.window.value, by: this.by.value, count: 50 }), { signal })]);
    this.facts.replaceChildren(...facts(limit ?? {}).flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
    const { from, step, values, gaps } = series;
    const both = (field) => values[field].map((value, i) => value + values[`edge_${field}`][i]);
    const traffic = { from, step, gaps, values: { allowed: both("allowed"), denied: both("denied"), shadow_denied: both("shadow_denied") } };
    for (const data of [traffic, series]) blankUnknown(data, this.live);
    this.traffic.set(traffic);
    this.distinct.set(series);
    setRows(this.keys.body, top.keys.map((key) => ({
      id: key.key, left: [0],
      cells: [keyLink(key), count(key.requests), count(key.cost), count(key.denied),
        bar(key.used_percent, `${key.used_percent} % of ${count(key.capacity)}`, key.used_percent >= 100), duration(key.reset_after_ms)],
    })), "No key of this limit was seen in that time.", 6);
  }
}

function checks(limit) {
  return limit.allowed + limit.denied + (limit.shadow_denied ?? 0);
}

function notes(limit) {
  return [limit.shadow && "shadow: denies nobody", limit.shadow_denied > 0 && `would have denied ${count(limit.shadow_denied)}`, limit.enforce_percent !== undefined && `enforced for ${limit.enforce_percent} %`, limit.candidate && "with a candidate",
    limit.scale_percent !== undefined && `scaled to ${limit.scale_percent} %`, limit.when && `when ${limit.when}`,
    limit.overflows > 0 && `${count(limit.overflows)} keys without room`].filter(Boolean).join(", ");
}

function facts(limit) {
  const rates = (limit.rates ?? []).slice(1).map((one) => `${rate(one)}, at most ${count(one.capacity)}`);
  const plans = (limit.plans ?? []).map((one) => [`plan ${one.plan}`, one.unlimited ? "unlimited" : one.rates.map((each) => `${rate(each)}, at most ${count(each.capacity)}`).join("; ")]);
  return [["algorithm", limit.algorithm], ["key", limit.key?.join(", ")], ["rate", limit.name && rate(limit)],
    ["capacity", limit.capacity && count(limit.capacity)], ["also", rates.join("; ")], ...plans, ["notes", limit.name && notes(limit)],
    ["allowed, denied", limit.name && `${count(limit.allowed)}, ${count(limit.denied)} since the start`],
  ].filter(([, value]) => value);
}
