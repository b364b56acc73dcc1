// SPDX-License-Identifier: Apache-2.0
// What a request pays for its limit in Node: weir's handler for Express beside express-rate-limit with its
// memory store, each with the same header fields, on requests and responses as Node's http makes them,
// without sockets.
//
//     cd tests/integration/bindings/node && npm ci --ignore-scripts && cd -
//     node bench/bindings/node.mjs [BUILD] [ROUNDS]
//
// Prints CPU time for each request, medians over rounds that take turns, and the least: other work of the
// machine only ever adds. `nothing` is what the requests cost without a limit, and is taken off.
import { createRequire } from 'node:module';
import { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

const here = resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../..');
const build = resolve(process.argv[2] ?? join(here, 'build'));
const rounds = Number(process.argv[3] ?? 15);
const REQUESTS = 20000;

const weir = createRequire(import.meta.url)(join(build, 'bindings/node/index.js'));
const { rateLimit } = createRequire(join(here, 'tests/integration/bindings/node/package.json'))(
  'express-rate-limit');

const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
const RATE = 1_000_000_000;
const rules = (rate, more) => ({ limits: [{ name: 'one', key: ['client.ip'], rate, algorithm: 'fixed_window',
  ...more }] });
const state = join(folder, 'state');
const THREE = { limits: [...rules(`${RATE}/min`).limits,
  { name: 'two', key: ['path'], rate: `${RATE}/h`, algorithm: 'gcra' },
  { name: 'three', key: [], rate: `${RATE}/h`, algorithm: 'sliding_window' }] };

// Theirs hashes each key for RateLimit; with X-RateLimit alone it does not.
const theirs = (limit, standardHeaders = 'draft-8') => rateLimit({ windowMs: 60000, limit, standardHeaders,
  legacyHeaders: true, validate: false });
const X_ONLY = { headers: ['x-delta'], ...rules(`${RATE}/min`) };
const handlers = {
  nothing: (req, res, next) => next(),
  'express-rate-limit': theirs(RATE),
  weir: weir.express(weir.open(rules(`${RATE}/min`))),
  'express-rate-limit, X- only': theirs(RATE, false),
  'weir, X- only': weir.express(weir.open(X_ONLY)),
  'weir, state file': weir.express(weir.open(rules(`${RATE}/min`), { state })),
  'weir, three limits': weir.express(weir.open(THREE)),
  'express-rate-limit, denied': theirs(1),
  'weir, denied': weir.express(weir.open(rules('1/h'))),
};

const socket = { remoteAddress: '192.0.2.1', writable: true, on() {}, once() {}, removeListener() {} };
// A request as Express hands it to its handlers.
function request() {
  const req = new IncomingMessage(socket);
  req.method = 'GET';
  req.url = '/api/things?x=1';
  req.ip = '192.0.2.1';
  req.headers = { host: 'api.example.com', 'user-agent': 'bench', accept: '*/*' };
  req.app = { get: () => false };
  const res = new ServerResponse(req);
  res.status = (code) => { res.statusCode = code; return res; };
  res.send = (body) => { res.end(body); return res; };
  return [req, res];
}

async function one(handler) {
  const [req, res] = request();
  await new Promise((done) => {
    res.end = done;
    handler(req, res, done);
  });
}

async function measure(handler) {
  const before = process.cpuUsage();
  for (let i = 0; i < REQUESTS; i++)
    await one(handler);
  const used = process.cpuUsage(before);
  return (used.user + used.system) / REQUESTS;
}

const times = Object.fromEntries(Object.keys(handlers).map((name) => [name, []]));
for (let round = -2; round < rounds; round++)
  for (const [name, handler] of Object.entries(handlers)) {
    const time = await measure(handler);
    if (round >= 0) // the first two compile
      times[name].push(time);
  }

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const nothing = { median: median(times.nothing), least: Math.min(...times.nothing) };
console.log(`us of CPU for each request, ${rounds} rounds of ${REQUESTS}; node ${process.version}`);
for (const [name, list] of Object.entries(times)) {
  const off = name === 'nothing' ? { median: 0, least: 0 } : nothing;
  console.log(`${name.padEnd(28)} median ${(median(list) - off.median).toFixed(2).padStart(6)}  ` +
    `least ${(Math.min(...list) - off.least).toFixed(2).padStart(6)}`);
}
rmSync(folder, { recursive: true });
process.exit(0);
