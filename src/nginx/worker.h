/* SPDX-License-Identifier: Apache-2.0 */
/* One worker of nginx: its libweir on the shared state, and a timer.
 *
 * The master only checks the rules; each worker opens the state by itself, as the user that it runs
 * as. A state that cannot be opened ends no worker: `on_store_error` of the limits decides then, or
 * requests are answered as `weir_on_error` says, where it is there; the log has the reason (crit)
 * once a minute, metrics count the seconds, and libweir's thread, or the timer, tries again every
 * second. So it is with a map of standing that cannot be read; with `weir_on_error
 * open` the limits decide without it. The same timer, sooner where a `life` is short, renews the
 * leases of requests that outlive `life`, and ends those of processes that have died.
 *
 * Memory: about 100 KiB, and the state. Threads: the worker's one.
 */
#ifndef WEIR_NGINX_WORKER_H
#define WEIR_NGINX_WORKER_H

#include "nginx/conf.h"

#include <weir/embed.h>

#include "proxy/reads.h"

/* Values of one request: what nginx knows, header fields, and `weir_attribute` of its location. */
#define WEIR_NGX_VALUES_MAX (WEIR_HANDLES_MAX + 64)

/* Denials that a worker holds back at the same time (`tarpit`); more are sent at once. */
#define WEIR_NGX_HELD_MAX 1000

/* Values of a directive that are no numbers. Clients may cause them, so they are logged once a
 * minute. */
struct weir_ngx_unread {
    time_t told;      /* 0: never */
    ngx_uint_t since; /* not logged since then */
};

/* Where metrics count the first, second, ... limit of an answer. */
struct weir_ngx_counted {
    const struct weir_ngx_place *place; /* see metrics.c; NULL: not known */
    ngx_atomic_t *counts;               /* of this process */
};

struct weir_ngx_worker {
    struct weir_ngx_main *conf;
    struct weir *weir;                   /* NULL: the state cannot be used */
    struct weir_lane *lane;              /* of this thread; NULL: the kernel has none to keep */
    struct weir_reads reads;             /* what the rules read */
    ngx_uint_t hashes[WEIR_HANDLES_MAX]; /* of reads.headers, as nginx has them */
    ngx_event_t timer;
    ngx_msec_t tick, tended; /* its period; when the dead were last looked for */
    ngx_queue_t leases;      /* of struct weir_ngx_request */
    ngx_uint_t held;         /* denials */
    bool state_fails;        /* the state was not open when last looked at */
    bool standing_fails;     /* the map of standing could not be read when last looked for */
    bool penalties_fail;     /* no server kept penalties when last looked for */
    uint64_t strikes_lost;   /* that found no server, as counted */
    struct weir_ngx_unread costs, settlements;
    struct weir_ngx_counted counted[WEIR_LIMITS_MAX]; /* of the last answer */
    struct weir_value values[WEIR_NGX_VALUES_MAX];
    struct weir_answer_summary answer; /* of the request at hand */
    struct weir_limit_answer limits[WEIR_LIMITS_MAX];
    struct weir_reservation_token reservation;
    char fields[WEIR_FIELDS_MAX], body[WEIR_BODY_MAX];
};

/* Begins and ends the work of a worker. A failure leaves it without a state. */
ngx_int_t weir_ngx_worker_start(ngx_cycle_t *cycle, struct weir_ngx_main *conf);
void weir_ngx_worker_stop(struct weir_ngx_main *conf);

/* Leases of this life are to be renewed: the timer fires often enough for that. */
void weir_ngx_worker_renews(struct weir_ngx_worker *worker, ngx_msec_t life_ms);

/* Logs that requests are not decided as the rules say, and what holds instead (NULL: what
 * weir_on_error says): at once, and then at most once a minute. */
void weir_ngx_tell(struct weir_ngx_main *conf, ngx_log_t *log, const char *what,
                   const char *instead);

/* Reads a whole number. NGX_DECLINED: it is none; the log says so, and `what` then holds. */
ngx_int_t weir_ngx_read_number(ngx_http_request_t *r, struct weir_ngx_unread *unread,
                               const char *directive, const char *what, const ngx_str_t *text,
                               uint64_t *number);

#endif
