// SPDX-License-Identifier: Apache-2.0
// A state file that cannot be opened is a state that does not answer; and what libweir says, by a logger.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const weir = require('weir');
const { assert, runAll, test, until } = require('./helper.js');

const headers = ['draft']; // chosen, so that its default is not warned of
const limits = ['open', 'closed', 'local'].map((name) => (
  { name, match: { path: `/${name}` }, key: [], rate: '2/30d', on_store_error: name }));

function listen() {
  const lines = [];
  const log = (level) => (text) => lines.push([level, text]);
  return { lines, info: log('info'), warn: log('warn'), error: log('error') };
}

const asked = (it, target) => [1, 2, 3].map(() => it.check({ path: target }).allowed);

test('on_store_error decides until the state is there', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-absent-'));
  const state = path.join(folder, 'run', 'state');
  const logger = listen();
  const it = weir.open({ headers, limits }, { state, logger });
  assert.equal(logger.lines.length, 1);
  assert.equal(logger.lines[0][0], 'error');
  assert.ok(logger.lines[0][1].startsWith(`weir: cannot open the state, and tries again every second: ${state}`));
  assert.ok(it.stateError.includes(state));
  assert.deepEqual(asked(it, '/open'), [true, true, true]);
  assert.deepEqual(asked(it, '/closed'), [false, false, false]);
  assert.deepEqual(asked(it, '/local'), [true, true, false]);
  const answer = it.check({ path: '/closed' });
  assert.deepEqual([answer.storeFailed, answer.status], [true, 503]);
  fs.mkdirSync(path.dirname(state));
  await until(() => it.stateError === null, 'the state');
  assert.deepEqual(asked(it, '/closed'), [true, true, false]);
  await until(() => logger.lines.length === 2, 'the second line');
  assert.deepEqual(logger.lines[1], ['info', 'weir: the state can be used again']);
  it.close();
  fs.rmSync(folder, { recursive: true });
});

test('penalties without a server are logged, and limits hold', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-penalties-'));
  const logger = listen();
  const rules = {
    headers,
    standing: { by: ['client.ip'], file: path.join(folder, 'standing.db') },
    limits: [{ name: 'all', key: ['client.ip'], rate: '2/30d' }],
    penalties: [{ name: 'guess', key: ['client.ip'], strikes: '2/h', ladder: ['suspend 1h'] }],
  };
  const it = weir.open(rules, { state: path.join(folder, 'state'), logger });
  assert.equal(logger.lines.length, 1);
  assert.equal(logger.lines[0][0], 'error');
  assert.match(logger.lines[0][1], /no `weir serve` with penalties runs on the state file/);
  const asks = [1, 2, 3, 4, 5, 6].map(() => it.check({ path: '/', ip: '192.0.2.1' }).deniedBy || 'nobody');
  assert.deepEqual(asks, ['nobody', 'nobody', 'all', 'all', 'all', 'all']);
  await until(() => logger.lines.length === 2, 'the second line');
  assert.match(logger.lines[1][1], /strikes were lost so far/);
  it.close();
  fs.rmSync(folder, { recursive: true });
});

test('a mistake of rules or options is thrown at once', () => {
  const state = '/nonexistent/folder/state';
  assert.throws(() => weir.open({ limits }, { state, stateMustOpen: true }), { code: 'WEIR_ERR_IO' });
  assert.throws(() => weir.open({ limits }, { state, stateBytes: 5 }), { code: 'WEIR_ERR_RANGE' });
  assert.throws(() => weir.open({ limits }, { state, stateGroup: 'no-such-group' }), { code: 'WEIR_ERR_NOT_FOUND' });
  assert.throws(() => weir.open({ limits: 'nonsense' }, { state }), { code: 'WEIR_ERR_RULES' });
  assert.throws(() => weir.open({ limits }, { logger: { error() {} } }), /logger: must have the methods/);
  assert.throws(() => weir.open({ limits }, { logger: 5 }), /logger/);
});

test('what is deprecated, and names in requests that no rule knows, are warnings', async () => {
  const logger = listen();
  const it = weir.open({ headers, limits: [{ name: 'a', key: ['tenant'], rate: '9/h' }] }, { logger });
  assert.equal(logger.lines.length, 1);
  assert.equal(logger.lines[0][0], 'warn');
  assert.match(logger.lines[0][1], /unknown attribute `tenant`/);
  it.check({ attributes: { tennant: 'acme' } });
  await until(() => logger.lines.length === 2, 'the line');
  assert.match(logger.lines[1][1], /`tennant`/);
  it.close();
});

test('a default that has changed is a warning', () => {
  const logger = listen();
  weir.open({ limits }, { logger }).close();
  assert.deepEqual(logger.lines.map(([level]) => level), ['warn']);
  assert.match(logger.lines[0][1], /X-RateLimit-Reset is a Unix time now/);
});

test('without a logger it is the console', () => {
  const before = console.warn;
  const seen = [];
  console.warn = (text) => seen.push(text);
  try {
    weir.open({ headers, limits: [{ name: 'a', key: ['tenant'], rate: '9/h' }] }).close();
  } finally {
    console.warn = before;
  }
  assert.equal(seen.length, 1);
});

runAll();
