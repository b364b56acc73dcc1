// SPDX-License-Identifier: Apache-2.0
// Threads of one process, each with its own addon, count on one state; one ends without closing.
'use strict';

const { Worker, isMainThread, parentPort } = require('node:worker_threads');
const weir = require('weir');
const { assert } = require('./helper.js');

const LIMIT = 1000;
const rules = { limits: [{ name: 'one', key: [], rate: `${LIMIT}/h`, algorithm: 'sliding_log' }] };

function count(tries) {
  const limits = weir.open(rules, { state: 'threads.state' });
  let allowed = 0;
  for (let i = 0; i < tries; i++)
    allowed += limits.check({}).allowed ? 1 : 0;
  return allowed;
}

async function main() {
  const counts = await Promise.all(Array.from({ length: 4 }, () => new Promise((resolve, reject) => {
    const worker = new Worker(__filename);
    let allowed;
    worker.on('message', (message) => { allowed = message; });
    worker.on('error', reject);
    worker.on('exit', () => resolve(allowed));
  })));
  assert.equal(counts.reduce((sum, allowed) => sum + allowed, 0), LIMIT);
  assert.equal(count(1), 0);
  console.log('passed');
}

if (isMainThread)
  main().then(() => process.exit(0));
else
  parentPort.postMessage(count(LIMIT / 2));
