// SPDX-License-Identifier: Apache-2.0
// What a program may give to a handler, and what becomes of it: promises, wrong types, no address, wrong costs.
'use strict';

const fs = require('node:fs');
const { EventEmitter } = require('node:events');
const http = require('node:http');
const weir = require('weir');
const { assert, get, listen, runAll, serve, test, until } = require('./helper.js');

const one = { name: 'one', key: [], rate: '2/h', algorithm: 'sliding_log' };
const byUser = { ...one, key: ['user'] };
const held = { name: 'held', key: [], algorithm: 'concurrency', limit: 1, life: '1h' };

const warnings = [];
process.on('warning', (warning) => warnings.push(warning.message));
const warned = (text) => until(() => warnings.some((warning) => warning.includes(text)), `the warning ${text}`);

const left = (app) => app.limits.check({ cost: 0, dryRun: true }).remaining;
const statuses = async (app, count, ...request) => {
  const seen = [];
  for (let i = 0; i < count; i++)
    seen.push((await app.get(...request)).status);
  return seen;
};

test('a skip that is a promise is awaited', async () => {
  const app = await serve(one, { skip: async (req) => req.url === '/free' });
  assert.deepEqual(await statuses(app, 3), [200, 200, 429]);
  assert.deepEqual(await statuses(app, 1, '/free'), [200]);
  app.close();
});

test('attributes, cost, ip and settle may be promises', async () => {
  const app = await serve([{ ...byUser, rate: '5/h' }, { ...one, name: 'ip', key: ['client.ip'], rate: '9/h' }], {
    attributes: async (req) => ({ user: req.headers['x-user'] }),
    cost: async () => 2,
    ip: async () => '192.0.2.7',
    settle: async () => 4,
  });
  const first = await app.get('/', { headers: { 'x-user': 'ann' } });
  assert.deepEqual(first.status, 200);
  const user = (name) => app.limits.check({ attributes: { user: name }, cost: 0, dryRun: true }).remaining;
  await until(() => user('ann') === 1, 'the settlement');
  assert.equal(app.limits.check({ ip: '192.0.2.7', cost: 0, dryRun: true }).remaining, 5);
  assert.deepEqual(await statuses(app, 1, '/', { headers: { 'x-user': 'ann' } }), [429]);
  app.close();
});

test('a promise that is rejected is an error of the request, whatever it is rejected with', async () => {
  for (const option of ['skip', 'attributes', 'cost', 'ip'])
    for (const reason of [new Error('of the program'), undefined, 'route', null]) {
      for (const fails of [() => Promise.reject(reason), () => { throw reason; }]) {
        const app = await serve(one, { [option]: fails });
        assert.equal((await app.get()).status, 500, option);
        assert.equal(left(app), 2);
        app.close();
      }
    }
  const app = await serve(one, { settle: () => Promise.reject(new Error('settle is rejected')) });
  assert.equal((await app.get()).status, 200);
  await warned('settle is rejected');
  assert.equal(left(app), 1);
  app.close();
});

test('what cannot be right is a TypeError, and not an absent key', async () => {
  for (const attributes of [new Map([['user', 'ann']]), 'ann', ['ann'], 7, true, new Date(), new Headers(),
    { user: {} }, { user: Promise.resolve('ann') }, { user: NaN }, { user: ['ann'] }, { user: Symbol('ann') },
    { unread: {} }]) {
    const app = await serve(byUser, { attributes: () => attributes });
    const answer = await app.get();
    assert.equal(answer.status, 500, answer.body);
    assert.match(answer.body, /^TypeError: attribute/);
    assert.throws(() => app.limits.check({ attributes }), TypeError);
    app.close();
  }
  for (const skip of ['no', 0, {}, new Map()]) {
    const app = await serve(one, { skip: () => skip });
    assert.match((await app.get()).body, /^TypeError: skip: must be true or false/);
    app.close();
  }
  const limits = weir.open({ limits: [byUser] });
  for (const headers of [new Headers({ a: 'b' }), new Map(), [], 'a: b'])
    assert.throws(() => limits.check({ headers }), TypeError);
  assert.throws(() => limits.check({ usr: 'ann' }), /a request has no usr/);
  assert.throws(() => limits.check({ cost: Promise.resolve(1) }), TypeError);
  assert.throws(() => limits.check({ cost: '1' }), TypeError);
  for (const name of ['attributes', 'skip', 'settle', 'ip', 'onLimited'])
    assert.throws(() => weir.http(limits, { [name]: 'ann' }), TypeError);
  for (const name of ['skipFailed', 'skipSuccessful', 'headers', 'trusted'])
    assert.throws(() => weir.http(limits, { [name]: 'no' }), TypeError);
  assert.throws(() => weir.http(limits, new Map()), TypeError);
  assert.throws(() => weir.open(undefined), TypeError);
  weir.open({ limits: [one] }, { stat: 'file' }).close(); // until a later version, which refuses it
  await warned('no option stat');
  assert.ok(warnings.some((warning) => /no option stat; there are state, .* \(weir [0-9.]+ will refuse this\)/.test(warning)));
  assert.throws(() => weir.open({ limits: [one] }, { state: 7 }), TypeError);
  limits.close();
});

test('names that no rule reads are ignored', async () => {
  const app = await serve(byUser, { attributes: () => ({ user: 'ann', usr: 'bob', tenant: 7, 'header.x-none': 'a' }) });
  assert.deepEqual(await statuses(app, 3), [200, 200, 429]);
  app.close();
});

test('a number or a boolean is a text', async () => {
  const limits = weir.open({ limits: [byUser] });
  for (const [user, same] of [[7, '7'], [7n, '7'], [true, 'true']]) {
    const before = limits.check({ attributes: { user: same }, dryRun: true }).remaining;
    limits.check({ attributes: { user } });
    assert.equal(limits.check({ attributes: { user: same }, dryRun: true }).remaining, Math.max(before - 1, 0));
  }
  limits.close();
});

// --- Addresses --------------------------------------------------------------------------------------

// A request and a response without a connection, as adapters of serverless platforms make them.
function unconnected(fields = {}) {
  const req = Object.assign(new EventEmitter(), { method: 'GET', url: '/', headers: fields, socket: {} });
  const res = Object.assign(new EventEmitter(), {
    statusCode: 200,
    headersSent: false,
    fields: {},
    setHeader(name, value) { this.fields[name.toLowerCase()] = value; },
    appendHeader(name, value) { this.setHeader(name, value); },
    end(body) { this.headersSent = true; this.body = body; this.emit('close'); },
    destroy() { throw new Error('it was dropped'); },
  });
  return { req, res };
}

async function handled(handler, fields) {
  const { req, res } = unconnected(fields);
  const called = [];
  await handler(req, res, (...error) => called.push(error));
  return { res, called };
}

const byAddress = { ...one, key: ['client.ip'] };

test('a request whose connection has no address goes the way of onError', async () => {
  const limits = weir.open({ limits: [byAddress] });
  const forwarded = { 'x-forwarded-for': '203.0.113.1' };
  const closed = await handled(weir.http(limits), forwarded);
  assert.deepEqual([closed.res.statusCode, closed.called], [503, []]);
  await warned('has no address');
  const seen = [];
  const open = await handled(weir.http(limits, { onError: (error) => { seen.push(error.code); return 'open'; } }), forwarded);
  assert.deepEqual([open.called, seen], [[[]], ['WEIR_ERR_NO_ADDRESS']]);
  const later = await handled(weir.http(limits, { onError: async () => 'closed' }));
  await until(() => later.res.statusCode === 503, 'the answer');
  const { req, res } = unconnected();
  req.socket = undefined;
  weir.http(limits)(req, res, () => assert.fail('it passes'));
  assert.equal(res.statusCode, 503);
  limits.close();
});

test('the option ip says who the client is, and then no proxy does', async () => {
  const limits = weir.open({ limits: [byAddress] });
  const handler = weir.http(limits, { ip: (req) => req.headers['x-client'] });
  const ask = async (client, forwarded) => {
    const { res, called } = await handled(handler, { 'x-client': client, 'x-forwarded-for': forwarded });
    return called.length === 0 ? res.statusCode : called[0][0]?.message ?? 200;
  };
  assert.deepEqual([await ask('127.0.0.1', '192.0.2.1'), await ask('127.0.0.1', '192.0.2.2'),
    await ask('127.0.0.1', '192.0.2.3'), await ask('fe80::1%eth0'), await ask(undefined)], [200, 200, 429, 200, 503]);
  assert.match(await ask('somebody'), /^ip: must be an address, null or undefined, not the text 'somebody'/);
  limits.close();
});

// --- Costs ------------------------------------------------------------------------------------------

test('a wrong cost is the program\'s error, and a constant one fails at the start', async () => {
  const limits = weir.open({ limits: [one] });
  for (const cost of [-1, 0.5, NaN, Infinity]) {
    assert.throws(() => weir.http(limits, { cost }), RangeError);
    const app = await serve(one, { cost: () => cost, onError: 'open' });
    const answer = await app.get();
    assert.deepEqual([answer.status, left(app)], [500, 2]);
    assert.match(answer.body, /^RangeError: cost/);
    app.close();
  }
  for (const cost of ['1', {}, true])
    assert.throws(() => weir.http(limits, { cost }), TypeError);
  for (const cost of ['1', undefined, { valueOf: () => 1 }]) {
    const app = await serve(one, { cost: () => cost });
    assert.match((await app.get()).body, /^TypeError: cost: must be a number/);
    app.close();
  }
  limits.close();
});

test('nonsense that settle returns is told, and the request keeps its charge', async () => {
  for (const cost of [-1, 0.5, NaN, 'free', {}]) {
    const app = await serve(one, { settle: () => cost });
    warnings.length = 0;
    assert.equal((await app.get()).status, 200);
    await warned('settle has failed');
    assert.equal(left(app), 1);
    app.close();
  }
});

// --- Answers that have begun, and handlers that meet twice ------------------------------------------

test('a handler behind an answer that has begun is an error, and holds no lease', async () => {
  const limits = weir.open({ limits: [held] });
  const handler = weir.http(limits);
  const errors = [];
  const server = await listen((req, res) => {
    res.writeHead(200);
    handler(req, res, (error) => {
      errors.push(error?.message);
      res.end('begun');
    });
  });
  assert.equal((await get(server)).body, 'begun');
  assert.match(errors[0], /the answer has begun/);
  assert.equal(limits.check({ dryRun: true }).allowed, true);
  server.close();
  limits.close();
});

test('fields that cannot be set hold no lease', async () => {
  const limits = weir.open({ limits: [held, { ...one, rate: '2/h' }] });
  const handler = weir.http(limits);
  const server = await listen((req, res) => {
    res.setHeader = () => { throw new Error('no more fields'); };
    handler(req, res, (error) => {
      assert.match(error.message, /no more fields/);
      assert.equal(limits.check({ dryRun: true }).allowed, true);
      res.end('answered');
    });
  });
  assert.equal((await get(server)).body, 'answered');
  server.close();
  limits.close();
});

test('an answer that others have given meanwhile is left alone', async () => {
  const app = await serve(held, {
    attributes: async (req) => {
      req.res.end('too late');
      return {};
    } });
  const old = http.ServerResponse.prototype.assignSocket;
  http.ServerResponse.prototype.assignSocket = function assignSocket(...socket) {
    this.req.res = this;
    return old.apply(this, socket);
  };
  assert.equal((await app.get()).body, 'too late');
  http.ServerResponse.prototype.assignSocket = old;
  assert.deepEqual(app.seen, []);
  assert.equal(app.limits.check({ dryRun: true }).allowed, true);
  app.close();
});

test('a client that leaves while the program is asked holds no lease', async () => {
  let answer;
  const app = await serve(held, { attributes: () => new Promise((resolve) => { answer = resolve; }) });
  const request = http.get({ port: app.server.address().port, host: '127.0.0.1' }).on('error', () => {});
  await until(() => answer !== undefined, 'the request');
  request.destroy();
  let connections = 1;
  await until(() => {
    app.server.getConnections((error, count) => { connections = count; });
    return connections === 0;
  }, 'the end of the connection');
  answer({});
  await new Promise(setImmediate);
  assert.deepEqual(app.seen, []);
  assert.equal(app.limits.check({ dryRun: true }).allowed, true);
  app.close();
});

test('a handler that a request meets twice counts it once; two of one weir are an error', async () => {
  const [limits, other] = [0, 1].map(() => weir.open({ limits: [{ ...one, rate: '9/h' }] }));
  const [first, second, third] = [weir.http(limits), weir.http(limits), weir.http(other)];
  const used = (each) => 9 - each.check({ cost: 0, dryRun: true }).remaining;
  const ask = async (...handlers) => {
    const server = await listen(async (req, res) => {
      let error;
      for (const handler of handlers)
        error ??= await new Promise((resolve) => { handler(req, res, resolve); });
      res.end(error?.message ?? 'passed');
    });
    const { body } = await get(server);
    server.close();
    return body;
  };
  assert.equal(await ask(first, third, first), 'passed');
  assert.deepEqual([used(limits), used(other)], [1, 1]);
  assert.match(await ask(first, third, second), /^two handlers of one weir/);
  assert.deepEqual([used(limits), used(other)], [2, 2]);
  limits.close();
  other.close();
});

// --- Handshakes -------------------------------------------------------------------------------------

test('a handshake that the program fails gets 500, and ends no process', async () => {
  const limits = weir.open({ limits: [one] });
  for (const skip of [() => { throw new Error('of the program'); }, async () => { throw new Error('of the program'); },
    () => 'no']) {
    const server = http.createServer();
    server.on('upgrade', weir.upgrade(limits, () => assert.fail('it passes'), { skip }));
    await listen(server);
    const status = await new Promise((resolve) => {
      http.get({ port: server.address().port, host: '127.0.0.1', agent: false,
        headers: { connection: 'Upgrade', upgrade: 'websocket' } }, (res) => resolve(res.statusCode));
    });
    assert.equal(status, 500);
    server.close();
  }
  await warned('a handshake gets 500');
  limits.close();
});

// --- A clock for tests ------------------------------------------------------------------------------

test('the clock of weir/testing moves by advance() only', () => {
  const { open } = require('weir/testing');
  const limits = open({ state: { file: 'never.state' }, limits: [{ ...one, rate: '1/min' },
    { name: 'month', key: [], quota: '3/month' }], server: { headers: ['x-epoch'] } }, { at: new Date('2026-01-01') });
  assert.equal(limits.check({}).allowed, true);
  const denied = limits.check({});
  assert.deepEqual([denied.allowed, denied.retryAfterMs], [false, 60000]);
  const { 'X-RateLimit-Reset': reset } = Object.fromEntries(denied.headers);
  assert.ok(Math.abs(Number(reset) - Date.parse('2026-01-01T00:01:00Z') / 1000) <= 1, reset); // rounded up
  limits.advance(59999);
  assert.equal(limits.check({}).allowed, false);
  limits.advance(1);
  assert.equal(limits.check({}).allowed, true);
  limits.advance(60000);
  limits.check({});
  limits.advance(60000);
  assert.equal(limits.check({}).retryAfterMs, (31 * 24 * 60 - 3) * 60000);
  for (const ms of [-1, NaN, '1'])
    assert.throws(() => limits.advance(ms), TypeError);
  limits.close();
  assert.equal(fs.existsSync('never.state'), false);
  const real = weir.open({ limits: [one] });
  assert.throws(() => real.advance(1), { code: 'WEIR_ERR_UNSUPPORTED', message: /weir\/testing/ });
  assert.throws(() => open({ limits: [one] }, { at: 'now' }), TypeError);
  assert.throws(() => open({ limits: [one] }, { state: 'a.state' }), { code: 'WEIR_ERR_UNSUPPORTED' });
  real.close();
});

runAll();
