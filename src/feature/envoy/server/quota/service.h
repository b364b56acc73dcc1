/* SPDX-License-Identifier: Apache-2.0 */
/* The one quota service of a process: the state machine of quota.h for the streams of all workers,
 * and what they count. A worker holds the lock while it calls quota.h, and never while it decides.
 *
 * Threads: internally locked by its users: `lock` is for all calls of quota.h. Counters are for any
 * thread. */
#ifndef WEIR_FEATURE_ENVOY_SERVER_QUOTA_SERVICE_H
#define WEIR_FEATURE_ENVOY_SERVER_QUOTA_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "feature/envoy/server/quota/quota.h"

/* What a service counts, in the order of weir_quota_count_names. */
enum weir_quota_count {
    WEIR_QUOTA_ASSIGNED,     /* token buckets sent */
    WEIR_QUOTA_DENIED,       /* denying assignments */
    WEIR_QUOTA_OPEN,         /* allowing ones: no limit matches */
    WEIR_QUOTA_ABANDONED,    /* idle buckets */
    WEIR_QUOTA_UNASSIGNABLE, /* buckets whose limits cannot be assigned, each time */
    WEIR_QUOTA_FAILED,       /* the store could not decide */
    WEIR_QUOTA_UNANSWERED,   /* streams reset for a PING without an answer */
    WEIR_QUOTA_COUNTS
};
extern const char *const weir_quota_count_names[WEIR_QUOTA_COUNTS];

struct weir_quota_service {
    pthread_mutex_t lock;
    struct weir_quota *quota;
    _Atomic uint64_t counts[WEIR_QUOTA_COUNTS];
    _Atomic uint64_t charged; /* cost, over all limits */
};

/* Errors: WEIR_ERR_MEMORY. */
int weir_quota_service_open(struct weir_quota_service **service)
    __attribute__((warn_unused_result));
/* NULL is ignored. */
void weir_quota_service_close(struct weir_quota_service *service);

#endif
