// SPDX-License-Identifier: Apache-2.0
// The types as a program in ES modules uses them; tsc compiles it, and node runs what it makes.
import { createServer } from 'node:http';
import Express from 'express';
import Koa from 'koa';
import { Answer, Reservation, Weir, express, fastify, http, koa, open, upgrade, type Options } from 'weir';
import { Failed, Session, type RequestOptions } from 'weir/client';
import { open as openForTests, type TestWeir } from 'weir/testing';

const options: Options = { threads: 1 };
const limits: Weir = open({ limits: [{ name: 'one', key: ['user'], rate: '1/h' }] }, options);
const app = Express();
app.use(express(limits, { attributes: async () => ({ user: 'ann' }), cost: () => 1, skip: async () => false,
  ip: (req) => req.ip, settle: async () => 1, onError: async () => 'closed' as const }));
app.get('/', (req, res) => {
  const answer: Answer | undefined = req.weir;
  res.send(String(answer?.remaining));
});
new Koa().use(koa(limits)).use((ctx) => { ctx.body = ctx.req.weir?.limits[0]?.name; });
createServer((req, res) => http(limits)(req, res, () => res.end(req.weir?.deniedBy)));
upgrade(limits, (req, socket) => { socket.end(req.weir?.action); }, { cost: 1 });
const hook: (request: any, reply: any, done: (error?: any) => void) => void = fastify(limits);
const reservation: Reservation | null = limits.reserve({}).reservation;
const of: RequestOptions = { tries: 1 };
const session = new Session({ concurrency: 1 });
const test: TestWeir = openForTests({ limits: [] }, { at: new Date() });
express(limits, { onError: (error) => { console.log(error.code); } });
test.advance(1000);
test.close();
session.close();
limits.close();

function neverCalled() {
  // @ts-expect-error a misspelt name
  open('weir.yaml', { stat: 'file' });
  // @ts-expect-error a Map is no attributes
  express(limits, { attributes: () => new Map([['user', 'ann']]) });
  // @ts-expect-error a cost is a number
  http(limits, { cost: async () => '1' });
  // @ts-expect-error skip says true or false
  http(limits, { skip: () => 'no' });
  // @ts-expect-error the clock of a program stands for nobody
  limits.advance(1000);
}

console.log('passed', typeof hook, reservation, of, Failed.name, neverCalled.name);
