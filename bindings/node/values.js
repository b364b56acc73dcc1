// SPDX-License-Identifier: Apache-2.0
// What a program gives to weir, and what it cannot have meant. A value of a wrong type is refused when it
// is given: one that was taken for "absent" would switch a limit off.
'use strict';

const UNSEEN_MAX = 64; // warnings of different texts, so that no request can fill memory

function described(value) {
  if (value === null || value === undefined)
    return String(value);
  if (isPromise(value))
    return 'a promise';
  if (typeof value === 'string')
    return `the text '${value.slice(0, 40)}'`;
  return typeof value === 'object' ? Object.prototype.toString.call(value) : `${typeof value} ${String(value).slice(0, 40)}`;
}

function isPromise(value) {
  return value !== null && typeof value === 'object' && typeof value.then === 'function';
}

// Uses a value, or what it promises.
function later(value, use) {
  return isPromise(value) ? Promise.resolve(value).then(use) : use(value);
}

function wrong(name, what, value) {
  return new TypeError(`${name}: must be ${what}, not ${described(value)}`);
}

function wholeNumber(value, name, least = 0) {
  if (typeof value !== 'number')
    throw wrong(name, 'a number', value);
  if (!Number.isSafeInteger(value) || value < least)
    throw Object.assign(new RangeError(`${name}: ${value} is not a whole number of at least ${least}`),
      { code: 'WEIR_ERR_RANGE' });
  return value;
}

// An object whose own names are what it has: not a Map, an array, Headers, a Date, a promise.
function namedValues(value, name) {
  if (value === undefined || value === null)
    return null;
  if (isPromise(value) || Object.prototype.toString.call(value) !== '[object Object]')
    throw wrong(name, 'an object with names and values', value);
  return value;
}

// The text of an attribute; null: it is absent.
function attributeText(name, value) {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      if (Number.isFinite(value))
        return String(value);
      break;
    case 'bigint': case 'boolean':
      return String(value);
    default:
      if (value === undefined || value === null)
        return null;
  }
  throw wrong(`attribute ${name}`, 'a string, a finite number, a boolean, null or undefined', value);
}

const KINDS = {
  string: 'a text', number: 'a number', boolean: 'true or false', function: 'a function', object: 'an object',
};

// Refuses options that are not there, and values of another type than theirs; `kinds`: { name: [type, …] }.
// `refusedFrom`: the version that will refuse the first; until then it is a warning.
function checkOptions(options, kinds, of, refusedFrom) {
  namedValues(options, of);
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(kinds, name)) {
      const text = `no option ${name}; there are ${Object.keys(kinds).join(', ')}`;
      if (!refusedFrom)
        throw new TypeError(text);
      warn(`${text} (weir ${refusedFrom} will refuse this)`);
      continue;
    }
    const value = options[name];
    if (value !== undefined && value !== null && !kinds[name].includes(typeof value))
      throw wrong(name, kinds[name].map((kind) => KINDS[kind]).join(' or '), value);
  }
}

const warned = new Map(); // text => when it was last said

// Says each text at most once a minute.
function warn(text) {
  const now = Date.now();
  if (now - (warned.get(text) ?? -Infinity) < 60000 || (warned.size >= UNSEEN_MAX && !warned.has(text)))
    return;
  warned.set(text, now);
  process.emitWarning(text, 'weir');
}

module.exports = { attributeText, checkOptions, described, isPromise, later, namedValues, warn, wholeNumber, wrong };
