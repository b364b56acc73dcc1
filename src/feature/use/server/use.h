/* SPDX-License-Identifier: Apache-2.0 */
/* What weir knows about use: how much each key uses, why a request was denied, and how all
 * of it went over time.
 *
 *   workers: observers ──four times a second──▶ denials: a ring in memory, a file, followers
 *                      ──once a second────────▶ windows of keys, routes and plans
 * (feature/use/windows.h) counters of limits ──once a second────────▶ series (feature/use/series.h)
 *
 * All of it is the main thread's; workers write their observer and their counters, and wait for
 * nobody.
 *
 * Bounds: observers (1.9 MiB a worker), windows (38 MiB, touched as they fill), WEIR_DENIALS_KEPT
 * denials (9 MiB), WEIR_USE_SERIES limits with series of their own (28 MiB) and those of the whole,
 * WEIR_DISTINCT_LIMITS counters of keys, WEIR_FOLLOWERS_MAX calls that wait for the next denial.
 * Limits beyond WEIR_USE_SERIES count in the series of the whole only, until one that has not been
 * used for a day makes room.
 *
 * Threads: the main thread's, except what observer.h says.
 */
#ifndef WEIR_FEATURE_USE_SERVER_USE_H
#define WEIR_FEATURE_USE_SERVER_USE_H

#include <uv.h>

#include "feature/use/edge.h"
#include "feature/use/engine/cause.h"
#include "feature/use/series.h"
#include "feature/use/server/denial_file.h"
#include "feature/use/server/observer.h"
#include "feature/use/server/totals.h"
#include "feature/use/windows.h"
#include "rules/string_map.h"
#include "server/daemon/log.h"

#define WEIR_DENIALS_KEPT 8192
#define WEIR_USE_SERIES 512
#define WEIR_FOLLOWERS_MAX 64

/* Fields of the series of a limit. */
enum weir_use_field {
    WEIR_USE_ALLOWED,
    WEIR_USE_DENIED,
    WEIR_USE_DELAYED,
    WEIR_USE_COST,
    WEIR_USE_SHADOW, /* what a shadow limit would have denied */
    WEIR_USE_DISTINCT,
    WEIR_USE_EDGE_ALLOWED, /* by other processes on the state file */
    WEIR_USE_EDGE_DENIED,
    WEIR_USE_EDGE_SHADOW,
    WEIR_USE_FIELDS
};
/* Of the whole, after those of a limit. */
enum weir_use_whole_field {
    WEIR_USE_REQUESTS = WEIR_USE_FIELDS,
    WEIR_USE_HTTP,
    WEIR_USE_GRPC,
    WEIR_USE_REDIS,
    WEIR_USE_NGINX, /* decided there, on the same state file */
    WEIR_USE_LIBRARY,
    WEIR_USE_REFUSED, /* by cause: one for each of enum weir_cause */
    WEIR_USE_TURN_P50_US =
        WEIR_USE_REFUSED + WEIR_CAUSES, /* of a turn of a worker: what weir adds to a request */
    WEIR_USE_TURN_P99_US,
    WEIR_USE_STORE_P50_US, /* of a call of the store that nodes share */
    WEIR_USE_STORE_P99_US,
    WEIR_USE_WHOLE_FIELDS
};
extern const char *const weir_use_field_names[WEIR_USE_WHOLE_FIELDS];

/* What is known of one limit, by name. */
struct weir_use_limit {
    char name[WEIR_HEAVY_NAME_MAX + 1];
    uint64_t counts[WEIR_USE_DISTINCT]; /* at the last tick */
    uint64_t minute;                    /* requests of this minute, halved each minute */
    uint64_t used_at_s;                 /* when it was used last */
    struct weir_series *series;         /* NULL: it has not been used, or found no room */
    uint8_t distinct;                   /* its number among counters of keys; or
                                           WEIR_DISTINCT_LIMITS: none */
    bool kept;                          /* the rules have it */
    uint64_t edge_name;                 /* weir_edge_name */
    uint64_t edge_top_up_name;          /* the same of its top-ups; 0: it takes none */
    uint64_t edge_bought;               /* units that requests have taken there, of all times */
    uint64_t edge_bought_read;          /* the same, while it is read */
    struct weir_edge_sum edge;          /* decided by other processes, of all times */
    struct weir_edge_sum edge_read;     /* the same, while it is read */
    uint64_t edge_before[3];            /* admitted, denied, the same in shadow: at the last tick */
    bool edge_known;                    /* those are known */
};

/* What other processes decide, see feature/use/server/edge_sums.h. */
struct weir_use_edge {
    struct weir_edge *file; /* NULL: no state file, or it cannot be read now */
    uint64_t results[WEIR_EDGE_FRONTS][WEIR_EDGE_RESULTS];
    uint64_t before[WEIR_EDGE_FRONTS][WEIR_EDGE_RESULTS]; /* at the last tick */
    bool known;                                           /* those are known */
    bool failed;                                          /* to open it: logged */
};

/* What numbers of limits are found by in weir_use_service.names. */
enum { WEIR_USE_NAMES, WEIR_USE_NAMES_OF_EDGE, WEIR_USE_TOP_UPS_OF_EDGE };

/* A call that waits for the next denial. */
struct weir_follower {
    struct weir_follower *next;
    uint64_t until_ns; /* CLOCK_BOOTTIME */
    void (*wake)(struct weir_follower *follower);
};

struct weir_daemon;

/* The newest gaps in the seconds that are known. */
#define WEIR_USE_GAPS 16

struct weir_use_service {
    struct weir_daemon *daemon;
    struct weir_observer_settings settings;
    struct weir_observer **observers; /* of each worker */
    unsigned observer_count;
    struct weir_windows *seen[WEIR_SEEN_SHOWN];
    struct weir_heavy *read[WEIR_SEEN_SHOWN]; /* room for reading a window */

    struct weir_totals totals; /* of all times */

    struct weir_denial *denials; /* by sequence % WEIR_DENIALS_KEPT */
    uint64_t denial_last;        /* the newest sequence; 0: none */
    struct weir_denial_file *file;
    char *file_path; /* NULL: none */
    uint64_t file_size, file_keep_ns;
    struct weir_use_edge_news {
        uint64_t count, log_ns;              /* as logged; when to log again */
    } unknown, failed;                       /* weir_edge_unknown, weir_edge_failures */
    uint64_t dropped_logged, dropped_log_ns; /* lines it lacks, as logged; when to log again */
    char node[WEIR_DENIAL_NODE_MAX + 1];
    struct weir_follower *followers;
    unsigned follower_count;
    uint64_t lost; /* batches that memory was missing for */

    struct weir_rules *rules; /* that `limits` are of; compared only */
    struct weir_use_limit *limits;
    uint32_t limit_count;
    struct rules_string_map names;
    struct weir_use_limits *next; /* of rules that the workers are about to have; NULL: none */
    unsigned series_count;
    uint64_t limits_set; /* how often `limits` were replaced */
    struct weir_use_edge edge;
    struct weir_series *whole;
    struct weir_use_gap {
        uint64_t from_s, until_s;
    } gaps[WEIR_USE_GAPS]; /* seconds of `whole` that nothing was put for, since weir did not run:
                              by number % WEIR_USE_GAPS */
    uint64_t gap_count;
    struct weir_series_keeper *keeper; /* see series_keeper.h; NULL: no state file, or not yet */
    uint64_t whole_counts[WEIR_USE_WHOLE_FIELDS];
    uint64_t *turn_buckets, *store_buckets; /* at the last tick */
    uint64_t tick_s;                        /* of the last tick */

    /* Two sets of counters of keys; workers write `writing`, the other one is read and emptied a
     * second after it was theirs. */
    struct weir_distinct_set *sets[2];
    _Atomic(struct weir_distinct_set *) writing;
    struct weir_distinct *minutes; /* of each number, of this minute */
    bool numbers[WEIR_DISTINCT_LIMITS];
    uint32_t number_limit[WEIR_DISTINCT_LIMITS]; /* which limit has a number that is taken */

    /* A tick, which is done in pieces: see history.h. */
    struct weir_use_ticking {
        bool on, minute;
        uint32_t next; /* limit */
        uint64_t now_s;
        const struct weir_distinct_set *keys;
        float whole[WEIR_USE_WHOLE_FIELDS];
    } ticking;

    uv_timer_t timer, piece;
    bool running;
};

/* Opens it without observers. Errors: WEIR_ERR_MEMORY, which `reason` explains. */
int weir_use_open(struct weir_use_service **use, struct weir_daemon *daemon,
                  struct weir_reason *reason) __attribute__((warn_unused_result));
/* Gives a worker that is to be opened an observer, except the admin worker. Errors:
 * WEIR_ERR_MEMORY. */
struct weir_worker_options;
int weir_use_add_worker(struct weir_use_service *use, struct weir_worker_options *options,
                        uint64_t seed) __attribute__((warn_unused_result));
/* Begins on the main loop, with the denials of the file, if the rules have one. Errors: those of
 * weir_denial_file_open, which `reason` explains. */
int weir_use_start(struct weir_use_service *use, uv_loop_t *loop, struct weir_reason *reason)
    __attribute__((warn_unused_result));
/* The rules of the daemon are others: settings and limits follow. `limits` are those of the rules
 * (history.h), and taken over. */
struct weir_use_limits;
void weir_use_set_rules(struct weir_use_service *use, struct weir_use_limits *limits);
/* Opens the file of denials again, which another program may have moved. */
void weir_use_reopen(struct weir_use_service *use);
/* Before the loop ends: wakes followers, writes the file. NULL is allowed. */
void weir_use_stop(struct weir_use_service *use);
/* When no worker is left. NULL is allowed. */
void weir_use_close(struct weir_use_service *use);

/* Takes what the workers have seen: the tick does, and so does who wants to read the newest. */
void weir_use_collect(struct weir_use_service *use, uint64_t now_ns);

/* Requests that were refused for a cause since the start. */
uint64_t weir_use_refused(const struct weir_use_service *use, enum weir_cause cause);

/* The limit of a name; NULL: there is none. */
struct weir_use_limit *weir_use_find(struct weir_use_service *use, struct weir_bytes name);

/* The denial of a sequence; NULL: it is not kept any more, or not yet there. */
const struct weir_denial *weir_use_denial(const struct weir_use_service *use, uint64_t sequence);
/* The oldest sequence that is kept; denial_last + 1: none is. */
uint64_t weir_use_oldest(const struct weir_use_service *use);

/* Has a follower woken when there is a denial, or at its time. False: there are too many. */
bool weir_use_follow(struct weir_use_service *use, struct weir_follower *follower);
void weir_use_unfollow(struct weir_use_service *use, struct weir_follower *follower);

#endif
