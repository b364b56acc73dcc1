/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's state, on the main thread: see server.h for what it does.
 *
 *   main thread     control loop = the admin worker's loop: signals, watch, clock, admin listener
 *   worker 0..n-1   one thread each
 *
 * Threads: the main thread's own, but for `running` and what worker.h says of workers.
 */
#ifndef WEIR_SERVER_DAEMON_DAEMON_H
#define WEIR_SERVER_DAEMON_DAEMON_H

#include "server/daemon/background.h"
#include "server/daemon/pressure.h"
#include "server/daemon/server.h"
#include "server/daemon/state_guard.h"
#include "server/daemon/worker.h"
#include "server/envoy/shared.h"
#include "server/resp/resp.h"
#include "server/webhook/warnings.h"

/* HTTP, Redis, gRPC, admin, Prometheus. */
#define WEIR_LISTENINGS 5

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
    struct weir_rules *rules;
    struct weir_certificates *certificates;
    struct weir_certificate_watch watch;
    struct weir_envoy_reading envoy;
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

struct weir_daemon {
    struct weir_server_options options;
    struct weir_log log;
    struct weir_rules *rules;     /* the newest; workers follow within a turn */
    struct weir_retired *retired; /* the ones before, while workers have them; NULL: none */
    struct weir_table *table;
    struct weir_table *spare;               /* see weir_table_open_spare; NULL: no state file */
    struct weir_shared_store *shared;       /* NULL: states live in the table alone */
    struct weir_directories *directories;   /* NULL: no caller is elsewhere */
    struct weir_certificates *certificates; /* the newest */
    struct weir_certificate_watch certificate_watch;
    struct weir_endpoint http_endpoint, redis_endpoint, grpc_endpoint, admin_endpoint;
    struct weir_connection_pool pools[WEIR_LISTENINGS];
    struct weir_resp_shared redis;
    struct weir_envoy_shared *envoy; /* NULL: no such service is configured */
    struct weir_envoy_statsd *statsd;
    struct weir_endpoint prometheus_endpoint;
    uv_timer_t envoy_watch;
    struct weir_worker admin;
    struct weir_reservations *reservations;
    struct weir_guesses *guesses;
    struct weir_pressure *pressure;
    struct weir_table_account *accounts; /* where it reads those of the table */
    struct weir_webhook *webhook;
    struct weir_warnings_sink warnings;
    struct weir_worker *workers;
    uv_thread_t *threads;
    unsigned worker_count, started;

    uv_signal_t on_hangup, on_terminate, on_interrupt;
    uv_async_t on_finished; /* a worker's thread has ended its loop */
    uv_timer_t clock, grace, settle;
    uv_fs_event_t watch;
    _Atomic unsigned running; /* workers whose loops run */
    bool stopping;

    enum weir_table_file state;    /* of the state file, at the last look */
    uint64_t state_told_ns;        /* when it was logged last; 0: never */
    bool again;                    /* it stops to run once more, on the state file's new self ... */
    uint64_t again_ns;             /* ... as the reload wanted that began then */
    struct weir_rules *rules_next; /* ... with these */
    struct weir_certificates *certificates_next;
    struct weir_kept_sockets kept[WEIR_LISTENINGS];

    struct weir_background *background;
    unsigned wanted; /* WEIR_WANT_..., not begun */
    struct weir_reload reload;
    struct weir_watch watching;

    uint64_t started_wall_ns, reloaded_wall_ns;
    uint64_t reloads, failed_reloads, reload_took_ns; /* the last one */
    int64_t clock_offset_ns; /* wall clock - time of the table, or of a store elsewhere */
    bool clock_is_off;       /* by more than a second: it was logged */
    uint32_t stopped;        /* the neighbour on the state file that is, as logged; 0: none */
};

/* Loads the rules file (or none: no limits) and certificates on the background thread, before there
 * is a loop: signals go on to end the process meanwhile. What is wrong goes to stderr. Errors:
 * WEIR_ERR_RULES, WEIR_ERR_MEMORY, WEIR_ERR_IO. */
int weir_daemon_load(struct weir_daemon *daemon) __attribute__((warn_unused_result));

/* Checks what only a daemon cares for: listeners that are open to others say so; files that
 * libraries open by name are regular files. Errors: WEIR_ERR_RULES. */
int weir_daemon_check(const struct weir_daemon *daemon, const struct weir_settings *settings,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

/* Frees rules that no worker has any more: with a million keys that takes milliseconds, for which
 * no request of a worker's is to wait. */
void weir_daemon_forget_rules(struct weir_daemon *daemon);
void weir_daemon_free_retired(struct weir_daemon *daemon); /* of a table that is closed */

/* Makes the limits known to the table. Errors: those of weir_table_intern. */
int weir_daemon_prepare(struct weir_daemon *daemon, struct weir_rules *rules,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

/* Has the background thread do something, at once or when it is free. A reload reads the rules file
 * again and hands the new rules to all workers; a file with errors is logged and changes nothing. A
 * watch reads certificates and Envoy's folder again if they have changed; errors are logged and
 * leave the old ones in use. */
void weir_daemon_want(struct weir_daemon *daemon, unsigned wanted);

/* The parts of that: a reload, a watch, what is logged of a reload that takes long. */
void weir_daemon_reload_start(struct weir_daemon *daemon);
void weir_daemon_watch_start(struct weir_daemon *daemon, unsigned wanted);
void weir_daemon_reload_tick(struct weir_daemon *daemon);

/* Logs how a reload went. */
void weir_daemon_reload_log(struct weir_daemon *daemon, const struct weir_reload *reload);

/* Takes note of what a look at the state file has found: logs it, or ends the process. */
void weir_daemon_state_seen(struct weir_daemon *daemon, enum weir_table_file state);

/* Begins to stop, in order to run once more with these rules, on the file that has the state file's
 * path then. */
void weir_daemon_run_again(struct weir_daemon *daemon, struct weir_reload *reload);

/* Opens the table, unless the last run has left it; and again, for the next run: the file that has
 * the path now, or one written anew from the region that is open, which stays where that fails.
 * Errors: those of weir_table_open, weir_daemon_check_state. */
int weir_daemon_open_table(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_daemon_reopen_table(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Logs the limits for whose keys the table has little room, some of them by name. */
void weir_daemon_log_few_keys(struct weir_daemon *daemon);

/* Whether the limits of these rules find room in the state that the daemon has, or would open.
 * Errors: WEIR_ERR_FULL and others; `reason` names the state. */
int weir_daemon_check_state(const struct weir_daemon *daemon, struct weir_rules *rules,
                            struct weir_reason *reason) __attribute__((warn_unused_result));

/* Leaves those listening sockets to the next run whose addresses stay. */
void weir_daemon_keep_sockets(struct weir_daemon *daemon, const struct weir_rules *next);

/* Removes the paths of Unix sockets. */
void weir_daemon_remove_sockets(const struct weir_daemon *daemon);

/* Stops accepting on all workers, and ends when the last connection is gone, or after
 * WEIR_SHUTDOWN_MS. */
void weir_control_drain(struct weir_daemon *daemon);

/* Give back what the background thread has read and nobody takes over any more. */
void weir_daemon_reload_drop(struct weir_daemon *daemon);
void weir_daemon_watch_drop(struct weir_daemon *daemon);

/* Hands new certificates to all workers; takes over one reference. */
void weir_daemon_set_certificates(struct weir_daemon *daemon,
                                  struct weir_certificates *certificates);

/* Blocks or unblocks (`how` of pthread_sigmask) what the control loop handles. Until there is one:
 * SIGTERM and SIGINT end the process at once, and a wish to reload waits. */
void weir_control_signals(int how);
void weir_control_signals_begin(void);

/* Signals, watch, clock: on the admin worker's loop. Errors: WEIR_ERR_IO. */
int weir_control_open(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Envoy's service, where the rules or the command line name its configuration: opens it and loads
 * that for the first time (what is wrong with it is logged, and every call then fails); starts what
 * looks after it on the admin worker's loop; reads it under new rules, on any thread; takes that
 * over; says that it is going; closes it, when the workers are closed. Errors: WEIR_ERR_MEMORY. */
int weir_daemon_envoy_open(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_daemon_envoy_start(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));
void weir_daemon_envoy_read(const struct weir_daemon *daemon, const struct weir_rules *rules,
                            struct weir_envoy_reading *reading);
void weir_daemon_envoy_take(struct weir_daemon *daemon, struct weir_rules *rules,
                            struct weir_envoy_reading *reading);
void weir_daemon_envoy_stop(struct weir_daemon *daemon);
void weir_daemon_envoy_close(struct weir_daemon *daemon);

/* Whether this node can do its work, while it does not stop: without its store, it can if no limit
 * of `rules` fails closed, and no call of Envoy's service fails; without its identities, if
 * `on_error` does not deny; with a neighbour
 * on its state file that is stopped, it cannot, whatever on_store_error says. On any thread:
 * `rules` are those that the thread holds. */
struct weir_readiness {
    unsigned workers, without_store; /* workers, and those of them that do not reach it */
    unsigned without_identities;     /* likewise, the Redis of callers */
    unsigned stopped;                /* the pid of a neighbour on the state file that is; 0: none */
    bool limits;                     /* it can decide what the rules limit */
    bool envoy;                      /* and what Envoy's service is asked; there may be none */
};
void weir_daemon_readiness(const struct weir_daemon *daemon, const struct weir_rules *rules,
                           struct weir_readiness *readiness);

/* Connections that may be open, over all listeners but the admin's. */
uint64_t weir_daemon_connections_max(const struct weir_daemon *daemon);

/* Keys that find no room in the table (pressure.h): begins to look, on the open table; looks, and
 * logs what is due; whether any came lately, and that in one line, as far as it fits, with the
 * `names` of limits or without; ends.
 * Errors: WEIR_ERR_MEMORY. */
int weir_daemon_pressure_open(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));
void weir_daemon_pressure_tick(struct weir_daemon *daemon, uint64_t now_ns);
bool weir_daemon_is_pressed(const struct weir_daemon *daemon);
void weir_daemon_pressure_text(const struct weir_daemon *daemon, bool names, char *text,
                               size_t room);
void weir_daemon_pressure_close(struct weir_daemon *daemon);

/* What the table says of a limit, over all its rates and plans. */
void weir_daemon_table_stats(const struct weir_daemon *daemon, uint32_t rule,
                             struct weir_table_limit_stats *stats);

/* The address of a listener: command line, else rules file, else default. */
const char *weir_daemon_http(const struct weir_daemon *daemon,
                             const struct weir_settings *settings);
const char *weir_daemon_redis(const struct weir_daemon *daemon,
                              const struct weir_settings *settings);
const char *weir_daemon_grpc(const struct weir_daemon *daemon,
                             const struct weir_settings *settings);
const char *weir_daemon_admin(const struct weir_daemon *daemon,
                              const struct weir_settings *settings);

/* Verdicts of one limit over all workers, and its warnings by threshold. */
struct weir_limit_totals {
    uint64_t allowed, denied, shadow_denied, borrowed;
    uint64_t trials[WEIR_TRIAL_OUTCOMES];
    uint64_t warnings[WEIR_WARN_MAX];
};
void weir_daemon_totals(struct weir_daemon *daemon, const char *name,
                        struct weir_limit_totals *totals);

/* Appends all metrics in Prometheus' text format 0.0.4 to `text`, a buffer of the admin worker's.
 * Returns the buffer to use from now on; NULL (and the buffer is given back): no memory. */
struct weir_buffer *weir_metrics_write(struct weir_daemon *daemon, struct weir_buffer *text);

#endif
