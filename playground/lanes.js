// SPDX-License-Identifier: Apache-2.0
// weir's core as WebAssembly (see lanes.c): requests, and lanes that decide them. Times are BigInts
// of nanoseconds throughout; a time never becomes a Number.
import base64 from "./core.js";

// enum weir_algorithm of include/weir/limit.h.
export const CORE = {
  fixed_window: 0n, sliding_window: 1n, sliding_log: 2n, token_bucket: 3n, gcra: 4n,
  leaky_bucket: 5n, leaky_queue: 6n, concurrency: 7n, quota: 8n,
};
export const NEVER = 0xffffffffffffffffn;

const OUTCOME_WORDS = 3;
const SETTINGS = ["algorithm", "rate", "window", "burst", "segments", "strict", "rollover",
  "calendar"];

export async function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A module of the build: gzipped, in base64.
export async function open_module(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(await gunzip(bytes), {});
  return instance.exports;
}

export const open_core = () => open_module(base64);

// Requests in the order of their times, and lanes that have decided all of them.
export class Lanes {
  constructor(core) {
    this.core = core;
    this.most = core.requests_max();
    this.words = new BigUint64Array(core.memory.buffer, core.memory_of_requests(), 2 * this.most);
    this.settings = new BigUint64Array(core.memory.buffer, core.memory_of_settings(),
      SETTINGS.length);
    this.looked = new BigUint64Array(core.memory.buffer, core.memory_of_look(), 6);
    this.count = 0;
    this.open = 0; // lanes that are open
    this.version = 0; // changes with the requests
  }

  at(i) { return this.words[2 * i]; }
  cost(i) { return this.words[2 * i + 1]; }
  allowed(lane) {
    return new Uint8Array(this.core.memory.buffer, this.core.memory_of_allowed(lane), this.most);
  }
  outcome(lane, i) {
    const words = new BigUint64Array(this.core.memory.buffer, this.core.memory_of_outcomes(lane),
      OUTCOME_WORDS * this.most);
    return {
      allowed: this.allowed(lane)[i] === 1,
      remaining: words[OUTCOME_WORDS * i],
      retry: words[OUTCOME_WORDS * i + 1],
      delay: words[OUTCOME_WORDS * i + 2],
    };
  }

  // Opens lanes 0, 1, … by their settings, and lets them decide all requests. Returns "" or what is
  // wrong with one of the settings; that lane denies everything.
  configure(lanes) {
    let problem = "";
    lanes.forEach((lane, number) => {
      SETTINGS.forEach((name, i) => { this.settings[i] = BigInt(lane[name] ?? 0n); });
      if (this.core.lane_open(number) !== 0) problem ||= this.reason();
      this.core.lane_run(number, 0, this.count);
    });
    this.open = lanes.length;
    return problem;
  }

  reason() {
    const bytes = new Uint8Array(this.core.memory.buffer, this.core.memory_of_reason(), 256);
    const text = new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
    return text || "This limit is too large for the playground.";
  }

  // Replaces all requests by [time, cost] pairs, in order; call configure afterwards. Returns how
  // many there was room for.
  load(list) {
    this.count = Math.min(list.length, this.most);
    this.version++;
    for (let i = 0; i < this.count; i++) {
      this.words[2 * i] = list[i][0];
      this.words[2 * i + 1] = list[i][1];
    }
    return this.count;
  }

  largest_cost() {
    let largest = 1n;
    for (let i = 0; i < this.count; i++) if (this.cost(i) > largest) largest = this.cost(i);
    return largest;
  }

  list() {
    return Array.from({ length: this.count }, (_, i) => [this.at(i), this.cost(i)]);
  }

  // Adds a request behind those of its time. Returns its index, or -1 where there is no room. Where
  // it is not the last, configure has to decide again.
  insert(at, cost) {
    if (this.count === this.most) return -1;
    const i = this.until(at);
    this.words.copyWithin(2 * (i + 1), 2 * i, 2 * this.count);
    this.words[2 * i] = at;
    this.words[2 * i + 1] = cost;
    this.count++;
    this.version++;
    if (i === this.count - 1)
      for (let lane = 0; lane < this.open; lane++) this.core.lane_run(lane, i, this.count);
    return i;
  }

  // How many requests have a time of at most `now`.
  until(now) {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.words[2 * middle] <= now) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // What a lane says at `now`, after its first `count` requests, to a cost of 1.
  look(lane, count, now) {
    this.core.lane_seek(lane, count);
    this.core.lane_look(lane, now);
    const [allowed, remaining, retry, reset, owed, depth] = this.looked;
    return { allowed: allowed === 1n, remaining, retry, reset, owed, depth };
  }

  // The costs that passed in [from, to).
  sum(lane, count, from, to) {
    if (from < 0n) from = 0n;
    return to > from ? this.core.lane_sum(lane, count, from, to) & NEVER : 0n;
  }

  worst(lane, count, window) {
    this.core.lane_worst(lane, count, window);
    return { most: this.looked[0], from: this.looked[1] };
  }

  judge(lane, judge, count) {
    this.core.lane_judge(lane, judge, count);
    const [admitted, denied, wrong_allows, wrong_denials] = this.looked;
    return { admitted, denied, wrong_allows, wrong_denials };
  }

  // The admitted requests among the first `count` that are seen in (from, to]: [index, time, when
  // they pass], newest last and at most `most` of them.
  admitted(lane, count, from, most) {
    const allowed = this.allowed(lane), found = [];
    for (let i = count - 1; i >= 0 && found.length < most; i--) {
      const at = this.at(i);
      if (at <= from) break;
      if (allowed[i]) found.push([i, at, at + this.outcome(lane, i).delay]);
    }
    return found.reverse();
  }
}
