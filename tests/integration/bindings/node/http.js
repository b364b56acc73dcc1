// SPDX-License-Identifier: Apache-2.0
'use strict';

const http = require('node:http');
const net = require('node:net');
const weir = require('weir');
const { assert, get, listen, runAll, serve, test, until } = require('./helper.js');

const one = { name: 'one', key: [], rate: '2/h', algorithm: 'sliding_log' };

test('every answer has the fields, and the third is a 429', async () => {
  const app = await serve(one);
  const first = await app.get();
  assert.equal(first.status, 200);
  assert.equal(first.headers['x-ratelimit-remaining'], '1');
  assert.match(first.headers.ratelimit, /^"one";r=1;t=\d+$/);
  assert.equal((await app.get()).headers['x-ratelimit-remaining'], '0');
  const denied = await app.get();
  assert.equal(denied.status, 429);
  assert.ok(Number(denied.headers['retry-after']) > 0);
  assert.equal(denied.headers['cache-control'], 'no-store');
  assert.equal(denied.headers['content-type'], 'application/problem+json');
  assert.deepEqual(JSON.parse(denied.body)['violated-policies'], ['one']);
  assert.equal(app.seen.length, 2);
  app.close();
});

test('a denial is what the rules say, with fields that repeat', async () => {
  const app = await serve({ ...one, rate: '0/h', reject: { status: 403, body: '{"why": "no"}',
    headers: { 'Set-Cookie': 'a=b', 'X-Why': 'because' } } });
  const denied = await app.get();
  assert.equal(denied.status, 403);
  assert.deepEqual(JSON.parse(denied.body), { why: 'no' });
  assert.equal(denied.headers['x-why'], 'because');
  app.close();
});

test('the peer counts, and only a trusted one forwards', async () => {
  const rules = { ...one, key: ['client.ip'], rate: '1/h' };
  const app = await serve(rules);
  const from = (address) => app.get('/', { headers: { 'x-forwarded-for': address } });
  assert.equal((await from('203.0.113.1')).status, 200); // loopback is trusted by default
  assert.equal((await from('203.0.113.1')).status, 429);
  assert.equal((await from('203.0.113.2')).status, 200);
  app.close();
  const limits = weir.open({ server: { trusted_proxies: ['10.0.0.0/8'] }, limits: [rules] });
  const limit = weir.http(limits);
  const server = await listen((req, res) => limit(req, res, () => res.end()));
  assert.equal((await get(server, '/', { headers: { 'x-forwarded-for': '203.0.113.1' } })).status, 200);
  assert.equal((await get(server, '/', { headers: { 'x-forwarded-for': '203.0.113.2' } })).status, 429);
  server.close();
  limits.close();
});

test('behind a Unix socket the forwarded address counts', async () => {
  const app = await serve({ ...one, key: ['client.ip'], rate: '1/h' }, {}, undefined, { path: 'app.sock' });
  const from = (address) => app.get('/', { headers: { forwarded: `for=${address}` } });
  assert.equal((await from('203.0.113.1')).status, 200);
  assert.equal((await from('203.0.113.1')).status, 429);
  assert.equal((await from('203.0.113.2')).status, 200);
  app.close();
});

test('a connection that is gone is not served, whatever it forwards', async () => {
  const limits = weir.open({ limits: [{ ...one, key: ['client.ip'] }] });
  const limit = weir.http(limits);
  let came = 0;
  let passed = 0;
  const server = await listen((req, res) => {
    res.on('close', () => {
      came++;
      limit(req, res, () => { passed++; });
    });
  });
  const socket = net.connect(server.address().port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n');
  server.once('request', () => socket.resetAndDestroy());
  await until(() => came === 1, 'the end of the connection');
  assert.equal(passed, 0);
  server.close();
  limits.close();
});

test('attributes, costs and skipped requests come from functions', async () => {
  const app = await serve([{ name: 'user', key: ['user'], rate: '5/h' },
    { name: 'key', key: ['header.x-api-key'], rate: '1/h' }], {
    attributes: (req) => ({ user: req.headers['x-user'] }),
    cost: (req) => Number(req.headers['x-cost'] ?? 1), // the program's mistake, where it is no number
    skip: (req) => req.url === '/health',
  });
  const ask = (path, headers) => app.get(path, { headers });
  assert.equal((await ask('/', { 'x-user': 'ann', 'x-cost': '4' })).headers['x-ratelimit-remaining'], '1');
  assert.equal((await ask('/', { 'x-user': 'ann', 'x-cost': '2' })).status, 429);
  assert.equal((await ask('/', { 'x-user': 'bob', 'x-cost': '5' })).status, 200);
  assert.equal((await ask('/health', { 'x-user': 'bob' })).status, 200);
  assert.equal((await ask('/', { 'x-user': 'bob', 'x-cost': 'many' })).status, 500);
  assert.equal((await ask('/', { 'x-api-key': 'k' })).status, 200);
  assert.equal((await ask('/', { 'x-api-key': 'k' })).status, 429);
  app.close();
});

test('a path that cannot be read is the client\'s mistake, whatever onError says', async () => {
  const app = await serve({ ...one, match: { path: '/a' } }, { onError: 'open' });
  assert.equal((await app.get('/%zz')).status, 400);
  assert.equal(app.seen.length, 0);
  app.close();
});

test('outcomes give back: skipSuccessful, skipFailed, settle, refund_on', async () => {
  const answer = (req, res) => res.writeHead(Number(req.url.slice(1)), { 'x-units': '3' }).end();
  const left = (app) => app.limits.check({ cost: 0, dryRun: true }).remaining;
  const rules = { ...one, rate: '10/h' };
  for (const [more, options, path, charged] of [
    [{}, { skipSuccessful: true }, '/200', 0], [{}, { skipSuccessful: true }, '/401', 1],
    [{}, { skipFailed: true }, '/200', 1], [{}, { skipFailed: true }, '/500', 0],
    [{}, { settle: (req, res) => Number(res.getHeader('x-units')) }, '/200', 3],
    [{}, { settle: () => undefined }, '/200', 1],
    [{ refund_on: ['5xx'], refund_cap: '100%' }, {}, '/503', 0],
    [{ refund_on: ['5xx'], refund_cap: '100%' }, {}, '/200', 1]]) {
    const app = await serve({ ...rules, ...more }, options, answer);
    await app.get(path);
    await until(() => left(app) === 10 - charged, `${JSON.stringify(more)} ${path}`);
    app.close();
  }
});

test('a function that throws breaks no answer, and ends no process', async () => {
  const warnings = [];
  process.on('warning', (warning) => warnings.push(warning.message));
  const fails = () => { throw new Error('of the program'); };
  for (const name of ['attributes', 'cost', 'skip', 'onLimited']) {
    const app = await serve({ ...one, rate: name === 'onLimited' ? '0/h' : '9/h' }, { [name]: fails });
    const answer = await app.get();
    assert.deepEqual([answer.status, answer.body], [500, 'Error: of the program'], name);
    app.close();
  }
  const app = await serve({ ...one, rate: '9/h' }, { settle: fails });
  assert.equal((await app.get()).status, 200);
  await until(() => warnings.some((warning) => warning.includes('of the program')), 'the warning');
  assert.equal(app.limits.check({ dryRun: true }).remaining, 8);
  app.close();
});

test('a lease lives as long as its request, however that ends', async () => {
  const held = [];
  const app = await serve({ name: 'one', key: [], algorithm: 'concurrency', limit: 1, life: '1h' }, {},
    (req, res) => held.push(res));
  const first = app.get();
  await until(() => held.length === 1, 'the first request');
  assert.equal((await app.get()).status, 429);
  held[0].end();
  assert.equal((await first).status, 200);
  const socket = net.connect(app.server.address().port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => held.length === 2, 'the second request');
  socket.destroy();
  await until(() => app.limits.check({ dryRun: true }).allowed, 'the end of the lease');
  app.close();
});

test('a lease of a long request is renewed', async () => {
  const held = [];
  const app = await serve({ name: 'one', key: [], algorithm: 'concurrency', limit: 1, life: '10min' }, {},
    (req, res) => held.push(res));
  const { setInterval: real } = globalThis;
  const delays = [];
  globalThis.setInterval = (renew, delay) => { // each third of the life; here at once
    delays.push(delay);
    return real(renew, 1);
  };
  let renewed = 0;
  const { renew } = app.limits;
  app.limits.renew = (lease) => {
    renew.call(app.limits, lease);
    renewed++;
  };
  const first = app.get();
  await until(() => held.length === 1 && renewed >= 2, 'the request, and its lease renewed twice');
  globalThis.setInterval = real;
  assert.equal(app.limits.check({ dryRun: true }).allowed, false);
  held[0].end();
  await first;
  assert.deepEqual(delays, [200000]);
  app.close();
});

test('a request waits for its turn, and gives its place back if its client leaves', async () => {
  const app = await serve({ name: 'one', key: [], rate: '10/s', burst: 5, algorithm: 'leaky_bucket', queue: true });
  const begun = process.hrtime.bigint();
  assert.equal((await app.get()).status, 200);
  assert.equal((await app.get()).status, 200);
  assert.equal((await app.get()).status, 200);
  assert.ok(process.hrtime.bigint() - begun >= 190000000n);
  app.close();
  const slow = await serve({ name: 'one', key: [], rate: '1/h', burst: 5, algorithm: 'leaky_bucket', queue: true });
  assert.equal((await slow.get()).status, 200);
  const before = slow.limits.check({ dryRun: true }).delayMs;
  const socket = net.connect(slow.server.address().port, '127.0.0.1');
  socket.write('GET /late HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => slow.limits.check({ dryRun: true }).delayMs > before + 1800000, 'the queue');
  socket.destroy();
  await until(() => slow.limits.check({ dryRun: true }).delayMs <= before, 'the place');
  assert.deepEqual(slow.seen, ['/']);
  slow.close();
});

test('a tarpit holds the denial', async () => {
  const app = await serve({ ...one, rate: '0/h', reject: { tarpit: '300ms' } });
  const begun = process.hrtime.bigint();
  assert.equal((await app.get()).status, 429);
  assert.ok(process.hrtime.bigint() - begun >= 290000000n);
  app.close();
});

test('onLimited sees each denial, and may answer itself', async () => {
  const seen = [];
  const app = await serve({ ...one, rate: '0/h' }, {
    onLimited: (answer, req, res) => {
      seen.push([answer.deniedBy, req.url]);
      if (req.url === '/own')
        res.writeHead(418).end();
      return req.url === '/late' ? Promise.resolve() : undefined;
    } });
  assert.equal((await app.get('/')).status, 429);
  assert.equal((await app.get('/own')).status, 418);
  assert.equal((await app.get('/late')).status, 429);
  assert.deepEqual(seen, [['one', '/'], ['one', '/own'], ['one', '/late']]);
  app.close();
});

test('onError says whether requests pass when weir cannot decide', async () => {
  const seen = [];
  for (const [onError, status] of [[undefined, 503], ['closed', 503], ['open', 200],
    [(error) => { seen.push(error.code); return 'open'; }, 200], [() => {}, 503]]) {
    const app = await serve(one, onError === undefined ? {} : { onError });
    app.limits.close();
    assert.equal((await app.get()).status, status);
    app.close();
  }
  assert.deepEqual(seen, ['WEIR_ERR_UNSUPPORTED']);
});

test('without onError the rules say what a state that cannot be used means', async () => {
  for (const [says, passes] of [[undefined, false], ['open', true], ['closed', false], ['local', false]]) {
    const limits = weir.open({ ...(says && { on_store_error: says }), limits: [one] });
    assert.equal(limits.passes('WEIR_ERR_BUSY'), passes);
    for (const code of ['WEIR_ERR_SYNTAX', 'WEIR_ERR_RULES', 'EBADF', undefined])
      assert.equal(limits.passes(code), false); // no fault of the state
    const broken = { checkIncoming() { throw Object.assign(new Error('busy'), { code: 'WEIR_ERR_BUSY' }); },
      passes: (code) => limits.passes(code) };
    const server = await listen((req, res) => weir.http(broken, {})(req, res, () => res.end('hello')));
    assert.equal((await get(server)).status, passes ? 200 : 503);
    server.closeAllConnections();
    server.close();
    limits.close();
  }
});

test('options that are not there are named', () => {
  const limits = weir.open({ limits: [one] });
  assert.throws(() => weir.http(limits, { max: 5 }), /no option max/);
  assert.throws(() => weir.http({}), /open\(\)/);
  assert.throws(() => weir.http(limits, { onError: 'maybe' }), /onError/);
  limits.close();
});

// What the socket of a handshake receives, and the socket.
function shake(server, path) {
  const socket = net.connect(server.address().port, '127.0.0.1');
  const given = { socket, text: '' };
  socket.on('data', (piece) => { given.text += piece; });
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  return given;
}

test('a handshake is limited, and holds its lease as long as the socket', async () => {
  const limits = weir.open({ limits: [{ name: 'sockets', key: [], algorithm: 'concurrency', limit: 1, life: '1h' }] });
  const server = http.createServer();
  server.on('upgrade', weir.upgrade(limits, (req, socket) => {
    assert.equal(req.weir.allowed, true);
    socket.on('error', () => {});
    socket.on('end', () => socket.end());
    socket.resume();
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  }));
  await listen(server);
  const first = shake(server, '/');
  await until(() => first.text.startsWith('HTTP/1.1 101 '), 'the handshake');
  const second = shake(server, '/');
  await until(() => second.socket.readyState === 'closed' || second.text.includes('\r\n\r\n{'), 'the denial');
  assert.match(second.text, /^HTTP\/1\.1 429 Too Many Requests\r\n/);
  assert.match(second.text, /\r\nContent-Type: application\/problem\+json\r\n/);
  first.socket.destroy();
  await until(() => limits.check({ dryRun: true }).allowed, 'the end of the lease');
  server.closeAllConnections();
  server.close();
  limits.close();
});

runAll();
