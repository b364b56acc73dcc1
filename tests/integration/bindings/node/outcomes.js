// SPDX-License-Identifier: Apache-2.0
// Outcomes are strikes, beside a `weir serve` on the same rules: node outcomes.js RULES. A third 401
// within an hour suspends a user, a third 403 a network.
'use strict';

const weir = require('weir');
const { assert, get, listen, until } = require('./helper.js');

const limits = weir.open(process.argv[2]);
const suspended = (ip) => limits.check({ ip, path: '/', dryRun: true }).deniedBy === 'standing';

async function byHand() {
  const request = { path: '/', ip: '10.0.0.1', forwardedFor: '192.0.2.1' };
  assert.deepEqual([...limits.outcomes].slice(0, 3), [401, 403, 500]);
  for (const status of [403, 403, 200])
    limits.outcome(request, status);
  assert.equal(suspended('192.0.2.1'), false);
  for (const status of [0, 99, 600, 401.5, NaN, 2 ** 32 + 401])
    assert.throws(() => limits.outcome(request, status), { code: 'WEIR_ERR_RANGE' });
  limits.outcome(request, 403);
  await until(() => suspended('192.0.2.1'), 'the suspension');
  assert.equal(suspended('10.0.0.1'), false);
}

async function byHandler() {
  const limit = weir.http(limits);
  const server = await listen((req, res) => limit(req, res, () => {
    delete req.headers['x-user']; // what was decided counts
    res.writeHead(Number(req.url.slice(1))).end();
  }));
  const ask = async (status, user) => (await get(server, `/${status}`, { headers: { 'x-user': user } })).status;
  for (const status of [401, 401, 200])
    assert.equal(await ask(status, 'ann'), status);
  assert.equal(await ask(401, 'ann'), 401);
  let last;
  await until(() => {
    ask(200, 'ann').then((status) => { last = status; });
    return last === 403;
  }, 'the suspension');
  assert.equal(await ask(401, 'bob'), 401);
  assert.equal(await ask(200, 'bob'), 200);
  server.closeAllConnections();
  server.close();
}

byHand().then(byHandler).then(() => {
  limits.close();
  console.log('passed');
  process.exit(0);
});
