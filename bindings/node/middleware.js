// SPDX-License-Identifier: Apache-2.0
// Handlers for http, Express, Fastify, Koa and WebSockets: how each of them hands out requests and takes
// answers. What a handler does with a request is in guard.js.
'use strict';

const { STATUS_CODES } = require('node:http');
const { admit, guardOf, proceed } = require('./guard.js');
const { warn } = require('./values.js');

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

  begun() { return this.response.headersSent || this.response.writableEnded; }

  answered() { return this.begun(); }

  gone() {
    this.response.destroy();
    return false;
  }
}

// (req, res, next), as in http, Connect and Express.
function http(weir, options = {}) {
  const guard = guardOf(weir, options);
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

  begun() { return this.reply.sent || this.response.headersSent; }

  answered() { return this.reply.sent; }

  gone() {
    this.reply.hijack();
    this.response.destroy();
    return false;
  }
}

// A hook: app.addHook('onRequest', fastify(weir)).
function fastify(weir, options = {}) {
  const guard = guardOf(weir, options);
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

  begun() { return this.context.headerSent; }

  // A hook that has set a body has answered.
  answered() { return this.context.headerSent || this.context.body !== undefined; }

  gone() {
    this.context.respond = false;
    this.response.destroy();
    return false;
  }
}

function koa(weir, options = {}) {
  const guard = guardOf(weir, options);
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

  begun() { return this.response.writableEnded; }

  answered() { return this.response.writableEnded || this.response.destroyed; }

  gone() {
    this.response.destroy();
    return false;
  }
}

// server.on('upgrade', upgrade(weir, (req, socket, head) => ...)). A lease lives as long as the socket.
function upgrade(weir, next, options = {}) {
  const guard = guardOf(weir, options);
  return function weirUpgrade(req, socket, head) {
    const side = new SocketSide(socket);
    // Nothing else hears of a handshake's errors: the program's mistake must not end the process.
    const stop = (error) => {
      warn(`a handshake gets 500: ${error?.stack ?? error}`);
      if (!side.answered())
        side.deny(500, [['Content-Type', 'text/plain']], 'the server has failed\n');
    };
    // Until the handshake is through, nothing else listens for errors of the socket.
    const ignore = () => {};
    socket.on('error', ignore);
    const go = () => {
      socket.off('error', ignore);
      next(req, socket, head);
    };
    proceed(() => admit(guard, req, req, side), (error) => (error === undefined ? go() : stop(error)));
  };
}

module.exports = { http, express: http, fastify, koa, upgrade };
