// SPDX-License-Identifier: Apache-2.0
// 4 processes on one state: of many requests at once exactly the limit is admitted; a process that is
// killed takes nothing with it, and its leases end.
'use strict';

const cluster = require('node:cluster');
const http = require('node:http');
const weir = require('weir');
const { assert, get, until } = require('./helper.js');

const LIMIT = 500;
const rules = { limits: [
  { name: 'many', match: { path: '/' }, key: ['client.ip'], rate: `${LIMIT}/h`, algorithm: 'sliding_log' },
  { name: 'held', match: { path: '/held' }, key: [], algorithm: 'concurrency', limit: 2, life: '1h' }] };

function work() {
  const limits = weir.open(rules, { state: 'cluster.state' });
  const limit = weir.http(limits);
  http.createServer((req, res) => limit(req, res, () => {
    if (req.url === '/')
      res.end(String(process.pid));
    else
      res.write(String(process.pid)); // and keeps it
  })).listen(Number(process.env.PORT), '127.0.0.1');
}

// Starts a request of 2 that are held; gives the id of the process that holds it.
function hold(port) {
  return new Promise((resolve) => {
    http.get({ host: '127.0.0.1', port, path: '/held', agent: false }, (res) => {
      res.on('error', () => {});
      res.once('data', (pid) => resolve(Number(pid)));
    }).on('error', () => {});
  });
}

async function main() {
  const probe = http.createServer().listen(0, '127.0.0.1');
  await until(() => probe.address(), 'a port');
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  let ready = 0;
  for (let i = 0; i < 4; i++)
    cluster.fork({ PORT: port }).on('listening', () => ready++);
  await until(() => ready === 4, '4 processes');
  const server = { address: () => ({ port }) };
  const counts = {};
  const pids = new Set();
  await Promise.all(Array.from({ length: 16 }, async () => {
    for (let i = 0; i < (LIMIT + 100) / 16; i++) {
      const { status, body } = await get(server);
      counts[status] = (counts[status] ?? 0) + 1;
      if (status === 200)
        pids.add(body);
    }
  }));
  assert.equal(counts[200], LIMIT);
  assert.ok(counts[429] >= 100);
  assert.equal(pids.size, 4);

  const holders = [await hold(port), await hold(port)];
  assert.equal((await get(server, '/held')).status, 429);
  const limits = weir.open(rules, { state: 'cluster.state' }); // and looks for the dead
  process.kill(holders[0], 'SIGKILL');
  await until(() => limits.check({ path: '/held', dryRun: true }).allowed, 'the leases of the dead');
  assert.equal(limits.check({ path: '/', ip: '127.0.0.1' }).allowed, false);
  assert.equal((await get(server)).status, 429); // the others serve on
  limits.close();
  console.log('passed');
  for (const worker of Object.values(cluster.workers))
    worker.kill('SIGKILL');
}

if (cluster.isPrimary)
  main().then(() => process.exit(0));
else
  work();
