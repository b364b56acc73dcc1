/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's directory: a cache of the callers that are kept in Redis.
 *
 *   find ─┬─▶ known             a hit; shortly before its life ends, it is asked for again
 *         │                     meanwhile
 *         ├─▶ known as unknown  a negative hit
 *         ├─▶ asked for already waits with the others: single flight
 *         └─▶ else              asks, and waits until the answer or the deadline
 *
 * When it cannot be looked up (no connection, the breaker is open, too many lookups are in flight,
 * the deadline has passed), an entry that is older than its life, but not older than `stale` beyond
 * it, is used; without one, the key belongs to no caller for this request, or the request is
 * refused (`deny`). An answer that comes late is still kept, so the next request has it; until then
 * no request waits for that key again.
 *
 * Keys of no caller have a bound of their own, so that invalid keys cannot evict valid ones.
 *
 * This is the state machine, without I/O: a source asks, a clock tells the time, and a breaker
 * (base/breaker.h) spares who does not answer. It probes with a lookup, not by itself.
 *
 * Memory: 80 to 88 bytes for each of `max_keys` and WEIR_DIRECTORY_NOBODY_MAX keys, reserved, and
 * touched as it fills; a caller's record (directory_record.h); lookups, at most `lookups_max`, kept
 * once they are made. A find that hits allocates nothing, except for the first after a reload of a
 * caller with overrides.
 * Threads: one owner; terms and counters are read and written by others.
 */
#ifndef WEIR_FEATURE_IDENTITY_SERVER_DIRECTORY_H
#define WEIR_FEATURE_IDENTITY_SERVER_DIRECTORY_H

#include <stdatomic.h>

#include "base/breaker.h"
#include "feature/identity/server/directory_cache.h"
#include "feature/identity/server/directory_record.h"
#include "rules/rules.h"
#include "store/redis/redis.h"

/* A flood of keys of no caller is answered from memory as far as it repeats itself within the
 * life of such an entry; 1.4 MB. */
#define WEIR_DIRECTORY_NOBODY_MAX 16384

/* Lookups in flight: a longest batch of new keys, four times. */
#define WEIR_DIRECTORY_LOOKUPS_MAX 4096

#define WEIR_DIRECTORY_BUCKETS 1024 /* of lookups in flight, by digest */

/* What a reload may change. */
struct weir_directory_terms {
    _Atomic uint64_t life_ns, unknown_life_ns, stale_ns, deadline_ns;
    _Atomic bool deny;
};

/* Written by the owner alone, read by anyone. */
struct weir_directory_counters {
    _Atomic uint64_t hit, negative_hit; /* answered from memory */
    _Atomic uint64_t found, unknown;    /* answers to lookups */
    _Atomic uint64_t late, error;       /* lookups past their deadline; that failed */
    _Atomic uint64_t stale, guessed;    /* requests answered by what is old; by on_error */
    _Atomic uint64_t known, nobody;     /* entries */
    _Atomic uint64_t latency_ns, latency_buckets[REDIS_LATENCY_BUCKETS + 1];
};

enum weir_directory_lookup_state {
    WEIR_LOOKUP_ASKED,
    WEIR_LOOKUP_LATE,  /* its deadline has passed: no request waits */
    WEIR_LOOKUP_ENDED, /* its waiters are being answered */
};

/* A lookup in flight. What follows it in memory is the source's: `room` bytes, 8-aligned. */
struct weir_directory_lookup {
    uint8_t digest[WEIR_DIGEST_BYTES];
    struct weir_directory_waiter *first, *last;   /* in the order in which they came */
    struct weir_directory_lookup *next;           /* in its bucket, or of the free ones */
    struct weir_directory_lookup *sooner, *later; /* by deadline */
    uint64_t due_ns;
    uint8_t state; /* enum weir_directory_lookup_state */
    bool probe;    /* the breaker's */
    bool forgotten;
    uint64_t source[];
};

struct weir_directory_source {
    /* Asks who has the lookup's digest; weir_caller_directory_answer comes later, once. Errors: it
     * cannot be asked, and no answer comes. */
    int (*ask)(struct weir_directory_source *source, struct weir_directory_lookup *lookup);
    size_t room; /* that it has in each lookup */
};

struct weir_caller_directory_options {
    const struct weir_directory_terms *terms;
    uint32_t max_keys, lookups_max; /* 0: WEIR_DIRECTORY_LOOKUPS_MAX */
    uint64_t seed;
    struct weir_directory_source *source;
    uint64_t (*clock)(void *context); /* ns, never back; asked for each find */
    /* As weir_overrides_find. */
    int (*override)(void *context, const struct weir_rules *rules, struct weir_bytes limit,
                    struct weir_bytes text, struct weir_override *override,
                    struct weir_reason *reason);
    /* Something is wrong with a key's record. */
    void (*problem)(void *context, const uint8_t digest[WEIR_DIGEST_BYTES], const char *text);
    void (*up)(void *context, bool up); /* the breaker has closed, or opened */
    void *context;
};

struct weir_caller_directory {
    struct weir_directory base; /* first */
    struct weir_caller_directory_options options;
    struct weir_directory_cache known, nobody;
    struct weir_rules *rules; /* that the caller was last found for; referenced */
    uint64_t serial;          /* of these */
    struct weir_breaker breaker;
    struct weir_directory_lookup *buckets[WEIR_DIRECTORY_BUCKETS];
    struct weir_directory_lookup *soonest, *latest; /* that are ASKED */
    struct weir_directory_lookup *free;
    struct weir_directory_lookup *last;     /* that find has answered PENDING for */
    struct weir_directory_lookup *answered; /* whose waiters are being answered */
    uint32_t lookups;                       /* in flight */
    uint64_t random;
    struct weir_directory_counters counters;
};

/* Errors: WEIR_ERR_MEMORY. */
int weir_caller_directory_open(struct weir_caller_directory *directory,
                               const struct weir_caller_directory_options *options)
    __attribute__((warn_unused_result));

/* Nobody waits any more, and the source asks no more. */
void weir_caller_directory_close(struct weir_caller_directory *directory);

/* What became of a lookup, `took_ns` after it was asked: 1 (`record`, which the directory takes
 * over), 0 (no caller has the key), or an error: WEIR_ERR_STORE if the server answered with one,
 * any other if there was no answer. Answers those that wait. */
void weir_caller_directory_answer(struct weir_caller_directory *directory,
                                  struct weir_directory_lookup *lookup, int result,
                                  struct weir_directory_record *record, uint64_t took_ns);

/* Ends the waiting for lookups whose deadline has passed. Returns the next deadline on the clock,
 * or WEIR_NEVER. */
uint64_t weir_caller_directory_expire(struct weir_caller_directory *directory);

/* Whether it can be asked again is worth finding out. */
void weir_caller_directory_hurry(struct weir_caller_directory *directory);

/* Drops what is cached of this digest. A lookup that is in flight still answers those that wait for
 * it; later requests begin a new one. */
void weir_caller_directory_forget(struct weir_caller_directory *directory,
                                  const uint8_t digest[WEIR_DIGEST_BYTES]);
void weir_caller_directory_forget_all(struct weir_caller_directory *directory);

#endif
