/* SPDX-License-Identifier: Apache-2.0 */
/* The webhook: warnings and moves of penalties leave the process as HTTP requests, from one thread
 * of its own.
 *
 *   worker ──post──▶ ring of WEIR_WEBHOOK_QUEUE_MAX events ──▶ thread: sign, POST, judge
 *                    full: dropped, counted                       └─ again: to the ring's end
 *
 * A worker holds the ring's lock for the copy of one event; the thread holds it for as long, and
 * never while it sends. One attempt at a time, over connections that libcurl keeps; which answers
 * are tried again, and when, is pace.h's.
 *
 * What leaves is signed and verified: only http and https, no redirect is followed, the receiver's
 * certificate is checked (`ca`: by another authority than the system's). URLs may hold credentials:
 * logs name the host alone. libcurl takes a proxy from the environment (https_proxy), as other
 * programs do.
 *
 * Threads: post and the counters from any; the rest on the main thread. Nothing is started before
 * the first settings with a URL. Memory: 1.4 MiB from then on.
 */
#ifndef WEIR_FEATURE_WEBHOOK_SERVER_WEBHOOK_H
#define WEIR_FEATURE_WEBHOOK_SERVER_WEBHOOK_H

#include "feature/webhook/server/message.h"
#include "server/daemon/log.h"

/* Some seconds of a burst in which a thousand keys reach a threshold at once; at the limit new ones
 * are dropped. */
#define WEIR_WEBHOOK_QUEUE_MAX 1024
/* At shutdown: for what is queued, an attempt each, while they succeed. */
#define WEIR_WEBHOOK_GOODBYE_MS 2000

struct weir_webhook;

/* Counters: each value is some moment's. */
struct weir_webhook_stats {
    _Atomic uint64_t delivered, failed, dropped; /* events: given up; never sent */
    _Atomic uint64_t attempts;
    _Atomic uint64_t queued; /* now, without the one being sent */
};

/* Errors: WEIR_ERR_MEMORY. */
int weir_webhook_open(struct weir_webhook **webhook, struct weir_log *log)
    __attribute__((warn_unused_result));

/* Takes over settings (copies), for attempts from the next one on; without a URL what is queued is
 * dropped. Errors: WEIR_ERR_MEMORY, WEIR_ERR_IO (no thread); the old ones stay. */
int weir_webhook_configure(struct weir_webhook *webhook,
                           const struct weir_webhook_settings *settings)
    __attribute__((warn_unused_result));

/* Queues an event; does nothing where there is no URL. */
void weir_webhook_post(struct weir_webhook *webhook, const struct weir_warning *warning);
void weir_webhook_post_move(struct weir_webhook *webhook, const struct weir_penalty_move *move);

const struct weir_webhook_stats *weir_webhook_stats(const struct weir_webhook *webhook);

/* Sends what it can within WEIR_WEBHOOK_GOODBYE_MS, logs how many are lost, frees all. Nobody posts
 * any more. NULL is allowed. */
void weir_webhook_close(struct weir_webhook *webhook);

#endif
