// SPDX-License-Identifier: Apache-2.0
// A server of Node with weir's handler: node door.js RULES STATE. Prints its port.
'use strict';

const { createServer } = require('node:http');
const { http, open } = require('weir');

// Node has one character for each byte of a field.
const named = (req) => JSON.parse(Buffer.from(req.headers['x-door-named'] ?? '{}', 'latin1').toString('utf8'));

const limit = http(open(process.argv[2], { state: process.argv[3] }), { attributes: named });
const server = createServer((req, res) => limit(req, res, (error) => {
  res.statusCode = error ? 400 : 200;
  res.end('passed');
}));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
