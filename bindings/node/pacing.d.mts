// SPDX-License-Identifier: Apache-2.0
/** Options of pacingFetch; absent is the default. */
export interface PacingOptions {
  /** The most that is sent to an origin, whatever its server says: '10/s', '600/min burst 20'. */
  rate?: string;
  /** Tries of one request; default 5. */
  attempts?: number;
  /** The first wait between tries; default 100. */
  baseMs?: number;
  /** By which waits grow; default 2. */
  factor?: number;
  /** The longest wait; default 20000. */
  capMs?: number;
  jitter?: 'full' | 'equal' | 'none';
  /** Statuses that are tried again; default 429, 500, 502, 503, 504, 529. */
  retryStatuses?: number[];
  /** Requests in flight to an origin; default 6. */
  concurrency?: number;
  /** No wait is longer: an answer that asks for more is the last one, and a request that would have to wait longer for its
   * turn fails (DOMException, TimeoutError); default 60000. */
  maxWaitMs?: number;
  /** For tests: what sends, the clocks, timers, and random numbers. */
  fetch?: typeof globalThis.fetch;
  now?: () => number;
  wall?: () => number;
  /** Resolves after so many milliseconds. */
  timer?: (ms: number) => Promise<void>;
  random?: () => number;
}

/** A function as `fetch`, which keeps to the limits of servers. */
export function pacingFetch(options?: PacingOptions): typeof globalThis.fetch;
/** A rate as text, in numbers. RangeError: it is none. */
export function parseRate(text: string): { intervalMs: number; burst: number };
/** The limits that the fields of an answer state. */
export function statedLimits(headers: Headers, wallMs: number): { remaining: number; resetMs: number }[];
/** The wait after try number `tries`, 1 and up. */
export function backoff(options: { baseMs: number; factor: number; capMs: number; jitter: string; random: () => number },
  tries: number): number;
