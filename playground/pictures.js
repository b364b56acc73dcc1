// SPDX-License-Identifier: Apache-2.0
// A picture of each algorithm's state: a bucket with its level, a window that moves, a log of dots.
//
// draw_picture(pen, view): `view` has lanes, lane, name, p, origin, now, count. Numbers come from the
// core's report, or are sums of what it admitted.
import { ALGORITHMS, rate_text } from "./algorithms.js";
import { ratio, time_text } from "./time.js";

const DOTS = 400; // admissions that a picture shows at most
const BARS = 40; // tokens and places that are drawn one by one

const percent = (part, whole) => `${part * 100n / whole} %`;

// --- Buckets ------------------------------------------------------------------------------------

function bucket_shape(pen, box, level, fill) {
  const { x, y, width, height } = box, slope = width * 0.08;
  const edge = (part) => slope * part;
  const top = y + height * (1 - level), inset = edge((top - y) / height);
  if (level > 0)
    pen.shape([[x + inset, top], [x + width - inset, top], [x + width - slope, y + height], [x + slope, y + height]], { fill });
  pen.line([[x - 3, y], [x, y], [x + slope, y + height], [x + width - slope, y + height], [x + width, y], [x + width + 3, y]], "ink", 2.5);
  return top;
}

function marks(pen, box, count) {
  if (count > BARS) return;
  for (let i = 1; i < count; i++) {
    const y = box.y + box.height * (1 - i / count), inset = box.width * 0.08 * (1 - i / count);
    pen.line([[box.x + inset, y], [box.x + inset + 8, y]], "line", 1);
  }
}

function drop(pen, x, y) {
  pen.shape([[x, y - 8], [x + 4, y], [x + 2.8, y + 4], [x, y + 5.5], [x - 2.8, y + 4], [x - 4, y]], { fill: "accent" });
}

// How far the next token is: 0 it has just left, 1 it is here.
function phase(view, look) {
  const period = view.p.w / view.p.n;
  return period > 0n ? 1 - ratio(look.owed % period, period, 1) : 1;
}

function bucket_facts(pen, x, y, big, of, lines) {
  pen.text(x, y, big, { size: 34, bold: true });
  pen.text(x, y + 22, of, { colour: "muted" });
  lines.forEach((line, i) => pen.text(x, y + 52 + 20 * i, line));
}

// Counts all that did not fit; the last of it is shown for a moment as it runs over the rim.
function overflow(pen, view, x, y, rim) {
  const { denied } = view.lanes.judge(view.lane, view.lane, view.count);
  pen.text(x, y, `${denied} overflowed`, { colour: denied > 0n ? "bad" : "muted", bold: denied > 0n });
  const last = view.count - 1, ago = last >= 0 ? view.now - view.lanes.at(last) : 0n, seen = view.p.w / 10n;
  if (!rim || last < 0 || ago > seen || view.lanes.outcome(view.lane, last).allowed) return;
  drop(pen, rim.x + rim.width + 8, rim.y + 6 + 30 * (seen > 0n ? ratio(ago, seen, 1) : 0));
}

function draw_bucket(pen, view, size, look) {
  const leaks = view.name === "leaky_meter", { b } = view.p;
  const width = Math.min(170, size.width * 0.38);
  const box = { x: Math.max(16, size.width * 0.3 - width / 2), y: 62, width, height: size.height - 62 - (leaks ? 44 : 22) };
  const owed = look.depth > 0n ? ratio(look.owed, look.depth, 1) : 1;
  const level = Math.min(1, Math.max(0, leaks ? owed : 1 - owed));
  const middle = box.x + width / 2, bottom = box.y + box.height;
  const top = bucket_shape(pen, box, level, "water");
  marks(pen, box, Number(b));
  const moving = look.owed > 0n, at = phase(view, look);
  const facts = { x: box.x + width + Math.min(40, size.width * 0.06), y: 104 };
  const rate = rate_text(view.p);
  if (leaks) {
    pen.line([[middle - 5, bottom], [middle - 5, bottom + 8]], "ink", 2.5);
    pen.line([[middle + 5, bottom], [middle + 5, bottom + 8]], "ink", 2.5);
    if (moving) drop(pen, middle, bottom + 12 + 22 * at);
    pen.text(middle, 32, "requests", { align: "middle", colour: "muted" });
    pen.line([[middle, 38], [middle, 54]], "muted");
    pen.shape([[middle - 4, 50], [middle + 4, 50], [middle, 57]], { fill: "muted" });
    bucket_facts(pen, facts.x, facts.y, `${b - look.remaining}`, `of ${b} taken`, [`${rate} leak`, moving ? `empty in ${time_text(look.reset)}` : "empty"]);
    overflow(pen, view, facts.x, facts.y + 92, box);
    return;
  }
  pen.shape([[middle - 16, 14], [middle + 16, 14], [middle + 16, 24], [middle + 6, 24], [middle + 6, 34], [middle - 6, 34], [middle - 6, 24], [middle - 16, 24]], { fill: "used" });
  if (moving) drop(pen, middle, 42 + Math.max(0, top - 50) * at);
  bucket_facts(pen, facts.x, facts.y, `${look.remaining}`, `of ${b} tokens`, [`${rate} return`, moving ? `full in ${time_text(look.reset)}` : "full"]);
}

function draw_gcra(pen, view, size, look) {
  const { b, n, w } = view.p, left = 16, length = (size.width - 2 * left) * 0.8, y = size.height * 0.52;
  const x = (ns) => left + (look.depth > 0n ? ratio(ns, look.depth, length) : 0);
  const next = look.owed + w / n, fits = look.allowed, small = size.width < 480;
  if (look.owed > 0n) pen.rect(left, y - 34, x(look.owed) - left, 34, { fill: "water" });
  for (let i = 1n; i < b && b <= BigInt(BARS); i++) pen.line([[x(look.depth * i / b), y], [x(look.depth * i / b), y + 6]], "line", 1);
  pen.rect(x(look.owed), y - 34, Math.max(2, x(next) - x(look.owed)), 34, { stroke: fits ? "good" : "bad", dash: true });
  pen.line([[left - 8, y], [size.width - 10, y]], "ink", 2);
  pen.shape([[size.width - 10, y - 4], [size.width - 10, y + 4], [size.width - 2, y]], { fill: "ink" });
  pen.line([[left, y - 52], [left, y + 14]], "ink", 2);
  pen.text(left - 4, y + 32, "now");
  pen.line([[x(look.depth), y - 52], [x(look.depth), y + 14]], "bad", 2, true);
  pen.text(x(look.depth), y + 32, small ? "now + B·T" : "now + B·T: not beyond", { colour: "bad", align: "middle" });
  const tat = Math.min(Math.max(x(look.owed), left + 14), size.width - 20);
  pen.text(tat, y - 42, "TAT", { align: "middle", bold: true, colour: "accent" });
  pen.text(left - 4, 30, fits ? `The next request moves TAT by T = ${time_text(w / n)}: it fits.` : "The next request would go beyond the limit.", { colour: fits ? "good" : "bad", bold: true, size: small ? 11.5 : 13 });
  pen.text(left - 4, size.height - 26, `TAT is ${time_text(look.owed)} ahead of now; remaining ${look.remaining} of ${b}`, { colour: "muted", size: small ? 12 : 13 });
}

function draw_queue(pen, view, size, look) {
  const { b, n, w } = view.p, door = size.width * 0.34, y = size.height * 0.5;
  const length = size.width - door - 18;
  const span = b * w / n || 1n;
  const x = (ns) => door + ratio(ns, span, length);
  pen.rect(door, y - 24, length, 48, { fill: "panel", stroke: "line", radius: 6 });
  pen.line([[12, y], [door, y]], "line", 1, true);
  pen.line([[door, y - 36], [door, y + 36]], "ink", 3);
  pen.text(door + 8, y - 36, `waiting: up to ${b}`, { colour: "muted" });
  pen.text(12, y - 36, "passed", { colour: "muted" });
  let waiting = 0;
  for (const [, , passes] of view.lanes.admitted(view.lane, view.count, view.now - 2n * w - span, DOTS)) {
    const at = x(passes - view.now), waits = passes > view.now;
    if (waits) waiting++;
    if (at > 12) pen.dot(at, y, 7, waits ? { fill: "accent" } : { fill: "good" });
  }
  pen.text(12, 30, `${waiting} waiting; one leaves each ${time_text(w / n)}`, { bold: true });
  overflow(pen, view, door + 8, y + 56, null);
  pen.text(12, size.height - 26, look.allowed ? `The next request waits ${time_text(look.owed)}.` : `Full: a place is free in ${time_text(look.retry)}.`, { colour: look.allowed ? "muted" : "bad" });
}

// --- Windows ------------------------------------------------------------------------------------

// A stretch of time around now.
function strip(view, size, before, after) {
  const from = view.now - before, span = before + after, left = 12, length = size.width - 24;
  return { from, to: view.now + after, x: (t) => left + ratio(t - from, span, length), left, right: left + length };
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

function now_line(pen, at, top, bottom) {
  pen.line([[at, top], [at, bottom]], "ink", 2);
  pen.text(at, top - 5, "now", { align: "middle", size: 12, bold: true });
}

function dots(pen, view, time, y, from) {
  for (const [i, at] of view.lanes.admitted(view.lane, view.count, time.from, DOTS)) {
    const x = time.x(at);
    pen.dot(x, y - (i % 5) * 5.6, 2.8, at > from ? { fill: "accent" } : { stroke: "line" });
  }
}

// The windows of the clock, each with its count as a level.
function draw_windows(pen, view, size) {
  const { n, w, r } = view.p, quota = view.name === "quota", most = quota ? n + r : n;
  const time = strip(view, size, w * 5n / 4n, w * 3n / 4n);
  const top = 52, bottom = size.height - 62, first = (time.from > view.origin ? time.from - view.origin : 0n) / w;
  const current = (view.now - view.origin) / w;
  const sum = (i) => i < 0n ? 0n : view.lanes.sum(view.lane, view.count, view.origin + i * w, view.origin + (i + 1n) * w);
  for (let i = first; view.origin + i * w < time.to; i++) {
    const begins = view.origin + i * w;
    const x = clamp(time.x(begins), time.left, time.right), end = clamp(time.x(begins + w), time.left, time.right);
    const used = sum(i), here = i === current;
    const before = sum(i - 1n), over = quota ? (r < n - (before < n ? before : n) ? r : n - (before < n ? before : n)) : 0n;
    const level = (count) => ratio(count, most, bottom - top);
    pen.rect(x + 1, top, end - x - 2, bottom - top, { fill: here ? "tint" : "panel", radius: 3 });
    if (used > 0n) pen.rect(x + 1, bottom - level(used > most ? most : used), end - x - 2, level(used > most ? most : used), { fill: here ? "water" : "edge", radius: 3 });
    if (quota) pen.line([[x + 2, bottom - level(n + over)], [end - 2, bottom - level(n + over)]], "bad", 2, true);
    if (end - x > 44) {
      const future = begins > view.now;
      pen.text(x + 10, bottom - 12, future ? "0" : `${used}`, { bold: true, size: 18, colour: future ? "muted" : "ink" });
      pen.text(x + 10, bottom + 48, quota ? `of ${n} + ${over}` : `of ${n}`, { colour: "muted", size: 12 });
    }
    pen.line([[x, top - 6], [x, bottom + 6]], "line", 1);
  }
  if (!quota) pen.line([[time.left, top], [time.right, top]], "bad", 2, true);
  dots(pen, view, time, bottom + 31, view.origin + current * w - 1n);
  now_line(pen, time.x(view.now), top - 8, bottom + 6);
  pen.text(12, 18, quota ? `N = ${n} a period, and up to ${r} that were left over` : `at most ${n} a window; the next begins in ${time_text(view.origin + (current + 1n) * w - view.now)}`, { size: 12.5, colour: "muted" });
}

function frame(pen, time, view, top, bottom, colour = "accent") {
  const from = clamp(time.x(view.now - view.p.w), time.left, time.right), to = time.x(view.now);
  pen.rect(from, top, to - from, bottom - top, { stroke: colour, radius: 4, dash: true });
  pen.text((from + to) / 2, bottom + 18, `the last ${time_text(view.p.w)}`, { align: "middle", size: 12, colour });
}

function draw_log(pen, view, size, look) {
  const { n, w } = view.p, time = strip(view, size, w * 3n / 2n, w / 4n), top = 62, bottom = size.height - 48;
  const axis = (top + bottom) / 2 + 34;
  pen.rect(time.x(view.now - w), top, time.x(view.now) - time.x(view.now - w), bottom - top, { fill: "tint", radius: 4 });
  pen.line([[time.left, axis], [time.right, axis]], "line");
  for (const [i, at] of view.lanes.admitted(view.lane, view.count, time.from, DOTS)) {
    const counts = at > view.now - w;
    pen.dot(time.x(at), axis - (Number(BigInt(i) % 6n)) * 14, 6, counts ? { fill: "accent" } : { stroke: "line" });
  }
  frame(pen, time, view, top, bottom);
  now_line(pen, time.x(view.now), top - 8, bottom);
  pen.text(12, 20, `${n - look.remaining} of ${n} in the log`, { bold: true });
  pen.text(size.width - 12, 20, look.allowed ? "" : `the oldest leaves in ${time_text(look.retry)}`, { align: "end", colour: "bad" });
}

function draw_counters(pen, view, size, look) {
  const { n, w, s } = view.p, segments = view.name === "two_counters" ? 1n : view.name === "segments" ? 60n : s;
  const strict = view.name === "strict", one = w / segments;
  const current = view.now / one, elapsed = view.now - current * one;
  const time = strip(view, size, w + one + w / 12n, one < w / 4n ? w / 6n : w / 2n), top = 58, bottom = size.height - 62;
  const sum = (i) => i < 0n ? 0n : view.lanes.sum(view.lane, view.count, i * one, (i + 1n) * one);
  const oldest = sum(current - segments);
  let newer = 0n, tallest = n / segments > 3n ? n / segments : 3n;
  const bars = [];
  for (let i = current - segments; i <= current; i++) {
    const count = sum(i);
    bars.push([i, count]);
    if (i > current - segments) newer += count;
    if (count > tallest) tallest = count;
  }
  if (segments === 1n) tallest = n;
  const level = (count) => ratio(count > tallest ? tallest : count, tallest, bottom - top - 8);
  pen.rect(time.x(view.now - w), top, time.x(view.now) - time.x(view.now - w), bottom - top, { fill: "tint", radius: 4 });
  for (const [i, count] of bars) {
    const x = clamp(time.x(i * one), time.left, time.right), end = clamp(time.x((i + 1n) * one), time.left, time.right);
    const gap = end - x > 6 ? 1 : 0.3, fades = i === current - segments;
    if (fades && !strict && count > 0n) {
      const border = clamp(time.x(view.now - w), x, end);
      pen.rect(x + gap, bottom - level(count), border - x - gap, level(count), { stroke: "line", dash: true });
      pen.rect(border, bottom - level(count), end - gap - border, level(count), { fill: "water" });
    } else if (count > 0n) {
      pen.rect(x + gap, bottom - level(count), end - x - 2 * gap, level(count), fades ? { fill: "edge", stroke: "warn", radius: 2 } : { fill: "water", radius: 2 });
    }
    if (end - x > 26 && (count > 0n || segments === 1n)) pen.text(x + 8, bottom - 10, `${count}`, { bold: true, size: 15 });
    if (end - x > 3.5) pen.line([[x, bottom], [x, bottom + 5]], "line", 1);
  }
  pen.line([[time.left, bottom], [time.right, bottom]], "line");
  frame(pen, time, view, top, bottom);
  now_line(pen, time.x(view.now), top - 8, bottom);
  const weighted = strict ? oldest : oldest * (one - elapsed) / one;
  const older = strict ? `${oldest} of the oldest, in full` : `⌊${oldest} × ${percent(one - elapsed, one)}⌋ of the oldest`;
  pen.text(12, 22, `${newer} + ${older} = ${newer + weighted} of ${n}`, { bold: true, size: size.width < 480 ? 12 : 13, colour: look.remaining > 0n ? "ink" : "bad" });
  dots(pen, view, time, bottom + 44, view.now - w);
}

function draw_places(pen, view, size, look) {
  const { n, l } = view.p, busy = n - look.remaining, rows = Number(n > 25n ? 25n : n);
  const held = view.lanes.admitted(view.lane, view.count, view.now - l, DOTS).reverse();
  const top = 44, step = Math.min(34, (size.height - top - 30) / rows), left = 12, length = size.width - 24;
  pen.text(left, 24, `${busy} of ${n} places are taken`, { bold: true, colour: busy < n ? "ink" : "bad" });
  for (let i = 0; i < rows; i++) {
    const y = top + i * step, height = Math.max(2, step - Math.min(6, step / 4));
    pen.rect(left, y, length, height, { fill: "panel", stroke: "line", radius: Math.min(5, height / 3) });
    if (i >= held.length) continue;
    const ends = held[held.length - 1 - i][1] + l;
    pen.rect(left, y, ratio(ends - view.now, l, length), height, { fill: "water", stroke: "accent", radius: Math.min(5, height / 3) });
    if (height >= 18) pen.text(left + 8, y + height / 2 + 4.5, `ends in ${time_text(ends - view.now)}`, { size: 12 });
  }
  if (n > 25n) pen.text(left, size.height - 8, `25 of ${n} places are drawn`, { colour: "muted", size: 12 });
}

const DRAWN = {
  token_bucket: draw_bucket, leaky_meter: draw_bucket, gcra: draw_gcra, leaky_queue: draw_queue,
  fixed_window: draw_windows, quota: draw_windows, sliding_log: draw_log, two_counters: draw_counters,
  segments: draw_counters, strict: draw_counters, concurrency: draw_places,
};

export function draw_picture(pen, view) {
  const size = pen.begin();
  DRAWN[view.name](pen, view, size, view.lanes.look(view.lane, view.count, view.now));
}

// The same in words.
export function picture_text(view) {
  const look = view.lanes.look(view.lane, view.count, view.now);
  return `${ALGORITHMS[view.name].title} at ${time_text(view.now - view.origin)}: remaining ${look.remaining}, `
    + (view.name.startsWith("leaky") ? `${view.lanes.judge(view.lane, view.lane, view.count).denied} overflowed, ` : "")
    + (look.allowed ? "the next request passes" : `the next request is denied for ${time_text(look.retry)}`);
}
