// SPDX-License-Identifier: Apache-2.0
// Two buttons that turn the pages of a table, and which rows are seen.

import { h } from "./dom.js";

export const PAGE = 100;

// `turned` is called when another page is wanted. `ask` is what to ask the server for: one row more,
// which says whether there is another page.
export class Pager {
  constructor(id, turned) {
    this.from = 0;
    const turn = (by) => () => {
      this.from = Math.max(0, this.from + by * PAGE);
      turned();
    };
    this.place = h("span", { class: "muted", role: "status", id: `${id}-place` });
    this.before = h("button", { type: "button", id: `${id}-before`, onclick: turn(-1) }, "Previous");
    this.after = h("button", { type: "button", id: `${id}-after`, onclick: turn(1) }, "Next");
    this.element = h("div", { class: "row" }, this.before, this.after, this.place);
    this.show(0);
  }

  get ask() {
    return { count: PAGE + 1, skip: this.from };
  }

  begin() {
    this.from = 0;
  }

  show(count) {
    this.before.disabled = this.from === 0;
    this.after.disabled = count <= PAGE;
    this.place.textContent = count > 0 && (this.from > 0 || count > PAGE) ? `${this.from + 1} to ${this.from + Math.min(count, PAGE)}` : "";
  }
}
