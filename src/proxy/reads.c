/* SPDX-License-Identifier: Apache-2.0 */
/* see reads.h */
#include "proxy/reads.h"

#include <string.h>

static const char header_prefix[] = "header.";
#define HEADER_PREFIX (sizeof header_prefix - 1)

void weir_reads_init(struct weir_reads *reads)
{
    memset(reads, 0, sizeof *reads);
    atomic_init(&reads->method, -1);
    atomic_init(&reads->path, -1);
    atomic_init(&reads->host, -1);
    atomic_init(&reads->connection_requests, -1);
}

static void add_header(struct weir_reads *reads, const char *name, int handle)
{
    unsigned count = atomic_load_explicit(&reads->header_count, memory_order_relaxed);
    const char *field = name + HEADER_PREFIX;
    reads->headers[count] = (struct weir_reads_header){field, strlen(field), handle};
    atomic_store_explicit(&reads->header_count, count + 1, memory_order_release);
}

static _Atomic int *place_of(struct weir_reads *reads, const char *name)
{
    if (strcmp(name, "path") == 0)
        return &reads->path;
    if (strcmp(name, "host") == 0)
        return &reads->host;
    return strcmp(name, "connection.requests") == 0 ? &reads->connection_requests : NULL;
}

static void find_outcomes(struct weir_reads *reads, struct weir *weir)
{
    uint8_t outcomes[64] = {0};
    bool strikes = false;
    for (unsigned status = 100; status <= 599; status++)
        if (weir_is_strike(weir, status)) {
            outcomes[(status - 100) / 8] |= (uint8_t)(1u << (status - 100) % 8);
            strikes = true;
        }
    for (unsigned i = 0; i < sizeof outcomes; i++)
        atomic_store_explicit(&reads->outcomes[i], outcomes[i], memory_order_relaxed);
    atomic_store_explicit(&reads->strikes, strikes, memory_order_relaxed);
}

void weir_reads_find(struct weir_reads *reads, struct weir *weir,
                     void (*tell)(void *context, const char *name), void *context)
{
    const char *name;
    for (; (name = weir_attribute_name(weir, reads->seen)); reads->seen++) {
        _Atomic int *place = place_of(reads, name);
        if (place)
            atomic_store_explicit(place, reads->seen, memory_order_relaxed);
        else if (strncmp(name, header_prefix, HEADER_PREFIX) == 0)
            add_header(reads, name, reads->seen);
        else if (tell && strcmp(name, "client.ip") != 0 && strcmp(name, "method") != 0 &&
                 weir_attribute_is_read(weir, reads->seen))
            tell(context, name);
    }
    int method = weir_attribute(weir, "method");
    atomic_store_explicit(&reads->method, weir_attribute_is_read(weir, method) ? method : -1,
                          memory_order_relaxed);
    atomic_store_explicit(&reads->refunds, weir_gives_back(weir), memory_order_relaxed);
    find_outcomes(reads, weir);
}
