// SPDX-License-Identifier: Apache-2.0
// undici's Dispatcher and a fetch over a Session, so that what uses them keeps to servers' rate limits. An answer is
// handed on while it arrives; a reader that is not ready pauses the transfer. Handlers have one of two forms: since
// undici 7 with a controller (onRequestStart, …), before and in Node's own fetch with callbacks (onConnect, …).
'use strict';

const { Session, Stream, Timeout } = require('./client.js');

// What libcurl writes itself, and what describes a transfer that has ended.
const OWN = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'expect']);
const ENDED = new Set(['transfer-encoding', 'connection', 'keep-alive']);

// [name, value] of all forms of header fields that undici takes: a flat array, pairs, or an object.
function* fieldsOf(headers) {
  if (headers === null || headers === undefined)
    return;
  if (Array.isArray(headers) && !Array.isArray(headers[0])) {
    for (let i = 0; i + 1 < headers.length; i += 2)
      yield [String(headers[i]), headers[i + 1]];
    return;
  }
  const pairs = typeof headers[Symbol.iterator] === 'function' ? headers : Object.entries(headers);
  for (const [name, value] of pairs)
    yield [String(name), value];
}

// Lines of one name are joined, as a proxy may.
function headersOf(headers) {
  const fields = {};
  for (const [name, value] of fieldsOf(headers)) {
    if (OWN.has(name.toLowerCase()) || value === undefined || value === null)
      continue;
    const lines = Object.hasOwn(fields, name) ? [fields[name], value].flat() : [value].flat();
    fields[name] = lines.join(name.toLowerCase() === 'cookie' ? '; ' : ', ');
  }
  return fields;
}

// A body as one buffer; null: none.
async function bodyOf(body) {
  if (body === null || body === undefined)
    return null;
  if (typeof body === 'string' || body instanceof Uint8Array)
    return Buffer.from(body);
  if (ArrayBuffer.isView(body))
    return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (body instanceof ArrayBuffer)
    return Buffer.from(body);
  if (body[Symbol.toStringTag] === 'FormData')
    throw new TypeError('body: give a form to fetch, which encodes it');
  if (typeof body[Symbol.asyncIterator] === 'function' || typeof body[Symbol.iterator] === 'function') {
    const pieces = [];
    for await (const piece of body)
      pieces.push(Buffer.from(piece));
    return Buffer.concat(pieces);
  }
  if (typeof body.arrayBuffer === 'function')
    return Buffer.from(await body.arrayBuffer());
  throw new TypeError('body: must be a string, a buffer, an iterable or a Blob');
}

// A path after the origin, so that one with two slashes names no other host.
function urlOf({ origin, path, query }) {
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw new TypeError('path: must begin with a slash');
  const url = new URL(new URL(origin).origin + path);
  for (const [name, value] of Object.entries(query ?? {}))
    url.searchParams.append(name, value);
  return url.href;
}

// How a request is aborted, and held while its reader is not ready.
class Controller {
  aborted = false;
  reason = null;
  paused = false;
  #abort = new AbortController();
  #resumed = null;

  get signal() { return this.#abort.signal; }

  abort(reason) {
    if (this.aborted)
      return;
    this.aborted = true;
    this.reason = reason ?? new DOMException('This operation was aborted', 'AbortError');
    this.#abort.abort(this.reason);
    this.resume();
  }

  pause() { this.paused = true; }

  resume() {
    this.paused = false;
    this.#resumed?.();
  }

  async ready() {
    while (this.paused)
      await new Promise((resolve) => { this.#resumed = resolve; });
    if (this.aborted)
      throw this.reason;
  }
}

// Calls a handler with callbacks in the form with a controller.
function ofCallbacks(handler) {
  return {
    onRequestStart: (controller) => handler.onConnect?.((reason) => controller.abort(reason), null),
    onResponseStart(controller, status, fields) {
      const raw = fields.flatMap(([name, value]) => [Buffer.from(name, 'latin1'), Buffer.from(value, 'latin1')]);
      handler.onResponseStarted?.();
      if (handler.onHeaders(status, raw, () => controller.resume(), '') === false)
        controller.pause();
    },
    onResponseData(controller, piece) {
      if (handler.onData(piece) === false)
        controller.pause();
    },
    onResponseEnd: () => handler.onComplete([]),
    onResponseError: (controller, error) => handler.onError?.(error),
  };
}

// The same for one with a controller: header fields as an object.
function ofController(handler) {
  return {
    onRequestStart: (controller) => handler.onRequestStart(controller, null),
    onResponseStart(controller, status, fields) {
      const headers = {};
      for (const [name, value] of fields)
        headers[name] = Object.hasOwn(headers, name) ? [headers[name], value].flat() : value;
      handler.onResponseStart?.(controller, status, headers, '');
    },
    onResponseData: (controller, piece) => handler.onResponseData?.(controller, piece),
    onResponseEnd: (controller) => handler.onResponseEnd?.(controller, {}),
    onResponseError: (controller, error) => handler.onResponseError?.(controller, error),
  };
}

class Dispatcher {
  #session;
  #options;

  constructor(session, options = {}) {
    if (!(session instanceof Session))
      throw new TypeError('session: must be a Session of weir/client');
    this.#session = session;
    this.#options = options;
  }

  // Begins a request; true: another may follow at once.
  dispatch(options, handler) {
    const controller = new Controller();
    const calls = typeof handler.onRequestStart === 'function' ? ofController(handler) : ofCallbacks(handler);
    this.#run(options, controller, calls).catch((error) => calls.onResponseError(controller, error));
    return true;
  }

  async #run(options, controller, calls) {
    calls.onRequestStart(controller);
    await controller.ready();
    if (options.upgrade || options.method === 'CONNECT')
      throw new TypeError('weir/client carries requests and answers, and no upgrades');
    const answer = await this.#answer(options, controller);
    try {
      calls.onResponseStart(controller, answer.status, answer.fields.filter(([name]) => !ENDED.has(name)));
      await controller.ready();
      for await (const piece of answer instanceof Stream ? answer : [answer.content]) {
        if (piece.length > 0)
          calls.onResponseData(controller, piece);
        await controller.ready();
      }
    } finally {
      if (answer instanceof Stream)
        answer.cancel(); // one that has ended is ignored
    }
    calls.onResponseEnd(controller);
  }

  // The final answer as a Stream, or the last one where it was refused or failed.
  async #answer(options, { signal }) {
    const { method, headers, body } = options;
    const url = urlOf(options);
    const data = await bodyOf(body);
    const given = { headers: headersOf(headers), data, signal, ...this.#options };
    try {
      return await this.#session.stream(method ?? 'GET', url, given);
    } catch (error) {
      if (error instanceof Timeout || !error.response)
        throw error;
      return error.response;
    }
  }

  // The session is the caller's to close.
  async close() {}

  async destroy() {}
}

// fetch as Node has it, through the session. Options are those of Session.request, such as idempotencyKey.
function fetchOf(session, options = {}) {
  const dispatcher = new Dispatcher(session, options);
  return (input, init) => globalThis.fetch(input, { ...init, dispatcher });
}

module.exports = { Dispatcher, fetchOf };
