// SPDX-License-Identifier: Apache-2.0
// Numbers and times as people read them.

const UNITS = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000], ["ms", 1]];

// 8d 8h, 12min 3s, 640ms; null: never.
export function duration(ms) {
  if (ms === null || ms === undefined) return "never";
  let left = Math.max(0, Math.round(ms));
  if (left >= 1000) left = Math.ceil(left / 1000) * 1000;
  const parts = [];
  for (const [name, size] of UNITS) {
    const count = Math.floor(left / size);
    if (count > 0) parts.push(count + name);
    left -= count * size;
  }
  return parts.slice(0, 2).join(" ") || "0s";
}

// 1,234 and 1.23 M: four digits at most.
export function count(number) {
  if (number === null || number === undefined) return "–";
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]])
    if (Math.abs(number) >= size)
      return `${(number / (unit === "k" ? 1e3 : size)).toFixed(number >= 100 * (unit === "k" ? 1e3 : size) ? 0 : 1)} ${unit}`;
  return number.toLocaleString("en", { maximumFractionDigits: number < 10 ? 1 : 0 });
}

export function percent(part, whole) {
  if (!whole) return "0 %";
  const share = (part / whole) * 100;
  return `${share > 0 && share < 10 ? share.toFixed(1) : Math.round(share)} %`;
}

// How many places of a table are in use, and their share: an estimate that is no more than its error says only
// that much.
export function used({ slots, slots_used: places, slots_error: error }) {
  return error > 0 && places < error ? { places: `below ${count(error)}`, share: `below ${percent(error, slots)}` }
    : { places: `${error > 0 ? "about " : ""}${count(places)}`, share: percent(places, slots) };
}

export function micros(us) {
  if (!us) return "0";
  return us < 1000 ? `${us} µs` : us < 1e6 ? `${us / 1000} ms` : `${us / 1e6} s`;
}

// Of a second in which there was nothing to measure it is 0.
export function measured(us) {
  return us > 0 ? micros(us) : "–";
}

export function bytes(size) {
  for (const [unit, one] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (size >= one) return `${(size / one).toFixed(size >= 10 * one ? 0 : 1)} ${unit}`;
  return `${size} B`;
}

const two = (number) => String(number).padStart(2, "0");

// Times are those of the reader's zone, or of UTC. The page says once which one that is, as it is now
// (zoneName); a time at which the zone has another offset says that itself.
let inUtc = false;

export function setUtc(utc) {
  inUtc = utc;
}

const minutesEast = (second) => (inUtc ? 0 : -new Date(second * 1000).getTimezoneOffset());

function offset(second) {
  const minutes = minutesEast(second);
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

const now = () => Date.now() / 1000;

export function localZone() {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  const utc = inUtc;
  inUtc = false;
  const text = `UTC${offset(now())}`;
  inUtc = utc;
  return name && name !== "UTC" ? `${text}, ${name}` : text;
}

// The parts of a time, by the UTC functions of the date that is returned.
const shifted = (second) => new Date((second + minutesEast(second) * 60) * 1000);
const ifOther = (second) => (minutesEast(second) === minutesEast(now()) ? "" : offset(second));

export function clock(second, withSeconds = true) {
  const at = shifted(second);
  return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}${withSeconds ? `:${two(at.getUTCSeconds())}` : ""}${ifOther(second)}`;
}

// "11-23 14:03".
export function dayTime(second) {
  const at = shifted(second);
  return `${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())} ${clock(second, false)}`;
}

export function dateTime(second) {
  const at = shifted(second);
  return `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())} ${clock(second)}`;
}

// "2026-11-23 14:03:07" of a time that the API writes.
export function isoTime(text) {
  return dateTime(Date.parse(text) / 1000);
}

// The rate of a limit: 3 in 1h.
export function rate(limit) {
  if (limit.unlimited) return "unlimited";
  if (limit.rate === undefined) return limit.by_plan ? "by plan" : "–";
  return `${count(limit.rate)} in ${duration(limit.window_ms)}`;
}
