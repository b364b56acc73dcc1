// SPDX-License-Identifier: Apache-2.0
// weir in a Node process: open(), and handlers for Express, Fastify, Koa and http. The guide is
// docs/languages/node.md, the types are in index.d.ts. Nothing here decides: libweir does.
'use strict';

const { Answer, Reservation } = require('./answer.js');
const { express, fastify, http, koa, upgrade } = require('./middleware.js');
const { Weir, open } = require('./weir.js');

// Each by its name, which is how ES modules find them.
module.exports = { Answer, Reservation, Weir, express, fastify, http, koa, open, upgrade };
