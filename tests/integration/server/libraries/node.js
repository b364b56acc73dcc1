// SPDX-License-Identifier: Apache-2.0
// Scenarios of Node's limiter libraries: node node.js PORT LIBRARY prints what happened as JSON.
// `steps` are calls one after the other on one key; `admitted` is of 8 clients at once on another.
"use strict";

const Redis = require("ioredis");

const [port, library] = [Number(process.argv[2]), process.argv[3]];
const CLIENTS = 8, CALLS = 20, LIMIT = 25, SECONDS = 5000;
// A worker that waits for its core decides at an earlier time than another one, by some ms: a key
// that the other has just begun may last longer than its life by then.
const LIFE_MAX = SECONDS * 1000 + 1000;

const wait = (step) => step.then((value) => value, (error) => {
  if (error instanceof Error) throw error;
  return error; // rate-limiter-flexible rejects with its result
});

const libraries = {
  "rate-limiter-flexible": async (client) => {
    const { RateLimiterRedis } = require("rate-limiter-flexible");
    const limiter = new RateLimiterRedis({
      storeClient: client, points: LIMIT, duration: SECONDS, blockDuration: 0, keyPrefix: "rlf",
    });
    const use = async (key, points = 1) => {
      const result = await wait(limiter.consume(key, points));
      if (result.msBeforeNext <= 0 || result.msBeforeNext > LIFE_MAX)
        throw new Error(`msBeforeNext is ${result.msBeforeNext}`);
      return [result.consumedPoints, result.remainingPoints, result.isFirstInDuration];
    };
    return {
      admits: async (key) => (await use(key))[0] <= LIMIT,
      steps: async (key) => [
        await use(key), await use(key, 20), await use(key, 10),
        (await limiter.get(key)).consumedPoints,
        (await limiter.penalty(key, 3)).consumedPoints,
        (await limiter.reward(key, 5)).consumedPoints,
        (await limiter.set(key, 4, 600)).consumedPoints,
        await limiter.delete(key), await limiter.get(key), await use(key),
        (await limiter.block(key, 60)).consumedPoints,
      ],
    };
  },
  "rate-limit-redis": async (client) => {
    const { RedisStore } = require("rate-limit-redis");
    const store = new RedisStore({ sendCommand: (...command) => client.call(...command) });
    await store.init({ windowMs: SECONDS * 1000 });
    const use = async (key) => {
      const { totalHits, resetTime } = await store.increment(key);
      const left = resetTime.getTime() - Date.now();
      if (left < 0 || left > LIFE_MAX) throw new Error(`resetTime is in ${left} ms`);
      return totalHits;
    };
    return {
      admits: async (key) => (await use(key)) <= LIMIT,
      steps: async (key) => [
        await use(key), await use(key), (await store.get(key)).totalHits,
        await store.decrement(key), (await store.get(key)).totalHits,
        await store.resetKey(key), await use(key),
      ],
    };
  },
};

async function main() {
  const clients = [];
  for (let i = 0; i < CLIENTS; i++) clients.push(new Redis(port, "127.0.0.1"));
  const each = await Promise.all(clients.map((client) => libraries[library](client)));
  const steps = await each[0].steps("steps");
  const all = await Promise.all(each.flatMap(
    (one) => Array.from({ length: CALLS }, () => one.admits("many"))));
  for (const client of clients) client.disconnect();
  const reply = (value) => (value === undefined ? null : value);
  console.log(JSON.stringify({ steps: steps.map(reply), admitted: all.filter(Boolean).length }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
