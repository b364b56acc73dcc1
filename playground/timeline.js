// SPDX-License-Identifier: Apache-2.0
// Requests over time, and what a lane said to each: admitted ones above the line, denied ones below.
// Requests of one pixel are drawn together, and all of one colour in one stroke, so that 10,000 take
// no more strokes than ten.
import { ratio, time_text } from "./time.js";

const EDGE = 10;

export class Scale {
  constructor(from, to, width) {
    this.from = from;
    this.span = to > from ? to - from : 1n;
    this.width = width - 2 * EDGE;
  }

  x(t) { return EDGE + ratio(t - this.from, this.span, this.width); }

  // The time at a place, which a pointer names in pixels.
  time(x) {
    const sixteenths = BigInt(Math.round(Math.min(Math.max(x - EDGE, 0), this.width) * 16));
    return this.from + this.span * sixteenths / BigInt(Math.round(this.width * 16));
  }

  // The pixel of each request. Requests are in order, so that it is found by halving.
  columns(lanes) {
    const key = `${lanes.version}:${this.from}:${this.span}:${this.width}`;
    if (lanes.columns?.key === key) return lanes.columns.list;
    const list = new Int32Array(lanes.count);
    const wide = BigInt(Math.floor(this.width));
    for (let i = 0; i < lanes.count; i++)
      list[i] = EDGE + Number((lanes.at(i) - this.from) * wide / this.span);
    lanes.columns = { key, list };
    return list;
  }
}

// What is to be drawn in each pixel: how many were admitted and denied, and whether wrongly.
function count_columns(lanes, lane, judge, count, columns, width) {
  const found = Array.from({ length: 4 }, () => new Uint16Array(width + 1));
  const ours = lanes.allowed(lane), right = judge === undefined ? ours : lanes.allowed(judge);
  for (let i = 0; i < count; i++) {
    const x = Math.min(Math.max(columns[i], 0), width), allowed = ours[i];
    found[allowed ? 0 : 1][x]++;
    if (allowed !== right[i]) found[allowed ? 2 : 3][x]++;
  }
  return found;
}

// A few are nearly as tall as one; where there are many, their numbers show.
const tall = (count, fullest, room) => room * (fullest > 3 ? 0.2 + 0.8 * count / fullest : 0.7 + 0.1 * count);

// The borders of windows, or each second, fourth, … of them: [place, time].
function grid_of(scale, window, width) {
  const most = BigInt(Math.max(2, Math.floor(width / 110)));
  let step = window;
  while (scale.span / step > most) step *= 2n;
  const found = [];
  for (let t = 0n; t <= scale.span; t += step) found.push([scale.x(scale.from + t), time_text(t)]);
  return found;
}

// options: lanes, lane, judge (or undefined), scale, now, grid (W), worst ({from, window, text} or null),
// labels (whether to write times). Requests after the cursor are drawn pale.
export function draw_timeline(pen, options, size) {
  const { lanes, lane, judge, scale, now, worst } = options;
  const { width, height } = size, labels = options.labels ? 18 : 0;
  const base = Math.round((height - labels) * 0.58);
  if (worst && worst.window > 0n) {
    const x = scale.x(worst.from), end = Math.min(scale.x(worst.from + worst.window), width - EDGE);
    pen.rect(x, 2, Math.max(end - x, 2), height - labels - 4, { fill: "tint", radius: 3 });
    if (worst.text) pen.text(Math.min(x + 4, width - 130), 14, worst.text, { size: 11, colour: "accent" });
  }
  const borders = grid_of(scale, options.grid, width);
  for (const [x] of borders) pen.line([[x, 4], [x, height - labels - 2]], "edge", 1);
  pen.line([[EDGE, base], [width - EDGE, base]], "line", 1);
  const columns = scale.columns(lanes);
  const [allowed, denied, wrong, strict] = count_columns(lanes, lane, judge, lanes.count, columns, Math.floor(width));
  const seen = Math.floor(scale.x(now));
  const up = base - (judge === undefined ? 4 : 12) - (worst?.text ? 16 : 0), down = height - labels - base - (judge === undefined ? 4 : 10);
  const most_allowed = Math.max(...allowed), most_denied = Math.max(...denied);
  const good = [], bad = [], later = [], allows = [], denials = [];
  for (let x = 0; x <= width; x++) {
    if (allowed[x]) {
      const h = tall(allowed[x], most_allowed, up);
      (x > seen ? later : good).push([x, base - h, 2, h]);
    }
    if (denied[x]) (x > seen ? later : bad).push([x, base + 1, 2, tall(denied[x], most_denied, down)]);
    if (wrong[x] && x <= seen) allows.push([x + 1, 5]);
    if (strict[x] && x <= seen) denials.push([x + 1, height - labels - 5]);
  }
  pen.bars(good, "good");
  pen.bars(bad, "bad");
  pen.bars(later, "line");
  pen.dots(allows, allows.length > width / 8 ? 1.5 : 3, { fill: "warn" });
  pen.dots(denials, denials.length > width / 8 ? 1.5 : 3, { stroke: "accent" });
  const at = scale.x(now);
  pen.line([[at, 0], [at, height - labels]], "ink", 1.5);
  if (labels) {
    for (const [x, text] of borders)
      pen.text(x, height - 4, text, { size: 11, colour: "muted", align: x < 24 ? "start" : x > width - 24 ? "end" : "middle" });
  }
}
