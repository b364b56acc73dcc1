// SPDX-License-Identifier: Apache-2.0
// What weir says of one request. The addon gives numbers and one string of texts (check.h lists
// them); what a program seldom reads is taken apart when it is read.
'use strict';

const LIMITS_AT = 16;
const LIMIT_NUMBERS = 9;
const ALGORITHMS = ['fixed_window', 'sliding_window', 'sliding_log', 'token_bucket', 'gcra', 'leaky_bucket',
  'leaky_queue', 'concurrency', 'quota', 'counter'];

// Places of the texts; the names of limits and the body follow.
const DENIED_BY = 1;
const TYPE = 2;
const ACTION = 3;
const STANDING = 4;
const REASON = 5;
const CLASS = 6;
const LEASE = 7;
const RESERVATION = 8;
const LIMIT_NAMES = 9;

// A reservation, to settle, report or cancel by. `token` is good in all processes on the state.
class Reservation {
  constructor(token, places) {
    this.token = token;
    Object.defineProperty(this, 'places', { value: places });
  }
}

class Answer {
  #text;
  #parts = null; // of the text, when one has been read
  #numbers;

  constructor(native, text) {
    const numbers = native.numbers;
    const flags = numbers[0];
    this.allowed = (flags & 1) !== 0;
    this.status = numbers[1];
    this.retryAfterMs = numbers[2];
    this.delayMs = numbers[3];
    this.remaining = numbers[4];
    this.warning = numbers[5];
    this.storeFailed = (flags & 2) !== 0;
    this.repeated = (flags & 4) !== 0;
    this.#text = text;
    this.#numbers = numbers[6] === 0 ? null : numbers.slice(LIMITS_AT, LIMITS_AT + LIMIT_NUMBERS * numbers[6]);
    this.lease = (flags & 8) === 0 ? null : this.#part(LEASE);
    this.reservation = (flags & 16) === 0 ? null
      : new Reservation(this.#part(RESERVATION), numbers[7] > 0 ? native.places() : null);
  }

  #part(place) {
    this.#parts ??= this.#text.split('\0');
    return this.#parts[place] === '' ? null : this.#parts[place];
  }

  get deniedBy() { return this.#part(DENIED_BY); }

  get action() { return this.#part(ACTION); }

  get standing() { return this.#part(STANDING); }

  get reason() { return this.#part(REASON); }

  get className() { return this.#part(CLASS); }

  get contentType() { return this.#part(TYPE); }

  // Calls use(name, value) for each header field.
  eachHeader(use) {
    const text = this.#text;
    const fieldsEnd = text.indexOf('\0');
    for (let at = 0; at < fieldsEnd;) {
      const colon = text.indexOf(': ', at);
      const end = text.indexOf('\r\n', colon);
      use(text.slice(at, colon), text.slice(colon + 2, end));
      at = end + 2;
    }
  }

  // The header fields of the answer, as [name, value] pairs.
  get headers() {
    const pairs = [];
    this.eachHeader((name, value) => pairs.push([name, value]));
    return pairs;
  }

  get body() {
    this.#part(0);
    const at = LIMIT_NAMES + (this.#numbers === null ? 0 : this.#numbers.length / LIMIT_NUMBERS);
    return this.allowed ? null : this.#parts.slice(at).join('\0');
  }

  get limits() {
    const limits = [];
    const numbers = this.#numbers ?? [];
    for (let at = 0; at < numbers.length; at += LIMIT_NUMBERS)
      limits.push({
        name: this.#part(LIMIT_NAMES + limits.length),
        algorithm: ALGORITHMS[numbers[at + 1]],
        allowed: (numbers[at] & 1) !== 0,
        shadow: (numbers[at] & 2) !== 0,
        unlimited: (numbers[at] & 4) !== 0,
        borrowed: (numbers[at] & 8) !== 0,
        overflow: (numbers[at] & 16) !== 0,
        warning: numbers[at + 2],
        cost: numbers[at + 3],
        windowMs: numbers[at + 4],
        limit: numbers[at + 5],
        remaining: numbers[at + 6],
        retryAfterMs: numbers[at + 7],
        resetAfterMs: numbers[at + 8],
      });
    return limits;
  }

  toJSON() {
    const { allowed, deniedBy, retryAfterMs, delayMs, limits } = this;
    return { allowed, deniedBy, retryAfterMs, delayMs, limits };
  }
}

module.exports = { Answer, Reservation };
