/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that a request brings along become the checks of a decision: what POST /v1/limit and
 * weir.v1.Limiter share.
 *
 * They are limits as those of Redis commands (adhoc_limits.h): made known to the table once, from
 * the same bounded list, and found by each listener of a worker in a cache of its own by their
 * numbers. Their keys are separate from those of commands and of the rules file (limit_spec.h), and
 * the same over HTTP and gRPC.
 *
 * Threads: belongs to one worker.
 */
#ifndef WEIR_SERVER_ADHOC_REQUEST_LIMITS_H
#define WEIR_SERVER_ADHOC_REQUEST_LIMITS_H

#include "core/answer.h"
#include "server/adhoc/adhoc_limits.h"
#include "wire/given_limits.h"

struct weir_worker;
struct weir_decision;

struct weir_request_limits {
    struct weir_worker *worker;
    struct weir_adhoc_limits *limits;
    uint64_t epoch; /* of the limits in the cache */
    struct weir_adhoc_cache cache;
    uint64_t secret[2];
    uint8_t flags, on_store_error; /* of the checks */
};

/* `limits` are those of all workers, and outlive it. */
void weir_request_limits_open(struct weir_request_limits *limits, struct weir_worker *worker,
                              struct weir_adhoc_limits *all);

/* Fills a decision. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE (a member is wrong: `reason` begins
 * with its path), WEIR_ERR_FULL (too many distinct limits), WEIR_ERR_MEMORY, and those of the
 * store's prepare. */
int weir_request_limits_decide(struct weir_request_limits *limits,
                               const struct weir_given_limits *given,
                               struct weir_decision *decision, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* How answers call limits without a name: "limit", in a list "limit-31". */
#define WEIR_REQUEST_LIMIT_NAME_SIZE 16
typedef char weir_request_limit_names[WEIR_CHECKS_MAX][WEIR_REQUEST_LIMIT_NAME_SIZE];

/* Gives the limits of an answer their names; they are valid as long as `decision` and `room`. */
void weir_request_limits_name(const struct weir_decision *decision, bool listed,
                              struct weir_answer *answer, weir_request_limit_names room);

#endif
