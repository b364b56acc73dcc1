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

export function micros(us) {
  if (!us) return "0";
  return us < 1000 ? `${us} µs` : us < 1e6 ? `${us / 1000} ms` : `${us / 1e6} s`;
}

export function bytes(size) {
  for (const [unit, one] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (size >= one) return `${(size / one).toFixed(size >= 10 * one ? 0 : 1)} ${unit}`;
  return `${size} B`;
}

const two = (number) => String(number).padStart(2, "0");

export function clock(second, withSeconds = true) {
  const at = new Date(second * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}${withSeconds ? `:${two(at.getSeconds())}` : ""}`;
}

export function dateTime(second) {
  const at = new Date(second * 1000);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(second)}`;
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
