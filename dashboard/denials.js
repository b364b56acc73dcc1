// SPDX-License-Identifier: Apache-2.0
// Why requests were denied: how many over a time, by whom and what, and the log, live or of the past.
// All that is chosen is in the address, so that a link shows the same.

import { ask, query } from "./api.js";
import { Chart } from "./chart.js";
import { bar, h, say, setRows, table } from "./dom.js";
import { explainLink } from "./explain.js";
import { count, dateTime, duration, isoTime, percent } from "./format.js";
import { callerCell, keyLink, limitLink, nameOf, shownName } from "./names.js";
import { blankUnknown } from "./series.js";

// Rows of a page: on a phone each is a card, a third of the screen high.
const rowsOfPage = () => (matchMedia("(max-width: 40rem)").matches ? 30 : 200);
const LOAD_MS = 4000; // between two looks at what the server has, while denials come in
const SPANS = [["10min", "last 10 minutes", 600], ["1h", "last hour", 3600], ["1d", "last day", 86400], ["7d", "last 7 days", 604800], ["", "all that is kept", 0]];
const GROUPS = [["limit", "By limit"], ["caller", "By caller"], ["route", "By route"], ["cause", "By cause"]];
const CAUSES = [["limit", "a limit"], ["standing", "standing"], ["unknown", "unknown caller"], ["challenge", "challenge"], ["store", "store failed"]];
const EXAMPLES = { key: "user=ann", limit: "api", route: "/search/:what" };
const FILTERS = ["key", "limit", "route", "cause"];

export function denialTable(id) {
  return table("Denials", [{ title: "time", left: true }, { title: "key", left: true }, { title: "asked by", left: true }, { title: "limit", left: true },
    { title: "route", left: true }, "asked for", "left", "admitted in", { title: "by", left: true }, ""], id);
}

export function denialRow(denial) {
  return {
    id: String(denial.id), left: [0, 1, 2, 3, 4, 8],
    cells: [isoTime(denial.time), keyLink(denial), callerCell(denial), limitLink(denial.limit, denial), denial.route ?? "–", denial.cost > 0 ? count(denial.cost) : "–",
      denial.algorithm === null ? "–" : `${count(denial.remaining)} of ${count(denial.capacity)}`, duration(denial.retry_after_ms),
      [denial.algorithm, denial.plan && `plan ${denial.plan}`, denial.standing !== "good" && denial.standing, denial.action !== "reject" && denial.action,
        denial.cause === "store" && "store failed", denial.more > 0 && `and ${count(denial.more)} more`].filter(Boolean).join(", "), explainLink(denial)],
  };
}

// What an address chooses: "user=ann" is a key; "?limit=api&last=1h" more of it.
function readChoice(of) {
  if (!of.startsWith("?")) return { key: of, last: "1d" };
  const chosen = Object.fromEntries(new URLSearchParams(of));
  if (!chosen.from && chosen.last === undefined) chosen.last = "1d";
  return chosen;
}

export class Denials {
  constructor(live) {
    this.live = live;
    this.name = "Denials";
    this.parts = ["denials"];
  }

  show(main, signal, of) {
    Object.assign(this, { signal, denials: [], paused: false, before: [], chosen: readChoice(of) });
    this.table = denialTable("denials");
    this.note = h("p", { class: "muted", role: "status", id: "denial-note" });
    this.chart = new Chart("Denials over the time", [{ field: "denials", name: "denials", kind: "bad" }], { bars: true, show: count, id: "chart-denials" });
    this.groups = new Map(GROUPS.map(([kind, title]) => [kind, table(title, [{ title: title.slice(3), left: true }, "denials", "share"], `denials-by-${kind}`)]));
    const panel = (kind, title) => h("section", { class: "panel" }, h("h2", null, title), this.groups.get(kind).element);
    this.newer = h("button", { type: "button", id: "denial-newer", onclick: () => this.turn(-1) }, "Newer");
    this.older = h("button", { type: "button", id: "denial-older", onclick: () => this.turn(1) }, "Older");
    main.replaceChildren(h("section", { class: "panel" }, h("h2", null, "Denials"), this.makeForm(), this.note), this.chart.element,
      h("div", { class: "four" }, GROUPS.map(([kind, title]) => panel(kind, title))),
      h("section", { class: "panel" }, h("h2", null, "One by one"), this.table.element, h("div", { class: "row" }, this.newer, this.older)));
    this.load();
  }

  makeForm() {
    const { chosen } = this;
    const field = (id, label) => h("label", null, label, h("input", { id: `denial-${id}`, type: "search", value: chosen[id] ?? "", size: 16, placeholder: EXAMPLES[id] }));
    const fixed = chosen.from ? [["fixed", `${dateTime(chosen.from)} to ${dateTime(chosen.to ?? Date.now() / 1000)}`]] : [];
    this.form = h("form", { class: "row", onsubmit: (event) => {
      event.preventDefault();
      this.choose();
    } }, field("key", "Key or caller "), field("limit", "Limit "), field("route", "Route "),
    h("label", null, "Cause ", h("select", { id: "denial-cause" }, [["", "any"], ...CAUSES].map(([value, text]) =>
      h("option", { value, selected: value === (chosen.cause ?? "") }, text)))),
    h("label", null, "Time ", h("select", { id: "denial-since" }, [...fixed, ...SPANS].map(([value, text]) =>
      h("option", { value, selected: chosen.from ? value === "fixed" : value === chosen.last }, text)))),
    h("button", { type: "submit", class: "main" }, "Show"),
    h("button", { type: "button", id: "denial-pause", "aria-pressed": "false", onclick: () => this.pause(!this.paused) }, "Pause"),
    h("button", { type: "button", id: "denial-share", onclick: () => this.share() }, "Copy a link"),
    h("input", { id: "denial-link", type: "text", readonly: true, size: 40, "aria-label": "A link to what is shown", hidden: true }));
    return this.form;
  }

  pause(paused) {
    const button = this.form.querySelector("#denial-pause");
    this.paused = paused;
    button.setAttribute("aria-pressed", paused);
    button.textContent = paused ? "Continue" : "Pause";
    if (!paused) this.load();
  }

  // The form says what is chosen; the address has it, too.
  choose(change = {}) {
    const { from, to } = this.chosen;
    const value = (id) => this.form.querySelector(`#denial-${id}`).value.trim();
    const last = value("since");
    const chosen = { ...Object.fromEntries(FILTERS.map((name) => [name, value(name)])), ...(last === "fixed" ? { from, to } : { last }), ...change };
    location.hash = this.address(chosen);
    if (location.hash === `#${this.address(this.chosen)}`) this.load();
  }

  address(chosen) {
    const pairs = Object.entries(chosen).filter(([name, value]) => value !== undefined && (value !== "" || name === "last"));
    return `denials?${new URLSearchParams(pairs)}`;
  }

  // A link with the time itself, not how long ago it was.
  link() {
    const { last, ...rest } = this.chosen;
    const [, , span] = SPANS.find(([name]) => name === last) ?? [];
    const now = Date.now() / 1000;
    const chosen = last === undefined ? rest : { ...rest, from: Math.floor(span ? now - span : this.summary?.from_s ?? 0), to: now.toFixed(3) };
    return `${location.origin}/#${this.address(chosen)}`;
  }

  async share() {
    const field = this.form.querySelector("#denial-link");
    field.value = this.link();
    field.hidden = false;
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      say("The link is copied.");
    } catch {
      say("Copy the link from the field."); // no clipboard without TLS
    }
  }

  filters() {
    const { from, to, last, ...rest } = this.chosen;
    return { ...rest, since: from ?? last, until: to };
  }

  async load() {
    const wanted = this.filters();
    const { signal } = this;
    const asked = this.asked = {}; // an answer that comes after that to a later question shows nothing
    this.fresh = false;
    this.rows = rowsOfPage();
    this.next = Date.now() + LOAD_MS;
    try {
      const [found, summary] = await Promise.all([
        ask(query("/v1/denials", { ...wanted, count: this.rows, before: this.before.at(-1) }), { signal }),
        ask(query("/v1/denials/groups", wanted), { signal })]);
      if (signal.aborted || asked !== this.asked) return;
      this.denials = found.denials;
      this.summary = summary;
      this.tell(found);
      this.live.problem("");
      this.draw();
      this.drawSummary(await this.counted());
    } catch (error) {
      if (error.name !== "AbortError") this.live.problem(error.message);
    }
  }

  tell({ lost }) {
    const { summary, chosen } = this;
    const texts = [`${count(summary.denials)} denials, of which ${count(summary.kept)} are kept one by one.`];
    if (chosen.limit && !summary.limit_known)
      texts.push(`The rules have no limit "${chosen.limit}"${summary.did_you_mean ? `; did you mean "${summary.did_you_mean}"?` : "."}`);
    if (summary.known_from_s > summary.from_s) texts.push(`Before ${dateTime(summary.known_from_s)} nothing is kept any more.`);
    if (lost > 0) texts.push(`${count(lost)} found no room.`);
    this.note.textContent = texts.join(" ");
  }

  // The counters have all denials, also those that are not kept: of the whole, or of a limit, for a day.
  async counted() {
    const { key, route, cause, limit, last } = this.chosen;
    const seconds = { "10min": 1, "1h": 60, "1d": 60 }[last];
    if (key || route || cause || !seconds || (limit && !this.summary.limit_known) || limit === "standing" || limit === "unknown") return null;
    const number = { "10min": 600, "1h": 60, "1d": 1440 }[last];
    const { from_s: from, resolution_s: step, values, gaps } = await ask(
      query("/v1/series", { limit, resolution: seconds === 1 ? "1s" : "1min", count: number, fields: "denied,edge_denied" }), { signal: this.signal });
    blankUnknown({ from, step, values, gaps }, this.live);
    const sums = values.denied.map((value, i) => (value === null ? null : value + values.edge_denied[i]));
    const width = { "10min": 5, "1h": 1, "1d": 15 }[last];
    const bars = [];
    const skip = (width - Math.floor(from / step) % width) % width; // so that bars stay where they are
    for (let i = skip; i < sums.length; i += width) {
      const known = sums.slice(i, i + width).filter((value) => value !== null);
      bars.push(known.length > 0 ? known.reduce((all, value) => all + value, 0) : null);
    }
    return { from: from + skip * step, step: step * width, values: { denials: bars } };
  }

  drawSummary(counted) {
    const { summary } = this;
    const kept = { from: summary.from_s, step: summary.step_s, values: { denials: summary.counts.map((value, i) =>
      (summary.from_s + (i + 1) * summary.step_s <= summary.known_from_s ? null : value)) } };
    this.chart.rename(counted ? "Denials over the time, all that were counted" : "Denials over the time, at least");
    this.chart.set(counted ?? kept);
    for (const [kind, one] of this.groups) {
      const rows = summary.groups[kind].map((group) => ({
        id: group.name ?? group.key ?? "–", left: [0],
        cells: [this.groupLink(kind, group), count(group.denials), bar(group.denials / summary.denials * 100, percent(group.denials, summary.denials), true)],
      }));
      if (summary.others[kind] > 0) rows.push({ id: "\u0001others", left: [0], cells: ["others", count(summary.others[kind]), percent(summary.others[kind], summary.denials)] });
      setRows(one.body, rows, "None.", 3);
    }
  }

  // Presses on a group choose it.
  groupLink(kind, group) {
    const name = kind === "caller" ? nameOf(group) : group.name;
    if (!name) return kind === "route" ? "no route" : "–";
    const text = kind === "cause" ? CAUSES.find(([value]) => value === name)?.[1] ?? name : kind === "caller" ? shownName(group) : name;
    return h("a", { class: "key", href: `#${this.address({ ...this.chosen, [kind === "caller" ? "key" : kind]: name })}`, title: text }, text);
  }

  draw() {
    const past = this.before.length > 0;
    setRows(this.table.body, this.denials.map(denialRow), past ? "That was the oldest that is kept." : "Nothing was denied that these filters let through.", 10);
    this.newer.disabled = !past;
    this.older.disabled = this.denials.length < this.rows;
  }

  // The next page of older denials, or the one before.
  turn(by) {
    if (by > 0) this.before.push(this.denials.at(-1).id);
    else this.before.pop();
    this.load();
  }

  // Whether what happens now belongs to what is shown.
  follows() {
    return !this.paused && this.before.length === 0 && !this.chosen.to;
  }

  onMissed() {
    if (this.follows()) this.load();
  }

  // The newest are shown at once; what filters let through, and sums, the server knows.
  onSnapshot(snapshot) {
    if (!this.follows() || !snapshot.denials) return;
    this.fresh ||= this.started !== snapshot.started_s; // gaps of the chart end with it
    this.started = snapshot.started_s;
    this.fresh ||= snapshot.denials.length > 0 || snapshot.denials_more > 0;
    if (this.fresh && !this.loading && Date.now() >= this.next) this.loading = this.load().finally(() => { this.loading = null; });
    if (FILTERS.some((name) => this.chosen[name]) || snapshot.denials.length === 0) return;
    const known = new Set(this.denials.map((denial) => denial.id));
    const fresh = snapshot.denials.filter((denial) => !known.has(denial.id));
    this.denials = [...fresh, ...this.denials].slice(0, this.rows);
    this.draw();
  }
}
