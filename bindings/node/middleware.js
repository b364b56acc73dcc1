// SPDX-License-Identifier: Apache-2.0
// Handlers for http, Express, Fastify, Koa and WebSockets. Each asks weir about a request and does what
// the answer says; what differs is how a framework hands out requests and takes answers, which is a
// `side`: setHeader, deny, gone, and `response`, whose end is the request's.
'use strict';

const { STATUS_CODES } = require('node:http');

const RESERVE_MS = 600000; // requests that take longer keep their charge
const HELD_MAX = 1024; // denials that wait (a tarpit), so that a flood does not collect sockets
const TIMER_MAX_MS = 0x7fffffff;

// Codes of what a client has sent: such a request never passes.
const OF_REQUEST = new Set(['WEIR_ERR_SYNTAX', 'WEIR_ERR_RANGE', 'WEIR_ERR_TOO_LARGE']);

const KNOWN = new Set(['attributes', 'cost', 'settle', 'skipSuccessful', 'skipFailed', 'onLimited', 'onError',
  'skip', 'headers', 'trusted']);

function optionsOf(weir, options) {
  if (!weir || typeof weir.checkIncoming !== 'function')
    throw new TypeError('the first argument must be what open() returned');
  for (const name of Object.keys(options))
    if (!KNOWN.has(name))
      throw new TypeError(`no option ${name}; there are ${[...KNOWN].join(', ')}`);
  if (!['open', 'closed', undefined].includes(options.onError) && typeof options.onError !== 'function')
    throw new TypeError("onError: must be 'open', 'closed' or a function");
  return { ...options, weir, held: 0, settles: Boolean(options.settle || options.skipSuccessful ||
    options.skipFailed) };
}

// Who is connected. A connection that is gone has no address any more; without a Unix socket's name to
// prove it, it must not pass for one, whose forwarding fields may be trusted.
function peerOf(req) {
  const address = req.socket.remoteAddress;
  if (address !== undefined) {
    const zone = address.indexOf('%');
    return { address: zone < 0 ? address : address.slice(0, zone) };
  }
  return typeof req.socket.server?.address?.() === 'string' ? { address: null } : null;
}

function wait(ms, response) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      response.off('close', left);
      resolve(true);
    }, Math.min(ms, TIMER_MAX_MS));
    const left = () => {
      clearTimeout(timer);
      resolve(false);
    };
    response.once('close', left);
  });
}

function attempt(action) {
  try {
    action();
  } catch (error) {
    // The lease or reservation has ended, or its store is busy: it ends with its life.
    if (!String(error.code).startsWith('WEIR_ERR_'))
      throw error;
  }
}

// A third of the shortest life: leases of long requests are renewed in time.
function renewalMs(answer) {
  const lives = answer.limits.filter((limit) => limit.algorithm === 'concurrency')
    .map((limit) => limit.windowMs);
  return Math.min(Math.max(Math.min(...lives) / 3, 100), TIMER_MAX_MS);
}

function holdLease(weir, answer, response) {
  const timer = setInterval(() => attempt(() => weir.renew(answer.lease)), renewalMs(answer));
  timer.unref();
  response.once('close', () => {
    clearInterval(timer);
    attempt(() => weir.release(answer.lease));
  });
}

// What the outcome gives back, and whether it is a strike. A client that left before there was an
// answer keeps its charge.
function end(guard, answer, kept, given, response) {
  const { weir, settle, skipSuccessful, skipFailed } = guard;
  const status = response.statusCode;
  if (!response.headersSent)
    return;
  if (kept !== null && weir.outcomes.has(status))
    attempt(() => weir.outcomeOf(kept, status));
  if (answer.reservation === null || !(guard.settles || weir.refunds))
    return;
  let cost;
  try {
    cost = settle?.(given, response);
  } catch (error) {
    // The answer has been sent: the program's mistake must not end the process.
    process.emitWarning(`settle has failed, so the request keeps its charge: ${error?.stack ?? error}`, 'weir');
    return;
  }
  if (cost !== undefined && cost !== null)
    attempt(() => weir.settle(answer.reservation, cost));
  else if (status < 400 ? skipSuccessful : skipFailed)
    attempt(() => weir.settle(answer.reservation, 0));
  else if (weir.refunds && status >= 100 && status <= 599)
    attempt(() => weir.report(answer.reservation, status));
}

function pass(guard, answer, kept, given, { response }) {
  if (kept !== null || (answer.reservation !== null && (guard.settles || guard.weir.refunds)))
    response.once('close', () => end(guard, answer, kept, given, response));
  return true;
}

async function passLater(guard, answer, kept, given, side) {
  if (await wait(answer.delayMs, side.response))
    return pass(guard, answer, kept, given, side);
  if (answer.reservation !== null)
    attempt(() => guard.weir.cancel(answer.reservation));
  return side.gone();
}

// Of an allowed request no field comes twice.
function setHeaders(answer, side) {
  const seen = answer.allowed ? null : new Set();
  answer.eachHeader((name, value) => {
    side.setHeader(name, value, seen?.has(name));
    seen?.add(name);
  });
}

function deny(answer, side) {
  const { status, contentType, body } = answer;
  side.deny(status, contentType === null ? [] : [['Content-Type', contentType]], body);
  return false;
}

async function hold(guard, answer, side) {
  guard.held++;
  const stayed = await wait(answer.delayMs, side.response);
  guard.held--;
  return stayed ? deny(answer, side) : side.gone();
}

function limited(guard, answer, given, side) {
  const done = () => {
    if (side.answered())
      return false;
    return answer.delayMs > 0 && guard.held < HELD_MAX ? hold(guard, answer, side) : deny(answer, side);
  };
  const hooked = guard.onLimited?.(answer, given, side.given);
  return typeof hooked?.then === 'function' ? hooked.then(done) : done();
}

// weir cannot decide. What a client has sent is its own mistake; the rest is ours, and onError's.
function failed(guard, error, given, side) {
  if (OF_REQUEST.has(error.code)) {
    side.deny(400, [['Content-Type', 'text/plain']], `${error.message}\n`);
    return false;
  }
  if (!String(error.code).startsWith('WEIR_ERR_'))
    throw error;
  const verdict = typeof guard.onError === 'function' ? guard.onError(error, given) : guard.onError;
  if (verdict === 'open')
    return true;
  side.deny(503, [['Content-Type', 'text/plain']], 'the rate limiter is out of order\n');
  return false;
}

// True: the request continues; false: it has been answered, or its client is gone. A promise of these
// only where it has to wait.
function admit(guard, req, given, side) {
  const { weir } = guard;
  if (guard.skip?.(given))
    return true;
  const peer = peerOf(req);
  if (peer === null)
    return side.gone();
  const attributes = guard.attributes?.(given);
  const cost = typeof guard.cost === 'function' ? guard.cost(given) : guard.cost ?? 1;
  let answer;
  try {
    answer = weir.checkIncoming(req, peer, attributes, cost, guard.settles || weir.refunds, RESERVE_MS,
      guard.trusted);
  } catch (error) {
    return failed(guard, error, given, side);
  }
  const kept = weir.takeKept();
  req.weir = answer;
  if (guard.headers !== false)
    setHeaders(answer, side);
  if (!answer.allowed)
    return limited(guard, answer, given, side);
  if (answer.lease !== null)
    holdLease(weir, answer, side.response);
  return answer.delayMs > 0 ? passLater(guard, answer, kept, given, side)
    : pass(guard, answer, kept, given, side);
}

// Calls next() for a request that continues, and next(error) where a function of the program has
// thrown; what next itself throws is not caught.
function proceed(decide, next) {
  let passed;
  try {
    passed = decide();
  } catch (error) {
    next(error);
    return;
  }
  if (passed === true)
    next();
  else if (passed !== false)
    passed.then((later) => { if (later) next(); }, next);
}

// --- http, Express ----------------------------------------------------------------------------------

class NodeSide {
  constructor(res) {
    this.response = res;
    this.given = res;
  }

  setHeader(name, value, again) {
    if (again)
      this.response.appendHeader(name, value);
    else
      this.response.setHeader(name, value);
  }

  deny(status, headers, body) {
    const res = this.response;
    res.statusCode = status;
    for (const [name, value] of headers)
      res.setHeader(name, value);
    res.setHeader('Content-Length', Buffer.byteLength(body));
    res.end(body);
  }

  answered() { return this.response.headersSent || this.response.writableEnded; }

  gone() {
    this.response.destroy();
    return false;
  }
}

// (req, res, next), as in http, Connect and Express.
function http(weir, options = {}) {
  const guard = optionsOf(weir, options);
  return function weirLimit(req, res, next) {
    proceed(() => admit(guard, req, req, new NodeSide(res)), next);
  };
}

// --- Fastify ----------------------------------------------------------------------------------------

class FastifySide {
  constructor(reply) {
    this.reply = reply;
    this.given = reply;
    this.response = reply.raw;
  }

  setHeader(name, value) { this.reply.header(name, value); }

  deny(status, headers, body) {
    this.reply.code(status);
    for (const [name, value] of headers)
      this.reply.header(name, value);
    this.reply.send(body);
  }

  answered() { return this.reply.sent; }

  gone() {
    this.reply.hijack();
    this.response.destroy();
    return false;
  }
}

// A hook: app.addHook('onRequest', fastify(weir)).
function fastify(weir, options = {}) {
  const guard = optionsOf(weir, options);
  return function weirLimit(request, reply, done) {
    proceed(() => admit(guard, request.raw, request, new FastifySide(reply)), done);
  };
}

// --- Koa --------------------------------------------------------------------------------------------

class KoaSide {
  constructor(ctx) {
    this.context = ctx;
    this.given = ctx;
    this.response = ctx.res;
    this.done = false;
  }

  setHeader(name, value, again) {
    if (again)
      this.context.append(name, value);
    else
      this.context.set(name, value);
  }

  deny(status, headers, body) {
    this.context.status = status;
    for (const [name, value] of headers)
      this.context.set(name, value);
    this.context.body = body;
  }

  // A hook that has set a body has answered.
  answered() { return this.context.headerSent || this.context.body !== undefined; }

  gone() {
    this.context.respond = false;
    this.response.destroy();
    return false;
  }
}

function koa(weir, options = {}) {
  const guard = optionsOf(weir, options);
  return async function weirLimit(ctx, next) {
    const passed = admit(guard, ctx.req, ctx, new KoaSide(ctx));
    if (passed === true || (passed !== false && await passed))
      await next();
  };
}

// --- WebSockets -------------------------------------------------------------------------------------

// A denied handshake is answered on its socket.
class SocketSide {
  constructor(socket) {
    this.response = socket;
    this.given = socket;
    this.lines = [];
  }

  setHeader(name, value) { this.lines.push(`${name}: ${value}\r\n`); }

  deny(status, headers, body) {
    for (const [name, value] of headers)
      this.setHeader(name, value);
    this.response.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Denied'}\r\n${this.lines.join('')}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`);
  }

  answered() { return this.response.writableEnded || this.response.destroyed; }

  gone() {
    this.response.destroy();
    return false;
  }
}

// server.on('upgrade', upgrade(weir, (req, socket, head) => ...)). A lease lives as long as the socket.
function upgrade(weir, next, options = {}) {
  const guard = optionsOf(weir, options);
  return function weirUpgrade(req, socket, head) {
    const stop = (error) => socket.destroy(error);
    // Until the handshake is through, nothing else listens for errors of the socket.
    const ignore = () => {};
    socket.on('error', ignore);
    const go = () => {
      socket.off('error', ignore);
      next(req, socket, head);
    };
    try {
      const passed = admit(guard, req, req, new SocketSide(socket));
      if (passed === true)
        go();
      else if (passed !== false)
        passed.then((later) => { if (later) go(); }).catch(stop);
    } catch (error) {
      stop(error);
      throw error;
    }
  };
}

module.exports = { http, express: http, fastify, koa, upgrade };
