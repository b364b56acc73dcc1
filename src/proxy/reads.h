/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules read of a request, so that a program around libweir gives no value that no rule
 * wants: the same for nginx and for Envoy.
 *
 * Memory: 12 KiB. Threads: one thread writes (weir_reads_find, after weir_open and after each
 * weir_reload); any thread may read meanwhile. Entries are only added, since handles and their
 * names stay; a header field that new rules no longer read is given, and has no effect.
 */
#ifndef WEIR_PROXY_READS_H
#define WEIR_PROXY_READS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/embed.h>

/* A header field that the rules read. */
struct weir_reads_header {
    const char *name; /* lower case, without "header."; valid until weir_close */
    size_t size;
    int handle;
};

struct weir_reads {
    _Atomic int method, path, host, connection_requests; /* handles; -1: not read */
    _Atomic unsigned header_count;
    struct weir_reads_header headers[WEIR_HANDLES_MAX];
    _Atomic bool refunds;         /* some limit gives back by outcome */
    _Atomic bool strikes;         /* some outcome is a strike */
    _Atomic uint8_t outcomes[64]; /* a bit for each status from 100 on that is a strike */
    int seen;                     /* handles that the writer has looked at */
};

/* Nothing is read. */
void weir_reads_init(struct weir_reads *reads);

/* Looks at what the present rules of `weir` read. `tell` (NULL: nobody) is called for each other
 * attribute that is new and that they read, which only a configuration can give. */
void weir_reads_find(struct weir_reads *reads, struct weir *weir,
                     void (*tell)(void *context, const char *name), void *context);

/* Whether a request that ends with this HTTP status is a strike of a penalty. */
static inline bool weir_reads_strike(struct weir_reads *reads, unsigned status)
{
    if (status < 100 || status > 599)
        return false;
    uint8_t bits = atomic_load_explicit(&reads->outcomes[(status - 100) / 8], memory_order_relaxed);
    return bits >> (status - 100) % 8 & 1;
}

#endif
