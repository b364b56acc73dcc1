// SPDX-License-Identifier: Apache-2.0
// What every handler does with a request: asks the program's functions, then weir, and acts on the
// answer. A handler gives its `side`: setHeader, deny, begun, answered, gone, and `response`, whose end is the
// request's.
//
// The cause of an error decides what follows it. The client, for a path that cannot be read: 400. The
// program, for a function that throws or returns nonsense: the error is thrown, which frameworks answer with
// 500. All else (weir cannot decide, the connection has no address): onError. None of these passes a
// request by accident.
'use strict';

const net = require('node:net');
const { checkOptions, described, later, warn, wholeNumber, wrong } = require('./values.js');

const RESERVE_MS = 600000; // requests that take longer keep their charge
const HELD_MAX = 1024; // denials that wait (a tarpit), so that a flood does not collect sockets
const TIMER_MAX_MS = 0x7fffffff;

// Codes of what a client has sent: such a request never passes.
const OF_REQUEST = new Set(['WEIR_ERR_SYNTAX', 'WEIR_ERR_TOO_LARGE']);

const OPTIONS = {
  attributes: ['function'], cost: ['number', 'function'], settle: ['function'], skipSuccessful: ['boolean'],
  skipFailed: ['boolean'], onLimited: ['function'], onError: ['string', 'function'], skip: ['function'],
  ip: ['function'], headers: ['boolean'], trusted: ['boolean'],
};

const DECIDED = Symbol('weir'); // of a request: the guards that have decided it

function guardOf(weir, options) {
  if (!weir || typeof weir.checkIncoming !== 'function')
    throw new TypeError('the first argument must be what open() returned');
  checkOptions(options, OPTIONS, 'options');
  if (typeof options.onError === 'string' && !['open', 'closed'].includes(options.onError))
    throw new TypeError("onError: must be 'open', 'closed' or a function");
  const cost = options.cost ?? 1;
  if (typeof cost === 'number')
    wholeNumber(cost, 'cost');
  return { ...options, cost, weir, held: 0, settles: Boolean(options.settle || options.skipSuccessful ||
    options.skipFailed) };
}

// Whether this guard has decided this request: a handler that a request meets twice counts it once.
function isDecided(guard, req) {
  for (let each = req[DECIDED]; each; each = each.before) {
    if (each.guard === guard)
      return true;
    if (each.guard.weir === guard.weir)
      throw new Error('two handlers of one weir meet one request, which would be charged twice: use one handler, ' +
        'with all options, or open() the rules of each');
  }
  return false;
}

// --- The client --------------------------------------------------------------------------------------

function withoutZone(address) {
  const zone = address.indexOf('%');
  return zone < 0 ? address : address.slice(0, zone);
}

const NOBODY = { address: null, proxied: false };
const UNIX = { address: null, proxied: true };

// Which client is connected, or which one the option `ip` says it is. A connection without an address is a Unix socket only
// if its server says so: else its forwarding fields, which may be trusted, would be anybody's word.
function peerOf(guard, req, ip) {
  if (guard.ip) {
    if (ip === undefined || ip === null)
      return NOBODY;
    if (typeof ip !== 'string' || net.isIP(withoutZone(ip)) === 0)
      throw wrong('ip', 'an address, null or undefined', ip);
    return { address: withoutZone(ip), proxied: false };
  }
  const address = req.socket?.remoteAddress;
  if (typeof address === 'string' && net.isIP(withoutZone(address)) !== 0)
    return { address: withoutZone(address), proxied: true };
  return address === undefined && typeof req.socket?.server?.address?.() === 'string' ? UNIX : NOBODY;
}

function noAddress() {
  return Object.assign(new Error('the connection of the request has no address: say it by the option ip'),
    { code: 'WEIR_ERR_NO_ADDRESS' });
}

// --- Waiting and ending -----------------------------------------------------------------------------

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

// Returns what ends the lease, which the end of the response does, too.
function holdLease(weir, answer, response) {
  const timer = setInterval(() => attempt(() => weir.renew(answer.lease)), renewalMs(answer));
  timer.unref();
  const release = () => {
    clearInterval(timer);
    response.off('close', release);
    attempt(() => weir.release(answer.lease));
  };
  response.once('close', release);
  return release;
}

// The answer has been sent: the program's mistake must not end the process.
function keepsCharge(error) {
  process.emitWarning(`settle has failed, so the request keeps its charge: ${error?.stack ?? error}`, 'weir');
}

function settleBy(guard, answer, cost, status) {
  const { weir, skipSuccessful, skipFailed } = guard;
  if (cost !== undefined && cost !== null)
    attempt(() => weir.settle(answer.reservation, cost));
  else if (status < 400 ? skipSuccessful : skipFailed)
    attempt(() => weir.settle(answer.reservation, 0));
  else if (weir.refunds && status >= 100 && status <= 599)
    attempt(() => weir.report(answer.reservation, status));
}

// What the outcome gives back, and whether it is a strike. A client that left before there was an
// answer keeps its charge.
function end(guard, answer, kept, given, response) {
  const { weir } = guard;
  const status = response.statusCode;
  if (!response.headersSent)
    return;
  if (kept !== null && weir.outcomes.has(status))
    attempt(() => weir.outcomeOf(kept, status));
  if (answer.reservation === null || !(guard.settles || weir.refunds))
    return;
  try {
    const settled = later(guard.settle?.(given, response), (cost) => {
      if (cost !== undefined && cost !== null)
        wholeNumber(cost, 'settle');
      settleBy(guard, answer, cost, status);
    });
    settled?.catch(keepsCharge);
  } catch (error) {
    keepsCharge(error);
  }
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

// --- Denying ----------------------------------------------------------------------------------------

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
  return later(guard.onLimited?.(answer, given, side.given), () => {
    if (side.answered())
      return false;
    return answer.delayMs > 0 && guard.held < HELD_MAX ? hold(guard, answer, side) : deny(answer, side);
  });
}

function denyPlainly(side, status, text) {
  side.deny(status, [['Content-Type', 'text/plain']], `${text}\n`);
  return false;
}

// weir has not decided. What a client has sent is its own mistake; the program's is thrown; the rest is
// onError's.
function failed(guard, error, given, side) {
  if (OF_REQUEST.has(error.code))
    return denyPlainly(side, 400, error.message);
  if (!String(error.code).startsWith('WEIR_ERR_') || error.code === 'WEIR_ERR_RANGE')
    throw error;
  const asked = typeof guard.onError === 'function';
  // One that is closed is the program's mistake, and cannot be asked.
  const byRules = () => (error.code !== 'WEIR_ERR_UNSUPPORTED' && guard.weir.passes(error.code) ? 'open' : 'closed');
  const said = asked ? guard.onError(error, given) : guard.onError ?? byRules();
  if (!asked)
    warn(`cannot decide, so requests ${said === 'open' ? 'pass' : 'get 503'}: ${error.message}`);
  return later(said, (verdict) =>
    (verdict === 'open' ? true : denyPlainly(side, 503, 'the rate limiter is out of order')));
}

// --- Deciding ---------------------------------------------------------------------------------------

function act(guard, answer, kept, given, side) {
  const { weir } = guard;
  let release = null;
  try {
    if (answer.lease !== null)
      release = holdLease(weir, answer, side.response);
    if (guard.headers !== false)
      setHeaders(answer, side);
  } catch (error) { // the request does not happen
    release?.();
    if (answer.reservation !== null)
      attempt(() => weir.cancel(answer.reservation));
    throw error;
  }
  if (!answer.allowed)
    return limited(guard, answer, given, side);
  return answer.delayMs > 0 ? passLater(guard, answer, kept, given, side)
    : pass(guard, answer, kept, given, side);
}

function decide(guard, req, given, side, ip, attributes, cost) {
  const { weir } = guard;
  if (req.socket?.destroyed || side.response.destroyed)
    return side.gone();
  if (side.begun()) // while the program was asked
    return false;
  const peer = peerOf(guard, req, ip);
  if (peer === NOBODY)
    return failed(guard, noAddress(), given, side);
  let answer;
  try {
    answer = weir.checkIncoming(req, peer, attributes, cost, guard.settles || weir.refunds, RESERVE_MS,
      guard.trusted);
  } catch (error) {
    return failed(guard, error, given, side);
  }
  const kept = weir.takeKept();
  req.weir = answer;
  req[DECIDED] = { guard, before: req[DECIDED] };
  return act(guard, answer, kept, given, side);
}

function isSkipped(value) {
  if (typeof value !== 'boolean' && value !== undefined && value !== null)
    throw wrong('skip', 'true or false', value);
  return value === true;
}

function ask(guard, req, given, side) {
  if (isDecided(guard, req))
    return true;
  if (req.socket?.destroyed)
    return side.gone();
  if (side.begun())
    throw new Error('the answer has begun before weir was asked: put weir in front of what answers');
  const { attributes, cost } = guard;
  return later(guard.skip?.(given), (skip) => (isSkipped(skip) ? true
    : later(guard.ip?.(given), (ip) =>
      later(attributes?.(given), (values) =>
        later(typeof cost === 'function' ? cost(given) : cost, (units) =>
          decide(guard, req, given, side, ip, values, units))))));
}

// `throw undefined` is an error, too: next(undefined) would let the request pass.
function asError(thrown) {
  return typeof thrown === 'object' && thrown !== null ? thrown : new Error(`a function has thrown ${described(thrown)}`);
}

// True: the request continues; false: it has been answered, or its client is gone. A promise of these
// only where it has to wait. Throws, or rejects with, the program's errors.
function admit(guard, req, given, side) {
  try {
    const passed = ask(guard, req, given, side);
    return typeof passed === 'boolean' ? passed : passed.catch((thrown) => { throw asError(thrown); });
  } catch (thrown) {
    throw asError(thrown);
  }
}

// Calls next() for a request that continues, and next(error) where a function of the program has
// thrown; what next itself throws is not caught.
function proceed(asked, next) {
  let passed;
  try {
    passed = asked();
  } catch (error) {
    next(error);
    return;
  }
  if (passed === true)
    next();
  else if (passed !== false)
    passed.then((it) => { if (it) next(); }, next);
}

module.exports = { OPTIONS, admit, guardOf, proceed };
