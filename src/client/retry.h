/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request is tried again, and when: the decision after one try, as a pure function.
 *
 * Statuses that are retried: 429, 500, 502, 503, 504, those that the caller names, and every one of
 * 400 and above whose answer wants it (X-Should-Retry); or only those that the caller names. 529,
 * and a 403 that says that a limit is used up (GitHub), are as 429. A request is retried only if
 * its method is idempotent (RFC 9110 9.2.2: GET, HEAD, OPTIONS, TRACE, PUT, DELETE) or it has an
 * Idempotency-Key.
 */
#ifndef WEIR_CLIENT_RETRY_H
#define WEIR_CLIENT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/client.h>

#include "client/advice.h"
#include "client/backoff.h"

struct weir_retry_case {
    int status;                   /* 0: no answer */
    bool transient;               /* status 0: another try may help */
    bool repeatable;              /* the method is idempotent, or the request has a key */
    bool named;                   /* the caller retries this status, too */
    bool only;                    /* the caller retries no status that is not named */
    bool begun;                   /* the answer was handed on, and has broken off: status 0 */
    bool budget;                  /* the budget allows a retry */
    uint32_t tries;               /* made, this one included: 1 and up */
    uint32_t most;                /* tries allowed */
    uint64_t now_ns, deadline_ns; /* UINT64_MAX: none */
    uint64_t previous_wait_ns;
    uint64_t stated_ns;               /* the wait that the answer states; 0: none */
    const struct weir_advice *advice; /* NULL: none */
};

struct weir_retry_verdict {
    bool again;
    uint64_t wait_ns;                 /* until the next try, or until one may succeed; 0: unknown */
    enum weir_client_outcome outcome; /* not again */
    const char *reason;               /* not again and not answered; static */
};

/* The answer says that a limit is used up. The advice is finished; NULL: there is none. */
bool weir_retry_limited(int status, const struct weir_advice *advice);

/* `named`, `only`: as in the case. */
bool weir_retry_status(int status, const struct weir_advice *advice, bool named, bool only);
bool weir_retry_method(const char *method);

void weir_retry_decide(const struct weir_retry_case *one, const struct weir_backoff_spec *backoff,
                       uint64_t *seed, struct weir_retry_verdict *verdict);

#endif
