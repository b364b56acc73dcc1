// SPDX-License-Identifier: Apache-2.0
// 200,000 checks, denials, reservations, leases and handled requests leave nothing behind; nor do weirs
// that are opened and forgotten. node --expose-gc leaks.js
'use strict';

const weir = require('weir');
const { assert } = require('./helper.js');

const GROWTH_MAX = 48 << 20; // a leak of 256 bytes a check
const limits = weir.open({ limits: [{ name: 'one', key: ['client.ip'], rate: '1000000/s', algorithm: 'gcra' },
  { name: 'none', match: { path: '/none' }, key: [], rate: '0/h' },
  { name: 'held', match: { path: '/held' }, key: [], algorithm: 'concurrency', limit: 1, life: '1h' }] });

function rss() {
  global.gc();
  return process.memoryUsage().rss;
}

function round(count) {
  for (let i = 0; i < count; i++) {
    assert.equal(limits.check({ ip: '192.0.2.1', path: '/', host: 'a', headers: { 'x-a': 'b' } }).allowed, true);
    assert.notEqual(limits.check({ path: '/none' }).body, null);
    limits.settle(limits.reserve({ ip: '192.0.2.1' }).reservation, 0);
    limits.release(limits.check({ path: '/held' }).lease);
  }
}

round(5000);
const before = rss();
round(50000);
const grown = rss() - before;
assert.ok(grown < GROWTH_MAX, `${grown} bytes`);
limits.close();

// Makes weirs and forgets them; gives how many are still there after all have been collected.
async function forget() {
  const references = [];
  for (let i = 0; i < 20; i++)
    references.push(new WeakRef(weir.open({ limits: [{ name: 'one', key: [], rate: '1/h' }] })));
  for (let i = 0; i < 100 && references.some((reference) => reference.deref()); i++) {
    await new Promise(setImmediate);
    global.gc();
  }
  return references.filter((reference) => reference.deref()).length;
}

// V8 collects forgotten weirs by itself, since it knows of their memory: 200 would take 1.3 GB.
async function forgetMany() {
  const begun = process.memoryUsage().rss;
  let most = 0;
  for (let i = 0; i < 200; i++) {
    weir.open({ limits: [{ name: 'one', key: [], rate: '1/h' }] });
    await new Promise(setImmediate);
    most = Math.max(most, process.memoryUsage().rss - begun);
  }
  return most;
}

forget().then(async (left) => {
  assert.equal(left, 0);
  const most = await forgetMany();
  assert.ok(most < 400 << 20, `${most} bytes`);
  console.log('passed');
  process.exit(0);
});
