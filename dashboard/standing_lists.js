// SPDX-License-Identifier: Apache-2.0
// The list files of standing: which are in force, what came of reading them, and what they have.

import { ask, query } from "./api.js";
import { h, setRows, table } from "./dom.js";
import { count, dateTime } from "./format.js";
import { PAGE, Pager } from "./pager.js";

const FILES = 6; // columns
const ENTRIES = 4;

// Names of files by their paths: the last part, where no other file has the same.
function shortNames(files) {
  const last = (file) => file.slice(file.lastIndexOf("/") + 1);
  const counts = new Map();
  for (const file of files) counts.set(last(file), (counts.get(last(file)) ?? 0) + 1);
  return new Map(files.map((file) => [file, counts.get(last(file)) > 1 ? file : last(file)]));
}

// "line 2: not a network" of "/etc/weir/networks.txt:2: not a network": the row says which file.
function withoutPath({ file, error }) {
  if (!error.startsWith(`${file}:`)) return error;
  return error.slice(file.length + 1).replace(/^(\d+): /, "line $1: ").trim();
}

export class StandingLists {
  constructor(signal) {
    this.signal = signal;
    this.names = new Map();
    this.files = table("List files in force", [{ title: "file", left: true }, { title: "makes", left: true }, { title: "reason", left: true },
      "entries", { title: "read", left: true }, { title: "last error", left: true }], "lists");
    this.entries = table("Entries of list files", [{ title: "who", left: true }, { title: "level", left: true }, { title: "reason", left: true },
      { title: "from", left: true }], "list-entries");
    this.pager = new Pager("list-entries", () => this.search());
    this.file = h("select", { id: "list-file" }, h("option", { value: "" }, "all files"));
    this.value = h("input", { id: "list-value", type: "search", size: 24, autocomplete: "off" });
    this.note = h("p", { role: "status", id: "list-note", class: "muted" });
    this.result = h("div", { hidden: true }, this.entries.element, this.pager.element);
    this.form = h("form", { class: "row", onsubmit: (event) => {
      event.preventDefault();
      this.pager.begin();
      this.search();
    } }, h("label", null, "Entries of ", this.file), h("label", null, "with ", this.value), h("button", { type: "submit", id: "list-search" }, "Show"));
    this.element = h("section", { class: "panel" }, h("h2", null, "List files"), this.files.element, this.form, this.note, this.result);
  }

  async load() {
    let lists;
    try {
      ({ lists } = await ask("/v1/standing/lists", { signal: this.signal }));
    } catch (error) {
      if (!error.status) throw error;
      this.form.hidden = true; // rules without `standing` have come since: what is in force is shown all the same
      setRows(this.files.body, [], error.message, FILES);
      return;
    }
    this.form.hidden = lists.length === 0;
    const files = [...new Set(lists.map((list) => list.file))];
    if ([...this.names.keys()].join("\n") !== files.join("\n")) {
      const chosen = this.file.value;
      this.names = shortNames(files);
      this.file.replaceChildren(this.file.options[0], ...files.map((file) => h("option", { value: file, selected: file === chosen }, this.names.get(file))));
    }
    setRows(this.files.body, lists.map((list, place) => ({
      id: `${place}`, left: [0, 1, 2, 4, 5],
      cells: [this.fileName(list.file), `${list.kind} ${list.level}`, list.reason || "–",
        list.without_room > 0 ? h("span", { class: "bad" }, `${count(list.entries)}, ${count(list.without_room)} of them without room`) : count(list.entries),
        dateTime(list.read_ms / 1000), list.error ? h("span", { class: "bad", title: list.error }, withoutPath(list)) : "none"],
    })), "The rules name no list files (lists of standing).", FILES);
  }

  // An address finds the networks that it is in.
  async search() {
    let found;
    try {
      found = await ask(query("/v1/standing/lists/entries", { file: this.file.value, value: this.value.value.trim(), ...this.pager.ask }), { signal: this.signal });
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message, true);
      return;
    }
    const stale = found.changed.length > 0 ? `Changed since it was read: ${found.changed.map((file) => this.names.get(file) ?? file).join(", ")}. What is shown is the file of now; a reload puts it in force. ` : "";
    this.say(stale + found.errors.join(" "), found.errors.length > 0);
    this.result.hidden = false;
    this.pager.show(found.entries.length);
    setRows(this.entries.body, found.entries.slice(0, PAGE).map((entry) => ({
      id: `${entry.file}\n${entry.line}\n${entry.kind}`, left: [0, 1, 2, 3],
      cells: [`${entry.kind}=${entry.value}`, entry.level, entry.reason || "–", this.fileName(entry.file, entry.line)],
    })), "No entry of these files has that.", ENTRIES);
  }

  fileName(file, line) {
    return h("span", { title: file }, `${this.names.get(file) ?? file}${line ? `:${line}` : ""}`);
  }

  say(text, bad) {
    this.note.textContent = text;
    this.note.className = bad ? "bad" : "muted";
  }
}
