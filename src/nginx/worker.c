/* SPDX-License-Identifier: Apache-2.0 */
/* see worker.h */
#include "nginx/worker.h"

#include "nginx/metrics.h"
#include "nginx/request.h"

#define TICK_MS 1000
#define TICK_MIN_MS 10
#define TELL_EVERY_S 60

/* A worker serves nobody while it waits, so it waits shortly for a neighbour that is stopped. It
 * waits longer for one that opens the file, which reads all of it, but only before it serves. */
#define PATIENCE_NS UINT64_C(5000000)
#define START_PATIENCE_NS UINT64_C(2000000000)

/* --- The state -------------------------------------------------------------------------------- */

void weir_ngx_tell(struct weir_ngx_main *conf, ngx_log_t *log, const char *what,
                   const char *instead)
{
    time_t now = ngx_time();
    if (conf->told != 0 && now - conf->told < TELL_EVERY_S)
        return;
    conf->told = now;
    if (!instead)
        instead = conf->on_error == WEIR_NGX_OPEN
                      ? "requests pass without a limit (weir_on_error)"
                      : "requests are answered with 503 (weir_on_error)";
    ngx_log_error(NGX_LOG_CRIT, log, 0, "weir: %s; %s", what, instead);
}

ngx_int_t weir_ngx_read_number(ngx_http_request_t *r, struct weir_ngx_unread *unread,
                               const char *directive, const char *what, const ngx_str_t *text,
                               uint64_t *number)
{
    off_t read = ngx_atoof(text->data, text->len);
    if (read != NGX_ERROR) {
        *number = (uint64_t)read;
        return NGX_OK;
    }
    time_t now = ngx_time();
    unread->since++;
    if (unread->told == 0 || now - unread->told >= TELL_EVERY_S) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "%s: \"%V\" is not a whole number; %s (%ui such values since the last line)",
                      directive, text, what, unread->since);
        unread->told = now;
        unread->since = 0;
    }
    return NGX_DECLINED;
}

/* What the rules read. */
static void find_attributes(struct weir_ngx_worker *worker)
{
    weir_reads_init(&worker->reads);
    weir_reads_find(&worker->reads, worker->weir, NULL, NULL);
    for (unsigned i = 0; i < worker->reads.header_count; i++) {
        const struct weir_reads_header *header = &worker->reads.headers[i];
        worker->hashes[i] = ngx_hash_key((u_char *)(uintptr_t)header->name, header->size);
    }
}

/* The log says when all can be used again. */
static void tell_good(struct weir_ngx_main *conf, ngx_log_t *log)
{
    if (conf->told != 0)
        ngx_log_error(NGX_LOG_NOTICE, log, 0, "weir: the state can be used again");
    conf->told = 0;
}

/* With weir_on_error open the limits decide without a map that cannot be read. */
static void check_standing(struct weir_ngx_worker *worker, ngx_log_t *log)
{
    struct weir_reason reason;
    worker->standing_fails = weir_standing_check(worker->weir, &reason) < 0;
    if (worker->standing_fails)
        weir_ngx_tell(worker->conf, log, reason.text,
                      worker->conf->rules_decide
                          ? "limits hold, and on_store_error of standing decides who passes"
                          : "limits hold, but callers that are banned may pass (weir_on_error)");
}

/* Without weir_on_error libweir decides without a state, and tries again by itself. */
static void check_state(struct weir_ngx_worker *worker, ngx_log_t *log)
{
    struct weir_reason reason;
    worker->state_fails = weir_state_check(worker->weir, &reason) < 0;
    if (worker->state_fails)
        weir_ngx_tell(worker->conf, log, reason.text, "on_store_error of the limits decides");
}

/* Limits hold without a server that keeps penalties. */
static void check_penalties(struct weir_ngx_worker *worker, ngx_log_t *log)
{
    struct weir_reason reason;
    uint64_t lost = worker->strikes_lost; /* stays so where the call sets none: in a child */
    worker->penalties_fail = weir_penalties_check(worker->weir, &lost, &reason) < 0;
    if (worker->penalties_fail)
        weir_ngx_tell(worker->conf, log, reason.text,
                      "limits and standing hold, and no penalty moves anybody");
    weir_ngx_count_strikes(worker->conf, lost - worker->strikes_lost);
    worker->strikes_lost = lost;
}

static bool fails(const struct weir_ngx_worker *worker)
{
    return worker->state_fails || worker->standing_fails || worker->penalties_fail;
}

static void check(struct weir_ngx_worker *worker, ngx_log_t *log)
{
    bool failed = fails(worker);
    check_state(worker, log);
    check_standing(worker, log);
    check_penalties(worker, log);
    if (failed && !fails(worker))
        tell_good(worker->conf, log);
}

static void open_state(struct weir_ngx_worker *worker, ngx_log_t *log, uint64_t patience_ns)
{
    struct weir_ngx_main *conf = worker->conf;
    struct weir_options options = weir_ngx_options(conf);
    options.state_patience_ns = PATIENCE_NS;
    options.state_open_patience_ns = patience_ns;
    struct weir_reason reason;
    if (weir_open(&worker->weir, (const char *)conf->rules.data, &options, &reason) < 0) {
        worker->weir = NULL;
        weir_ngx_tell(conf, log, reason.text, NULL);
        return;
    }
    worker->strikes_lost = 0;
    (void)weir_front(worker->weir, "nginx"); /* a name that it knows, and no child */
    find_attributes(worker);
    (void)!weir_lane_keep(&worker->lane, worker->weir); /* else checks take an atomic instruction */
    tell_good(conf, log);
    check(worker, log);
}

/* Once in TICK_MS, however often the timer fires. */
static void tend(struct weir_ngx_worker *worker, ngx_log_t *log)
{
    if (ngx_current_msec - worker->tended < TICK_MS)
        return;
    worker->tended = ngx_current_msec;
    if (worker->weir) {
        (void)weir_tend(worker->weir);
        check(worker, log);
    } else {
        open_state(worker, log, PATIENCE_NS);
    }
    if (!worker->weir || worker->state_fails)
        weir_ngx_count_unable(worker->conf, WEIR_NGX_UNABLE_STATE);
    else if (worker->standing_fails)
        weir_ngx_count_unable(worker->conf, WEIR_NGX_UNABLE_STANDING);
    else if (worker->penalties_fail)
        weir_ngx_count_unable(worker->conf, WEIR_NGX_UNABLE_PENALTIES);
}

static void tick(ngx_event_t *event)
{
    struct weir_ngx_worker *worker = event->data;
    tend(worker, event->log);
    if (worker->weir)
        weir_ngx_renew_leases(worker);
    ngx_add_timer(event, worker->tick);
}

void weir_ngx_worker_renews(struct weir_ngx_worker *worker, ngx_msec_t life_ms)
{
    ngx_msec_t wanted = ngx_max(life_ms / 3, TICK_MIN_MS);
    if (wanted >= worker->tick)
        return;
    worker->tick = wanted;
    if (worker->timer.timer_set)
        ngx_del_timer(&worker->timer);
    ngx_add_timer(&worker->timer, wanted);
}

ngx_int_t weir_ngx_worker_start(ngx_cycle_t *cycle, struct weir_ngx_main *conf)
{
    struct weir_ngx_worker *worker = ngx_pcalloc(cycle->pool, sizeof *worker);
    if (!worker) { /* requests find no worker, and are answered by weir_on_error */
        weir_ngx_tell(conf, cycle->log, weir_error_text(WEIR_ERR_MEMORY), NULL);
        return NGX_OK;
    }
    worker->conf = conf;
    ngx_queue_init(&worker->leases);
    worker->timer.handler = tick;
    worker->timer.data = worker;
    worker->timer.log = cycle->log;
    worker->timer.cancelable = 1;
    worker->tick = TICK_MS;
    conf->worker = worker;
    open_state(worker, cycle->log, START_PATIENCE_NS);
    worker->tended = ngx_current_msec;
    ngx_add_timer(&worker->timer, TICK_MS);
    return NGX_OK;
}

void weir_ngx_worker_stop(struct weir_ngx_main *conf)
{
    struct weir_ngx_worker *worker = conf->worker;
    if (!worker)
        return;
    weir_lane_give(worker->lane);
    weir_close(worker->weir);
    conf->worker = NULL;
}
