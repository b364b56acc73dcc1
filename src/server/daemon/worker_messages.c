/* SPDX-License-Identifier: Apache-2.0 */
/* What other threads tell a worker, and the rules that they have told it; see worker.h */
#include "server/daemon/worker.h"

static void worker_on_left(void *context)
{
    struct weir_worker *worker = context;
    worker->store = NULL;
    uv_stop(&worker->loop);
}

/* Hands back what it holds of the store that nodes share. Nobody asks any more; what is left to do
 * are the ends of leases that nobody waits for. */
static void worker_leave(struct weir_worker *worker)
{
    worker->leaving = true;
    weir_engine_run(worker->engine, weir_worker_time(worker));
    weir_engine_end(worker->engine);
    worker->run_wanted = false;
    uv_timer_stop(&worker->deadline);
    weir_shared_store_leave(worker->shared, worker->index, worker->store, worker_on_left, worker);
}

void weir_worker_stop_if_done(struct weir_worker *worker)
{
    if (!worker->draining || worker->all || worker->leaving)
        return;
    if (worker->shared)
        worker_leave(worker);
    else
        uv_stop(&worker->loop);
}

static void worker_drain(struct weir_worker *worker)
{
    worker->draining = true;
    for (unsigned i = 0; i < worker->listener_count; i++)
        weir_listener_close(&worker->listeners[i]);
    for (struct weir_connection *at = worker->all; at; at = at->next)
        weir_connection_drain(at);
    weir_worker_stop_if_done(worker);
}

void weir_worker_take_rules(struct weir_worker *worker)
{
    struct weir_rules *rules = atomic_exchange(&worker->next_rules, NULL);
    if (weir_engine_set_rules(worker->engine, rules) < 0)
        weir_log_event(worker->log, WEIR_LOG_ERROR, "reload_failed", "reason",
                       weir_error_text(WEIR_ERR_MEMORY));
    weir_rules_unref(rules);
}

void weir_worker_on_wake(uv_async_t *wake)
{
    struct weir_worker *worker = wake->data;
    weir_worker_renew(worker);
    if (worker->directory)
        weir_directories_catch_up(worker->directories, worker->index);
    struct weir_certificates *certificates = atomic_exchange(&worker->next_certificates, NULL);
    if (certificates) {
        weir_certificates_unref(worker->certificates);
        worker->certificates = certificates;
    }
    if (atomic_load(&worker->drain_wanted) && !worker->draining)
        worker_drain(worker);
    if (atomic_load(&worker->stop_wanted))
        uv_stop(&worker->loop);
}

void weir_worker_set_rules(struct weir_worker *worker, struct weir_rules *rules)
{
    struct weir_rules *unseen = atomic_exchange(&worker->next_rules, weir_rules_ref(rules));
    if (unseen)
        weir_rules_unref(unseen);
    uv_async_send(&worker->wake);
}

void weir_worker_set_certificates(struct weir_worker *worker,
                                  struct weir_certificates *certificates)
{
    weir_certificates_unref(
        atomic_exchange(&worker->next_certificates, weir_certificates_ref(certificates)));
    uv_async_send(&worker->wake);
}

void weir_worker_drain(struct weir_worker *worker)
{
    atomic_store(&worker->drain_wanted, true);
    uv_async_send(&worker->wake);
}

void weir_worker_stop(struct weir_worker *worker)
{
    atomic_store(&worker->stop_wanted, true);
    uv_async_send(&worker->wake);
}

/* --- Rules ------------------------------------------------------------------------------------ */

struct weir_rules *weir_worker_rules(const struct weir_worker *worker)
{
    return weir_engine_rules(worker->engine);
}

const struct weir_settings *weir_worker_settings(const struct weir_worker *worker)
{
    return weir_rules_settings(weir_engine_rules(worker->engine));
}

bool weir_worker_trusts(const struct weir_worker *worker, const struct weir_address *peer)
{
    const struct weir_settings *settings = weir_worker_settings(worker);
    if (!peer->family)
        return settings->trust_unix;
    for (uint32_t i = 0; i < settings->trusted_proxy_count; i++)
        if (weir_cidr_contains(&settings->trusted_proxies[i], peer))
            return true;
    return false;
}
