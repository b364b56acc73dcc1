// SPDX-License-Identifier: Apache-2.0
// Why requests were denied: the log, with filters, live.

import { ask, query } from "./api.js";
import { h, setRows, table } from "./dom.js";
import { count, duration, isoTime } from "./format.js";
import { callerCell, keyLink, limitLink } from "./names.js";

const ROWS_MAX = 200;

export function denialTable(id) {
  return table("Denials", [{ title: "time", left: true }, { title: "key", left: true }, { title: "asked by", left: true }, { title: "limit", left: true },
    { title: "route", left: true }, "asked for", "left", "admitted in", { title: "by", left: true }], id);
}

export function denialRow(denial) {
  return {
    id: String(denial.id), left: [0, 1, 2, 3, 4, 8],
    cells: [isoTime(denial.time), keyLink(denial), callerCell(denial), limitLink(denial.limit, denial), denial.route ?? "–", count(denial.cost),
      denial.limit === "standing" ? "–" : `${count(denial.remaining)} of ${count(denial.capacity)}`, duration(denial.retry_after_ms),
      [denial.algorithm, denial.plan && `plan ${denial.plan}`, denial.standing !== "good" && denial.standing, denial.action !== "reject" && denial.action,
        denial.more > 0 && `and ${count(denial.more)} more`].filter(Boolean).join(", ")],
  };
}

export class Denials {
  constructor(live) {
    this.live = live;
    this.name = "Denials";
  }

  show(main, signal, of) {
    this.signal = signal;
    this.denials = [];
    this.paused = false;
    const field = (id, label, list) => h("label", null, label, h("input", { id, type: "search", list, size: 18 }));
    this.form = h("form", { class: "row", onsubmit: (event) => {
      event.preventDefault();
      this.load();
    } }, field("denial-key", "Key or caller "), field("denial-limit", "Limit "),
    h("label", null, "Since ", h("select", { id: "denial-since" }, [["10min", "10 minutes"], ["1h", "an hour"], ["1d", "a day"], ["", "ever"]].map(([value, text]) =>
      h("option", { value, selected: value === "1d" }, text)))),
    h("button", { type: "submit", class: "main" }, "Show"),
    h("button", { type: "button", id: "denial-pause", "aria-pressed": "false", onclick: (event) => {
      this.paused = !this.paused;
      event.target.setAttribute("aria-pressed", this.paused);
      event.target.textContent = this.paused ? "Continue" : "Pause";
      if (!this.paused) this.load();
    } }, "Pause"));
    this.table = denialTable("denials");
    this.note = h("p", { class: "muted", role: "status" });
    main.replaceChildren(h("section", { class: "panel" }, h("h2", null, "Denials"), this.form, this.table.element, this.note));
    if (of) main.querySelector("#denial-key").value = of;
    this.load();
  }

  filters() {
    const value = (id) => this.form.querySelector(`#${id}`).value.trim();
    return { key: value("denial-key"), limit: value("denial-limit"), since: value("denial-since") };
  }

  async load() {
    try {
      const found = await ask(query("/v1/denials", { ...this.filters(), count: ROWS_MAX }), { signal: this.signal });
      this.denials = found.denials;
      this.note.textContent = found.left_out + found.lost > 0
        ? `${count(found.left_out)} denials of the same keys were counted and not kept; ${count(found.lost)} were lost.` : "";
      this.live.problem("");
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.live.problem(error.message);
    }
  }

  draw() {
    setRows(this.table.body, this.denials.map(denialRow), "Nothing was denied that these filters let through.", 9);
  }

  onMissed() {
    if (!this.paused) this.load();
  }

  onSnapshot(snapshot) {
    if (this.paused || (snapshot.denials.length === 0 && snapshot.denials_more === 0)) return;
    const { key, limit } = this.filters();
    if (key || snapshot.denials_more > 0) { // the server knows what a key has
      if (!this.loading) this.loading = this.load().finally(() => { this.loading = null; });
      return;
    }
    const known = new Set(this.denials.map((denial) => denial.id));
    const fresh = snapshot.denials.filter((denial) => !known.has(denial.id) && (!limit || denial.limit === limit));
    this.denials = [...fresh, ...this.denials].slice(0, ROWS_MAX);
    this.draw();
  }
}
