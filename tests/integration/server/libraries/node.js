// SPDX-License-Identifier: Apache-2.0
// Scenarios of Node's limiter libraries: node node.js PORT LIBRARY prints what happened as JSON.
// `steps` are calls one after the other on one key, `ran` names them, `version` is the library's;
// `admitted` is of 8 clients at once on another key.
"use strict";

const { readFileSync } = require("node:fs");
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
      ran: "RateLimiterRedis: consume, get, penalty, reward, set, delete, block",
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
      ran: "RedisStore: increment, get, decrement, resetKey",
      admits: async (key) => (await use(key)) <= LIMIT,
      steps: async (key) => [
        await use(key), await use(key), (await store.get(key)).totalHits,
        await store.decrement(key), (await store.get(key)).totalHits,
        await store.resetKey(key), await use(key),
      ],
    };
  },
};

// What the stores of @fastify/rate-limit share: counters that may be prolonged above the limit.
libraries["@fastify/rate-limit"] = async (client) => {
  const Store = require("@fastify/rate-limit/store/RedisStore.js");
  const open = (prolongs, doubles) => {
    const store = new Store(prolongs, doubles, client, `fastify-${prolongs}-${doubles}-`);
    const call = (name) => (key, limit = LIMIT, ms = SECONDS * 1000) => new Promise((done, fail) =>
      store[name](key, (error, result) => (error ? fail(error) : done(result)), ms, limit));
    return { incr: call("incr"), read: call("read") };
  };
  const plain = open(false, false), prolongs = open(true, false), doubles = open(false, true);
  const use = async (store, key, limit, ms = SECONDS * 1000) => {
    const { current, ttl } = await store.incr(key, limit, ms);
    const windows = ttl / ms; // a whole number of them just after a window has begun
    return [current, Math.round(windows)];
  };
  const steps = async (key) => {
    const done = [(await plain.read(key)).current, await use(plain, key)];
    for (let i = 0; i < 4; i++)
      done.push(await use(plain, key, 2), await use(prolongs, key, 2), await use(doubles, key, 2));
    const { current, ttl } = await plain.read(key);
    return [...done, current, ttl > 0 && ttl <= LIFE_MAX];
  };
  return {
    ran: "RedisStore: incr, plain, with continueExceeding and with exponentialBackoff; read",
    admits: async (key) => (await plain.incr(key)).current <= LIMIT,
    steps,
  };
};

libraries["@nest-lab/throttler-storage-redis"] = async (client) => {
  const { ThrottlerStorageRedisService } = require("@nest-lab/throttler-storage-redis");
  const storage = new ThrottlerStorageRedisService(client);
  const use = async (key, limit) => {
    const hit = await storage.increment(key, SECONDS * 1000, limit, 60000, "default");
    if (hit.timeToExpire <= 0 || hit.timeToExpire > LIFE_MAX / 1000)
      throw new Error(`timeToExpire is ${hit.timeToExpire}`);
    return [hit.totalHits, hit.isBlocked, hit.timeToBlockExpire > 0];
  };
  return {
    ran: "ThrottlerStorageRedisService: increment, also while blocked",
    admits: async (key) => !(await use(key, LIMIT))[1],
    steps: async (key) => {
      const done = [];
      for (let i = 0; i < 5; i++) done.push(await use(key, 2));
      return done;
    },
  };
};

// koa-ratelimit's own part of it is the middleware; async-ratelimiter counts.
libraries["koa-ratelimit"] = async (client) => {
  const Limiter = require("async-ratelimiter");
  const limiter = new Limiter({ db: client, max: LIMIT, duration: SECONDS * 1000 });
  const use = async (id, options) => {
    const { remaining, total, reset } = await limiter.get({ id, ...options });
    const left = reset * 1000 - Date.now();
    if (left < -2000 || left > LIFE_MAX) throw new Error(`reset is in ${left} ms`);
    return [remaining, total];
  };
  return {
    ran: "its async-ratelimiter: get, peek",
    admits: async (id) => (await use(id))[0] > 0,
    steps: async (id) => {
      const done = [await use(id, { peek: true })];
      for (let i = 0; i < 4; i++) done.push(await use(id, { max: 3 }));
      return [...done, await use(id, { max: 3, peek: true })];
    },
  };
};

// Some packages export no package.json, so it is read as a file.
const versionOf = (name) =>
  JSON.parse(readFileSync(`${__dirname}/node_modules/${name}/package.json`, "utf8")).version;

async function main() {
  const clients = [];
  for (let i = 0; i < CLIENTS; i++) clients.push(new Redis(port, "127.0.0.1"));
  const each = await Promise.all(clients.map((client) => libraries[library](client)));
  const steps = await each[0].steps("steps");
  const all = await Promise.all(each.flatMap(
    (one) => Array.from({ length: CALLS }, () => one.admits("many"))));
  for (const client of clients) client.disconnect();
  const reply = (value) => (value === undefined ? null : value);
  console.log(JSON.stringify({
    version: versionOf(library), ran: each[0].ran,
    steps: steps.map(reply), admitted: all.filter(Boolean).length,
  }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
