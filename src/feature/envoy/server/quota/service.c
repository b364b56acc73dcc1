/* SPDX-License-Identifier: Apache-2.0 */
/* see service.h */
#include "feature/envoy/server/quota/service.h"

#include <stdlib.h>

const char *const weir_quota_count_names[WEIR_QUOTA_COUNTS] = {
    [WEIR_QUOTA_ASSIGNED] = "assigned",
    [WEIR_QUOTA_DENIED] = "denied",
    [WEIR_QUOTA_OPEN] = "open",
    [WEIR_QUOTA_ABANDONED] = "abandoned",
    [WEIR_QUOTA_UNASSIGNABLE] = "unassignable",
    [WEIR_QUOTA_FAILED] = "failed",
    [WEIR_QUOTA_UNANSWERED] = "unanswered",
};

int weir_quota_service_open(struct weir_quota_service **service)
{
    struct weir_quota_service *made = calloc(1, sizeof *made);
    if (!made ||
        weir_quota_open(&made->quota, WEIR_QUOTA_STREAMS_MAX, WEIR_QUOTA_BUCKETS_MAX) < 0) {
        free(made);
        return WEIR_ERR_MEMORY;
    }
    pthread_mutex_init(&made->lock, NULL);
    *service = made;
    return 0;
}

void weir_quota_service_close(struct weir_quota_service *service)
{
    if (!service)
        return;
    weir_quota_close(service->quota);
    pthread_mutex_destroy(&service->lock);
    free(service);
}
