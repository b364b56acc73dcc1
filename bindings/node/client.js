// SPDX-License-Identifier: Apache-2.0
// An HTTP client that keeps to servers' rate limits: it paces requests by what answers say, and retries.
// The guide is docs/languages/node.md, the types are in client.d.ts. Nothing here decides: libweir-client
// does.
'use strict';

const path = require('node:path');
const native = require('./weir-client.node');

const JITTERS = ['full', 'equal', 'decorrelated', 'none'];
const SESSION_OPTIONS = new Set(['state', 'concurrency', 'hostConcurrency', 'adaptive', 'tries', 'timeMs',
  'tryTimeMs', 'jitter', 'backoffBaseMs', 'backoffCapMs', 'bodyMost', 'queueMost', 'follow', 'userAgent', 'seed',
  'onTry', 'headers', 'retryOn', 'retryStatuses', 'backoffFactor', 'rate']);
const REQUEST_OPTIONS = new Set(['headers', 'data', 'json', 'idempotencyKey', 'priority', 'scope', 'tries', 'timeMs',
  'signal']);
const UINT32_MAX = 0xffffffff;

function known(options, names) {
  for (const name in options)
    if (!names.has(name))
      throw new TypeError(`there is no option ${name}: use ${[...names].join(', ')}`);
}

function outOfRange(name, value, what) {
  return Object.assign(new RangeError(`${name}: ${value} is not ${what}`), { code: 'WEIR_ERR_RANGE' });
}

function whole(options, name, most = UINT32_MAX) {
  const value = options[name] ?? 0;
  if (!Number.isSafeInteger(value) || value < 0 || value > most)
    throw outOfRange(name, value, `a whole number from 0 to ${most}`);
  return value;
}

function time(options, name) {
  const value = options[name] ?? 0;
  if (typeof value !== 'number' || !(value >= 0))
    throw outOfRange(name, value, 'a number of milliseconds');
  return value;
}

function number(options, name) {
  const value = options[name] ?? 0;
  if (typeof value !== 'number')
    throw outOfRange(name, value, 'a number');
  return value;
}

// Whether the numbers are statuses of errors, libweir-client says.
function statuses(options, name) {
  const values = options[name] ?? [];
  if (!Array.isArray(values) || !values.every((value) => Number.isInteger(value)))
    throw outOfRange(name, values, 'an array of statuses');
  return values;
}

function text(options, name) {
  const value = options[name] ?? null;
  if (value !== null && typeof value !== 'string')
    throw new TypeError(`${name}: must be a string`);
  return value;
}

// How an answer begins.
class Head {
  constructor(url, status, tries, limit, headers) {
    this.url = url;
    this.status = status;
    this.tries = tries;
    this.limit = limit;
    this.fields = headers.split('\n').filter((line) => line.includes(': ')).map((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)];
    });
    this.headers = Object.assign(Object.create(null), Object.fromEntries(this.fields));
  }

  get ok() { return this.status < 400; }
}

// A final answer, whatever its status.
class Response extends Head {
  constructor(url, status, tries, limit, headers, content) {
    super(url, status, tries, limit, headers);
    this.content = content;
  }

  get text() { return this.content.toString('utf8'); }

  json() { return JSON.parse(this.text); }
}

// What the client's thread has brought of a body, and what a Stream reads: the client refers to it, and not to the
// Stream, which may be forgotten.
class Source {
  ended = false;
  error = null;
  #pieces = [];
  #wake = null;
  #calls;

  // `calls`: consumed(bytes), cancel(), ended().
  constructor(calls) { this.#calls = calls; }

  push(piece) {
    if (this.ended)
      return;
    this.#pieces.push(piece);
    this.#wake?.();
  }

  end(error = null) {
    if (this.ended)
      return;
    this.ended = true;
    this.error = error;
    this.#calls.ended();
    this.#wake?.();
  }

  take() {
    const piece = this.#pieces.shift();
    if (piece !== undefined && !this.ended)
      this.#calls.consumed(piece.length);
    return piece;
  }

  cancel(reason = null) {
    if (this.ended)
      return;
    this.#pieces = [];
    this.end(reason);
    this.#calls.cancel();
  }

  // Until there is something new.
  changed() { return new Promise((resolve) => { this.#wake = resolve; }); }
}

const forgotten = new FinalizationRegistry((source) => source.cancel());

// A final answer whose body is read while it arrives: an async iterable of buffers. One reader.
class Stream extends Head {
  #source;

  constructor(url, status, tries, limit, headers, source) {
    super(url, status, tries, limit, headers);
    this.#source = source;
    forgotten.register(this, source, source);
  }

  // The next piece, or null at the end. Rejected with a Failed where the answer broke off.
  async read() {
    const source = this.#source;
    for (;;) {
      const piece = source.take();
      if (piece !== undefined)
        return piece;
      if (source.error !== null)
        throw source.error;
      if (source.ended)
        return null;
      await source.changed();
    }
  }

  async* [Symbol.asyncIterator]() {
    try {
      for (let piece = await this.read(); piece !== null; piece = await this.read())
        yield piece;
    } finally {
      this.cancel();
    }
  }

  // Ends it: what has not been read is lost.
  cancel() {
    forgotten.unregister(this.#source);
    this.#source.cancel();
  }
}

// A request without a final answer.
class Failed extends Error {
  constructor(message, code, response, tries, limit, retryAfterMs) {
    super(message);
    this.name = this.constructor.name;
    this.code = code;
    this.response = response;
    this.tries = tries;
    this.limit = limit;
    this.retryAfterMs = retryAfterMs;
  }
}

class Limited extends Failed {}
class Timeout extends Failed {}
class GaveUp extends Failed {}
class Refused extends Failed {}
class Cancelled extends Failed {}

const FAILURES = {
  'limited': [Limited, 'WEIR_ERR_BUSY'],
  'timeout': [Timeout, 'WEIR_ERR_DEADLINE'],
  'gave up': [GaveUp, 'WEIR_ERR_IO'],
  'refused': [Refused, 'WEIR_ERR_UNSUPPORTED'],
  'cancelled': [Cancelled, 'WEIR_ERR_CANCELLED'],
};

// What the addon calls. It refers to no session, so that one that is forgotten can be collected;
// requests in flight refer to theirs.
function receiver(pending, onTry) {
  const ended = (number, outcome, status, tries, limit, retryAfterMs, headers, content, reason) => {
    const { url, source, begun, resolve, reject } = pending.get(number);
    pending.delete(number);
    if (outcome === 'answered') {
      source.end();
      if (!begun)
        resolve(new Response(url, status, tries, limit, headers, content));
      return;
    }
    const response = status === 0 || begun ? null : new Response(url, status, tries, limit, headers, content);
    const [Failure, code] = FAILURES[outcome];
    const error = new Failure(`${url}: ${outcome}${reason ? `: ${reason}` : ''}`, code, response, tries, limit,
      retryAfterMs);
    source.end(error);
    if (!begun)
      reject(error);
  };
  const began = (number, status, tries, limit, headers) => {
    const one = pending.get(number);
    const { resolve } = one;
    one.begun = true;
    one.resolve = one.reject = null; // they keep the promise, and so the Stream
    resolve(new Stream(one.url, status, tries, limit, headers, one.source));
  };
  const came = (number, piece) => pending.get(number).source.push(piece);
  const tried = (url, number, status, error, waitedMs, tookMs, nextWaitMs, limit) => {
    try {
      onTry({ url, number, status, error, waitedMs, tookMs, nextWaitMs, limit });
    } catch (thrown) {
      process.emitWarning(thrown instanceof Error ? thrown : String(thrown)); // a hook ends no request
    }
  };
  const receivers = [ended, tried, began, came]; // by the addon's enum kind
  return (kind, ...values) => receivers[kind](...values);
}

function bodyOf({ data = null, json }) {
  if (json !== undefined)
    return Buffer.from(JSON.stringify(json));
  if (typeof data === 'string')
    return Buffer.from(data);
  if (data instanceof Uint8Array)
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (data !== null)
    throw new TypeError('data: must be a string, a Buffer or a Uint8Array');
  return null;
}

class Session {
  #native;
  #headers;
  #pending = new Map(); // the number of a request in flight => its promise
  #next = 0;
  #closed = false;

  constructor(options = {}) {
    known(options, SESSION_OPTIONS);
    const { onTry = null, state } = options;
    if (onTry !== null && typeof onTry !== 'function')
      throw new TypeError('onTry: must be a function');
    const jitter = JITTERS.indexOf(options.jitter ?? 'full');
    if (jitter < 0)
      throw outOfRange('jitter', options.jitter, `one of ${JITTERS.join(', ')}`);
    this.#headers = { ...options.headers };
    this.#native = new native.Client(state == null ? null : path.resolve(state), text(options, 'userAgent'),
      text(options, 'rate'), whole(options, 'concurrency'), whole(options, 'hostConcurrency'), options.adaptive ? 1 : 0,
      whole(options, 'tries'), jitter, whole(options, 'bodyMost', Number.MAX_SAFE_INTEGER),
      whole(options, 'queueMost'), options.follow ? 1 : 0, whole(options, 'seed', Number.MAX_SAFE_INTEGER),
      time(options, 'timeMs'), time(options, 'tryTimeMs'), time(options, 'backoffBaseMs'),
      time(options, 'backoffCapMs'), onTry === null ? 0 : 1, statuses(options, 'retryOn'),
      statuses(options, 'retryStatuses'), number(options, 'backoffFactor'), receiver(this.#pending, onTry));
  }

  // A number that no request in flight has.
  #number() {
    do
      this.#next = (this.#next + 1) % UINT32_MAX;
    while (this.#pending.has(this.#next));
    return this.#next;
  }

  #submit(method, url, options, number, streams) {
    const headers = { ...this.#headers, ...options.headers };
    if (options.json !== undefined && !Object.keys(headers).some((name) => name.toLowerCase() === 'content-type'))
      headers['Content-Type'] = 'application/json';
    return this.#native.submit(number, method, url,
      Object.entries(headers).map(([name, value]) => `${name}: ${value}`), bodyOf(options),
      Boolean(options.idempotencyKey), options.priority ?? 0, text(options, 'scope'), whole(options, 'tries'),
      time(options, 'timeMs'), streams);
  }

  // Makes a request; the promise has its final answer, or is rejected with a Failed.
  request(method, url, options = {}) { return this.#make(method, url, options, false); }

  // The same; the promise has a Stream as soon as the answer has begun. From then on nothing is tried again.
  // `timeMs` ends with the head; an answer without a byte for `tryTimeMs` is a Timeout. The signal ends the Stream.
  stream(method, url, options = {}) { return this.#make(method, url, options, true); }

  #make(method, url, options, streams) {
    return new Promise((resolve, reject) => {
      known(options, REQUEST_OPTIONS);
      const { signal } = options;
      signal?.throwIfAborted();
      url = String(url);
      const number = this.#number();
      const id = this.#submit(String(method), url, options, number, streams);
      const aborted = () => {
        this.#pending.get(number)?.reject?.(signal.reason); // to hold the function would be to hold the Stream
        source.cancel(signal.reason);
      };
      const source = new Source({
        consumed: (bytes) => { if (!this.#closed) this.#native.consumed(id, bytes); },
        cancel: () => { if (!this.#closed) this.#native.cancel(id); },
        ended: () => signal?.removeEventListener('abort', aborted),
      });
      signal?.addEventListener('abort', aborted, { once: true });
      this.#pending.set(number, { url, session: this, source, begun: false, resolve, reject });
    });
  }

  get(url, options) { return this.request('GET', url, options); }

  head(url, options) { return this.request('HEAD', url, options); }

  post(url, options) { return this.request('POST', url, options); }

  put(url, options) { return this.request('PUT', url, options); }

  patch(url, options) { return this.request('PATCH', url, options); }

  delete(url, options) { return this.request('DELETE', url, options); }

  // What is known of the tightest limit of a URL's host, or null.
  known(url, scope = null) { return this.#native.known(String(url), scope); }

  // How many requests are still to come: where a limit has room for all of them, they are not spread
  // over its window. Infinity: not known.
  expect(requests) {
    if (requests !== Infinity)
      whole({ requests }, 'requests', Number.MAX_SAFE_INTEGER);
    this.#native.expect(requests);
  }

  // Cancels what is left, and closes.
  close() {
    if (this.#closed)
      return;
    this.#closed = true;
    this.#native.close();
  }
}

module.exports = { Session, Response, Stream, Failed, Limited, Timeout, GaveUp, Refused, Cancelled };
