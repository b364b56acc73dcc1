// SPDX-License-Identifier: Apache-2.0
// weir/client against servers of this program. node --expose-gc client.js
'use strict';

const { spawnSync } = require('node:child_process');
const http = require('node:http');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const client = require('weir/client');
const { assert, listen, runAll, test, until } = require('./helper.js');

// Answers by path; `seen` has what was asked for, `held` those that wait.
async function serve() {
  const seen = [];
  const held = [];
  const server = await listen((req, res) => {
    let body = '';
    req.on('data', (piece) => { body += piece; });
    req.on('end', () => {
      seen.push({ method: req.method, url: req.url, headers: req.headers, body });
      const answer = (status, headers) => res.writeHead(status, headers).end('{"a": "\u00e4"}');
      if (req.url === '/failing' && seen.length < 3)
        answer(503, {});
      else if (req.url === '/timeout' && seen.length < 3)
        answer(408, {});
      else if (req.url === '/limited')
        answer(429, { 'Retry-After': '1000' });
      else if (req.url === '/held')
        held.push(() => answer(200, {}));
      else
        answer(200, { 'RateLimit-Policy': '"a";q=1000;w=60', 'RateLimit': '"a";r=999;t=60' });
    });
  });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { seen, held, close, url: (path) => `http://127.0.0.1:${server.address().port}${path}` };
}

test('an answer, and what it says of the limit', async () => {
  const server = await serve();
  const session = new client.Session({ headers: { 'X-One': 1 } });
  assert.equal(session.known(server.url('/')), null);
  const answer = await session.put(server.url('/'), { json: { k: 1 }, headers: { 'X-Two': '2' } });
  assert.ok(answer instanceof client.Response && answer.ok);
  assert.deepEqual([answer.status, answer.tries, answer.url], [200, 1, server.url('/')]);
  assert.equal(answer.content.length, 11);
  assert.deepEqual(answer.json(), { a: '\u00e4' });
  assert.equal(answer.headers.ratelimit, '"a";r=999;t=60');
  assert.deepEqual([answer.limit.limit, answer.limit.remaining], [1000, 999]);
  const [{ method, headers, body }] = server.seen;
  assert.deepEqual([method, body], ['PUT', '{"k":1}']);
  assert.deepEqual([headers['x-one'], headers['x-two'], headers['content-type']], ['1', '2', 'application/json']);
  await session.post(new URL(server.url('/')), { data: new Uint8Array([104, 105]), headers: { 'content-type': 'a/b' } });
  assert.deepEqual([server.seen[1].body, server.seen[1].headers['content-type']], ['hi', 'a/b']);
  assert.equal((await session.head(server.url('/'))).content.length, 0);
  assert.equal(session.known(server.url('/')).limit, 1000);
  assert.equal(session.known(server.url('/'), 'other'), null);
  session.expect(10);
  session.expect(Infinity);
  assert.throws(() => session.expect(-1), RangeError);
  session.close();
  session.close();
  assert.throws(() => session.known(server.url('/')), { code: 'WEIR_ERR_CANCELLED' });
  await assert.rejects(session.get(server.url('/')), { code: 'WEIR_ERR_CANCELLED' });
  server.close();
});

test('each try is shown, and only what may be repeated is', async () => {
  const server = await serve();
  const tries = [];
  const session = new client.Session({ onTry: (one) => tries.push(one), backoffBaseMs: 1 });
  assert.equal((await session.get(server.url('/failing'))).tries, 3);
  assert.deepEqual(tries.map(({ url, number, status }) => [url, number, status]),
    [503, 503, 200].map((status, i) => [server.url('/failing'), i + 1, status]));
  assert.ok(tries[0].nextWaitMs !== null && tries[2].nextWaitMs === null && tries[0].tookMs > 0);
  server.seen.length = 0;
  assert.equal((await session.post(server.url('/failing'), { data: 'x', idempotencyKey: true })).tries, 3);
  assert.equal(new Set(server.seen.map(({ headers }) => headers['idempotency-key'])).size, 1);
  server.seen.length = 0;
  await assert.rejects(session.post(server.url('/failing'), { data: 'x' }), (error) =>
    error instanceof client.GaveUp && error.tries === 1 && error.response.status === 503);
  session.close();
  server.close();
});

test('statuses that are retried, too', async () => {
  const server = await serve();
  const session = new client.Session({ retryOn: [409, 408], backoffBaseMs: 1 });
  const answer = await session.get(server.url('/timeout'));
  assert.deepEqual([answer.status, answer.tries], [200, 3]);
  session.close();
  server.seen.length = 0;
  const other = new client.Session();
  assert.equal((await other.get(server.url('/timeout'))).status, 408);
  other.close();
  server.close();
});

test('statuses that are all that is retried', async () => {
  const server = await serve();
  const session = new client.Session({ retryStatuses: [408], backoffBaseMs: 1, backoffFactor: 1.5, jitter: 'none' });
  assert.equal((await session.get(server.url('/timeout'))).tries, 3);
  server.seen.length = 0;
  await session.get(server.url('/failing')).then((answer) => assert.deepEqual([answer.status, answer.tries], [503, 1]));
  session.close();
  server.close();
});

test('a rate of the caller, whatever the server says', async () => {
  const server = await serve();
  const session = new client.Session({ rate: '1/h burst 2', timeMs: 600_000 });
  const outcomes = await Promise.allSettled(Array.from({ length: 5 }, (_, i) => session.get(server.url(`/${i}`))));
  assert.equal(server.seen.length, 2);
  assert.equal(outcomes.filter(({ reason }) => reason instanceof client.Limited).length, 3);
  assert.equal(session.known(server.url('/')).intervalMs, 3_600_000);
  session.close();
  const waits = new client.Session({ rate: '50/s' });
  await Promise.all(Array.from({ length: 5 }, (_, i) => waits.get(server.url(`/${i}`))));
  assert.equal(server.seen.length, 7);
  waits.close();
  server.close();
});

test('a hook that throws is a warning, and ends no request', async () => {
  const server = await serve();
  const warnings = [];
  process.on('warning', (warning) => warnings.push(warning.message));
  const session = new client.Session({ onTry: () => { throw new Error('of the hook'); } });
  assert.equal((await session.get(server.url('/'))).status, 200);
  await until(() => warnings.includes('of the hook'), 'the warning');
  session.close();
  server.close();
});

test('failures are typed, and say what is known', async () => {
  const server = await serve();
  const session = new client.Session();
  await assert.rejects(session.get(server.url('/limited')), (error) =>
    error instanceof client.Limited && error instanceof client.Failed && error.name === 'Limited'
    && error.code === 'WEIR_ERR_BUSY' && error.response.status === 429 && error.retryAfterMs > 900000);
  await assert.rejects(session.get(server.url('/held'), { timeMs: 1000, scope: 'other' }), client.Timeout);
  await assert.rejects(session.get('http://127.0.0.1:1/', { tries: 1 }), (error) =>
    error instanceof client.GaveUp && error.response === null && error.message.includes('127.0.0.1'));
  const small = new client.Session({ bodyMost: 5 });
  await assert.rejects(small.get(server.url('/')), client.Refused);
  small.close();
  for (const url of ['ftp://host/', 'no url', 'http://a\0b/'])
    await assert.rejects(session.get(url), { code: 'WEIR_ERR_SYNTAX' });
  await assert.rejects(session.get(server.url('/'), { headers: { 'X-Bad': 'a\nb' } }), { code: 'WEIR_ERR_SYNTAX' });
  await assert.rejects(session.get(server.url('/'), { headers: { 'X-Bad': 'a\0b' } }), { code: 'WEIR_ERR_SYNTAX' });
  await assert.rejects(session.get(server.url('/'), { retries: 3 }), /no option retries/);
  await assert.rejects(session.get(server.url('/'), { timeMs: NaN }), { code: 'WEIR_ERR_RANGE' });
  await assert.rejects(session.get(server.url('/'), { data: 5 }), TypeError);
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`X-${i}`, 'a']));
  await assert.rejects(session.get(server.url('/'), { headers: many }), { code: 'WEIR_ERR_TOO_LARGE' });
  for (const [options, code] of [[{ concurrency: 1001 }, 'WEIR_ERR_RANGE'], [{ tries: 2 ** 33 }, 'WEIR_ERR_RANGE'],
    [{ retryOn: [200] }, 'WEIR_ERR_RANGE'], [{ retryOn: [0] }, 'WEIR_ERR_RANGE'], [{ retryOn: 408 }, 'WEIR_ERR_RANGE'],
    [{ retryOn: ['408'] }, 'WEIR_ERR_RANGE'], [{ retryOn: [-1] }, 'WEIR_ERR_RANGE'],
    [{ retryOn: Array(17).fill(408) }, 'WEIR_ERR_RANGE'], [{ jitter: 'some' }, 'WEIR_ERR_RANGE'], [{ timeMs: -1 }, 'WEIR_ERR_RANGE'],
    [{ backoffFactor: 0.5 }, 'WEIR_ERR_RANGE'], [{ retryStatuses: [200] }, 'WEIR_ERR_RANGE'],
    [{ rate: 'ten' }, 'WEIR_ERR_SYNTAX'],
    [{ state: '/no/such/folder/limits' }, 'WEIR_ERR_IO']])
    assert.throws(() => new client.Session(options), { code });
  assert.throws(() => new client.Session({ retries: 3 }), /no option retries/);
  assert.throws(() => new client.Session({ onTry: 5 }), TypeError);
  session.close();
  server.close();
});

test('a signal cancels one request, in the queue or in flight', async () => {
  const server = await serve();
  const session = new client.Session({ concurrency: 1 });
  const under = new AbortController();
  const queued = new AbortController();
  const first = session.get(server.url('/held'), { signal: under.signal });
  const second = session.get(server.url('/second'), { signal: queued.signal });
  await until(() => server.held.length === 1, 'the request');
  queued.abort();
  await assert.rejects(second, { name: 'AbortError' });
  under.abort(new RangeError('too late'));
  await assert.rejects(first, /too late/);
  await assert.rejects(session.get(server.url('/third'), { signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.equal((await session.get(server.url('/'))).status, 200); // the place is free
  assert.deepEqual(server.seen.map(({ url }) => url), ['/held', '/']);
  session.close();
  server.close();
});

test('closing cancels what is left', async () => {
  const server = await serve();
  const session = new client.Session();
  const left = [session.get(server.url('/held')), session.get(server.url('/held'))];
  const outcomes = Promise.allSettled(left);
  await until(() => server.held.length >= 1, 'a request');
  session.close();
  for (const { reason } of await outcomes)
    assert.ok(reason instanceof client.Cancelled && reason.code === 'WEIR_ERR_CANCELLED');
  server.close();
});

test('hundreds at once are answered', async () => {
  const server = await serve();
  const session = new client.Session();
  session.expect(300);
  const answers = await Promise.all(Array.from({ length: 300 }, (_, i) => session.get(server.url(`/${i}`))));
  assert.ok(answers.every(({ status }) => status === 200));
  assert.equal(new Set(server.seen.map(({ url }) => url)).size, 300);
  session.close();
  server.close();
});

test('sessions share what they know by a file', async () => {
  const server = await serve();
  const first = new client.Session({ state: 'limits.map' });
  await first.get(server.url('/'));
  const second = new client.Session({ state: 'limits.map' });
  assert.equal(second.known(server.url('/')).limit, 1000);
  first.close();
  second.close();
  server.close();
});

test('a forgotten session is collected, but not while its request is in flight', async () => {
  const server = await serve();
  const references = [];
  const forget = () => {
    const session = new client.Session();
    references.push(new WeakRef(session));
    return session.get(server.url('/held'));
  };
  const answer = forget();
  await until(() => server.held.length === 1, 'the request');
  for (let i = 0; i < 5; i++) {
    await new Promise(setImmediate);
    global.gc();
  }
  server.held[0]();
  assert.equal((await answer).status, 200);
  await until(() => {
    global.gc();
    return references.every((reference) => !reference.deref());
  }, 'the end of the session');
  server.close();
});

// A program of its own; it ends by itself.
function program(text) {
  const done = spawnSync(process.execPath, ['-e', `const client = require('weir/client');\n${text}`],
    { encoding: 'utf8', timeout: 60000 });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
}

test('a program ends without closing, after its requests and not before', () => {
  assert.equal(program('new client.Session();'), '');
  const out = program(`
    const server = require('node:http').createServer((req, res) => {
      server.close();
      setImmediate(() => res.setHeader('Connection', 'close').end('late'));
    }).listen(0, '127.0.0.1', () => new client.Session().get('http://127.0.0.1:' + server.address().port)
      .then(({ text }) => console.log(text)));`);
  assert.equal(out, 'late\n');
  program(`const session = new client.Session({ onTry: () => {} });
    require('node:http').createServer(() => process.exit(0)).listen(0, '127.0.0.1', function () {
      session.get('http://127.0.0.1:' + this.address().port);
    });`);
});

test('a thread that is ended has its requests cancelled', async () => {
  const server = await serve();
  const worker = new Worker(__filename, { workerData: server.url('/held') });
  await until(() => server.held.length === 1, 'the request');
  await worker.terminate();
  server.close();
});

if (isMainThread)
  runAll();
else
  new client.Session().get(workerData);
