/* SPDX-License-Identifier: Apache-2.0 */
/* see call.h */
#include "feature/envoy/server/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/envoy/rules/plan.h"
#include "feature/envoy/rules/respond.h"
#include "feature/envoy/server/shared.h"
#include "server/adhoc/adhoc_limits.h"
#include "server/daemon/clock.h"
#include "server/net/connection.h"
#include "server/net/pieces.h"
#include "table/table.h"

/* One worker's hold on a configuration: pinned by calls without an atomic operation each. */
struct weir_envoy_hold {
    struct weir_envoy *envoy;
    uint32_t pins; /* calls, and 1 for being the current one */
    struct weir_envoy_counters *by_rule[];
};

/*   buffer   | this | decisions | first parts | the plan's memory |   */
struct weir_envoy_call {
    struct weir_envoy_service *service;
    struct weir_envoy_hold *hold;
    struct weir_buffer *buffer;
    struct weir_decision **decisions;
    long *firsts;           /* number of each decision's first part */
    uint32_t count, filled; /* decisions */
    uint64_t begun_ns, now_ns;
    struct weir_envoy_plan plan;
    struct weir_envoy_response response;
};

/* --- Services --------------------------------------------------------------------------------- */

int weir_envoy_open(struct weir_envoy_service **service, struct weir_envoy_shared *shared,
                    struct weir_worker *worker, bool counts_calls)
{
    struct weir_envoy_service *made = calloc(1, sizeof *made);
    int err = made ? weir_envoy_stats_open(&made->stats) : WEIR_ERR_MEMORY;
    if (err < 0) {
        free(made);
        return err;
    }
    made->shared = shared;
    made->worker = worker;
    made->counts_calls = counts_calls;
    made->version = UINT64_MAX;
    pthread_mutex_lock(&shared->lock);
    made->next = shared->services;
    shared->services = made;
    pthread_mutex_unlock(&shared->lock);
    *service = made;
    return 0;
}

static void hold_unpin(struct weir_envoy_hold *hold)
{
    if (!hold || --hold->pins)
        return;
    weir_envoy_unref(hold->envoy);
    free(hold);
}

void weir_envoy_close(struct weir_envoy_service *service)
{
    if (!service)
        return;
    struct weir_envoy_shared *shared = service->shared;
    pthread_mutex_lock(&shared->lock);
    struct weir_envoy_service **at = &shared->services;
    while (*at != service)
        at = &(*at)->next;
    *at = service->next;
    pthread_mutex_unlock(&shared->lock);
    hold_unpin(service->hold);
    weir_envoy_stats_close(service->stats);
    free(service);
}

void weir_envoy_count_check(struct weir_envoy_service *service)
{
    weir_count(&service->counters.checks, 1);
}

/* Takes up the present configuration where there is a newer one than held. */
static void service_follow(struct weir_envoy_service *service)
{
    uint64_t version = atomic_load_explicit(&service->shared->version, memory_order_acquire);
    if (version == service->version)
        return;
    struct weir_envoy *envoy = weir_envoy_shared_current(service->shared, &version);
    if (!envoy)
        return;
    size_t rules = weir_envoy_limit_count(envoy);
    struct weir_envoy_hold *hold = calloc(1, sizeof *hold + rules * sizeof *hold->by_rule);
    if (!hold) { /* the old one serves until there is memory */
        weir_envoy_unref(envoy);
        return;
    }
    hold->envoy = envoy;
    hold->pins = 1;
    hold_unpin(service->hold);
    service->hold = hold;
    service->version = version;
}

/* --- Beginning -------------------------------------------------------------------------------- */

static struct weir_envoy_call *fail(struct weir_envoy_service *service,
                                    struct weir_envoy_failure *failure,
                                    enum weir_envoy_failure_kind kind, const char *text)
{
    failure->kind = (uint8_t)kind;
    if (text)
        snprintf(failure->reason.text, sizeof failure->reason.text, "%s", text);
    if (kind != WEIR_ENVOY_FAIL_OVERLOADED)
        weir_count(&service->counters.service_errors, 1);
    return NULL;
}

static const struct weir_limit *override_of(void *context, uint32_t requests, uint32_t seconds,
                                            struct weir_reason *reason)
{
    struct weir_envoy_service *service = context;
    struct weir_worker *worker = service->worker;
    uint64_t epoch = weir_adhoc_limits_epoch(service->shared->options.limits);
    if (service->overrides_epoch != epoch) {
        service->overrides_epoch = epoch;
        memset(&service->overrides, 0, sizeof service->overrides);
    }
    struct weir_adhoc_cached *cached =
        weir_adhoc_cache_at(&service->overrides, requests, seconds, 0);
    if (cached->limit && cached->a == requests && cached->b == seconds)
        return cached->limit;
    const struct weir_limit_spec spec = {.algorithm = WEIR_FIXED_WINDOW,
                                         .rate = requests,
                                         .window_ns = seconds * UINT64_C(1000000000)};
    const struct weir_limit *limit;
    int err = weir_adhoc_limits_find(service->shared->options.limits, worker->store, worker->local,
                                     &spec, WEIR_ENVOY_LIMIT_NAME, &limit, reason);
    if (err < 0) {
        if (!reason->text[0])
            snprintf(reason->text, sizeof reason->text, "too many different limits in requests");
        return NULL;
    }
    *cached = (struct weir_adhoc_cached){requests, seconds, 0, limit};
    return limit;
}

/* The most decisions that a request may need: those that decide, and those that give back. */
static uint32_t decisions_max(const struct weir_envoy_request *request, uint32_t limits_max)
{
    uint32_t checks = request->descriptor_count * limits_max, overrides = 0;
    for (uint32_t i = 0; i < request->descriptor_count; i++)
        overrides += request->descriptors[i].has_limit;
    /* A rest of each kind: decided or given back, whose keys. An override may share its key with
     * others and then needs a decision of its own. */
    return overrides ? checks + 4 : checks / WEIR_CHECKS_MAX + 4;
}

#define ALIGNED(size) (((size) + 15) & ~(size_t)15)

/* A call with the memory of its plan; NULL: there is none. */
static struct weir_envoy_call *call_make(struct weir_envoy_service *service,
                                         const struct weir_envoy_request *request, char **memory)
{
    const struct weir_envoy *envoy = service->hold->envoy;
    size_t most = decisions_max(request, weir_envoy_limits_max(envoy));
    size_t head = ALIGNED(sizeof(struct weir_envoy_call));
    size_t lists = ALIGNED(most * (sizeof(struct weir_decision *) + sizeof(long)));
    size_t plan = weir_envoy_plan_size(envoy, request);
    struct weir_buffer *buffer = weir_buffer_take(&service->worker->buffers, head + lists + plan);
    if (!buffer)
        return NULL;
    struct weir_envoy_call *call = (struct weir_envoy_call *)(void *)buffer->data;
    call->service = service;
    call->hold = service->hold;
    call->buffer = buffer;
    call->count = call->filled = 0;
    call->decisions = (struct weir_decision **)(void *)(buffer->data + head);
    call->firsts = (long *)(void *)(call->decisions + most);
    *memory = buffer->data + head + lists;
    return call;
}

static bool call_take_decisions(struct weir_envoy_call *call)
{
    struct weir_worker *worker = call->service->worker;
    uint32_t needed = call->plan.decisions;
    while (call->count < needed) {
        struct weir_decision *decision = weir_worker_take(worker);
        if (!decision)
            break;
        call->decisions[call->count++] = decision;
    }
    if (call->count == needed)
        return true;
    while (call->count)
        weir_worker_give(worker, call->decisions[--call->count]);
    return false;
}

/* The original looks the domain up for each descriptor, and counts each time. */
static void count_unknown_domain(struct weir_envoy_service *service,
                                 const struct weir_envoy_request *request)
{
    struct weir_envoy_counters *counters =
        weir_envoy_stats_find(service->stats, request->domain, false);
    weir_count(&counters->counts[WEIR_ENVOY_COUNT_domain_not_found], request->descriptor_count);
}

static struct weir_envoy_call *call_refuse(struct weir_envoy_call *call, int err,
                                           struct weir_envoy_failure *failure)
{
    struct weir_envoy_service *service = call->service;
    weir_buffer_give(&service->worker->buffers, call->buffer);
    return fail(service, failure,
                err == WEIR_ERR_TOO_LARGE ? WEIR_ENVOY_FAIL_TOO_LARGE : WEIR_ENVOY_FAIL_REQUEST,
                NULL);
}

static struct weir_envoy_call *begin(struct weir_envoy_service *service,
                                     const struct weir_envoy_request *request,
                                     struct weir_envoy_failure *failure)
{
    struct weir_worker *worker = service->worker;
    char *memory;
    failure->reason.text[0] = '\0';
    service_follow(service);
    int err = weir_envoy_request_check(request, &failure->reason);
    if (err < 0)
        return fail(service, failure,
                    err == WEIR_ERR_TOO_LARGE ? WEIR_ENVOY_FAIL_TOO_LARGE : WEIR_ENVOY_FAIL_REQUEST,
                    NULL);
    if (!service->hold)
        return fail(service, failure, WEIR_ENVOY_FAIL_REQUEST,
                    "no rate limit configuration loaded");
    struct weir_envoy_call *call = call_make(service, request, &memory);
    if (!call)
        return fail(service, failure, WEIR_ENVOY_FAIL_OVERLOADED, "out of memory for the request");
    err = weir_envoy_plan_make(&call->plan, call->hold->envoy, request, memory, override_of,
                               service, &failure->reason);
    if (err < 0)
        return call_refuse(call, err, failure);
    if (!call_take_decisions(call)) {
        weir_buffer_give(&worker->buffers, call->buffer);
        return fail(service, failure, WEIR_ENVOY_FAIL_OVERLOADED, "overloaded");
    }
    if (call->plan.unknown_domain)
        count_unknown_domain(service, request);
    call->hold->pins++;
    call->now_ns = 0;
    if (weir_envoy_options(call->hold->envoy)->redis_compat)
        call->now_ns =
            weir_clock_wall_ns(); /* which names keys, as on every node of the original */
    else if (call->plan.refunds)
        call->now_ns = weir_engine_store_time(worker->engine, weir_worker_time(worker));
    weir_worker_hold(worker, call->count);
    return call;
}

static void count_time(struct weir_envoy_service *service, uint64_t begun_ns)
{
    struct weir_envoy_service_counters *counters = &service->counters;
    uint64_t took_ns = weir_clock_boot_ns() - begun_ns;
    size_t bucket = 0;
    while (bucket < WEIR_ENVOY_TIMES && took_ns > weir_envoy_time_bounds_us[bucket] * 1000u)
        bucket++;
    weir_count(&counters->time_ns, took_ns);
    weir_count(&counters->times[bucket], 1);
}

struct weir_envoy_call *weir_envoy_begin(struct weir_envoy_service *service,
                                         const struct weir_envoy_request *request,
                                         struct weir_envoy_failure *failure)
{
    uint64_t begun_ns = service->counts_calls ? weir_clock_boot_ns() : 0;
    struct weir_envoy_call *call = begin(service, request, failure);
    if (service->counts_calls)
        weir_count(&service->counters.requests, 1);
    if (call)
        call->begun_ns = begun_ns;
    else if (service->counts_calls)
        count_time(service, begun_ns);
    return call;
}

uint32_t weir_envoy_next(struct weir_envoy_call *call, struct weir_decision *const **decisions)
{
    struct weir_worker *worker = call->service->worker;
    uint32_t first = call->filled, checks = 0;
    for (; call->filled < call->count && checks < WEIR_PIECE_MAX; call->filled++) {
        struct weir_decision *decision = call->decisions[call->filled];
        call->firsts[call->filled] = weir_envoy_plan_fill(
            &call->plan, decision, weir_table_secret(worker->table), call->now_ns);
        checks += decision->count;
    }
    weir_worker_unhold(worker, call->filled - first);
    *decisions = call->decisions + first;
    return call->filled - first;
}

bool weir_envoy_is_long(const struct weir_envoy_request *request)
{
    return request->descriptor_count > WEIR_PIECE_MAX;
}

void weir_envoy_begun(struct weir_slot *slot, const struct weir_envoy_request *request)
{
    weir_pieces_taken(slot->connection, slot->connection->promised);
    weir_pieces_worked(slot->connection->worker, request->descriptor_count);
    weir_pieces_go_on(slot->connection->worker, slot->connection);
}

void weir_envoy_queued(struct weir_slot *slot)
{
    weir_pieces_worked(slot->connection->worker, WEIR_PIECE_MAX);
    weir_pieces_go_on(slot->connection->worker, slot->connection);
}

/* --- Ending ----------------------------------------------------------------------------------- */

static struct weir_envoy_counters *counters_of(struct weir_envoy_call *call,
                                               const struct weir_envoy_item *item)
{
    struct weir_envoy_stats *stats = call->service->stats;
    if (!item->fixed_stat)
        return weir_envoy_stats_find(stats, item->stat, false);
    struct weir_envoy_counters **known = &call->hold->by_rule[weir_envoy_rule_number(item->rule)];
    if (!*known)
        *known = weir_envoy_stats_find(stats, item->stat, true);
    return *known;
}

static void call_count(struct weir_envoy_call *call)
{
    for (uint32_t i = 0; i < call->plan.request->descriptor_count; i++) {
        const struct weir_envoy_item *item = &call->plan.items[i];
        struct weir_envoy_tally tally;
        if (!item->stat.data)
            continue;
        weir_envoy_tally(&call->plan, i, &tally);
        struct weir_envoy_counters *counters = counters_of(call, item);
        const uint64_t adds[WEIR_ENVOY_COUNT_TOTAL] = {
            [WEIR_ENVOY_COUNT_total_hits] = tally.total_hits,
            [WEIR_ENVOY_COUNT_over_limit] = tally.over_limit,
            [WEIR_ENVOY_COUNT_near_limit] = tally.near_limit,
            [WEIR_ENVOY_COUNT_over_limit_with_local_cache] = tally.over_limit_with_local_cache,
            [WEIR_ENVOY_COUNT_within_limit] = tally.within_limit,
            [WEIR_ENVOY_COUNT_shadow_mode] = tally.shadow_mode,
            [WEIR_ENVOY_COUNT_total_negative_hits] = tally.total_negative_hits,
        };
        for (size_t j = 0; j < WEIR_ENVOY_COUNT_TOTAL; j++)
            if (adds[j])
                weir_count(&counters->counts[j], adds[j]);
    }
}

const struct weir_envoy_response *weir_envoy_answer(struct weir_envoy_call *call,
                                                    struct weir_envoy_failure *failure)
{
    struct weir_envoy_service_counters *counters = &call->service->counters;
    int error = WEIR_ERR_STORE;
    bool shadowed;
    for (uint32_t i = 0; i < call->count; i++) {
        const struct weir_decision *decision = call->decisions[i];
        weir_envoy_plan_take(&call->plan, call->firsts[i], decision);
        if (decision->error != 0)
            error = (int)decision->error;
    }
    if (call->service->counts_calls)
        count_time(call->service, call->begun_ns);
    if (weir_envoy_respond(&call->plan, &call->response, &shadowed) < 0) {
        weir_count(&counters->store_errors, 1);
        failure->kind = WEIR_ENVOY_FAIL_STORE;
        snprintf(failure->reason.text, sizeof failure->reason.text, "%s", weir_error_text(error));
        return NULL;
    }
    call_count(call);
    weir_count(&counters->global_shadow, shadowed);
    return &call->response;
}

void weir_envoy_give(struct weir_envoy_call *call)
{
    struct weir_worker *worker = call->service->worker;
    weir_worker_unhold(worker, call->count - call->filled);
    for (uint32_t i = 0; i < call->count; i++)
        weir_worker_cancel(worker, call->decisions[i]);
    hold_unpin(call->hold);
    weir_buffer_give(&worker->buffers, call->buffer);
}
