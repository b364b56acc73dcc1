// SPDX-License-Identifier: Apache-2.0
// The published frameworks: node frameworks.js [NAME]
'use strict';

const weir = require('weir');
const { assert, get, listen, runAll, test, until } = require('./helper.js');

const LIMITS = [
  { name: 'user', match: { path: '/user' }, key: ['user'], rate: '1/h', algorithm: 'sliding_log' },
  { name: 'two', match: { path: '/two' }, key: [], rate: '2/h', algorithm: 'sliding_log' },
  { name: 'queue', match: { path: '/queue' }, key: [], rate: '10/s', burst: 5, algorithm: 'leaky_bucket', queue: true },
  { name: 'tarpit', match: { path: '/tarpit' }, key: [], rate: '0/h', reject: { tarpit: '100ms' } },
  { name: 'failed', match: { path: '/failed' }, key: [], rate: '9/h', refund_on: ['5xx'], refund_cap: '100%' },
  { name: 'held', match: { path: '/held' }, key: [], algorithm: 'concurrency', limit: 1, life: '1h' },
];

const [NODE] = process.versions.node.split('.').map(Number);
const NEEDS = { fastify: 20 }; // the first Node of a framework

// Each, by its package: makes an app that limits, and answers; `release` ends what /held waits for.
const makers = {
  express(limits, options, held, name, handlers = [weir.express(limits, options)]) {
    const app = require(name)();
    for (const handler of handlers)
      app.use('/', handler);
    app.get('/held', (req, res) => held.push(() => res.send('held')));
    app.get('/failed', (req, res) => res.status(503).send('failed'));
    app.use((req, res) => res.send('hello'));
    app.use((error, req, res, next) => res.status(500).send(error.message)); // eslint-disable-line
    return listen(app);
  },

  async fastify(limits, options, held, name, handlers = [weir.fastify(limits, options)]) {
    const app = require(name)();
    for (const handler of handlers)
      app.addHook('onRequest', handler);
    app.get('/held', (request, reply) => { held.push(() => reply.send('held')); });
    app.get('/failed', (request, reply) => reply.code(503).send('failed'));
    app.get('/*', async () => 'hello');
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server;
  },

  koa(limits, options, held, name, handlers = [weir.koa(limits, options)]) {
    const app = new (require(name))();
    app.silent = true;
    for (const handler of handlers)
      app.use(handler);
    app.use(async (ctx) => {
      if (ctx.path === '/held')
        await new Promise((resolve) => held.push(resolve));
      ctx.status = ctx.path === '/failed' ? 503 : 200;
      ctx.body = 'hello';
    });
    return listen(app.callback());
  },
};

const frameworks = { express: makers.express, express4: makers.express, fastify: makers.fastify, fastify4: makers.fastify,
  koa: makers.koa };

// What the program returns or throws: awaited, or 500.
async function checkProgram(name) {
  for (const [options, expected] of [[{ skip: async () => false }, [200, 200, 429]], [{ skip: async () => true }, [200, 200, 200]],
    [{ skip: () => 'no' }, [500]], [{ skip: () => Promise.reject(new Error('of the program')) }, [500]],
    [{ skip: () => Promise.reject() }, [500]], // eslint-disable-line prefer-promise-reject-errors
    [{ cost: () => -1 }, [500]], [{ cost: async () => 2 }, [200, 429]], [{ attributes: () => new Map() }, [500]]]) {
    const limits = weir.open({ limits: LIMITS });
    const server = await frameworks[name](limits, options, [], name);
    for (const status of expected)
      assert.equal((await get(server, '/two')).status, status, `${Object.entries(options)}`);
    server.closeAllConnections();
    server.close();
    limits.close();
  }
}

// The same handler twice counts once; another one of the same weir is an error.
async function checkTwice(name) {
  const limits = weir.open({ limits: LIMITS });
  const handler = weir[name.replace('4', '')](limits);
  for (const [second, status, remaining] of [[handler, 200, 1], [weir[name.replace('4', '')](limits), 500, 0]]) {
    const server = await frameworks[name](limits, {}, [], name, [handler, second]);
    assert.equal((await get(server, '/two')).status, status);
    assert.equal(limits.check({ path: '/two', cost: 0, dryRun: true }).remaining, remaining);
    server.closeAllConnections();
    server.close();
  }
  limits.close();
}

async function check(name) {
  const limits = weir.open({ limits: LIMITS });
  const held = [];
  const denials = [];
  const server = await frameworks[name](limits, {
    attributes: (given) => {
      const user = given.headers['x-user'];
      if (user === 'broken')
        throw new Error('no such user');
      return { user };
    },
    onLimited: (answer, given, reply) => {
      denials.push(answer.deniedBy);
      assert.ok(given.headers && reply);
    },
  }, held, name);
  const ask = (path, headers) => get(server, path, { headers });

  const first = await ask('/two');
  assert.deepEqual([first.status, first.body, first.headers['x-ratelimit-remaining']], [200, 'hello', '1']);
  assert.equal((await ask('/two')).status, 200);
  const denied = await ask('/two');
  assert.equal(denied.status, 429);
  assert.ok(Number(denied.headers['retry-after']) > 0);
  assert.match(denied.headers['content-type'], /^application\/problem\+json/);
  assert.deepEqual(JSON.parse(denied.body)['violated-policies'], ['two']);

  assert.equal((await ask('/user', { 'x-user': 'ann' })).status, 200);
  assert.equal((await ask('/user', { 'x-user': 'ann' })).status, 429);
  assert.equal((await ask('/user', { 'x-user': 'bob' })).status, 200);
  assert.equal((await ask('/user', { 'x-user': 'broken' })).status, 500);
  assert.equal((await ask('/%zz')).status, 400);

  assert.equal((await ask('/queue')).status, 200);
  assert.deepEqual((await ask('/queue')).body, 'hello');
  assert.equal((await ask('/tarpit')).status, 429);
  assert.deepEqual(denials, ['two', 'user', 'tarpit']);

  assert.equal((await ask('/failed')).status, 503);
  const left = () => limits.check({ path: '/failed', dryRun: true }).remaining;
  await until(() => left() === 9, 'the refund');

  const first_held = ask('/held');
  await until(() => held.length === 1, 'the request that is held');
  assert.equal((await ask('/held')).status, 429);
  held.pop()();
  assert.equal((await first_held).status, 200);
  await until(() => limits.check({ path: '/held', dryRun: true }).allowed, 'the end of the lease');

  limits.close();
  assert.equal((await ask('/two')).status, 503);
  server.closeAllConnections();
  server.close();
}

for (const name of Object.keys(frameworks)) {
  if (NODE < NEEDS[name]) {
    console.log(`skipped ${name}: it needs Node ${NEEDS[name]}`);
    continue;
  }
  test(name, async () => {
    await check(name);
    await checkProgram(name);
    await checkTwice(name);
  });
}

test('fastify: a request that is injected has an address', async () => {
  const { fastify } = weir;
  const limits = weir.open({ limits: [{ name: 'one', key: ['client.ip'], rate: '1/h' }] });
  const app = require(NODE < NEEDS.fastify ? 'fastify4' : 'fastify')();
  app.addHook('onRequest', fastify(limits));
  app.get('/', async (request) => request.raw.weir.limits[0].name);
  assert.equal((await app.inject('/')).body, 'one');
  assert.equal((await app.inject('/')).statusCode, 429);
  await app.close();
  limits.close();
});

test('express: a mounted handler sees the whole path', async () => {
  const limits = weir.open({ limits: [{ name: 'api', match: { path: '/api/a' }, key: [], rate: '1/h' }] });
  const app = require('express')();
  app.use('/api', weir.express(limits), (req, res) => res.send(req.weir.limits[0].name));
  const server = await listen(app);
  assert.equal((await get(server, '/api/a')).body, 'api');
  assert.equal((await get(server, '/api/a')).status, 429);
  server.close();
  limits.close();
});

runAll();
