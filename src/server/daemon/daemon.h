/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's state, on the main thread: see server.h for what it does.
 *
 *   main thread     control loop = the admin worker's loop: signals, watch, clock, admin listener
 *   worker 0..n-1   one thread each
 *
 * Threads: the main thread's own, except `running` and what worker.h says of workers.
 */
#ifndef WEIR_SERVER_DAEMON_DAEMON_H
#define WEIR_SERVER_DAEMON_DAEMON_H

#include "server/daemon/background.h"
#include "server/daemon/server.h"
#include "server/daemon/supervisor.h"
#include "server/daemon/worker.h"
#include "server/net/certificates.h"
#include "server/own.h"
#include "table/file/state_file.h"

#define WEIR_SERVICES_MAX 32

struct weir_daemon;
struct weir_http_route;
struct weir_retired;
struct weir_service;

/* What the background thread has to do, from the most urgent. Asked for again while it is being
 * done, it is done once more, and once only. */
enum {
    WEIR_WANT_RELOAD = 1,
    WEIR_WANT_WATCH = 2, /* of certificates */
    WEIR_WANT_ENVOY_WATCH = 4,
};

/* One reading of the rules file, and of all that it names. */
struct weir_reload {
    struct weir_job job;
    struct weir_daemon *daemon;
    bool first;        /* at start: problems go to stderr, and nothing is prepared */
    uint64_t began_ns; /* CLOCK_BOOTTIME */
    uint64_t slow_ns;  /* when a line next says that it takes long */

    enum weir_table_file state; /* of the state file, where the new rules name the same one */

    int err;
    struct weir_reason reason; /* why not; empty: the problems were printed, or `err` says it */
    char *problems;            /* of the file, one a line; NULL: none */
    struct weir_rules *rules;
    struct weir_certificates *certificates;
    struct weir_certificate_watch watch;
    void *read[WEIR_SERVICES_MAX]; /* by each service (server/service.h) */
};

/* One look at files that are used while the daemon runs. */
struct weir_watch {
    struct weir_job job;
    struct weir_daemon *daemon;
    unsigned wanted;          /* WEIR_WANT_..., those of a watch */
    struct weir_rules *rules; /* hold the settings */

    enum weir_table_file state;
    bool certificates_read; /* what follows is there */
    int certificates_err;
    struct weir_reason reason;
    struct weir_certificates *certificates;
    struct weir_certificate_watch watch;
};

/* Listening sockets that one run of the daemon leaves to the next one in the same process. */
struct weir_kept_sockets {
    struct weir_endpoint endpoint;
    unsigned count; /* 0: none */
    int fds[WEIR_WORKERS_MAX];
};

/* Where a front end listens. */
struct weir_place {
    struct weir_endpoint endpoint; /* WEIR_ENDPOINT_OFF: it does not */
    struct weir_connection_pool pool;
    struct weir_kept_sockets kept;
};

/* The workers' threads. */
struct weir_threads {
    uv_thread_t *list;
    unsigned started;
    _Atomic unsigned running; /* workers whose loops run */
    uv_async_t on_finished;   /* a worker's thread has ended its loop */
};

/* What the control loop waits for. */
struct weir_control {
    uv_signal_t on_hangup, on_terminate, on_interrupt;
    uv_timer_t clock, grace, settle;
    uv_fs_event_t watch;
};

/* The state file, at the last look. */
struct weir_file {
    struct weir_table *spare; /* see weir_table_open_spare; NULL: no state file */
    enum weir_table_file state;
    uint64_t logged_ns; /* when it was logged last; 0: never */
    uint32_t stopped;   /* the neighbour on it that is, as logged; 0: none */
};

/* The run that comes after this one. */
struct weir_next_run {
    bool wanted;              /* it stops to run once more, on the state file's new self ... */
    uint64_t began_ns;        /* ... as the reload wanted that began then ... */
    struct weir_rules *rules; /* ... with these */
    struct weir_certificates *certificates;
};

/* What is to be done on the background thread. */
struct weir_work {
    unsigned wanted;             /* WEIR_WANT_..., not begun */
    uint64_t waits_ns, again_ns; /* since when a reload was seen to wait, 0: none does; and when
                                    that is logged next */
    void (*begin)(struct weir_daemon *daemon, unsigned wanted);
};

/* The start and the reloads so far. */
struct weir_loads {
    uint64_t started_wall_ns, last_wall_ns;
    uint64_t count, failed, took_ns; /* the last one */
    char *problems;                  /* why the last one failed; NULL: it did not */
};

/* The wall clock against the time of the table, or of the shared store. */
struct weir_drift {
    int64_t offset_ns;
    bool logged; /* that it is more than a second */
};

struct weir_daemon {
    const struct weir_service *services[WEIR_SERVICES_MAX + 1]; /* NULL behind the last
                                                                   (services/services.h) */
    size_t services_open;
    void *own[WEIR_OWN_COUNT];      /* of services: see own.h */
    struct weir_http_route *routes; /* of all of them */
    struct weir_fronts fronts;
    struct weir_place places[WEIR_FRONTS_MAX]; /* of each */

    struct weir_server_options options;
    struct weir_log log;
    struct weir_rules *rules;     /* the newest; workers follow within a turn */
    struct weir_retired *retired; /* the ones before, while workers have them; NULL: none */
    struct weir_table *table;
    struct weir_file file;
    struct weir_certificates *certificates; /* the newest */
    struct weir_certificate_watch certificate_watch;

    struct weir_worker *admin;
    struct weir_worker **workers;
    unsigned worker_count;
    struct weir_threads threads;
    struct weir_control control;
    bool stopping;

    struct weir_background *background;
    struct weir_work work;
    struct weir_reload reload;
    struct weir_watch watching;
    struct weir_loads loads;
    struct weir_next_run next;
    struct weir_supervisor supervisor;
    struct weir_drift drift;
};

/* Leaves those listening sockets to the next run whose addresses stay. */
void weir_daemon_keep_sockets(struct weir_daemon *daemon, const struct weir_rules *next);

#endif
