/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of all workers, in memory that they share, and the page that shows them (`weir_status`).
 *
 * A limit takes the first place that has its name or none, so that counts stay when the rules
 * change; a place is never given back while nginx runs. Limits beyond the last place share it.
 *
 * Memory: 250 KiB. Threads: a worker counts requests in a block of its own, all else by atomic
 * additions.
 */
#ifndef WEIR_NGINX_METRICS_H
#define WEIR_NGINX_METRICS_H

#include "nginx/conf.h"

#include <weir/embed.h>

/* Adds the memory to the configuration, once. */
ngx_int_t weir_ngx_metrics_add(ngx_conf_t *cf, struct weir_ngx_main *conf);

/* One decision: `verdict` is one of enum weir_ngx_verdict; `answer` NULL: there was none. */
void weir_ngx_count(const struct weir_ngx_main *conf, unsigned verdict,
                    const struct weir_answer_summary *answer);

/* A second of a worker that cannot use its state, or else the map of standing, or whose penalties
 * have no server that keeps them. */
enum weir_ngx_unable {
    WEIR_NGX_UNABLE_STATE,
    WEIR_NGX_UNABLE_STANDING,
    WEIR_NGX_UNABLE_PENALTIES,
    WEIR_NGX_UNABLE
};
void weir_ngx_count_unable(const struct weir_ngx_main *conf, enum weir_ngx_unable what);

/* Strikes that found no server. */
void weir_ngx_count_strikes(const struct weir_ngx_main *conf, uint64_t lost);

/* Shows how many mistakes of the configuration were taken, from now on. For the master. */
void weir_ngx_metrics_note(const struct weir_ngx_main *conf);

/* A delayed request left, and what it had charged was given back. */
void weir_ngx_count_cancelled(const struct weir_ngx_main *conf);

/* The content handler of a location with `weir_status`. */
ngx_int_t weir_ngx_status(ngx_http_request_t *r);

#endif
