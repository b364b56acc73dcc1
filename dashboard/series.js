// SPDX-License-Identifier: Apache-2.0
// A series of ten minutes, kept up to date: whole at first, then what is new.

import { ask, query } from "./api.js";

const POINTS = 600;
const OVERLAP = 3; // seconds that are asked for once more

// Before the server began, and while it was suspended, nothing is known, and a time without requests has no
// latency: that is no zero.
export function blankUnknown({ from, step, values, gaps }, { snapshot }) {
  const lists = Object.values(values);
  for (const [field, list] of Object.entries(values))
    for (let i = 0; field.endsWith("_us") && i < list.length; i++) list[i] ||= null;
  const blank = (first, end) => {
    for (const list of lists)
      for (let i = Math.max(first, 0); i < end && i < list.length; i++) list[i] = null;
  };
  const counted = Math.min(...lists.map((list) => list.findIndex((value) => value > 0)).filter((place) => place >= 0));
  blank(0, Math.min(Math.floor(((snapshot?.started_s ?? 0) - from) / step), counted)); // minutes may be from before a restart
  for (const [first, end] of gaps) blank(Math.ceil((first - from) / step), Math.floor((end - from) / step));
}

export class Series {
  constructor(parameters, signal) {
    Object.assign(this, { parameters, signal, data: null, asked: 0 });
  }

  // {from, step, values, gaps}: the newest.
  async load() {
    const now = performance.now();
    const behind = Math.ceil((now - this.asked) / 1000) + OVERLAP;
    const count = this.data && behind < POINTS ? behind : POINTS;
    const found = await ask(query("/v1/series", { ...this.parameters, count }), { signal: this.signal });
    this.asked = now;
    if (!this.data || !this.join(found)) this.data = { from: found.from_s, step: found.resolution_s, values: found.values };
    this.data.gaps = found.gaps;
    return this.data;
  }

  // False: there is a gap between what is known and what has come.
  join({ from_s: from, values }) {
    const { data } = this;
    const [known] = Object.values(data.values);
    const at = from - data.from;
    if (at < 0 || at > known.length) return false;
    for (const [field, list] of Object.entries(data.values)) {
      list.splice(at, list.length - at, ...values[field]);
      if (list.length > POINTS) list.splice(0, list.length - POINTS);
    }
    data.from = from + Object.values(values)[0].length - known.length;
    return true;
  }
}
