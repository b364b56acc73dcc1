/* SPDX-License-Identifier: Apache-2.0 */
/* see outcome.h */
#include "envoy/outcome.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct weir_evy_outcome {
    struct weir_call call;
    struct sockaddr_storage client;
    struct weir_value values[]; /* and the texts behind them */
};

static size_t size_of(const struct weir_call *call)
{
    size_t size = sizeof(struct weir_evy_outcome) + call->count * sizeof *call->values +
                  call->forwarded_for_size + call->forwarded_size;
    for (size_t i = 0; i < call->count; i++)
        size += call->values[i].data ? call->values[i].size : 0;
    return size;
}

static const char *copy(char **at, const char *text, size_t size)
{
    char *place = *at;
    if (!text)
        return NULL;
    if (size > 0)
        memcpy(place, text, size);
    *at += size;
    return place;
}

struct weir_evy_outcome *weir_evy_outcome_keep(const struct weir_call *call)
{
    struct weir_evy_outcome *kept = malloc(size_of(call));
    if (!kept)
        return NULL;
    char *at = (char *)&kept->values[call->count];
    for (size_t i = 0; i < call->count; i++) {
        kept->values[i] = call->values[i];
        kept->values[i].data = copy(&at, call->values[i].data, call->values[i].size);
    }
    kept->call = (struct weir_call){.values = kept->values,
                                    .count = call->count,
                                    .untrusted = call->untrusted,
                                    .cost = 1,
                                    .forwarded_for_size = call->forwarded_for_size,
                                    .forwarded_size = call->forwarded_size};
    kept->call.forwarded_for = copy(&at, call->forwarded_for, call->forwarded_for_size);
    kept->call.forwarded = copy(&at, call->forwarded, call->forwarded_size);
    if (call->client) {
        memcpy(&kept->client, call->client, sizeof kept->client);
        kept->call.client = (const struct sockaddr *)&kept->client;
    }
    return kept;
}

void weir_evy_outcome_tell(const struct weir_evy_outcome *outcome, struct weir *weir,
                           unsigned status)
{
    (void)!weir_outcome(weir, &outcome->call, status);
}
