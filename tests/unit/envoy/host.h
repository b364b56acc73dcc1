/* SPDX-License-Identifier: Apache-2.0 */
/* What Envoy offers to a module, played: one stream is one struct host, which a test fills, hands
 * to the hooks, and looks into. Threads: the module's own may only have a stream scheduled. */
#ifndef ENVOY_HOST_H
#define ENVOY_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "envoy/module.h"

#define HOST_FIELDS_MAX 700
#define HOST_TEXT_MAX 4096

struct host_field {
    char name[64], value[HOST_TEXT_MAX];
};

struct host {
    /* The request. */
    struct weir_evy_header request[HOST_FIELDS_MAX];
    size_t request_count;
    const char *source; /* "192.0.2.1:1"; NULL: none */
    const void *route;
    const char *metadata_key; /* of the namespace "weir.test"; NULL: none */
    double metadata_number;
    const char *metadata_text; /* NULL: it is the number */
    uint64_t response_code;    /* 0: none */
    /* What the module has done. */
    struct host_field fields[64]; /* added, or sent */
    size_t field_count;
    unsigned sent; /* the status; 0: nothing */
    unsigned answers;
    char body[HOST_TEXT_MAX], details[128];
    bool continued;
    _Atomic unsigned scheduled;
};

/* Of the process. */
extern bool host_validates;
extern unsigned host_schedulers; /* not deleted */
extern char host_log[65536];     /* all lines; empty it by hand */
extern unsigned host_counts[64]; /* of counters, by id */

/* A request: method, path, authority, and pairs of further fields up to NULL. */
void host_request(struct host *host, const char *method, const char *path, ...);
void host_add(struct host *host, const char *name, const char *value);

/* The value of a field that was added or sent; NULL: there is none. */
const char *host_field(const struct host *host, const char *name);

/* The count of a counter by its name. */
unsigned host_count(const char *name);

/* Waits until the module's thread has had the stream scheduled. */
void host_await(struct host *host);

/* Waits until the log has a line with that part. */
void host_await_log(const char *part);

#endif
