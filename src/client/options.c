/* SPDX-License-Identifier: Apache-2.0 */
/* see options.h */
#include "client/options.h"

#include <stdio.h>

#include "client/lane.h"

#define MS_NS UINT64_C(1000000)
#define S_NS UINT64_C(1000000000)

static int out_of_range(struct weir_reason *reason, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return WEIR_ERR_RANGE;
}

static void default_number(uint32_t *value, uint32_t otherwise)
{
    *value = *value > 0 ? *value : otherwise;
}

static void default_ns(uint64_t *value, uint64_t otherwise)
{
    *value = *value > 0 ? *value : otherwise;
}

static bool are_statuses(const uint16_t statuses[WEIR_CLIENT_RETRY_ON_MOST])
{
    for (size_t i = 0; i < WEIR_CLIENT_RETRY_ON_MOST; i++)
        if (statuses[i] != 0 && (statuses[i] < 400 || statuses[i] > 599))
            return false;
    return true;
}

int weir_client_options_settle(struct weir_client_options *options, struct weir_reason *reason)
{
    default_number(&options->concurrency, 64);
    default_number(&options->host_concurrency, 16);
    default_number(&options->tries, 5);
    default_number(&options->queue_most, 100000);
    default_ns(&options->time_ns, 60 * S_NS);
    default_ns(&options->try_ns, 30 * S_NS);
    default_ns(&options->backoff_base_ns, 100 * MS_NS);
    default_ns(&options->backoff_cap_ns, 20 * S_NS);
    if (options->backoff_factor == 0)
        options->backoff_factor = 2;
    if (options->concurrency > WEIR_LANE_MOST || options->host_concurrency > WEIR_LANE_MOST)
        return out_of_range(reason, "concurrency: 1 to 1000");
    if (options->tries > 1000)
        return out_of_range(reason, "tries: 1 to 1000");
    if (options->backoff_base_ns > options->backoff_cap_ns || options->backoff_cap_ns > UINT64_C(1)
                                                                                            << 62)
        return out_of_range(reason, "backoff: the base is at most the cap");
    if (!(options->backoff_factor >= 1 && options->backoff_factor <= 100))
        return out_of_range(reason, "backoff: the factor is 1 to 100");
    if (!are_statuses(options->retry_on))
        return out_of_range(reason, "retry_on: statuses of 400 to 599");
    if (!are_statuses(options->retry_statuses))
        return out_of_range(reason, "retry_statuses: statuses of 400 to 599");
    if ((unsigned)options->jitter > WEIR_CLIENT_JITTER_NONE)
        return out_of_range(reason, "jitter: no such kind");
    return 0;
}
