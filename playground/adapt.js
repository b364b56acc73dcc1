// SPDX-License-Identifier: Apache-2.0
// AIMD, by the code of weir's controllers (see adapt.c): two sets of settings before the same backend.
import base64 from "./adapt_core.js";
import { open_module } from "./lanes.js";

const SETTINGS = ["min", "max", "initial", "increase", "decrease", "per_success", "capacity"];
const MAX = 200;
// What a link may say of each: low, high.
export const ADAPT_BOUNDS = { initial: [1, MAX], increase: [1, MAX], per_success: [0, 1], decrease: [1, 99] };
export const CAPACITY_BOUNDS = [1, MAX];
export const ADAPT_SETS = [["weir's numbers", "as-weir", "accent"], ["many guides' numbers", "as-guides", "warn"]];

export const first_adapt = () => ({ capacity: 60, sets: [
  { initial: MAX, increase: 1, per_success: 0, decrease: 90 }, { initial: 10, increase: 1, per_success: 1, decrease: 50 }] });

export const open_adapt = () => open_module(base64);

// The number at each tick, of which a round trip has `ticks`, and how many requests passed and failed.
export function run_adapt(core, set, capacity) {
  const words = new Uint32Array(core.memory.buffer, core.adapt()), all = { min: 1, max: MAX, capacity, ...set };
  SETTINGS.forEach((name, i) => { words[i] = all[name]; });
  if (!core.run()) throw new RangeError("settings of AIMD");
  const [passed, failed, ticks, points] = words.subarray(SETTINGS.length), numbers = [...words.subarray(SETTINGS.length + 4, SETTINGS.length + 4 + points)];
  return { numbers, ticks, passed, failed, mean: numbers.reduce((sum, number) => sum + number, 0) / points };
}

const LEFT = 40, RIGHT = 12, TOP = 14, BOTTOM = 26;

export function draw_adapt(pen, { width, height }, capacity, runs) {
  const most = Math.max(capacity * 1.25, ...runs.flatMap((run) => run.numbers)), points = runs[0].numbers.length, { ticks } = runs[0];
  const x = (tick) => LEFT + (width - LEFT - RIGHT) * tick / points, y = (number) => height - BOTTOM - (height - TOP - BOTTOM) * number / most;
  pen.line([[LEFT, y(0)], [width - RIGHT, y(0)]], "line");
  pen.line([[LEFT, y(capacity)], [width - RIGHT, y(capacity)]], "bad", 1.5, true);
  pen.text(LEFT - 6, y(capacity) + 4, `${capacity}`, { colour: "bad", align: "end" });
  pen.text(LEFT - 6, y(0) + 4, "0", { colour: "muted", align: "end" });
  for (let tick = 0; tick <= points; tick += 10 * ticks) pen.text(x(tick), height - 8, `${tick / ticks}`, { colour: "muted", align: "middle" });
  runs.forEach((run, i) => pen.line(run.numbers.map((number, tick) => [x(tick), y(number)]), ADAPT_SETS[i][2], 2));
}

export const adapt_text = (capacity, runs) => `The number of two controllers over ${runs[0].numbers.length / runs[0].ticks} round trips before a backend that takes ${capacity}. ${
  runs.map((run, i) => `With ${ADAPT_SETS[i][0]} it is ${run.mean.toFixed(1)} on average.`).join(" ")}`;

const flow = (set) => [`min: 1, max: ${MAX}`, set.initial === MAX ? "" : `initial: ${set.initial}`, `increase: ${set.increase}`,
  set.per_success ? "increase_per: success" : "", `decrease: ${set.decrease}%`].filter(Boolean).join(", ");

// The second limit only counts, beside the first.
export const adapt_yaml = ({ sets }) => `version: 1
adaptive:
${sets.map((set, i) => `  ${ADAPT_SETS[i][1]}: { algorithm: aimd, ${flow(set)} }\n`).join("")}limits:
${sets.map((_, i) => `  - { name: slots-${ADAPT_SETS[i][1]}, key: [], algorithm: concurrency, limit: ${MAX}, adaptive: ${ADAPT_SETS[i][1]}${i > 0 ? ", shadow: true" : ""} }\n`).join("")}`;

export const write_adapt = ({ capacity, sets }) => [capacity, ...sets.flatMap((set) => Object.keys(ADAPT_BOUNDS).map((name) => set[name]))].join(".");

// What cannot be read is left at its default.
export function read_adapt(text) {
  const found = first_adapt(), [capacity, ...numbers] = (text ?? "").split(".").map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : NaN));
  const fits = (value, [low, high]) => value >= low && value <= high;
  if (fits(capacity, CAPACITY_BOUNDS)) found.capacity = capacity;
  found.sets.forEach((set, i) => Object.entries(ADAPT_BOUNDS).forEach(([name, bounds], j) => {
    const value = numbers[i * Object.keys(ADAPT_BOUNDS).length + j];
    if (fits(value, bounds)) set[name] = value;
  }));
  return found;
}
