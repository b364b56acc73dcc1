// SPDX-License-Identifier: Apache-2.0
// The names that ES modules find, in each entry of the package: those that CommonJS finds, and no other.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

import { Answer, Reservation, Weir, express, fastify, http, koa, open, upgrade } from 'weir';
import { Cancelled, Failed, GaveUp, Limited, Refused, Response, Session, Stream, Timeout } from 'weir/client';
import { Dispatcher, fetchOf } from 'weir/fetch';
import { open as openForTests } from 'weir/testing';

const require = createRequire(import.meta.url);
const entries = {
  weir: [await import('weir'), { Answer, Reservation, Weir, express, fastify, http, koa, open, upgrade }],
  'weir/client': [await import('weir/client'),
    { Cancelled, Failed, GaveUp, Limited, Refused, Response, Session, Stream, Timeout }],
  'weir/fetch': [await import('weir/fetch'), { Dispatcher, fetchOf }],
  'weir/testing': [await import('weir/testing'), { open: openForTests }],
};
for (const [name, [namespace, named]] of Object.entries(entries)) {
  const required = require(name);
  const found = Object.keys(namespace).filter((each) => each !== 'default' && each !== 'module.exports');
  assert.deepEqual(found.sort(), Object.keys(required).sort(), name);
  assert.deepEqual(Object.keys(named).sort(), found.sort(), name);
  for (const each of found)
    assert.equal(named[each], required[each], `${name}: ${each}`);
  assert.equal(namespace.default, required, name);
}
assert.equal(require('weir/package.json').name, 'weir');
assert.equal(require('weir/client.js'), require('weir/client')); // its path before there was a map of exports
await assert.rejects(import('weir/guard.js'), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' });

const limits = open({ limits: [{ name: 'one', key: [], rate: '1/h' }] });
assert.ok(limits instanceof Weir && limits.check({}) instanceof Answer);
assert.ok(limits.reserve({}).reservation === null && limits.check({}).allowed === false);
limits.close();
console.log('passed');
