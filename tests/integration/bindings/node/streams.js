// SPDX-License-Identifier: Apache-2.0
// Answers that are read while they arrive: Session.stream, and fetch. The server sends the next part when the
// reader has got the one before.
'use strict';

const { once, EventEmitter } = require('node:events');
const { Cancelled, GaveUp, Session } = require('weir/client');
const { fetchOf } = require('weir/fetch');
const { assert, listen, runAll, test } = require('./helper.js');

const PARTS = ['data: one\n\n', 'data: two\n\n', 'data: [DONE]\n\n'];
const LARGE = 8 << 20;

// Counts what the reader has got.
class Tokens {
  #count = 0;
  #waiting = [];

  give() {
    if (this.#waiting.length > 0)
      this.#waiting.shift()();
    else
      this.#count++;
  }

  take() {
    if (this.#count > 0) {
      this.#count--;
      return Promise.resolve();
    }
    return new Promise((resolve) => { this.#waiting.push(resolve); });
  }
}

// /cut: ends after the first part; /held: never; /large: LARGE bytes; /once: 429 first; else PARTS.
async function serve() {
  const events = new EventEmitter(); // 'gone': the reader has left
  const tokens = new Tokens(); // of the head, and of each part
  const seen = [];
  const server = await listen(async (req, res) => {
    seen.push(req.url);
    res.on('close', () => events.emit('gone'));
    if (req.url === '/once' && seen.length === 1) {
      res.writeHead(429, { 'retry-after-ms': '20' }).end();
      return;
    }
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    if (req.url === '/large') {
      res.end(Buffer.alloc(LARGE, 'x'));
      return;
    }
    res.flushHeaders();
    for (const part of req.url === '/cut' || req.url === '/held' ? PARTS.slice(0, 1) : PARTS) {
      await tokens.take();
      res.write(part);
    }
    if (req.url === '/cut')
      await tokens.take();
    if (req.url === '/cut')
      res.destroy();
    else if (req.url !== '/held')
      res.end();
  });
  const session = new Session({ tries: 3 });
  return {
    seen, session, events,
    got: () => tokens.give(),
    url: (path) => `http://127.0.0.1:${server.address().port}${path}`,
    close() {
      session.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

async function all(server, pieces) {
  const found = [];
  server.got();
  for await (const piece of pieces) {
    found.push(Buffer.from(piece).toString());
    server.got();
  }
  return found;
}

test('pieces come as they are sent', async () => {
  for (const path of ['/events', '/once']) {
    const server = await serve();
    const answer = await server.session.stream('GET', server.url(path));
    assert.deepEqual([answer.status, answer.ok, answer.headers['content-type']], [200, true, 'text/event-stream']);
    assert.deepEqual(await all(server, answer), PARTS);
    assert.equal(await answer.read(), null);
    assert.equal(server.seen.length, path === '/once' ? 2 : 1);
    server.close();
  }
});

test('fetch gets events as they are sent', async () => {
  const server = await serve();
  const answer = await fetchOf(server.session)(server.url('/events'));
  assert.equal(answer.status, 200);
  assert.deepEqual(await all(server, answer.body), PARTS);
  server.close();
});

test('an answer that breaks off is not tried again', async () => {
  const server = await serve();
  const answer = await server.session.stream('GET', server.url('/cut'));
  await assert.rejects(all(server, answer), (error) => error instanceof GaveUp && /broke off/.test(error.message));
  await assert.rejects(fetchOf(server.session)(server.url('/cut')).then((begun) => all(server, begun.body)), TypeError);
  assert.equal(server.seen.length, 2);
  server.close();
});

test('a slow reader is not overrun', async () => {
  const server = await serve();
  let size = 0;
  for await (const piece of await server.session.stream('GET', server.url('/large')))
    size += piece.length;
  assert.equal(size, LARGE);
  const answer = await fetchOf(server.session)(server.url('/large'));
  assert.equal((await answer.arrayBuffer()).byteLength, LARGE);
  server.close();
});

test('who leaves ends the transfer', async () => {
  const server = await serve();
  const leaves = [
    async (answer) => answer.cancel(),
    async (answer) => { for await (const _ of answer) break; },
  ];
  for (const leave of leaves) {
    const answer = await server.session.stream('GET', server.url('/held'));
    const gone = once(server.events, 'gone');
    server.got();
    await leave(answer);
    await gone;
  }
  const reader = (await fetchOf(server.session)(server.url('/held'))).body.getReader();
  const gone = once(server.events, 'gone');
  server.got();
  await reader.read();
  await reader.cancel();
  await gone;
  server.close();
});

test('a stream that is forgotten ends its transfer', async () => {
  const server = await serve();
  let gone = false;
  server.events.once('gone', () => { gone = true; });
  await (async () => {
    const answer = await server.session.stream('GET', server.url('/held'), { signal: new AbortController().signal });
    server.got();
    assert.equal((await answer.read()).toString(), PARTS[0]);
  })();
  // Less than the time of a silent stream, 30 s.
  for (let i = 0; i < 1000 && !gone; i++) {
    global.gc();
    await new Promise((resolve) => { setTimeout(resolve, 10); });
  }
  assert.ok(gone);
  server.close();
});

test('a signal ends a stream, and closing the session does', async () => {
  const server = await serve();
  const abort = new AbortController();
  let answer = await server.session.stream('GET', server.url('/held'), { signal: abort.signal });
  const gone = once(server.events, 'gone');
  server.got();
  assert.equal((await answer.read()).toString(), PARTS[0]);
  abort.abort(new Error('enough'));
  await assert.rejects(answer.read(), /enough/);
  await gone;
  answer = await server.session.stream('GET', server.url('/held'));
  server.session.close();
  await assert.rejects(answer.read(), Cancelled);
  server.close();
});

runAll();
