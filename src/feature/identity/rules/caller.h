/* SPDX-License-Identifier: Apache-2.0 */
/* Callers: who a request is from, as its API key or token says.
 *
 * Callers come from two sources. Those of a keys file (`keys:`) belong to the rules. Those in Redis
 * (`identities:`) are in a directory: a bounded cache per worker, filled while requests wait. The
 * rules call it through struct weir_directory_ops and do not know how it looks callers up.
 *
 * An override is what one caller has instead of a limit's rates, whatever plan it is on. The state
 * is the same one: a caller who gets or loses an override keeps what was used, as with a change of
 * plan.
 *
 * Keys never leave a process and are never kept: all that is compared, stored or sent is their
 * SHA-256.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_CALLER_H
#define WEIR_FEATURE_IDENTITY_RULES_CALLER_H

#include <stdbool.h>

#include <weir/bytes.h>
#include <weir/error.h>
#include <weir/limit.h>

#define WEIR_DIGEST_BYTES 32
#define WEIR_IDENTITY_MAX 256 /* bytes of a user, an org; a plan has 64 at most */
#define WEIR_OVERRIDES_MAX 64 /* of one caller */
#define WEIR_RATES_MAX 8      /* of one limit: each is one of the 32 checks of a request */

struct weir_rules;

/* One limit of one caller. A key may have several states under one limit: one for each of several
 * rates, and others for rates whose states mean something else (see states.h). */
struct weir_override {
    uint32_t rule;             /* its index in the rules */
    uint32_t count;            /* of limits; 0: unlimited */
    struct weir_limit *limits; /* made known to the stores; they live as long as any decision that
                                  was made from them */
    const uint32_t *states;    /* of each limit, its number among the states of a key */
};

/* Who a request's caller is under the rules. */
struct weir_identity {
    struct weir_bytes user, org, plan; /* data == NULL: none */
};

/* Its texts and overrides belong to the source of the caller. */
struct weir_caller {
    struct weir_bytes user;                /* there */
    struct weir_bytes org, plan;           /* data == NULL: none */
    const struct weir_override *overrides; /* ascending by rule, each rule once */
    uint32_t override_count;
};

/* A waiter for a lookup of a directory. The waiter owns it, and does not touch it between `wait`
 * and `done` or `leave`. */
struct weir_directory_waiter {
    struct weir_directory_waiter *previous, *next; /* the directory's, as `lookup` is */
    void *lookup;
    void (*done)(struct weir_directory_waiter *waiter);
};

struct weir_directory {
    const struct weir_directory_ops *ops;
    bool hurried; /* set by the caller while it cannot wait: then `find` never returns PENDING */
    bool guessed; /* by `find`: nobody could be asked, so 0 does not mean that nobody has the key */
};

struct weir_directory_ops {
    /* Who has the key of this digest. Returns 1 (`caller` is filled, and valid until the directory
     * is used again), 0 (nobody), or an error: WEIR_ERR_PENDING (the lookup has begun; ask the
     * rules again when it has finished), WEIR_ERR_STORE (the lookup failed, and the settings refuse
     * such requests). Allocates nothing where it knows the answer. Overrides are those for `rules`.
     */
    int (*find)(struct weir_directory *directory, const struct weir_rules *rules,
                const uint8_t digest[WEIR_DIGEST_BYTES], struct weir_caller *caller);

    /* Calls `done` once, when the lookup that the last `find` has begun succeeds or fails: never
     * from inside one of these functions. The same `find` then has an answer. `done` may use the
     * directory. */
    void (*wait)(struct weir_directory *directory, struct weir_directory_waiter *waiter);

    /* Ends the waiting of a waiter. */
    void (*leave)(struct weir_directory *directory, struct weir_directory_waiter *waiter);
};

/* Compiles a caller's override: `limit` is a limit's name, `text` its rates
 * as in a plan: "5000/min burst 200", "20000/month", "unlimited"; of a concurrency limit a number;
 * several rates separated by commas. What else the limit says (algorithm, segments, calendar)
 * stays; so do the caps of its refunds. *override is one block, the caller's to free(); it points
 * into `rules`. No store knows its limits yet: weir_store_prepare, for each, before it is used.
 * Errors: WEIR_ERR_NOT_FOUND (no such limit), WEIR_ERR_SYNTAX, WEIR_ERR_RANGE; `reason` says what
 * is wrong; WEIR_ERR_MEMORY. */
int weir_rules_override(const struct weir_rules *rules, struct weir_bytes limit,
                        struct weir_bytes text, struct weir_override **override,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
