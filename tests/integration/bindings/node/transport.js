// SPDX-License-Identifier: Apache-2.0
// weir/fetch: the Dispatcher and fetchOf with Node's own fetch, and with handlers of both forms.
'use strict';

const zlib = require('node:zlib');
const { Session, Timeout } = require('weir/client');
const { Dispatcher, fetchOf } = require('weir/fetch');
const { assert, listen, runAll, test, until } = require('./helper.js');

async function serve() {
  const seen = [];
  const server = await listen((req, res) => {
    const pieces = [];
    req.on('data', (piece) => pieces.push(piece));
    req.on('end', () => {
      const body = Buffer.concat(pieces);
      seen.push({ method: req.method, url: req.url, headers: req.headers, body: body.toString('latin1') });
      if (req.url === '/limited' || (req.url === '/once' && seen.length === 1))
        res.writeHead(429, { 'retry-after-ms': '20' }).end('no');
      else if (req.url === '/moved')
        res.writeHead(307, { Location: '/there' }).end();
      else if (req.url === '/empty')
        res.writeHead(204).end();
      else if (req.url === '/held')
        seen.held = res;
      else
        res.writeHead(200, { 'Content-Encoding': 'gzip', 'Set-Cookie': ['a=1', 'b=2'], 'Constructor': 'c' })
          .end(zlib.gzipSync(Buffer.concat([Buffer.from('got '), body])));
    });
  });
  const session = new Session({ tries: 3 });
  const close = () => {
    session.close();
    server.closeAllConnections();
    server.close();
  };
  return { seen, session, close, address: server.address(), url: (path) => `http://127.0.0.1:${server.address().port}${path}` };
}

test('requests and answers pass unchanged', async () => {
  const server = await serve();
  const fetch = fetchOf(server.session);
  const answer = await fetch(server.url('/moved'), { method: 'POST', body: 'b\u00e4', headers: { 'X-One': '1' } });
  assert.deepEqual([answer.status, answer.redirected, answer.url], [200, true, server.url('/there')]);
  assert.equal(await answer.text(), 'got b\u00e4');
  assert.deepEqual(answer.headers.getSetCookie(), ['a=1', 'b=2']);
  const [, { method, url, headers }] = server.seen;
  assert.deepEqual([method, url, headers['x-one'], headers['content-length']], ['POST', '/there', '1', '3']);
  assert.equal(headers.host, `127.0.0.1:${server.address.port}`);
  assert.equal((await fetch(new Request(server.url('/empty')))).status, 204);
  server.close();
});

test('a path with two slashes is a path, and no other host', async () => {
  const server = await serve();
  const other = await serve();
  const path = `//127.0.0.1:${other.address.port}/x`;
  const answer = await fetchOf(server.session)(server.url(path), { headers: { Authorization: 'secret' } });
  assert.equal(await answer.text(), 'got ');
  assert.deepEqual([server.seen[0].url, server.seen[0].headers.authorization, other.seen.length], [path, 'secret', 0]);
  const calls = await dispatched(server, { path: 'x' }, 'controller');
  assert.match(calls.at(-1)[1], /path: must begin with a slash/);
  server.close();
  other.close();
});

test('bodies of every kind arrive', async () => {
  const server = await serve();
  const fetch = fetchOf(server.session);
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from('pie'));
      controller.enqueue(Buffer.from('ces'));
      controller.close();
    },
  });
  const bodies = [['text', 'text'], [new Uint8Array([104, 105]), 'hi'], [new Blob(['blob']), 'blob'], [stream, 'pieces'],
    [new URLSearchParams({ k: 'v' }), 'k=v']];
  for (const [body, want] of bodies) {
    const answer = await fetch(server.url('/'), { method: 'PUT', body, duplex: 'half' });
    assert.equal(await answer.text(), `got ${want}`);
  }
  const form = new FormData();
  form.append('field', 'value');
  await (await fetch(server.url('/'), { method: 'POST', body: form })).text();
  const last = server.seen.at(-1);
  assert.ok(last.headers['content-type'].startsWith('multipart/form-data') && last.body.includes('value'));
  server.close();
});

test('a 429 is waited out, and the last one is the answer', async () => {
  const server = await serve();
  const fetch = fetchOf(server.session);
  assert.equal(await (await fetch(server.url('/once'))).text(), 'got ');
  assert.equal(server.seen.length, 2);
  const answer = await fetch(server.url('/limited'));
  assert.deepEqual([answer.status, answer.headers.get('retry-after-ms'), await answer.text()], [429, '20', 'no']);
  assert.equal(server.seen.length, 5);
  const keyed = fetchOf(server.session, { idempotencyKey: true, tries: 2 });
  assert.equal((await keyed(server.url('/limited'), { method: 'POST', body: 'x' })).status, 429);
  assert.equal(server.seen.length, 7);
  server.close();
});

test('what has no answer is an error of fetch, with its cause', async () => {
  const server = await serve();
  const slow = fetchOf(server.session, { timeMs: 1000, scope: 'other' });
  await assert.rejects(slow(server.url('/held')), (error) => error.cause instanceof Timeout);
  const nothing = server.url('/');
  server.close();
  const session = new Session({ tries: 1 });
  await assert.rejects(fetchOf(session)(nothing), (error) => error.cause.code === 'WEIR_ERR_IO');
  assert.throws(() => new Dispatcher({}), /session/);
  session.close();
});

test('a signal ends a request', async () => {
  const server = await serve();
  const abort = new AbortController();
  const answer = fetchOf(server.session)(server.url('/held'), { signal: abort.signal });
  await until(() => server.seen.held, 'the request');
  abort.abort();
  await assert.rejects(answer, { name: 'AbortError' });
  server.close();
});

// A request by dispatch(), and what its handler saw, in order.
function dispatched(server, options, form) {
  const calls = [];
  return new Promise((resolve) => {
    const end = (name, ...values) => {
      calls.push([name, ...values]);
      resolve(calls);
    };
    const callbacks = {
      onConnect: () => calls.push(['connect']),
      onHeaders(status, raw, resume) {
        calls.push(['headers', status, raw.length % 2]);
        setImmediate(resume);
        return false;
      },
      onData: (piece) => { calls.push(['data', Buffer.isBuffer(piece)]); },
      onComplete: () => end('complete'),
      onError: (error) => end('error', error.message),
    };
    const controlled = {
      onRequestStart: () => calls.push(['connect']),
      onResponseStart(controller, status, headers) {
        calls.push(['headers', status, headers['set-cookie']?.length, headers.constructor]);
        controller.pause();
        setImmediate(() => controller.resume());
      },
      onResponseData: (controller, piece) => { calls.push(['data', Buffer.isBuffer(piece)]); },
      onResponseEnd: () => end('complete'),
      onResponseError: (controller, error) => end('error', error.message),
    };
    const dispatcher = new Dispatcher(server.session);
    assert.equal(dispatcher.dispatch({ origin: server.url(''), path: '/', method: 'GET', ...options },
      form === 'callbacks' ? callbacks : controlled), true);
  });
}

for (const form of ['callbacks', 'controller'])
  test(`a handler with ${form} sees an answer in order, and may pause`, async () => {
    const server = await serve();
    const calls = await dispatched(server, { headers: ['X-One', '1', 'Cookie', ['a=1', 'b=2'], 'X-One', '2', 'Cookie', 'c=3'], query: { k: 'v w' } }, form);
    assert.deepEqual(calls.map(([name]) => name), ['connect', 'headers', 'data', 'complete']);
    assert.deepEqual(calls[1], form === 'callbacks' ? ['headers', 200, 0] : ['headers', 200, 2, 'c']);
    const [{ url, headers }] = server.seen;
    assert.deepEqual([url, headers['x-one'], headers.cookie], ['/?k=v+w', '1, 2', 'a=1; b=2; c=3']);
    assert.match((await dispatched(server, { upgrade: 'websocket' }, form)).at(-1)[1], /no upgrades/);
    assert.match((await dispatched(server, { method: 'PUT', body: new FormData() }, form)).at(-1)[1], /form/);
    server.close();
  });

runAll();
