// SPDX-License-Identifier: Apache-2.0
// Times are BigInts of nanoseconds. What a picture needs of them is a place: ratio() divides first,
// so that only pixels become Numbers.

// part / whole of `length` pixels, to a sixteenth of a pixel. Far outside of it, it is cut off.
export function ratio(part, whole, length) {
  const sixteenths = part * BigInt(Math.round(length * 16)) / whole;
  const most = BigInt(Math.round(length * 16 * 4)) + 16n;
  return Number(sixteenths > most ? most : sixteenths < -most ? -most : sixteenths) / 16;
}

const UNITS = [["d", 86_400_000_000_000n], ["h", 3_600_000_000_000n], ["min", 60_000_000_000n],
  ["s", 1_000_000_000n], ["ms", 1_000_000n], ["µs", 1_000n], ["ns", 1n]];

// "1.25 s", "3 min 4.5 s", "2 h 10 min": three digits after the point, cut off, or two units.
export function time_text(ns) {
  if (ns < 0n) return `−${time_text(-ns)}`;
  if (ns === 0n) return "0 s";
  const i = UNITS.findIndex(([, size]) => ns >= size), [unit, size] = UNITS[i];
  const rest = ns % size;
  if (unit === "min" && rest > 0n) return `${ns / size} min${rest < UNITS[i + 1][1] ? "" : ` ${time_text(rest)}`}`;
  if (size > 60_000_000_000n) {
    const [below, below_size] = UNITS[i + 1];
    const more = rest / below_size;
    return more ? `${ns / size} ${unit} ${more} ${below}` : `${ns / size} ${unit}`;
  }
  if (unit === "min") return `${ns / size} min`;
  const digits = (rest * 1000n / size).toString().padStart(3, "0").replace(/0+$/, "");
  return `${ns / size}${digits ? `.${digits}` : ""} ${unit}`;
}

// To the nanosecond, for those who look closely: "59.999999999 s".
export function exact_text(ns) {
  const digits = (ns % 1_000_000_000n).toString().padStart(9, "0").replace(/0+$/, "");
  return `${ns / 1_000_000_000n}${digits ? `.${digits}` : ""} s`;
}
