// SPDX-License-Identifier: Apache-2.0
// Charts of numbers over time, in SVG: areas that are stacked, or lines. A pointer or the arrow keys
// read one moment.

import { h, svg } from "./dom.js";
import { clock, dateTime, dayTime } from "./format.js";

const HEIGHT = 180;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;
const POINTS_MAX = 600;
const DAYS_S = 90000; // of a longer time the axis shows dates
const CLOCK_S = 1800; // of a shorter one seconds

// The least of 1, 2, 5, 10, … that is not below a number.
function niceTop(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= most * 0.9999);
}

// Runs of points that are known: null is a gap.
function runs(values) {
  const found = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i === 0 || values[i - 1] === null) found.push([]);
    found[found.length - 1].push(i);
  });
  return found;
}

// One point for each pixel or so: the greatest of each group, so that no peak is lost.
function thin(values, groups) {
  if (values.length <= groups) return values;
  const size = values.length / groups;
  return Array.from({ length: groups }, (_, group) => {
    const known = values.slice(Math.floor(group * size), Math.floor((group + 1) * size)).filter((value) => value !== null);
    return known.length > 0 ? Math.max(...known) : null;
  });
}

export class Chart {
  // `parts`: {field, name, kind} with the kind of a CSS class; `stacked`: areas on each other;
  // `top`: the highest value, where it is known; `show`: a value as text; `quiet`: the legend leaves out
  // parts that are nothing all the time, but the first. `bars`: one for each point, of one part.
  constructor(title, parts, { stacked = false, top = 0, show = String, id, quiet = false, bars = false } = {}) {
    Object.assign(this, { title, parts, stacked, top, show, id, quiet, bars });
    this.data = { from: 0, step: 1, values: {} };
    this.at = null;
    this.drawing = svg("svg", { class: "chart", role: "img", tabindex: 0, id, height: HEIGHT });
    this.reading = h("span", { class: "muted reading", "aria-live": "polite" });
    this.legend = h("p", { class: "legend" }, parts.map((part) =>
      h("span", null, h("i", { class: part.kind }), part.name)), this.reading);
    this.heading = h("h2", null, title);
    this.element = h("figure", { class: "panel" }, h("figcaption", null, this.heading), this.drawing, this.legend);
    this.drawing.addEventListener("pointermove", (event) => this.pointAt(event.offsetX));
    this.drawing.addEventListener("pointerleave", () => this.read(null));
    this.drawing.addEventListener("blur", () => this.read(null));
    this.drawing.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.draw()).observe(this.drawing);
  }

  set(data) {
    this.data = data;
    this.draw();
  }

  rename(title) {
    this.title = title;
    if (this.heading.textContent !== title) this.heading.textContent = title;
  }

  count() {
    return this.data.values[this.parts[0].field]?.length ?? 0;
  }

  sum(i) {
    return this.parts.reduce((all, part) => all + (this.data.values[part.field]?.[i] ?? 0), 0);
  }

  pointAt(x) {
    const part = (x - LEFT) / (this.drawing.clientWidth - LEFT);
    const place = this.bars ? Math.floor(part * this.count()) : Math.round(part * (this.count() - 1));
    this.read(Math.max(0, Math.min(this.count() - 1, place)));
  }

  press(event) {
    const last = this.count() - 1;
    const to = { ArrowLeft: (this.at ?? last + 1) - 1, ArrowRight: (this.at ?? last - 1) + 1, Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.read(to === null ? null : Math.max(0, Math.min(last, to)));
  }

  read(at) {
    this.at = at;
    this.draw();
  }

  draw() {
    const width = this.drawing.clientWidth;
    const total = this.count();
    if (width === 0 || document.hidden) return;
    const inner = width - LEFT;
    const plot = HEIGHT - TOP - BOTTOM;
    const groups = Math.max(2, Math.min(POINTS_MAX, Math.floor(inner / 1.5)));
    const thinned = this.parts.map((part) => thin(this.data.values[part.field] ?? [], this.bars ? Infinity : groups));
    const length = thinned[0].length;
    const most = this.stacked
      ? Math.max(0, ...Array.from({ length }, (_, i) => thinned.reduce((all, values) => all + (values[i] ?? 0), 0)))
      : Math.max(0, ...thinned.flat());
    const top = this.top || niceTop(most);
    const x = (i) => LEFT + (length < 2 ? 0 : (i / (length - 1)) * inner);
    const y = (value) => TOP + plot - (Math.min(value, top) / top) * plot;
    const nodes = [0, 0.5, 1].flatMap((part) => [
      svg("line", { class: "grid", x1: LEFT, x2: width, y1: y(top * part), y2: y(top * part) }),
      svg("text", { class: "axis", x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end" }, this.show(top * part)),
    ]);
    const base = new Array(length).fill(0);
    if (this.bars) nodes.push(...this.drawBars(thinned[0], inner / Math.max(1, length), y, plot));
    else this.parts.forEach((part, which) => {
      const values = thinned[which];
      if (which > 0 && !values.some((value) => value > 0)) return;
      const upper = values.map((value, i) => base[i] + (value ?? 0));
      const point = (list, i) => `${x(i).toFixed(1)},${y(list[i]).toFixed(1)}`;
      const known = runs(values);
      if (this.stacked) {
        const area = known.map((run) => `M${run.map((i) => point(upper, i)).join("L")}L${[...run].reverse().map((i) => point(base, i)).join("L")}Z`);
        nodes.push(svg("path", { class: `area ${part.kind}`, d: area.join("") }));
        upper.forEach((value, i) => { base[i] = value; });
      }
      // A point that stands alone is a dot.
      nodes.push(svg("path", { class: `line ${part.kind}`, d: known.map((run) => `M${run.map((i) => point(upper, i)).join("L")}${run.length === 1 ? "h0.1" : ""}`).join("") }));
    });
    for (const part of [0, 0.5, 1]) {
      const second = this.data.from + Math.round((total - 1) * part) * this.data.step;
      if (total > 0)
        nodes.push(svg("text", { class: "axis", x: LEFT + part * inner, y: HEIGHT - 5, "text-anchor": ["start", "middle", "end"][part * 2] },
          total * this.data.step > DAYS_S ? dayTime(second) : clock(second, total * this.data.step < CLOCK_S)));
    }
    for (const second of this.data.marks ?? []) { // restarts and reloads
      const place = LEFT + ((second - this.data.from) / this.data.step / Math.max(1, total - 1)) * inner;
      if (place > LEFT && place < width) nodes.push(svg("line", { class: "mark", x1: place, x2: place, y1: TOP, y2: TOP + plot }));
    }
    if (this.at !== null && total > 1) {
      const at = LEFT + (this.bars ? (this.at + 0.5) / total : this.at / (total - 1)) * inner;
      nodes.push(svg("line", { class: "cursor", x1: at, x2: at, y1: TOP, y2: TOP + plot }));
    }
    this.drawing.replaceChildren(...nodes);
    if (this.quiet)
      this.parts.forEach((_, which) => { this.legend.children[which].hidden = which > 0 && !thinned[which].some((value) => value > 0); });
    this.tell(total);
  }

  // What is not known is a bar in grey of full height, not none.
  drawBars(values, each, y, plot) {
    return values.map((value, i) => svg("rect", { class: value === null ? "gap" : "column bad", x: LEFT + i * each, width: Math.max(1, each - 1),
      y: value === null ? TOP : y(value), height: value === null ? plot : TOP + plot - y(value) }));
  }

  tell(total) {
    const at = this.at ?? total - 1;
    const texts = this.parts.map(({ name, field }) => {
      const value = this.data.values[field]?.[at];
      return `${name} ${value === null ? "unknown" : this.show(value ?? 0)}`;
    });
    const when = total === 0 ? "no data yet" : dateTime(this.data.from + at * this.data.step);
    this.drawing.setAttribute("aria-label", `${this.title}: ${texts.join(", ")} at ${when}. Arrow keys read other times.`);
    const text = this.at === null ? "" : `${when}: ${texts.join(", ")}`;
    if (this.reading.textContent !== text) this.reading.textContent = text;
  }
}

// A line of some numbers beside a text, without axes.
export function sparkline(values, kind) {
  const most = Math.max(1, ...values);
  const line = values.map((value, i) => `${((i / Math.max(1, values.length - 1)) * 80).toFixed(1)},${(19 - (value / most) * 18).toFixed(1)}`);
  const drawing = svg("svg", { class: "spark", viewBox: "0 0 80 20", width: 80, height: 20, "aria-hidden": "true" },
    svg("path", { class: `line ${kind}`, d: values.length > 1 ? `M${line.join("L")}` : "" }));
  drawing.key = line.join(" ");
  return drawing;
}
