// SPDX-License-Identifier: Apache-2.0
// weir for the tests of a program: its clock stands still until advance() moves it.
'use strict';

const { openAt } = require('./weir.js');

// Opens rules as open() does; the clock begins at `at`, a Date or milliseconds of Unix time.
function open(rules, { at = Date.now(), ...options } = {}) {
  const ms = at instanceof Date || Object.prototype.toString.call(at) === '[object Date]' ? at.getTime() : at;
  if (!Number.isFinite(ms) || ms <= 0)
    throw new TypeError('at: must be a Date, or milliseconds of Unix time');
  return openAt(rules, options, ms);
}

module.exports = { open };
