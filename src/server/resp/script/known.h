/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts of limiter libraries that weir knows, by the SHA-1 of their text. See script.h.
 *
 * The table is made by script/known-scripts from the published packages. weir has no text of any
 * script: each name below is an algorithm of weir's own (counting.c, deciding.c).
 */
#ifndef WEIR_SERVER_RESP_SCRIPT_KNOWN_H
#define WEIR_SERVER_RESP_SCRIPT_KNOWN_H

#define WEIR_SCRIPT_SHA 40 /* lower-case hexadecimal digits */

enum weir_script {
    /* On counters: counting.c. */
    WEIR_SCRIPT_INCREMENT_NEW,    /* rate-limiter-flexible over Redis */
    WEIR_SCRIPT_INCREMENT_KEPT,   /* over Valkey: a counter without an end stays so */
    WEIR_SCRIPT_COUNT_THEN_LIFE,  /* rate-limit-redis 3 to 4.1: counts on without an end */
    WEIR_SCRIPT_WINDOW_OR_RESET,  /* rate-limit-redis 4.2 to 5 */
    WEIR_SCRIPT_WINDOW,           /* rate-limit-redis 6 */
    WEIR_SCRIPT_COUNT_AND_LIFE,   /* rate-limit-redis: get */
    WEIR_SCRIPT_INCREMENT,        /* limits: fixed window */
    WEIR_SCRIPT_SLIDING_TAKE,     /* limits: sliding window */
    WEIR_SCRIPT_SLIDING_COUNTS,   /* limits: get_sliding_window */
    WEIR_SCRIPT_FIXED,            /* throttled-py: fixed window */
    WEIR_SCRIPT_TWO_WINDOWS_ALL,  /* throttled-py to 2.1: sliding window, counts denials too */
    WEIR_SCRIPT_TWO_WINDOWS,      /* throttled-py: sliding window */
    WEIR_SCRIPT_SWAP,             /* throttled: compare and swap */
    WEIR_SCRIPT_INCREMENT_MS,     /* ulule/limiter */
    WEIR_SCRIPT_COUNT_OR_ZERO,    /* ulule/limiter: peek */
    WEIR_SCRIPT_LARAVEL_ADD,      /* Illuminate\Cache\RedisStore::add */
    WEIR_SCRIPT_LARAVEL_DURATION, /* Illuminate\Redis\Limiters\DurationLimiter */
    WEIR_SCRIPT_LARAVEL_TOO_MANY, /* the same: tooManyAttempts */
    WEIR_SCRIPT_FASTIFY_BAN,      /* @fastify/rate-limit 9: tells whether to ban */
    WEIR_SCRIPT_FASTIFY_LIFE,     /* 10.0 to 10.2: a counter without an end gets one */
    WEIR_SCRIPT_FASTIFY,          /* from 10.3 on */
    WEIR_SCRIPT_FASTIFY_READ,     /* the same: read */
    WEIR_SCRIPT_NEST,             /* @nest-lab/throttler-storage-redis */
    WEIR_SCRIPT_FASTAPI,          /* fastapi-limiter 0.1 */
    /* On limits: deciding.c. */
    WEIR_SCRIPT_MOVING_TAKE,  /* limits: moving window */
    WEIR_SCRIPT_MOVING_COUNT, /* limits: get_moving_window */
    WEIR_SCRIPT_RATE,         /* redis_rate: AllowN */
    WEIR_SCRIPT_RATE_AT_MOST, /* redis_rate: AllowAtMost */
    WEIR_SCRIPT_BUCKET,       /* throttled-py: token bucket, leaking bucket */
    WEIR_SCRIPT_GCRA,         /* throttled-py */
    WEIR_SCRIPT_GCRA_PEEK,    /* throttled-py */
    WEIR_SCRIPT_SPRING,       /* Spring Cloud Gateway: request_rate_limiter.lua */
    WEIR_SCRIPT_KOA,          /* async-ratelimiter, of koa-ratelimit */
    /* On several limits of one key: rates.c. */
    WEIR_SCRIPT_PYRATE_INTERVALS, /* pyrate-limiter 3.2 to 4.4: logs */
    WEIR_SCRIPT_PYRATE_WINDOWS,   /* from 4.5 on */
    WEIR_SCRIPT_PYRATE_GCRA,      /* from 4.5 on: buckets */
    WEIR_SCRIPTS,
};

struct weir_known_script {
    char sha[WEIR_SCRIPT_SHA + 1];
    enum weir_script script;
};

/* In the order of their hashes. */
extern const struct weir_known_script weir_known_scripts[];
extern const unsigned weir_known_script_count;
/* The libraries that have them, as errors list them. */
extern const char weir_known_libraries[];

#endif
