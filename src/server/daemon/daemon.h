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

#include "feature/adaptive/server/controllers.h"
#include "feature/dashboard/server/dashboard.h"
#include "feature/envoy/server/quota/service.h"
#include "feature/envoy/server/shared.h"
#include "feature/kernel/server/service.h"
#include "feature/penalties/server/penalties.h"
#include "feature/penalties/server/ring.h"
#include "feature/standing/server/service.h"
#include "feature/use/server/use.h"
#include "feature/webhook/server/warnings.h"
#include "server/daemon/background.h"
#include "server/daemon/server.h"
#include "server/daemon/state/state_guard.h"
#include "server/daemon/supervisor.h"
#include "server/daemon/worker.h"
#include "server/net/certificates.h"
#include "server/pressure/pressure.h"
#include "server/resp/resp.h"

#define WEIR_SERVICES_MAX 32

struct weir_http_route;
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
    struct weir_envoy_reading envoy;
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

struct weir_daemon {
    const struct weir_service *const *services; /* NULL behind the last (services/services.h) */
    size_t services_open;
    struct weir_http_route *routes; /* of all of them */
    struct weir_server_options options;
    struct weir_log log;
    struct weir_rules *rules;     /* the newest; workers follow within a turn */
    struct weir_retired *retired; /* the ones before, while workers have them; NULL: none */
    struct weir_table *table;
    struct weir_table *spare;               /* see weir_table_open_spare; NULL: no state file */
    struct weir_sticky_peers *sticky;       /* NULL: no fleet without a shared store */
    struct weir_shared_store *shared;       /* NULL: states live in the table alone */
    struct weir_lenders *lenders;           /* NULL: no region lends */
    struct weir_directories *directories;   /* NULL: no callers are in Redis */
    struct weir_certificates *certificates; /* the newest */
    struct weir_certificate_watch certificate_watch;
    struct weir_fronts fronts;
    struct weir_place places[WEIR_FRONTS_MAX]; /* of each */
    struct weir_resp_shared redis;
    struct weir_envoy_shared *envoy; /* NULL: no such service is configured */
    struct weir_envoy_statsd *statsd;
    struct weir_quota_service *quota;
    uv_timer_t envoy_watch;
    struct weir_worker *admin;
    struct weir_reservations *reservations;
    struct weir_guesses *guesses;
    struct weir_overlooked overlooked;
    struct weir_peers *peers;
    struct weir_controllers *controllers;
    struct weir_pressure *pressure;
    struct weir_table_account *accounts; /* where it reads those of the table */
    struct weir_webhook *webhook;
    struct weir_use_service *use;
    struct weir_dashboard *dashboard;
    struct weir_standing_service *standing; /* NULL: the rules at start had no `standing` */
    struct weir_kernel_service *kernel;     /* NULL: there is no standing */
    struct weir_penalties *penalties;       /* NULL: standing has no history */
    struct weir_penalties_ring ring;        /* of other processes; .penalties NULL: none */
    struct weir_warnings_sink warnings;
    struct weir_worker **workers;
    uv_thread_t *threads;
    unsigned worker_count, started;

    uv_signal_t on_hangup, on_terminate, on_interrupt;
    uv_async_t on_finished; /* a worker's thread has ended its loop */
    uv_timer_t clock, grace, settle;
    uv_fs_event_t watch;
    _Atomic unsigned running; /* workers whose loops run */
    bool stopping;

    enum weir_table_file state;    /* of the state file, at the last look */
    uint64_t state_logged_ns;      /* when it was logged last; 0: never */
    bool again;                    /* it stops to run once more, on the state file's new self ... */
    uint64_t again_ns;             /* ... as the reload wanted that began then */
    struct weir_rules *rules_next; /* ... with these */
    struct weir_certificates *certificates_next;
    struct weir_supervisor supervisor;

    struct weir_background *background;
    unsigned wanted; /* WEIR_WANT_..., not begun */
    void (*begin_work)(struct weir_daemon *daemon, unsigned wanted);
    struct weir_reload reload;
    struct weir_watch watching;

    uint64_t started_wall_ns, reloaded_wall_ns;
    uint64_t reloads, failed_reloads, reload_took_ns; /* the last one */
    char *reload_problems;   /* why the last reload failed; NULL: it did not */
    int64_t clock_offset_ns; /* wall clock - time of the table, or of the shared store */
    bool clock_is_off;       /* by more than a second: it was logged */
    uint32_t stopped;        /* the neighbour on the state file that is, as logged; 0: none */
};

/* Leaves those listening sockets to the next run whose addresses stay. */
void weir_daemon_keep_sockets(struct weir_daemon *daemon, const struct weir_rules *next);

#endif
