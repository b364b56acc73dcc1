/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's rate limit service, as the daemon has it: the configuration in use, and what is counted.
 *
 *   folder ─▶ load ─▶ current configuration ─▶ each service takes it up with its next call
 *                 └─▶ an error: counted, logged; the old one stays
 *
 * With a control plane (xds/), a response takes the folder's place, and its sender learns what
 * became of it.
 *
 * The folder is looked at twice a second (weir_envoy_reading_watch): what changes is loaded when it
 * has stayed as it is from one look to the next, so that a file that is being written is not read.
 * That finds every way of changing it: writes, renames, a swapped link anywhere on the way, also
 * where the kernel sends no events (network file systems, mounts in containers).
 *
 * Threads: internally locked. Reading is for any thread; taking over what was read, and exporting,
 * are the main thread's; weir_envoy_healthy and what services do is anybody's.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_SHARED_H
#define WEIR_FEATURE_ENVOY_SERVER_SHARED_H

#include <pthread.h>

#include "feature/envoy/rules/envoy.h"
#include "feature/envoy/server/call.h"
#include "feature/envoy/server/stats.h"
#include "feature/envoy/server/xds/stream.h"
#include "server/adhoc/adhoc_limits.h"

/* Upper bounds of the histogram of calls, in us; one more is open. The original's begin at 5 ms,
 * and measure whole milliseconds. */
#define WEIR_ENVOY_TIMES 12
extern const uint32_t weir_envoy_time_bounds_us[WEIR_ENVOY_TIMES];

/* A service's own; written by its worker alone. */
struct weir_envoy_service_counters {
    _Atomic uint64_t requests, checks; /* gRPC: ShouldRateLimit, grpc.health.v1's Check */
    _Atomic uint64_t service_errors, store_errors, global_shadow;
    _Atomic uint64_t time_ns, times[WEIR_ENVOY_TIMES + 1];
};

/* What one worker's front end works with. */
struct weir_envoy_service {
    struct weir_envoy_service *next; /* of the shared list */
    struct weir_envoy_shared *shared;
    struct weir_worker *worker;
    bool counts_calls;            /* gRPC's: the original counts no calls of /json */
    struct weir_envoy_hold *hold; /* the configuration of the next call; NULL: none yet */
    uint64_t version;             /* of the shared configuration, when it was taken up */
    struct weir_envoy_stats *stats;
    struct weir_adhoc_cache overrides; /* compiled limits, by requests and seconds */
    uint64_t overrides_epoch;          /* of those; see weir_adhoc_limits_epoch */
    struct weir_envoy_service_counters counters;
};

struct weir_envoy_shared_options {
    struct weir_log *log;
    struct weir_adhoc_limits *limits; /* of overrides, which are limits that commands give */
    /* Makes a limit known to the stores. */
    int (*prepare)(void *context, struct weir_limit *limit, struct weir_reason *reason);
    void *prepare_context;
    /* Whether all workers have reached the store, at some time; `now`: whether any does now. */
    bool (*store_reached)(void *context, bool now); /* NULL: there is none to reach */
    void *store_context;
};

struct weir_envoy_shared {
    struct weir_envoy_shared_options options;
    struct weir_envoy_settings settings;
    struct weir_rules *first_rules, *rules; /* whose settings they were at first, and are */
    pthread_mutex_t lock;                   /* current, services */
    struct weir_envoy *current;
    struct weir_envoy_service *services;
    _Atomic uint64_t version; /* counts configurations */
    _Atomic bool has_domains, need_domains, has_config, need_config, need_store, stopping;
    _Atomic bool fails_without_store; /* some call does, while the store is not reached */
    _Atomic uint64_t loads, failed_loads;
    uint64_t print, seen_print;    /* of the folder: what is loaded; at the last look */
    struct weir_xds_stream *xds;   /* NULL: there is a folder */
    struct weir_xds_response last; /* of the control plane, or of its cache: what is loaded */
};

/* Whether there is such a service. */
static inline bool weir_envoy_configured(const struct weir_envoy_settings *settings)
{
    return settings->folder || settings->xds.server;
}

/* Errors: WEIR_ERR_MEMORY. */
int weir_envoy_shared_open(struct weir_envoy_shared **shared,
                           const struct weir_envoy_shared_options *options)
    __attribute__((warn_unused_result));
/* All services are closed. NULL is allowed. */
void weir_envoy_shared_close(struct weir_envoy_shared *shared);

/* New settings; a reference of the rules that own their strings is taken. Those of statsd, of
 * Prometheus' listener and of the control plane stay what they were at first. */
void weir_envoy_shared_set(struct weir_envoy_shared *shared,
                           const struct weir_envoy_settings *settings, struct weir_rules *rules);

/* One look at the folder or for a response of the control plane, and perhaps all that is in it:
 * made by the main thread, filled by any thread. */
struct weir_envoy_reading {
    struct weir_envoy_settings settings; /* texts of rules that the maker holds */
    uint64_t print, seen_print;          /* as in struct weir_envoy_shared */
    bool read;                           /* what follows is there */
    int err;
    struct weir_envoy *envoy; /* NULL after an error */
    struct weir_envoy_error error;
    struct weir_xds_response response; /* of the control plane; number 0: of its cache */
    struct weir_reason cache;          /* why the cache could not be read or written; empty */
};

/* Begins a load under the settings in use. */
void weir_envoy_reading_begin(struct weir_envoy_reading *reading,
                              const struct weir_envoy_shared *shared);

/* Reads the folder, or again what the control plane has given, or its cache; on any thread. */
void weir_envoy_reading_read(struct weir_envoy_reading *reading,
                             const struct weir_envoy_shared *shared);

/* Looks at the folder, and reads it where it has changed; or reads the response that has come; on
 * any thread. */
void weir_envoy_reading_watch(struct weir_envoy_reading *reading,
                              const struct weir_envoy_shared *shared);
#define WEIR_ENVOY_WATCH_MS 500

/* Takes over what was read. On any error the configuration in use stays, and the error is logged:
 * "Error loading new configuration". */
void weir_envoy_shared_take(struct weir_envoy_shared *shared, struct weir_envoy_reading *reading);

/* Gives back a load that is not taken over. */
void weir_envoy_reading_drop(struct weir_envoy_reading *reading);

/* The present configuration, one reference of it; NULL: none. */
struct weir_envoy *weir_envoy_shared_current(struct weir_envoy_shared *shared, uint64_t *version);

/* Everything that is counted, over all services. */
struct weir_envoy_totals {
    uint64_t requests, checks, service_errors, store_errors, global_shadow, loads, failed_loads;
    uint64_t time_ns, times[WEIR_ENVOY_TIMES + 1];
};
void weir_envoy_shared_totals(struct weir_envoy_shared *shared, struct weir_envoy_totals *totals);

/* The counters of all keys, by their names (stats.h), each name once, sorted by their parts;
 * freed with free(). NULL: no memory. */
struct weir_envoy_key_counts {
    struct weir_bytes key; /* the registry's */
    uint64_t counts[WEIR_ENVOY_COUNT_TOTAL];
};
struct weir_envoy_key_counts *weir_envoy_shared_keys(struct weir_envoy_shared *shared,
                                                     size_t *count);

#endif
