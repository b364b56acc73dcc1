// SPDX-License-Identifier: Apache-2.0
// What the tests of the Node binding share. They run in a folder of their own, which has weir in
// node_modules.
'use strict';

const assert = require('node:assert/strict');
const http = require('node:http');
const weir = require('weir');

const SECONDS_MAX = 60;
const cases = [];

// One case; they run in order, and the first that fails ends the program.
function test(name, run) { cases.push({ name, run }); }

async function runAll() {
  const only = process.argv[2];
  for (const { name, run } of cases) {
    if (only && !name.includes(only))
      continue;
    console.log(name);
    await run();
  }
  console.log('passed', cases.length);
  process.exit(0);
}

async function until(holds, what) {
  const end = Date.now() + SECONDS_MAX * 1000;
  while (!holds()) {
    assert.ok(Date.now() < end, `${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function listen(handler, where = { port: 0, host: '127.0.0.1' }) {
  return new Promise((resolve) => {
    const server = handler instanceof http.Server ? handler : http.createServer(handler);
    server.listen(where, () => resolve(server));
  });
}

// One request on a connection of its own.
function get(server, path = '/', { headers = {}, method = 'GET' } = {}) {
  const address = server.address();
  const where = typeof address === 'string' ? { socketPath: address }
    : { host: '127.0.0.1', port: address.port };
  return new Promise((resolve, reject) => {
    http.request({ ...where, path, method, headers, agent: false }, (res) => {
      let body = '';
      res.setEncoding('utf8');
      res.on('data', (piece) => { body += piece; });
      res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body }));
    }).on('error', reject).end();
  });
}

// A server that answers with `answer`, behind the handler for http.
async function serve(rules, options, answer = (req, res) => res.end('hello'), where = undefined) {
  const limits = weir.open({ limits: [].concat(rules) });
  const limit = weir.http(limits, options);
  const seen = [];
  const server = await listen((req, res) => limit(req, res, (error) => {
    seen.push(req.url);
    if (error)
      res.writeHead(500).end(String(error));
    else
      answer(req, res);
  }), where);
  const close = () => {
    server.closeAllConnections();
    server.close();
    limits.close();
  };
  return { server, seen, limits, close, get: (...request) => get(server, ...request) };
}

module.exports = { assert, get, listen, runAll, serve, test, until };
