// SPDX-License-Identifier: Apache-2.0
// A `fetch` for browsers that keeps to servers' limits: JavaScript alone, no native code, no modules.
//
//     import { pacingFetch } from 'weir/pacing';
//     const paced = pacingFetch({ rate: '10/s' });
//     const answer = await paced('https://api.example.com/things/1');
//
// Requests of one origin wait in one line. It begins with one in flight, and one more with each answer. What answers
// say (RateLimit of draft 8 and later, RateLimit-* and X-RateLimit-*, Retry-After) is kept to: where more wait than
// a limit has room for, they are spread over what is left of its window; where nothing is left, all wait. 429, 503 and
// the like are tried again, if the method allows it. A wait that would be longer than maxWaitMs is not begun: an answer
// that asks for it is the last one, and requests that would have to wait so long for their turn fail (TimeoutError). It is less than libweir-client (docs/client.md): it knows only this
// page, and learns no rate that no answer states. In browsers, a server of another origin must name these fields in
// Access-Control-Expose-Headers.

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);
const UNITS = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 };
const MARGIN = 1.02; // of a pace: clocks and networks differ
const EPOCH_S = 1e9; // a larger X-RateLimit-Reset is a time since 1970,
const EPOCH_MS = 1e11; // and one larger than this has it in ms
const HORIZON_MS = 32 * 86_400_000;

// '10/s', '600/min burst 20', '5/10s': the interval in ms, and the burst.
export function parseRate(text) {
  const found = /^\s*([1-9]\d{0,8})\/(\d*)(ms|s|min|h|d)(?:\s+burst\s+([1-9]\d{0,8}))?\s*$/.exec(text);
  if (!found || found[2] === '0')
    throw new RangeError(`rate: such as 10/s or '600/min burst 20', not ${JSON.stringify(text)}`);
  return { intervalMs: Number(found[2] || 1) * UNITS[found[3]] / Number(found[1]), burst: Number(found[4] ?? 1) };
}

function number(value) {
  const found = /^\s*(\d+(?:\.\d+)?)/.exec(value ?? '');
  return found ? Number(found[1]) : null;
}

// The wait of Retry-After in ms: seconds or a date; null: none.
function retryAfter(headers, wallMs) {
  const value = headers.get('retry-after');
  if (value === null)
    return null;
  const wait = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - wallMs;
  return Number.isFinite(wait) ? Math.min(Math.max(0, wait), HORIZON_MS) : null;
}

// The limits that an answer states: [{ remaining, resetMs }].
export function statedLimits(headers, wallMs) {
  const limits = [];
  const add = (remaining, reset) => {
    if (remaining === null || reset === null)
      return;
    const ms = reset > EPOCH_MS ? reset - wallMs : reset > EPOCH_S ? reset * 1000 - wallMs : reset * 1000;
    limits.push({ remaining, resetMs: Math.min(Math.max(0, ms), HORIZON_MS) });
  };
  for (const item of (headers.get('ratelimit') ?? '').split(',')) {
    const r = /;\s*r=(\d+)/.exec(item);
    const t = /;\s*t=(\d+)/.exec(item);
    if (r && t)
      add(Number(r[1]), Number(t[1]));
  }
  for (const prefix of ['ratelimit', 'x-ratelimit', 'x-rate-limit'])
    add(number(headers.get(`${prefix}-remaining`)), number(headers.get(`${prefix}-reset`)));
  return limits;
}

class Origin {
  constructor(options) {
    this.options = options;
    this.waiting = [];
    this.inFlight = 0;
    this.most = 1; // in flight; one more with each answer
    this.pausedMs = 0; // until then nothing is sent
    this.nextMs = 0; // the pace
    this.limits = []; // { left, endMs }
    this.fullMs = 0; // of the own bucket: when it is full again
    this.timerMs = Infinity; // when run is called again
  }

  // Resolves when a request may be sent. Fails where nothing is in flight, whose answer may change it, and the next one may
  // be sent only after more than maxWaitMs.
  turn(signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted)
        return reject(signal.reason);
      const abort = () => {
        this.waiting.splice(this.waiting.indexOf(one), 1);
        reject(signal.reason);
      };
      // A signal may outlive many requests: it keeps nothing of one that is on its way.
      const end = (settle) => (value) => {
        signal?.removeEventListener('abort', abort);
        settle(value);
      };
      const one = { go: end(resolve), fail: end(reject) };
      signal?.addEventListener('abort', abort, { once: true });
      this.waiting.push(one);
      this.run();
    });
  }

  when(now) {
    const { own } = this.options;
    let when = Math.max(this.pausedMs, own ? this.fullMs - (own.burst - 1) * own.intervalMs : 0);
    this.limits = this.limits.filter((limit) => limit.endMs > now);
    for (const limit of this.limits)
      if (limit.left < 1)
        when = Math.max(when, limit.endMs);
      else if (this.waiting.length > limit.left)
        when = Math.max(when, Math.min(this.nextMs, limit.endMs));
    return when;
  }

  failAll(waitMs) {
    const seconds = Math.ceil(waitMs / 1000);
    for (const one of this.waiting.splice(0))
      one.fail(new DOMException(`the next request may be sent in ${seconds} s, which is more than maxWaitMs`, 'TimeoutError'));
  }

  run() {
    const { now, timer, own, maxWaitMs } = this.options;
    while (this.waiting.length > 0 && this.inFlight < this.most) {
      const at = now();
      const when = this.when(at);
      if (when > at) {
        if (this.inFlight === 0 && Math.floor(when - at) > maxWaitMs) {
          this.failAll(when - at);
        } else if (when < this.timerMs) {
          this.timerMs = when;
          timer(when - at).then(() => {
            this.timerMs = Infinity;
            this.run();
          });
        }
        return;
      }
      let interval = 0;
      for (const limit of this.limits) {
        interval = Math.max(interval, (limit.endMs - at) / limit.left * MARGIN);
        limit.left--;
      }
      this.nextMs = at + interval;
      if (own)
        this.fullMs = Math.max(this.fullMs, at) + own.intervalMs;
      this.inFlight++;
      this.waiting.shift().go();
    }
  }

  // `response` null: there was none.
  end(response) {
    const { now, wall, random, maxWaitMs } = this.options;
    const at = now();
    this.inFlight--;
    if (response) {
      const limited = response.status === 429 || response.status === 503;
      this.most = limited ? 1 : Math.min(this.most + 1, this.options.concurrency);
      const stated = statedLimits(response.headers, wall());
      if (stated.length > 0) // those in flight are not counted in what remains
        this.limits = stated.map(({ remaining, resetMs }) => ({ left: remaining - this.inFlight, endMs: at + resetMs }));
      const wait = retryAfter(response.headers, wall());
      if (response.status >= 400 && wait !== null) {
        const spread = Math.min(wait * random() / 10, Math.max(0, maxWaitMs - wait));
        this.pausedMs = Math.max(this.pausedMs, at + wait + spread);
      }
    } else {
      this.most = 1;
    }
    this.run();
  }
}

function settings(options) {
  const made = { fetch: globalThis.fetch?.bind(globalThis), now: () => globalThis.performance.now(), wall: () => Date.now(),
    timer: (ms) => new Promise((resolve) => { setTimeout(resolve, Math.min(ms, 2 ** 31 - 1)); }), random: Math.random,
    attempts: 5, baseMs: 100, factor: 2, capMs: 20_000, jitter: 'full', concurrency: 6, maxWaitMs: 60_000,
    retryStatuses: [429, 500, 502, 503, 504, 529] };
  for (const [name, value] of Object.entries(options)) {
    if (!(name in made) && name !== 'rate')
      throw new TypeError(`no option ${name}`);
    if (value !== undefined)
      made[name] = value;
  }
  if (!['full', 'equal', 'none'].includes(made.jitter))
    throw new RangeError('jitter: full, equal or none');
  if (!(Number.isInteger(made.attempts) && made.attempts >= 1 && made.factor >= 1 && made.baseMs > 0 && made.capMs >= made.baseMs))
    throw new RangeError('attempts: 1 and up; factor: 1 and up; capMs: baseMs and up');
  made.own = options.rate === undefined ? null : parseRate(options.rate);
  return made;
}

// The wait after try number `tries`, 1 and up.
export function backoff({ baseMs, factor, capMs, jitter, random }, tries) {
  const most = Math.min(capMs, baseMs * factor ** (tries - 1));
  return jitter === 'none' ? most : jitter === 'equal' ? most / 2 + random() * most / 2 : random() * most;
}

// Resolves after `ms`, unless the signal fails it first.
function pause(timer, ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted)
      return reject(signal.reason);
    const abort = () => reject(signal.reason);
    signal?.addEventListener('abort', abort, { once: true });
    timer(ms).then(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
  });
}

// A function as `fetch`. Options: rate, attempts, baseMs, factor, capMs, jitter, retryStatuses, concurrency, maxWaitMs (no
// wait is longer), and for tests fetch, now, wall, timer, random.
export function pacingFetch(options = {}) {
  const made = settings(options);
  const origins = new Map();
  const originOf = (url) => {
    const { origin } = new URL(url, globalThis.location?.href);
    if (!origins.has(origin))
      origins.set(origin, new Origin(made));
    return origins.get(origin);
  };
  return async function paced(input, init = {}) {
    const request = typeof input === 'object' && 'method' in input ? input : null;
    const method = (init.method ?? request?.method ?? 'GET').toUpperCase();
    const signal = init.signal ?? request?.signal;
    const headers = new Headers(init.headers ?? request?.headers);
    const streams = typeof (init.body ?? request?.body)?.getReader === 'function'; // it can be sent once
    const again = (IDEMPOTENT.has(method) || headers.has('idempotency-key')) && !streams;
    const origin = originOf(request ? request.url : input);
    for (let tries = 1; ; tries++) {
      await origin.turn(signal);
      let response = null;
      let error;
      try {
        response = await made.fetch(request && again ? request.clone() : input, init);
      } catch (caught) {
        error = caught;
      }
      origin.end(response);
      const after = response ? retryAfter(response.headers, made.wall()) : null;
      const used = response ? statedLimits(response.headers, made.wall()).filter((limit) => limit.remaining < 1) : [];
      const asked = Math.max(after ?? 0, ...used.map((limit) => limit.resetMs));
      const last = tries >= made.attempts || !again || signal?.aborted || asked > made.maxWaitMs ||
        (response && !made.retryStatuses.includes(response.status));
      if (last && response)
        return response;
      if (last)
        throw error;
      await response?.body?.cancel?.();
      if (after === null)
        await pause(made.timer, Math.min(backoff(made, tries), made.maxWaitMs), signal);
    }
  };
}
