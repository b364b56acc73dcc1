// SPDX-License-Identifier: Apache-2.0
// Who is banned, throttled or trusted, why, and until when; setting and clearing it.

import { ask, poll, query } from "./api.js";
import { h, say, setRows, table } from "./dom.js";
import { count, dateTime } from "./format.js";
import { keyLink, splitSubject } from "./names.js";
import { PAGE, Pager } from "./pager.js";
import { StandingLists } from "./standing_lists.js";

const LEVELS = ["suspended", "revoked", "throttled", "challenged", "warned", "trusted", "good"];
const TERMS = [["600000", "10 minutes"], ["3600000", "an hour"], ["86400000", "a day"], ["604800000", "a week"], ["", "until it is cleared"]];

// Levels that refuse a caller.
const REFUSE = ["suspended", "revoked"];

// An entry as the body of a call that sets it again.
function again(entry) {
  const body = { kind: entry.kind, value: entry.value, level: entry.level, reason: entry.reason ?? "", by: "dashboard", yes: true };
  if (entry.until_ms !== null && entry.level !== "revoked") body.for_ms = Math.max(1000, entry.until_ms - Date.now());
  return body;
}

const when = (ms) => dateTime(ms / 1000);

/* What to add where the history of standing has not written a change yet. */
function waits(answer) {
  return answer.written === false ? " The history does not have it yet: it is lost if weir ends before." : "";
}

// To what is known of whom an entry is about.
function whoLink({ kind, value }) {
  return keyLink({ key: `${kind}=${value}`, values: [{ kind: kind.split("/")[0], value: kind.startsWith("client.ip") ? value.replace(/\/(32|128)$/, "") : value }] });
}

export class Standing {
  constructor(live) {
    this.live = live;
    this.name = "Standing";
  }

  show(main, signal, of) {
    this.signal = signal;
    if (!this.live.may.standing) {
      main.replaceChildren(h("section", { class: "panel" }, h("h2", null, "Standing"),
        h("p", null, "The rules have no section ", h("code", null, "standing"), ", so that nobody is banned, throttled or trusted. ",
          "With it, an operator, a list or a penalty can refuse a network, a user or a key before any limit.")));
      return;
    }
    this.table = table("Standing set by operators and penalties", [{ title: "who", left: true }, { title: "level", left: true }, { title: "reason", left: true },
      { title: "by", left: true }, { title: "ends", left: true }, ""], "standing");
    this.history = table("Changes", [{ title: "time", left: true }, { title: "who", left: true }, { title: "level", left: true },
      { title: "reason", left: true }, { title: "by", left: true }], "standing-history");
    this.lists = new StandingLists(signal);
    this.pagers = { entries: new Pager("standing", () => this.again()), changes: new Pager("standing-history", () => this.again()) };
    this.result = h("p", { role: "status", id: "standing-result" });
    this.question = h("div");
    main.replaceChildren(
      h("section", { class: "panel" }, h("h2", null, "Set"), ...[this.live.may.may_change ? this.makeForm(of)
        : h("p", { class: "muted" }, "This dashboard is read-only: changes need ", h("code", null, "server.admin.token"), " or a Unix socket.")].flat(), this.question, this.result),
      h("section", { class: "panel" }, h("h2", null, "In force, set by operators and penalties"), this.makeFilters(), this.table.element, this.pagers.entries.element),
      this.lists.element,
      h("section", { class: "panel" }, h("h2", null, "Changes"), this.history.element, this.pagers.changes.element));
    this.again = poll(() => this.load(), 5, signal, this.live.problem);
  }

  // What the tables show: of one kind, of one level, and which page.
  makeFilters() {
    const choose = (id, label, values) => h("label", null, label, h("select", { id, onchange: () => {
      for (const pager of Object.values(this.pagers)) pager.begin();
      this.again();
    } }, h("option", { value: "" }, "any"), values.map((value) => h("option", null, value))));
    return h("div", { class: "row" }, choose("standing-kind", "Kind ", this.live.may.standing.map((name) => name.split("/")[0])), choose("standing-level", "Level ", LEVELS));
  }

  makeForm(of) {
    const kinds = this.live.may.standing;
    const { kind, value } = splitSubject(of);
    this.form = h("form", { onsubmit: (event) => {
      event.preventDefault();
      this.set();
    } }, h("div", { class: "row" },
      h("label", null, "Kind ", h("select", { name: "kind", required: true }, kinds.map((name) => h("option", { selected: name.split("/")[0] === kind.split("/")[0] }, name)))),
      h("label", null, "Value ", h("input", { name: "value", required: true, value, size: 24 })),
      h("label", null, "Level ", h("select", { name: "level" }, LEVELS.map((name) => h("option", null, name)))),
      h("label", null, "For ", h("select", { name: "term" }, TERMS.map(([value, text]) => h("option", { value, selected: value === "3600000" }, text)))),
      h("label", null, "Reason ", h("input", { name: "reason", maxlength: 127, size: 24 })),
      h("button", { type: "submit", class: "main", id: "standing-set" }, "Set")));
    return this.form;
  }

  tell(text, bad) {
    this.result.textContent = text;
    this.result.className = bad ? "bad" : "ok";
    say(text);
  }

  async set() {
    const { kind, value, level, term, reason } = Object.fromEntries(new FormData(this.form));
    const body = { kind, value: value.trim(), level, by: "dashboard", yes: true }; // it asks before it sends that
    if (term && level !== "revoked") body.for_ms = Number(term);
    if (reason) body.reason = reason;
    try {
      const radius = await ask(query("/v1/standing/radius", { kind, value: body.value }));
      const hits = `At least ${count(radius.requests_at_least)} of ${count(radius.requests)} requests of the last day (${radius.percent} %) are from it.`;
      if (REFUSE.includes(level) && radius.asks.length > 0) {
        this.confirm(`Refuse ${kind}=${body.value}?`, [hits, ...radius.asks], () => this.put(body, hits));
        return;
      }
      await this.put(body, hits);
    } catch (error) {
      this.tell(error.message, true);
    }
  }

  async put(body, hits) {
    try {
      const before = await this.own(body);
      const answer = await ask("/v1/standing", { method: "PUT", body });
      this.tell(`${body.kind}=${body.value} is ${body.level}. ${hits}${waits(answer)}`);
      this.offerUndo(body, before);
      this.again();
    } catch (error) {
      this.tell(error.message, true);
    }
  }

  // What an operator has set for a value; undefined: nothing.
  async own({ kind, value }) {
    const found = await ask(query("/v1/standing", { kind, value }));
    return (found.entries ?? []).find((entry) => entry.origin === "operator");
  }

  // Shows what speaks against something, and does it only when that is pressed again.
  confirm(question, reasons, then) {
    const close = () => this.question.replaceChildren();
    const yes = h("button", { type: "button", class: "bad", id: "standing-yes", onclick: () => {
      close();
      then();
    } }, "Do it");
    this.result.textContent = "";
    this.question.replaceChildren(h("div", { class: "panel question", role: "alertdialog", "aria-label": question }, h("strong", null, question),
      h("ul", null, reasons.map((reason) => h("li", null, reason))),
      h("div", { class: "row" }, h("button", { type: "button", class: "main", id: "standing-no", onclick: close }, "Leave it as it is"), yes)));
    this.question.querySelector("#standing-no").focus();
  }

  // Puts back what was there before a change.
  offerUndo({ kind, value }, before) {
    const undo = async () => {
      try {
        if (before) await ask("/v1/standing", { method: "PUT", body: again(before) });
        else await ask(query("/v1/standing", { kind, value, by: "dashboard", reason: "undone" }), { method: "DELETE" });
        this.tell(`${kind}=${value} is as it was before.`);
        this.again();
      } catch (error) {
        this.tell(error.message, true);
      }
    };
    this.result.append(" ", h("button", { type: "button", class: "small", id: "standing-undo", onclick: undo }, "Undo"));
  }

  async clear(entry) {
    const name = `${entry.kind}=${entry.value}`;
    this.confirm(`End what is held ${entry.level === "trusted" ? "for" : "against"} ${name}?`,
      [`It is ${entry.level}${entry.reason ? `, for: ${entry.reason}` : ""}; set by ${entry.by || entry.origin}, until ${entry.until_ms === null ? "it is cleared" : when(entry.until_ms)}.`],
      async () => {
        try {
          const answer = await ask(query("/v1/standing", { kind: entry.kind, value: entry.value, by: "dashboard" }), { method: "DELETE" });
          this.tell(`${name} has no standing of its own any more.${waits(answer)}`);
          this.offerUndo(entry, entry);
          this.again();
        } catch (error) {
          this.tell(error.message, true);
        }
      });
  }

  async load() {
    let found;
    let changes;
    await this.lists.load();
    try {
      const value = (id) => document.getElementById(id).value;
      [found, changes] = await Promise.all([
        ask(query("/v1/standing", { kind: value("standing-kind"), level: value("standing-level"), ...this.pagers.entries.ask }), { signal: this.signal }),
        ask(query("/v1/standing/history", this.pagers.changes.ask), { signal: this.signal })]);
    } catch (error) {
      if (error.status !== 503) throw error;
      setRows(this.table.body, [], error.message, 6);
      setRows(this.history.body, [], error.message, 5);
      return;
    }
    this.pagers.entries.show(found.entries.length);
    this.pagers.changes.show(changes.changes.length);
    setRows(this.table.body, found.entries.slice(0, PAGE).map((entry) => ({
      id: `${entry.kind}\n${entry.value}`, left: [0, 1, 2, 3, 4],
      cells: [whoLink(entry), entry.level, entry.reason || "–", entry.by || entry.origin, entry.until_ms === null ? "no end" : when(entry.until_ms),
        this.live.may.may_change ? h("button", { type: "button", class: "small", "aria-label": `Clear ${entry.kind}=${entry.value}`, onclick: () => this.clear(entry) }, "Clear") : ""],
    })), this.live.may.may_change ? "No operator or penalty has set anything that these filters let through. Set something above, for example the user ann to throttled."
      : "No operator or penalty has set anything that these filters let through.", 6);
    setRows(this.history.body, changes.changes.slice(0, PAGE).map((change, place) => ({
      id: `${change.at_ms} ${place}`, left: [0, 1, 2, 3, 4],
      cells: [when(change.at_ms), whoLink(change), change.level ?? "cleared", change.reason || "–", change.by ?? "–"],
    })), "Nothing was changed.", 5);
  }
}
