// SPDX-License-Identifier: Apache-2.0
// Limits that follow health, with their causes; the store and the table.

import { ask, poll } from "./api.js";
import { Chart, sparkline } from "./chart.js";
import { bar, h, setRows, table } from "./dom.js";
import { bytes, count, duration, measured, micros, percent, used } from "./format.js";
import { blankUnknown, Series } from "./series.js";

export class Health {
  constructor(live) {
    this.live = live;
    this.name = "Health";
    this.parts = ["whole", "table", "store"];
  }

  show(main, signal) {
    this.signal = signal;
    this.limits = table("Limits that follow health", [{ title: "limit", left: true }, { title: "controller", left: true }, "may use", "last hour"], "scales");
    this.signals = table("Signals of the controllers", [{ title: "controller", left: true }, { title: "signal", left: true }, "reading", "asks for"], "signals");
    this.store = h("dl", { id: "store" });
    this.latency = new Chart("Latency", [
      { field: "latency_p99_us", name: "weir p99", kind: "good" }, { field: "latency_p50_us", name: "weir p50", kind: "other" },
      { field: "store_p99_us", name: "store p99", kind: "bad" }, { field: "store_p50_us", name: "store p50", kind: "third" }], { show: micros });
    main.replaceChildren(
      h("div", { class: "two" },
        h("section", { class: "panel" }, h("h2", null, "Store"), this.store),
        this.latency.element),
      h("section", { class: "panel" }, h("h2", null, "Limits that follow health"), this.limits.element),
      h("section", { class: "panel" }, h("h2", null, "Causes"), this.signals.element));
    this.series = new Series({ fields: "latency_p99_us,latency_p50_us,store_p99_us,store_p50_us" }, signal);
    if (this.live.newest(this)) this.onSnapshot(this.live.newest(this));
    poll(() => this.load(), 3, signal, this.live.problem);
  }

  async load() {
    const [found, series] = await Promise.all([ask("/v1/health", { signal: this.signal }), this.series.load()]);
    blankUnknown(series, this.live);
    this.latency.set(series);
    setRows(this.limits.body, found.limits.map((limit) => ({
      id: limit.name, left: [0, 1],
      cells: [limit.name, limit.controller + (limit.limit === undefined ? "" : `, ${count(limit.limit)} in flight or a window`),
        bar(limit.scale_percent, `${limit.scale_percent} %`, limit.scale_percent < 100), sparkline(limit.last_hour.map((value) => value ?? 100), "good")],
    })), "No limit of the rules follows health.", 4);
    setRows(this.signals.body, found.controllers.flatMap((controller) => controller.signals.map((signal) => ({
      id: `${controller.name} ${signal.name}`, left: [0, 1],
      cells: [`${controller.name} (${controller.kind})`, signal.name.replace(/_/g, " "), signal.value === null ? "none" : count(signal.value),
        signal.scale_percent > 0 ? `${signal.scale_percent} %` : "–"],
    }))), "No controller of the rules reads signals.", 4);
  }

  onSnapshot(snapshot) {
    const { store, table: own, whole } = snapshot;
    const facts = store ? [["reached by", `${store.up} of ${store.workers} workers`], ["refusal", store.refusal],
      ["breakers", store.open + store.half_open > 0 ? `${store.open} open, ${store.half_open} half open` : "closed"],
      ["latency", `p50 ${measured(whole.store_p50_us)}, p99 ${measured(whole.store_p99_us)}`],
      ["calls", `${count(store.calls)}, of which ${count(store.errors)} failed and ${count(store.timeouts)} had no answer in time`],
      ["answered from memory", `${count(store.remembered)} denials`]] : [["kind", "this node's own table"]];
    const FILES = { memory: "in memory: gone with the process", file: "in its file", gone: "its file is gone from its path: other processes count apart",
      replaced: "another file is at its path: other processes count apart" };
    const off = own.clock_off_ms;
    facts.push(["state", FILES[own.file]], ["clock", Math.abs(off) <= 1000 ? "that of the machine agrees with the time that decisions use"
      : `that of the machine is ${duration(Math.abs(off))} ${off > 0 ? "ahead of" : "behind"} the time that decisions use, which no step of it moves`]);
    facts.push(["table", `${bytes(own.bytes)}, ${used(own).share} of ${count(own.slots)} places used`],
      ["evicted", count(own.evictions)], ["without room", `${count(own.overflows)} decisions`],
      ["attached", `${count(own.owners)} threads, of all processes on this state`]);
    this.store.replaceChildren(...facts.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
  }
}
