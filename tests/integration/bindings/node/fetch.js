// SPDX-License-Identifier: Apache-2.0
// Fetches many under a limit: node fetch.js ADDRESS COUNT; prints the statuses of all tries, counted.
'use strict';

const { Session } = require('weir/client');

const [, , address, count] = process.argv;
const tries = {};
const onTry = ({ status }) => { tries[status] = (tries[status] ?? 0) + 1; };
const session = new Session({ tries: 51, timeMs: Infinity, onTry });
session.expect(Number(count));
Promise.all(Array.from({ length: Number(count) }, (_, i) => session.get(`http://${address}/v1/auth/${i}`)))
  .then(() => console.log(JSON.stringify(tries)));
