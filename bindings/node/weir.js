// SPDX-License-Identifier: Apache-2.0
// An open rules file: what open() returns, over the addon weir.node.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const native = require('./weir.node');
const { Answer } = require('./answer.js');
const { attributeText, checkOptions, namedValues, wholeNumber, wrong } = require('./values.js');

const VALUES_AT = 16; // of the shared numbers, see check.h
const BYTES_OF_REQUEST = 65536;
const TEXT_OF_REQUEST = 131072;
const FORWARDED_FOR = -1;
const FORWARDED = -2;
const IDEMPOTENCY_KEY = -3;
const PEEK = 1;
const UNTRUSTED = 2;
const RESERVE = 4;
const RESERVE_DELAYED = 8;
const TEND_MS = 1000;
const HANDLES_MAX = 512; // of libweir
const SETTLE = 0;
const REPORT = 1;
const CANCEL = 2;

const OPTIONS = {
  state: ['string'], stateBytes: ['number'], stateOwner: ['string'], stateGroup: ['string'], stateMode: ['number'],
  statePatienceMs: ['number'], stateOpenPatienceMs: ['number'], threads: ['number'],
  leasesEndWithProcess: ['boolean'], stateMustOpen: ['boolean'], logger: ['object'],
};
const LEVELS = ['info', 'warn', 'error']; // methods of a logger, by enum weir_say
const REQUEST = new Set(['method', 'path', 'host', 'ip', 'headers', 'attributes', 'cost', 'dryRun', 'forwardedFor',
  'forwarded', 'idempotencyKey', 'untrusted']);

// Logs what libweir has said, on any thread of its own, since the last time.
function logLines(weir, logger) {
  const lines = weir.lines();
  for (let i = 0; i < lines.length; i += 2)
    logger[LEVELS[lines[i]]](`weir: ${lines[i + 1]}`);
}

// Ends the leases of processes that have died, and logs, until the program closes or forgets its weir.
function tendAlways(weir, logger) {
  const reference = new WeakRef(weir);
  const timer = setInterval(() => {
    const still = reference.deref();
    if (still) {
      still.tend();
      logLines(still, logger);
    } else {
      clearInterval(timer);
    }
  }, TEND_MS);
  return timer.unref();
}

class Weir {
  #native;
  #values = []; // of the request that is checked
  #count = 0;
  #timer = null;
  #method;
  #path;
  #host;
  #client;
  #names; // attributes that the rules read: name => handle
  #fields; // header fields that the rules read: [name, handle]
  #refunds;
  #outcomes; // statuses that are strikes of a penalty
  #kept = null; // of a request whose outcome may be one
  #logger;

  constructor(rules, options, testClockMs) {
    this.#native = new native.Weir(rules, options.state ?? null, options.stateOwner ?? null,
      options.stateGroup ?? null, options.stateBytes ?? 0, options.stateMode ?? 0,
      options.statePatienceMs ?? 0, options.stateOpenPatienceMs ?? 0, options.threads ?? 1,
      (options.leasesEndWithProcess ?? true) ? 1 : 0, options.stateMustOpen ? 1 : 0, testClockMs);
    this.#logger = options.logger ?? console;
    this.#method = this.#native.attribute('method');
    this.#path = this.#native.attribute('path');
    this.#host = this.#native.attribute('host');
    this.#client = this.#native.attribute('client.ip');
    this.#learn();
    this.#timer = tendAlways(this.#native, this.#logger);
    logLines(this.#native, this.#logger);
  }

  #learn() {
    this.#names = new Map();
    this.#fields = [];
    this.#native.attributes().forEach((name, handle) => {
      if (name === null)
        return;
      this.#names.set(name, handle);
      if (name.startsWith('header.'))
        this.#fields.push([name.slice(7), handle]);
    });
    this.#names.set('header.host', this.#native.attribute('header.host')); // another name of `host`
    this.#refunds = this.#native.refunds();
    this.#outcomes = new Set(this.#native.outcomes());
  }

  // Whether some limit gives back by outcome, so that reserving for report() is worth it.
  get refunds() { return this.#refunds; }
  // Whether a request passes that an error of this code left undecided, by what the rules say.
  passes(code) { return this.#native.passes(String(code)); }

  // Why the state file cannot be opened, so that on_store_error decides; null: it is open.
  get stateError() { return this.#native.stateError(); }

  // The statuses that are strikes of some penalty, so that outcome() is worth it.
  get outcomes() { return this.#outcomes; }

  #put(role, value) {
    this.#native.numbers[VALUES_AT + this.#count] = role;
    this.#values[this.#count++] = value;
  }

  #putAttribute(name, value) {
    const text = attributeText(name, value);
    const handle = this.#names.get(name) ?? this.#handleOf(name);
    if (handle >= 0)
      this.#put(handle, text);
  }

  // Of a name that no rule reads: libweir counts those that it does not know. Names of fields, of which a
  // client may send any number, are not kept.
  #handleOf(name) {
    if (/^header\./i.test(name)) // fields have names of any case
      return this.#names.get(name.toLowerCase()) ?? -1;
    if (/^(query|cookie)\./.test(name) || this.#names.size >= HANDLES_MAX)
      return -1;
    let handle = -1;
    try {
      handle = this.#native.attribute(name);
    } catch {
      // too long a name for a rule to read it
    }
    this.#names.set(name, handle);
    return handle;
  }

  #putAttributes(given) {
    const attributes = namedValues(given, 'attributes');
    for (const name in attributes)
      this.#putAttribute(name, attributes[name]);
  }

  // Fields of a request that a program describes: a text, or the texts of several lines.
  #putFields(given) {
    const headers = namedValues(given, 'headers');
    if (headers === null || this.#fields.length === 0)
      return;
    this.#put(this.#fields[0][1] + TEXT_OF_REQUEST, null); // those that are not given are absent
    for (const key in headers) {
      const name = `header.${key.toLowerCase()}`;
      const lines = Array.isArray(headers[key]) ? headers[key] : [headers[key]];
      const handle = this.#names.get(name);
      for (const line of lines) {
        const text = attributeText(name, line);
        if (handle !== undefined)
          this.#put(handle + TEXT_OF_REQUEST, text);
      }
    }
  }

  // Fields as they came: `headers` has only one line of some fields, and all lines of others as one.
  #putLines(req) {
    if (this.#fields.length === 0)
      return;
    const raw = req.rawHeaders;
    this.#put(this.#fields[0][1] + BYTES_OF_REQUEST, null);
    for (const [name, handle] of this.#fields) {
      if (req.headers[name] === undefined)
        continue;
      for (let i = 0; i < raw.length; i += 2)
        if (raw[i].length === name.length && raw[i].toLowerCase() === name)
          this.#put(handle + BYTES_OF_REQUEST, raw[i + 1]);
    }
  }

  #putHead(cost, flags, lifeMs) {
    const numbers = this.#native.numbers;
    numbers[0] = this.#count;
    numbers[1] = cost;
    numbers[2] = flags;
    numbers[3] = lifeMs;
  }

  #decide(cost, flags, lifeMs) {
    this.#putHead(cost, flags, lifeMs);
    return new Answer(this.#native, this.#native.check(this.#values));
  }

  #putRequest(request) {
    this.#count = 0;
    for (const name in request)
      if (!REQUEST.has(name))
        throw new TypeError(`a request has no ${name}; it has ${[...REQUEST].join(', ')}`);
    if (request.method != null)
      this.#put(this.#method, String(request.method));
    if (request.path != null)
      this.#put(this.#path, String(request.path));
    if (request.host != null)
      this.#put(this.#host, String(request.host));
    if (request.ip != null)
      this.#put(this.#client, String(request.ip));
    this.#putFields(request.headers);
    this.#putAttributes(request.attributes);
    if (request.forwardedFor != null)
      this.#put(FORWARDED_FOR, String(request.forwardedFor));
    if (request.forwarded != null)
      this.#put(FORWARDED, String(request.forwarded));
    if (request.idempotencyKey != null)
      this.#put(IDEMPOTENCY_KEY, String(request.idempotencyKey));
  }

  #ask(request, flags, lifeMs) {
    const cost = wholeNumber(request.cost ?? 1, 'cost');
    this.#putRequest(request);
    return this.#decide(cost, flags | (request.dryRun ? PEEK : 0) | (request.untrusted ? UNTRUSTED : 0),
      lifeMs);
  }

  check(request) { return this.#ask(request, 0, 0); }

  reserve(request, { lifeMs = 60000 } = {}) {
    return this.#ask(request, RESERVE, wholeNumber(lifeMs, 'lifeMs', 1000));
  }

  outcome(request, status) {
    wholeNumber(status, 'status', 100);
    this.#putRequest(request);
    this.#putHead(1, request.untrusted ? UNTRUSTED : 0, 0);
    this.#native.outcome(this.#values, status);
  }

  // Of handlers: the request of the last checkIncoming(), for outcomeOf(); null: no outcome is a strike.
  takeKept() {
    const kept = this.#kept;
    this.#kept = null;
    return kept;
  }

  outcomeOf({ roles, values, untrusted }, status) {
    this.#native.numbers.set(roles, VALUES_AT);
    this.#count = roles.length;
    this.#putHead(1, untrusted, 0);
    this.#native.outcome(values, status);
  }

  // Of handlers: what Node's parser has of a request. `settles`: its reservation is needed.
  checkIncoming(req, peer, attributes, cost, settles, lifeMs, trusted) {
    const headers = req.headers;
    this.#count = 0;
    this.#put(this.#method + BYTES_OF_REQUEST, req.method);
    this.#put(this.#path + BYTES_OF_REQUEST, req.originalUrl ?? req.url);
    const host = headers.host ?? headers[':authority'];
    if (host !== undefined)
      this.#put(this.#host + BYTES_OF_REQUEST, host);
    if (peer.address !== null)
      this.#put(this.#client, peer.address);
    this.#putLines(req);
    const forwardedFor = peer.proxied ? headers['x-forwarded-for'] : undefined;
    if (forwardedFor !== undefined)
      this.#put(FORWARDED_FOR, String(forwardedFor));
    const forwarded = peer.proxied ? headers.forwarded : undefined;
    if (forwarded !== undefined)
      this.#put(FORWARDED, String(forwarded));
    this.#putAttributes(attributes);
    wholeNumber(cost, 'cost');
    const untrusted = trusted ? 0 : UNTRUSTED;
    this.#kept = this.#outcomes.size === 0 ? null : {
      roles: this.#native.numbers.slice(VALUES_AT, VALUES_AT + this.#count),
      values: this.#values.slice(0, this.#count),
      untrusted,
    };
    return this.#decide(cost, untrusted | (cost === 0 ? 0 : settles ? RESERVE : RESERVE_DELAYED), lifeMs);
  }

  #end(reservation, how, number) {
    const isToken = typeof reservation === 'string';
    this.#native.end(isToken ? reservation : reservation.token, isToken ? null : reservation.places, how,
      number);
  }

  settle(reservation, cost) { this.#end(reservation, SETTLE, wholeNumber(cost, 'cost')); }

  report(reservation, status) { this.#end(reservation, REPORT, wholeNumber(status, 'status', 100)); }

  cancel(reservation) { this.#end(reservation, CANCEL, 0); }

  release(lease) { this.#native.lease(lease, false); }

  renew(lease) { this.#native.lease(lease, true); }

  reload() {
    this.#native.reload();
    this.#learn();
    logLines(this.#native, this.#logger);
  }

  // Of a weir of weir/testing: lets time pass.
  advance(ms) {
    if (typeof ms !== 'number' || !(ms >= 0))
      throw wrong('advance', 'a number of milliseconds', ms);
    this.#native.advance(ms);
  }

  close() {
    if (this.#timer === null)
      return;
    clearInterval(this.#timer);
    this.#timer = null;
    this.#native.close();
    logLines(this.#native, this.#logger);
  }
}

// Rules as an object: JSON is YAML, and libweir reads a file.
function openObject(rules, options, testClockMs) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-'));
  const file = path.join(folder, 'weir.yaml');
  try {
    fs.writeFileSync(file, JSON.stringify({ version: 1, ...rules }));
    return new Weir(file, options, testClockMs);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

function openAt(rules, options, testClockMs) {
  checkOptions(options, OPTIONS, 'options', native.refusedFrom);
  if (options.logger && LEVELS.some((level) => typeof options.logger[level] !== 'function'))
    throw new TypeError(`logger: must have the methods ${LEVELS.join(', ')}, as console has`);
  if (typeof rules === 'string')
    return new Weir(rules, options, testClockMs);
  if (namedValues(rules, 'rules') === null)
    throw wrong('rules', 'the name of a rules file, or an object', rules);
  return openObject(rules, options, testClockMs);
}

function open(rules, options = {}) { return openAt(rules, options, 0); }

module.exports = { Weir, open, openAt };
