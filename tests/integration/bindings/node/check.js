// SPDX-License-Identifier: Apache-2.0
'use strict';

const fs = require('node:fs');
const { open } = require('weir');
const { assert, runAll, test } = require('./helper.js');

const limit = (more) => ({ limits: [{ name: 'one', key: [], rate: '2/h', ...more }] });

test('an answer has everything that HTTP says', () => {
  const weir = open({ limits: [{ name: 'login', match: { method: 'POST', path: '/login' },
    key: ['client.ip'], rate: '1/h', algorithm: 'sliding_log' },
  { name: 'all', key: [], rate: '100/min', algorithm: 'gcra' }] });
  const request = { method: 'POST', path: '/login?x=1', host: 'a.example', ip: '192.0.2.1' };
  const passed = weir.check(request);
  assert.equal(passed.allowed, true);
  assert.equal(passed.status, 200);
  assert.equal(passed.deniedBy, null);
  assert.equal(passed.body, null);
  assert.equal(passed.remaining, 0);
  assert.deepEqual(passed.limits.map(({ name, algorithm, windowMs, limit: most }) =>
    [name, algorithm, windowMs, most]), [['login', 'sliding_log', 3600000, 1], ['all', 'gcra', 60000, 100]]);
  const denied = weir.check(request);
  const headers = Object.fromEntries(denied.headers);
  assert.equal(denied.allowed, false);
  assert.equal(denied.status, 429);
  assert.equal(denied.deniedBy, 'login');
  assert.ok(denied.retryAfterMs > 0 && denied.retryAfterMs <= 3600000);
  assert.equal(headers['Retry-After'], String(Math.ceil(denied.retryAfterMs / 1000)));
  assert.match(headers['RateLimit-Policy'], /^"login";q=1;w=3600, "all";q=100/);
  assert.equal(denied.contentType, 'application/problem+json');
  assert.deepEqual(JSON.parse(denied.body)['violated-policies'], ['login']);
  assert.equal(JSON.parse(JSON.stringify(denied)).deniedBy, 'login');
  assert.equal(weir.check({ ...request, ip: '192.0.2.2' }).allowed, true);
  assert.equal(passed.limits[0].allowed, true); // an answer stays what it was
  weir.close();
});

test('a number that does not fit is refused, and not cut', () => {
  for (const options of [{ threads: 2 ** 32 + 1 }, { state: 'cut.state', stateMode: 2 ** 32 + 0o600 }, { stateMode: -1 }])
    assert.throws(() => open(limit(), options), { code: 'WEIR_ERR_RANGE' });
});

test('a denial that has no end has an infinite wait', () => {
  const weir = open(limit());
  assert.equal(weir.check({ cost: 3 }).retryAfterMs, Infinity);
  weir.close();
});

test('attributes and header fields choose keys', () => {
  const weir = open({ limits: [{ name: 'user', key: ['user'], rate: '1/h' },
    { name: 'key', match: { 'header.x-plan': 'free' }, key: ['header.x-api-key'], rate: '1/h' }] });
  const names = (request) => weir.check({ dryRun: true, ...request }).limits.map(({ name }) => name);
  assert.deepEqual(names({ attributes: { user: 7, other: 'x' } }), ['user']);
  assert.deepEqual(names({ attributes: { user: null }, headers: { 'X-Plan': 'free', 'X-API-Key': 'a' } }),
    ['key']);
  assert.deepEqual(names({}), []);
  assert.equal(weir.check({ attributes: { user: 7 } }).allowed, true);
  assert.equal(weir.check({ attributes: { user: '7' } }).allowed, false);
  assert.equal(weir.check({ attributes: { user: 'é'.repeat(100000) } }).allowed, true);
  assert.equal(weir.check({ attributes: { user: 'é'.repeat(100000) } }).allowed, false);
  assert.equal(weir.check({ attributes: { user: 'é'.repeat(99999) } }).allowed, true);
  assert.throws(() => weir.check({ attributes: { user: {} } }), TypeError);
  weir.close();
});

test('only trusted proxies say who the client is', () => {
  const weir = open({ server: { trusted_proxies: ['10.0.0.0/8'] },
    limits: [{ name: 'ip', key: ['client.ip'], rate: '1/h' }] });
  const ask = (ip, forwardedFor, forwarded) => weir.check({ ip, forwardedFor, forwarded }).allowed;
  assert.equal(ask('10.0.0.1', '203.0.113.7, 192.0.2.1'), true);
  assert.equal(ask('192.0.2.1'), false);
  assert.equal(ask('10.0.0.1', undefined, 'for=192.0.2.1'), false);
  assert.equal(ask('192.0.2.9', '192.0.2.10'), true);
  assert.equal(ask('192.0.2.9', '192.0.2.11'), false);
  weir.close();
});

test('a dry run and an idempotency key charge nothing, or once', () => {
  const weir = open(limit());
  assert.equal(weir.check({ dryRun: true }).remaining, 2);
  assert.equal(weir.check({ idempotencyKey: 'a' }).repeated, false);
  assert.equal(weir.check({ idempotencyKey: 'a' }).repeated, true);
  assert.equal(weir.check({ dryRun: true }).remaining, 1);
  weir.close();
});

test('a reservation is settled, reported or cancelled', () => {
  const weir = open(limit({ rate: '10/h', refund_on: ['5xx'], refund_cap: '100%' }));
  const left = () => weir.check({ dryRun: true, cost: 0 }).remaining;
  assert.equal(weir.refunds, true);
  weir.settle(weir.reserve({ cost: 5 }).reservation, 2);
  assert.equal(left(), 8);
  weir.settle(weir.reserve({ cost: 1 }, { lifeMs: 5000 }).reservation.token, 0);
  // 5 s, if it were cut to 64 bits of nanoseconds
  assert.throws(() => weir.reserve({ cost: 1 }, { lifeMs: 18446744078710 }), { code: 'WEIR_ERR_RANGE' });
  assert.equal(left(), 8);
  const { reservation } = weir.reserve({});
  weir.report(reservation, 200);
  assert.equal(left(), 7);
  weir.report(reservation, 503);
  assert.equal(left(), 8);
  weir.cancel(weir.reserve({ cost: 8 }).reservation);
  assert.equal(left(), 8);
  assert.throws(() => weir.settle('forged', 1), { code: 'WEIR_ERR_SYNTAX' });
  assert.throws(() => weir.report(reservation, 600), { code: 'WEIR_ERR_RANGE' });
  assert.throws(() => weir.reserve({ cost: 0 }), { code: 'WEIR_ERR_RANGE' });
  weir.close();
});

test('a place in a queue is given back', () => {
  const weir = open(limit({ rate: '1/min', burst: 5, algorithm: 'leaky_bucket', queue: true }));
  assert.equal(weir.reserve({}).delayMs, 0);
  const queued = weir.reserve({});
  assert.ok(queued.delayMs > 30000);
  weir.cancel(queued.reservation);
  const again = weir.reserve({});
  assert.ok(again.delayMs <= 60000, String(again.delayMs));
  weir.close();
});

test('a lease ends once', () => {
  const weir = open({ limits: [{ name: 'one', key: [], algorithm: 'concurrency', limit: 1, life: '1h' }] });
  const { lease } = weir.check({});
  assert.equal(weir.check({}).allowed, false);
  weir.renew(lease);
  weir.release(lease);
  assert.throws(() => weir.release(lease), { code: 'WEIR_ERR_NOT_FOUND' });
  assert.throws(() => weir.release('forged'), { code: 'WEIR_ERR_SYNTAX' });
  assert.equal(weir.check({}).allowed, true);
  weir.close();
});

test('mistakes are errors with a code', () => {
  const weir = open(limit());
  assert.throws(() => weir.check({ path: 'no/slash' }), { code: 'WEIR_ERR_SYNTAX' });
  assert.throws(() => weir.check({ ip: 'here' }), { code: 'WEIR_ERR_SYNTAX' });
  for (const cost of [-1, 1.5, NaN, Infinity, 2 ** 53])
    assert.throws(() => weir.check({ cost }), { code: 'WEIR_ERR_RANGE' });
  assert.throws(() => open(limit({ rate: '1/fortnight' })),
    { code: 'WEIR_ERR_RULES', message: /weir\.yaml:.*fortnight/ });
  assert.throws(() => open('no/such/file.yaml'), { code: 'WEIR_ERR_RULES' });
  assert.throws(() => open('x'.repeat(5000)), { code: 'WEIR_ERR_TOO_LARGE' });
  assert.equal(weir.check({}).remaining, 1);
  weir.close();
  weir.close();
  assert.throws(() => weir.check({}), { code: 'WEIR_ERR_UNSUPPORTED', message: 'weir is closed' });
});

test('a reload keeps what is used, and bad rules change nothing', () => {
  fs.writeFileSync('reload.yaml', 'version: 1\nlimits: [ { name: one, key: [], rate: 2/h } ]\n');
  const weir = open('reload.yaml');
  assert.equal(weir.check({}).remaining, 1);
  fs.writeFileSync('reload.yaml',
    'version: 1\nlimits: [ { name: one, key: [], rate: 2/h }, { name: t, key: [team], rate: 1/h } ]\n');
  weir.reload();
  assert.deepEqual(weir.check({ attributes: { team: 'a' } }).limits.map(({ remaining }) => remaining), [0, 0]);
  fs.writeFileSync('reload.yaml', 'limits: 7\n');
  assert.throws(() => weir.reload(), { code: 'WEIR_ERR_RULES' });
  assert.equal(weir.check({}).allowed, false);
  weir.close();
});

test('a state file outlives its process, and has the mode that is asked for', () => {
  const first = open(limit(), { state: 'kept.state', stateMode: 0o660, stateBytes: 1 << 22 });
  first.check({});
  first.close();
  assert.equal(fs.statSync('kept.state').mode & 0o777, 0o660);
  const second = open(limit(), { state: 'kept.state' });
  assert.equal(second.check({}).remaining, 0);
  second.close();
});

runAll();
