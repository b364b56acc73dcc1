// SPDX-License-Identifier: Apache-2.0
// Every algorithm of the playground: its name, its settings for the core, its bound, and what to
// say of it. `p` are the parameters of the page: n (N), w (W in ns), b (B), s (S), r (R), l (life in
// ns) and c (the largest cost of a request), all BigInts.
import { CORE } from "./lanes.js";

// B + floor(N * (W - 1) / W)
const bucket_bound = (p) => p.b + p.n * (p.w - 1n) / p.w;

const UNITS = [["day", 86_400_000_000_000n, "day"], ["h", 3_600_000_000_000n, "h"],
  ["min", 60_000_000_000n, "min"], ["s", 1_000_000_000n, "s"], ["ms", 1_000_000n, "ms"]];

// A window as rules files write it: "min", "30s".
export function window_text(w) {
  for (const [, size, unit] of UNITS)
    if (w % size === 0n) return w === size ? unit : `${w / size}${unit}`;
  return `${w / 1_000_000n}ms`;
}

export const rate_text = (p) => `${p.n}/${window_text(p.w)}`;

// Of a lease's life: no unit alone.
export function duration_text(ns) {
  for (const [, size, unit] of UNITS) if (ns % size === 0n) return `${ns / size}${unit === "day" ? "d" : unit}`;
  return `${ns / 1_000_000n}ms`;
}

export const ALGORITHMS = {
  token_bucket: {
    title: "Token bucket", core: "token_bucket", uses: "b", page: "token-bucket",
    how: "A bucket holds B tokens and starts full. N tokens return per window, continuously. A request takes one, or is denied.",
    settings: (p) => ({ burst: p.b }),
    bound: bucket_bound, bound_text: "B + N − 1",
    why: "Take the whole bucket at once. While one window passes, N more tokens drip in, and you take each as it comes. With B = N that is nearly 2N. A smaller burst B lowers it.",
    yaml: (p) => [`algorithm: token_bucket`, `rate: ${rate_text(p)}`, `burst: ${p.b}`],
  },
  gcra: {
    title: "GCRA", core: "gcra", uses: "b", page: "token-bucket",
    how: "Keeps one time: TAT, when the next request is due. Each request moves TAT by T = W/N. It is denied if TAT would lie more than B·T ahead of now.",
    settings: (p) => ({ burst: p.b }),
    bound: bucket_bound, bound_text: "B + N − 1",
    why: "It decides exactly as the token bucket does: B at once, and then one each T. The test three_buckets_decide_identically shows it.",
    yaml: (p) => [`algorithm: gcra`, `rate: ${rate_text(p)}`, `burst: ${p.b}`],
  },
  leaky_meter: {
    title: "Leaky bucket", core: "leaky_bucket", uses: "b", page: "leaky-bucket",
    how: "A level that leaks N per window, in a bucket of B. Each request adds one. A request that would overflow the bucket is denied.",
    settings: (p) => ({ burst: p.b }),
    bound: bucket_bound, bound_text: "B + N − 1",
    why: "Fill the bucket at once, and then add one whenever one has leaked. It is the token bucket upside down, with the same bound.",
    yaml: (p) => [`algorithm: leaky_bucket`, `rate: ${rate_text(p)}`, `burst: ${p.b}`],
  },
  leaky_queue: {
    title: "Leaky queue", core: "leaky_queue", uses: "b", page: "leaky-bucket", strict: true,
    how: "Requests wait instead of being denied. One leaves each T = W/N, and up to B wait. Only a full queue denies.",
    settings: (p) => ({ burst: p.b }),
    bound: (p) => p.n + p.c - 1n, bound_text: "N, and one less than the largest cost,",
    why: "However many you send at once, one leaves each T. What is behind the queue never sees more than N in any window. The price is the wait.",
    yaml: (p) => [`algorithm: leaky_bucket`, `queue: true`, `rate: ${rate_text(p)}`, `burst: ${p.b}`],
  },
  fixed_window: {
    title: "Fixed window", core: "fixed_window", uses: "", page: "fixed-window",
    how: "One counter per window of the clock. At each border it starts again at 0.",
    settings: () => ({}),
    bound: (p) => 2n * p.n, bound_text: "2N",
    why: "Send N at the very end of a window and N right after the border. Both windows are within their limit, and 2N pass within moments.",
    yaml: (p) => [`algorithm: fixed_window`, `rate: ${rate_text(p)}`],
  },
  two_counters: {
    title: "Two counters", core: "sliding_window", uses: "", page: "sliding-window",
    how: "The default. Counts this window and the one before. The older count fades out in proportion to how much of it has left the window.",
    settings: () => ({ segments: 1n }),
    bound: (p) => 2n * p.n, bound_text: "2N",
    why: "The older counter assumes that its requests were spread evenly. Send N at the very end of one window, wait until that count has faded, and send N at the end of the next: less than W lies between.",
    yaml: (p) => [`algorithm: sliding_window`, `rate: ${rate_text(p)}`],
  },
  segments: {
    title: "60 segments", core: "sliding_window", uses: "", page: "sliding-window",
    how: "The window has 60 counters. Only the oldest fades, so that the error is at most what one segment holds.",
    settings: () => ({ segments: 60n }),
    bound: (p) => 2n * p.n, bound_text: "2N",
    why: "The same attack, but the burst has to fit the end of one segment and the moment at which that segment has faded. Other traffic gets N and a few more.",
    yaml: (p) => [`algorithm: sliding_window`, `segments: 60`, `rate: ${rate_text(p)}`],
  },
  strict: {
    title: "Strict segments", core: "sliding_window", uses: "s", page: "sliding-window", strict: true,
    how: "S counters, and the oldest counts in full until it has left. Never more than N in any window; the price is that a request counts for up to W + W/S.",
    settings: (p) => ({ segments: p.s, strict: 1n }),
    bound: (p) => p.n, bound_text: "N",
    why: "No count fades. Whatever you sent during the last W is in one of the segments that count in full, so there is never room for more than N.",
    yaml: (p) => [`algorithm: sliding_window`, `segments: ${p.s}`, `strict: true`, `rate: ${rate_text(p)}`],
  },
  sliding_log: {
    title: "Sliding log", core: "sliding_log", uses: "", page: "sliding-log", strict: true,
    how: "Keeps the time of every admission of the last W, and so is exact. A place is free exactly W after it was taken.",
    settings: () => ({}),
    bound: (p) => p.n, bound_text: "N",
    why: "It remembers each request for exactly W. There is nothing to aim at: no border, no estimate.",
    yaml: (p) => [`algorithm: sliding_log`, `rate: ${rate_text(p)}`],
  },
  concurrency: {
    title: "Concurrency", core: "concurrency", uses: "l", page: "concurrency", strict: true, held: true,
    how: "Limits what is in flight at one time, not a rate. Each admitted request holds one of N places until it ends.",
    settings: (p) => ({ window: p.l }),
    bound: (p) => p.n, bound_text: "N at one time",
    why: "N places are N places. Shorter requests let more through per minute, but never more at one time.",
    yaml: (p) => [`algorithm: concurrency`, `limit: ${p.n}`, `life: ${duration_text(p.l)}`],
  },
  quota: {
    title: "Quota", core: "quota", uses: "r", page: "quota",
    how: "One counter per calendar period, such as a month. Up to R unused units come over from the period before. Here, a period lasts W.",
    settings: (p) => ({ rollover: p.r }),
    bound: (p) => 2n * p.n + p.r, bound_text: "2N + R",
    why: "Save R from the period before, spend N + R at the end of this one, and N at the start of the next. A quota is for what is sold by the month; add a rate to bound how fast it is used.",
    yaml: (p) => [`quota: ${p.n}/month`, `rollover: ${p.r}`],
  },
};

export const NAMES = Object.keys(ALGORITHMS);

// What lane_open reads.
export function settings_of(name, p) {
  const algorithm = ALGORITHMS[name];
  return { algorithm: CORE[algorithm.core], rate: p.n, window: p.w, ...algorithm.settings(p) };
}

// The exact log that judges the others.
export const judge_settings = (p) => settings_of("sliding_log", p);

// The length of the window that the bound is about.
export const bound_window = (name, p) => ALGORITHMS[name].held ? p.l : p.w;

const NUMBERS = /^(rate|burst|limit|life|rollover):/;

// The keys of a rules file that make the algorithm, without its numbers: "sliding_window, segments: 60".
export const yaml_name = (name, p) => ALGORITHMS[name].yaml(p).filter((line) => !NUMBERS.test(line))
  .map((line) => line.replace(/^algorithm: /, "")).join(", ");

const limit_yaml = (name, p, limit, more = []) => [`  - name: ${limit}`, "    key: [user]",
  ...[...ALGORITHMS[name].yaml(p), ...more].map((line) => `    ${line}`)];

// A rules file with one limit, or with several that are tried side by side.
export function yaml_of(names, p) {
  const limits = names.length === 1 ? limit_yaml(names[0], p, "api")
    : ["  # Each only counts what it would deny. Keep one, and remove its `shadow`.",
      ...names.flatMap((name) => limit_yaml(name, p, name.replaceAll("_", "-"), ["shadow: true"]))];
  return ["version: 1", "limits:", ...limits, ""].join("\n");
}

// The requests that get the most through: [time, cost] pairs that reach the bound.
export function attack(name, p) {
  const { n, w, b, r } = p, times = (count, at) => Array(Number(count)).fill([at, 1n]);
  // Starts in the second window, so that there is one before it.
  const end = 2n * w - 1n;
  switch (name) {
    case "token_bucket": case "gcra": case "leaky_meter": {
      const list = times(b, w);
      for (let k = 1n; k < n; k++) list.push([w + (k * w + n - 1n) / n, 1n]);
      return list;
    }
    case "fixed_window": return [...times(n, end), ...times(n, end + 1n)];
    case "quota": return [...times(n + r, end), ...times(n, end + 1n)];
    case "segments": return [...times(n, end), ...times(n, end + w - 1n)];
    case "leaky_queue": return times(2n * n + b, w);
    case "concurrency": return times(2n * n, w);
    default: return [...times(n, end), ...times(n, end + w - 1n)];
  }
}
