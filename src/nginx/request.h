/* SPDX-License-Identifier: Apache-2.0 */
/* What weir knows of one request of nginx, from its decision to its end.
 *
 * It is kept in the request's pool and found by the pool's clean-up, since nginx forgets a module's
 * context when it redirects internally; so no redirect charges twice. At the end of the request its
 * charge is settled (LOG phase), and its leases end; if it was still waiting, what it had charged
 * is given back.
 *
 * Memory: 250 bytes of the request's pool; 1.1 KiB more with a lease, 4 KiB with a reservation.
 */
#ifndef WEIR_NGINX_REQUEST_H
#define WEIR_NGINX_REQUEST_H

#include "nginx/worker.h"

enum weir_ngx_verdict {
    WEIR_NGX_ALLOWED,
    WEIR_NGX_DELAYED,
    WEIR_NGX_DENIED,
    WEIR_NGX_ERROR, /* weir could not decide: weir_on_error did */
    WEIR_NGX_VERDICTS,
};

/* What it waits for. */
enum weir_ngx_wait { WEIR_NGX_RUNS, WEIR_NGX_QUEUES, WEIR_NGX_HELD };

struct weir_ngx_request {
    ngx_pool_cleanup_t cleanup; /* in the request's pool; its data is this struct */
    struct weir_ngx_worker *worker;
    struct weir_ngx_location *location; /* where it was decided */
    uint8_t verdict;                    /* enum weir_ngx_verdict */
    uint8_t wait;                       /* enum weir_ngx_wait */
    bool dry_run, decided;
    uint16_t status; /* of a denial */
    ngx_str_t body, type;
    ngx_str_t denied_by, standing, class_name;
    const char *action; /* static; NULL: none */
    uint64_t remaining, retry_after_ns, delay_ns, cost;
    struct weir_reservation_token *reservation; /* NULL: none, or settled */
    struct weir_lease_token *lease;             /* NULL: none, or ended */
    ngx_queue_t leases;                         /* with a lease: in worker->leases */
    ngx_msec_t life_ms, renewed;                /* of the lease */
};

/* A new one, once for each request. NULL: without memory. */
struct weir_ngx_request *weir_ngx_request_add(ngx_http_request_t *r,
                                              struct weir_ngx_worker *worker);

/* That of the main request; NULL: it has not been decided. */
struct weir_ngx_request *weir_ngx_request_of(ngx_http_request_t *r);

/* Keeps what the answer says and the end of the request needs. Errors: NGX_ERROR (memory). */
ngx_int_t weir_ngx_request_keep(ngx_http_request_t *r, struct weir_ngx_request *request,
                                const struct weir_answer_summary *answer);

/* The LOG phase. */
ngx_int_t weir_ngx_request_log(ngx_http_request_t *r);

/* Renews the leases that are past a third of their life. */
void weir_ngx_renew_leases(struct weir_ngx_worker *worker);

#endif
