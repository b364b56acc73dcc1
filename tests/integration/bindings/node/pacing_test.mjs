// SPDX-License-Identifier: Apache-2.0
// The pacing fetch for browsers, in virtual time, against servers that count. node pacing_test.mjs URL-OF-THE-MODULE
import assert from 'node:assert/strict';

const { pacingFetch, parseRate, statedLimits, backoff } = await import(process.argv[2]);
const LATENCY_MS = 20;

// Time that stands still until all that can run has run.
class Clock {
  constructor() {
    this.ms = 0;
    this.timers = [];
  }

  now = () => this.ms;
  wall = () => 1_700_000_000_000 + this.ms;
  // Resolves when this clock has advanced by so much.
  advanced = (ms) => new Promise((resolve) => { this.timers.push({ at: this.ms + ms, resolve }); });

  async run(work) {
    let ended = false;
    const all = work.finally(() => { ended = true; });
    all.catch(() => {});
    while (!ended) {
      await new Promise((resolve) => { setImmediate(resolve); });
      if (ended)
        break;
      if (this.timers.length === 0)
        continue;
      this.timers.sort((a, b) => a.at - b.at);
      const { at, resolve } = this.timers.shift();
      this.ms = Math.max(this.ms, at);
      resolve();
    }
    return all;
  }
}

// Counts in fixed windows; `fields(remaining, resetMs, clock)` are what it states.
function counting(clock, limit, windowMs, fields) {
  const seen = { 200: 0, 429: 0, times: [] };
  let index = -1;
  let count = 0;
  const fetch = async () => {
    await clock.advanced(LATENCY_MS / 2);
    const now = Math.floor(clock.ms / windowMs);
    if (now !== index)
      [index, count] = [now, 0];
    const status = count < limit ? 200 : 429;
    count += status === 200 ? 1 : 0;
    seen[status]++;
    seen.times.push(clock.ms);
    const resetMs = (index + 1) * windowMs - clock.ms;
    const headers = fields(limit - count, resetMs, clock);
    if (status === 429)
      headers['Retry-After'] = String(Math.ceil(resetMs / 1000));
    await clock.advanced(LATENCY_MS / 2);
    return new Response(null, { status, headers });
  };
  return { fetch, seen };
}

const DIALECTS = {
  draft: (r, ms) => ({ RateLimit: `"a";r=${r};t=${Math.ceil(ms / 1000)}`, 'RateLimit-Policy': '"a";q=20;w=10' }),
  'draft-03': (r, ms) => ({ 'RateLimit-Limit': '20', 'RateLimit-Remaining': String(r), 'RateLimit-Reset': String(Math.ceil(ms / 1000)) }),
  'x-delta': (r, ms) => ({ 'X-RateLimit-Remaining': String(r), 'X-RateLimit-Reset': String(Math.ceil(ms / 1000)) }),
  'x-epoch': (r, ms, clock) => ({ 'X-RateLimit-Remaining': String(r), 'X-RateLimit-Reset': String(Math.ceil((clock.wall() + ms) / 1000)) }),
};

function seeded(seed) {
  return () => (seed = (seed * 16807) % 2147483647) / 2147483647;
}

const paced = (clock, server, options = {}) =>
  pacingFetch({ fetch: server.fetch, now: clock.now, wall: clock.wall, timer: clock.advanced, random: seeded(7), ...options });

const many = (fetch, count, init) => Promise.all(Array.from({ length: count }, (_, i) => fetch(`https://api.test/${i}`, init)));

for (const [name, fields] of Object.entries(DIALECTS)) {
  const clock = new Clock();
  const server = counting(clock, 20, 10_000, fields);
  const answers = await clock.run(many(paced(clock, server), 200));
  assert.ok(answers.every((answer) => answer.status === 200), name);
  assert.ok(server.seen[429] <= 2, `${name}: ${server.seen[429]} refusals`); // 1 % of 200
  assert.ok(clock.ms >= 90_000 && clock.ms <= 115_000, `${name}: ${clock.ms} ms`); // 200 under 20 in 10 s
}

{ // what has room is not spread
  const clock = new Clock();
  const server = counting(clock, 20, 10_000, DIALECTS.draft);
  await clock.run(many(paced(clock, server), 15));
  assert.ok(clock.ms < 1000 && server.seen[429] === 0, `${clock.ms}`);
}

{ // a server that states nothing but Retry-After
  const clock = new Clock();
  const server = counting(clock, 20, 10_000, () => ({}));
  const answers = await clock.run(many(paced(clock, server, { attempts: 10 }), 100));
  assert.ok(answers.every((answer) => answer.status === 200));
  assert.ok(server.seen[429] <= 40, `${server.seen[429]}`);
}

{ // a rate of one's own: never more in any second
  const clock = new Clock();
  const server = counting(clock, 1e9, 10_000, () => ({}));
  await clock.run(many(paced(clock, server, { rate: '10/s burst 3' }), 100));
  const { times } = server.seen;
  for (let i = 0; i + 13 < times.length; i++)
    assert.ok(times[i + 13] - times[i] >= 1000 - 1e-6);
  assert.ok(clock.ms >= 9700 && clock.ms <= 9800, `${clock.ms}`);
}

{ // origins do not wait for each other
  const clock = new Clock();
  const server = counting(clock, 1e9, 10_000, () => ({}));
  const fetch = paced(clock, server, { rate: '1/min' });
  await clock.run(Promise.all(['a', 'b', 'c'].map((host) => fetch(`https://${host}.test/`))));
  assert.ok(clock.ms < 100);
}

{ // what is tried again, how often, and what is not
  const outcomes = async (statuses, options, init) => {
    const clock = new Clock();
    let asked = 0;
    const fetch = async () => {
      await clock.advanced(1);
      const status = statuses[Math.min(asked++, statuses.length - 1)];
      if (status === 0)
        throw new TypeError('network');
      return new Response(null, { status });
    };
    const result = await clock.run(paced(clock, { fetch }, options)('https://a.test/', init).then((one) => one.status, (error) => error.message));
    return [result, asked, clock.ms];
  };
  const plain = { jitter: 'none', baseMs: 100, factor: 3 };
  assert.deepEqual(await outcomes([503, 503, 200], plain), [200, 3, 403]); // 100 and 300 ms of waits, 3 of tries
  assert.deepEqual((await outcomes([503], { attempts: 4 })).slice(0, 2), [503, 4]);
  assert.deepEqual((await outcomes([503, 200], {}, { method: 'POST' })).slice(0, 2), [503, 1]);
  assert.deepEqual((await outcomes([503, 200], {}, { method: 'POST', headers: { 'Idempotency-Key': 'k' } })).slice(0, 2), [200, 2]);
  assert.deepEqual((await outcomes([503, 200], { retryStatuses: [429] })).slice(0, 2), [503, 1]);
  assert.deepEqual((await outcomes([0, 200], {})).slice(0, 2), [200, 2]);
  assert.deepEqual((await outcomes([0], { attempts: 2 })).slice(0, 2), ['network', 2]);
  assert.deepEqual((await outcomes([404], {})).slice(0, 2), [404, 1]);
}

{ // an answer that asks for more time than there is, is the last one
  const clock = new Clock();
  const fetch = async () => new Response(null, { status: 429, headers: { 'Retry-After': '3600' } });
  const answer = await clock.run(paced(clock, { fetch })('https://a.test/'));
  assert.ok(answer.status === 429 && clock.ms < 100);
}

{ // so is one that has nothing left, and states a far reset
  const clock = new Clock();
  const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '2000000' };
  let asked = 0;
  const fetch = paced(clock, { fetch: async () => { asked++; return new Response(null, { status: 429, headers }); } });
  assert.equal((await clock.run(fetch('https://a.test/'))).status, 429);
  const others = await clock.run(Promise.allSettled([fetch('https://a.test/'), fetch('https://a.test/')]));
  assert.deepEqual(others.map((other) => other.reason.name), ['TimeoutError', 'TimeoutError']);
  assert.match(others[0].reason.message, /in 2000000 s/);
  assert.ok(asked === 1 && clock.ms === 0, `${asked} ${clock.ms}`);
}

{ // a wait of maxWaitMs is begun, with all that is added to it, and a longer one is not
  for (const [headers, waits] of [[{ 'Retry-After': '60' }, true], [{ 'Retry-After': '61' }, false],
    [{ 'RateLimit-Remaining': '0', 'RateLimit-Reset': '60' }, true], [{ 'RateLimit-Remaining': '0', 'RateLimit-Reset': '61' }, false],
    [{ 'RateLimit-Remaining': '1', 'RateLimit-Reset': '60' }, true]]) {
    const clock = new Clock();
    const answers = [new Response(null, { status: 429, headers }), new Response(null)];
    const fetch = paced(clock, { fetch: async () => answers.shift() ?? new Response(null) });
    const [first, second] = await clock.run(Promise.allSettled([fetch('https://a.test/'), fetch('https://a.test/')]));
    assert.equal(first.value.status, waits ? 200 : 429, JSON.stringify(headers));
    assert.equal(second.reason?.name, waits ? undefined : 'TimeoutError', JSON.stringify(headers));
    assert.ok(clock.ms <= 60_000, `${clock.ms}`);
  }
}

{ // a backoff is no longer than that, and a rate of one's own waits no longer
  const clock = new Clock();
  const failing = async () => new Response(null, { status: 503 });
  await clock.run(paced(clock, { fetch: failing }, { attempts: 2, jitter: 'none', baseMs: 5000, maxWaitMs: 1000 })('https://a.test/'));
  assert.equal(clock.ms, 1000);
  const fetch = paced(clock, { fetch: async () => new Response(null) }, { rate: '1/h' });
  await clock.run(fetch('https://a.test/'));
  await assert.rejects(clock.run(fetch('https://a.test/')), { name: 'TimeoutError' });
  assert.equal(clock.ms, 1000);
}

{ // a signal ends a backoff at once, and keeps nothing of it
  const clock = new Clock();
  const under = new AbortController();
  let asked = 0;
  const fetch = async () => { asked++; return new Response(null, { status: 503 }); };
  const options = { jitter: 'none', baseMs: 5000 };
  const work = paced(clock, { fetch }, options)('https://a.test/', { signal: under.signal });
  clock.advanced(100).then(() => under.abort());
  await assert.rejects(clock.run(work), { name: 'AbortError' });
  assert.ok(asked === 1 && clock.ms === 100, `${asked} ${clock.ms}`);
}

{ // a signal ends one that waits
  const clock = new Clock();
  const server = counting(clock, 1e9, 10_000, () => ({}));
  const fetch = paced(clock, server, { rate: '1/h' });
  const under = new AbortController();
  const work = Promise.all([fetch('https://a.test/'), fetch('https://a.test/', { signal: under.signal }).catch((error) => error.name)]);
  under.abort();
  assert.equal((await clock.run(work))[1], 'AbortError');
  assert.equal(server.seen[200], 1);
}

{ // a signal keeps nothing of requests that have ended
  const { signal } = new AbortController();
  let listeners = 0;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (...given) => { listeners++; add(...given); };
  signal.removeEventListener = (...given) => { listeners--; remove(...given); };
  const clock = new Clock();
  const fetch = async () => new Response(null);
  await clock.run(many(paced(clock, { fetch }), 20, { signal }));
  let failures = 3;
  const failing = async () => new Response(null, { status: failures-- > 0 ? 503 : 200 });
  assert.equal((await clock.run(paced(clock, { fetch: failing })('https://a.test/', { signal }))).status, 200);
  assert.equal(listeners, 0);
}

{ // an answer with more room, or an earlier reset, ends a longer wait
  const clock = new Clock();
  const states = [[50, 10], [0, 3600], [3, 1]];
  let asked = 0;
  const fetch = async () => {
    const number = asked++;
    const [left, reset] = states[Math.min(number, 2)];
    await clock.advanced(number === 2 ? 100 : 10);
    return new Response(null, { headers: { 'X-RateLimit-Remaining': String(left), 'X-RateLimit-Reset': String(reset) } });
  };
  await clock.run(many(paced(clock, { fetch }), 12));
  assert.ok(clock.ms < 60_000, `${clock.ms}`);
}

{ // bounds of waits, and what cannot be
  const random = seeded(3);
  for (let tries = 1; tries < 60; tries++) {
    const spec = { baseMs: 100, factor: 2, capMs: 5000, random };
    const most = Math.min(5000, 100 * 2 ** (tries - 1));
    const full = backoff({ ...spec, jitter: 'full' }, tries);
    const equal = backoff({ ...spec, jitter: 'equal' }, tries);
    assert.ok(full >= 0 && full <= most && equal >= most / 2 && equal <= most);
    assert.equal(backoff({ ...spec, jitter: 'none' }, tries), most);
  }
  assert.deepEqual(parseRate('600/min burst 20'), { intervalMs: 100, burst: 20 });
  for (const wrong of ['', '10', '0/s', '10/x', '-1/s', '10/0s', '10/s burst'])
    assert.throws(() => parseRate(wrong), RangeError);
  for (const wrong of [{ jitter: 'some' }, { attempts: 0 }, { factor: 0.5 }, { rate: 'x' }, { baseMs: 10, capMs: 1 }])
    assert.throws(() => pacingFetch(wrong), RangeError);
  assert.throws(() => pacingFetch({ retries: 3 }), /no option retries/);
  assert.deepEqual(statedLimits(new Headers({ RateLimit: '"a";r=1;t=2, "b";r=3;t=4' }), 0),
    [{ remaining: 1, resetMs: 2000 }, { remaining: 3, resetMs: 4000 }]);
  for (const reset of ['5', '1700000005', '1700000005000'])
    assert.deepEqual(statedLimits(new Headers({ 'X-RateLimit-Remaining': '1', 'X-RateLimit-Reset': reset }), 1_700_000_000_000),
      [{ remaining: 1, resetMs: 5000 }]);
  assert.deepEqual(statedLimits(new Headers({ 'X-RateLimit-Remaining': 'x', 'X-RateLimit-Reset': '5' }), 0), []);
}
console.log('all hold');
