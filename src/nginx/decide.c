/* SPDX-License-Identifier: Apache-2.0 */
/* see decide.h */
#include "nginx/decide.h"

#include "nginx/attributes.h"
#include "nginx/metrics.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "proxy/lease.h"

/* --- Waiting ---------------------------------------------------------------------------------- */

/* The timer has fired, or the socket can be written to meanwhile. */
static void go_on(ngx_http_request_t *r)
{
    ngx_event_t *write = r->connection->write;
    if (write->delayed) {
        if (ngx_handle_write_event(write, 0) != NGX_OK)
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }
    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }
    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);
}

/* Notices a client that leaves, also one whose leaving has been read already. */
static ngx_int_t watch(ngx_event_t *read)
{
    if (!read->ready)
        return ngx_handle_read_event(read, 0);
    ngx_post_event(read, &ngx_posted_events);
    return NGX_OK;
}

static ngx_int_t wait_for(ngx_http_request_t *r, uint64_t delay_ns)
{
    ngx_connection_t *connection = r->connection;
    uint64_t delay_ms = delay_ns / 1000000 + (delay_ns % 1000000 != 0);
    if (watch(connection->read) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = go_on;
    connection->write->delayed = 1;
    ngx_add_timer(connection->write, (ngx_msec_t)delay_ms);
    return NGX_AGAIN;
}

/* A request comes back to its handler: after its wait, or after a redirect. */
static ngx_int_t resume(ngx_http_request_t *r, struct weir_ngx_request *request)
{
    uint8_t wait = request->wait;
    request->wait = WEIR_NGX_RUNS;
    if (wait != WEIR_NGX_HELD)
        return NGX_DECLINED;
    request->worker->held--;
    return weir_ngx_deny(r, request);
}

/* --- Deciding --------------------------------------------------------------------------------- */

/* weir cannot decide: the state is not usable. */
static ngx_int_t give_up(struct weir_ngx_request *request, struct weir_ngx_main *conf)
{
    if (request)
        request->verdict = WEIR_NGX_ERROR;
    weir_ngx_count(conf, WEIR_NGX_ERROR, NULL);
    return conf->on_error == WEIR_NGX_OPEN ? NGX_DECLINED : NGX_HTTP_SERVICE_UNAVAILABLE;
}

/* What the request costs: 1 where the configuration says nothing. *err: it says no number, for
 * which the client may be to blame. */
static ngx_int_t read_cost(ngx_http_request_t *r, struct weir_ngx_worker *worker,
                           const struct weir_ngx_location *location, uint64_t *cost, int *err)
{
    ngx_str_t text;
    *cost = 1;
    if (!location->cost)
        return NGX_OK;
    if (ngx_http_complex_value(r, location->cost, &text) != NGX_OK)
        return NGX_ERROR;
    if (text.len == 0)
        return NGX_OK;
    if (weir_ngx_read_number(r, &worker->costs, "weir_cost", "the request is answered with 400",
                             &text, cost) != NGX_OK)
        *err = WEIR_ERR_SYNTAX;
    return NGX_OK;
}

static ngx_int_t ask(ngx_http_request_t *r, struct weir_ngx_request *request,
                     struct weir_ngx_location *location, int *err)
{
    struct weir_ngx_worker *worker = request->worker;
    bool settles = worker->reads.refunds || location->settle;
    struct weir_call call = {
        .client = weir_ngx_client(r),
        .untrusted = !location->trusted,
        .reserve_life_ns = WEIR_SETTLE_LIFE_NS,
        .fields = worker->fields,
        .body = worker->body,
        .limits = worker->limits,
        .reservation = &worker->reservation,
    };
    if (weir_ngx_attributes(r, worker, location, &call) != NGX_OK ||
        read_cost(r, worker, location, &call.cost, err) != NGX_OK)
        return NGX_ERROR;
    if (*err < 0)
        return NGX_OK;
    request->cost = call.cost;
    if (call.cost > 0)
        call.reserve = settles ? WEIR_RESERVE_ALWAYS : WEIR_RESERVE_DELAYED;
    *err = weir_check_full(worker->weir, &call, &worker->answer);
    return NGX_OK;
}

static ngx_int_t deny(ngx_http_request_t *r, struct weir_ngx_request *request)
{
    struct weir_ngx_worker *worker = request->worker;
    ngx_log_error(request->location->log_level, r->connection->log, 0, "weir: denied by \"%V\"%s",
                  &request->denied_by, request->dry_run ? ", dry run" : "");
    if (request->dry_run)
        return NGX_DECLINED;
    if (request->delay_ns == 0 || worker->held >= WEIR_NGX_HELD_MAX)
        return weir_ngx_deny(r, request);
    worker->held++;
    request->wait = WEIR_NGX_HELD;
    return wait_for(r, request->delay_ns);
}

static ngx_int_t answer(ngx_http_request_t *r, struct weir_ngx_request *request)
{
    struct weir_ngx_worker *worker = request->worker;
    const struct weir_answer_summary *told = &worker->answer;
    request->verdict = !told->allowed        ? WEIR_NGX_DENIED
                       : told->delay_ns != 0 ? WEIR_NGX_DELAYED
                                             : WEIR_NGX_ALLOWED;
    weir_ngx_count(worker->conf, request->verdict, told);
    if (told->store_failed && !worker->state_fails) /* else the log has said it */
        weir_ngx_tell(worker->conf, r->connection->log,
                      "a process that shares the state is stopped, and has a part of it locked",
                      "on_store_error of the limits decides");
    if (weir_ngx_request_keep(r, request, told) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (!request->dry_run && weir_ngx_add_fields(r, worker->fields, told->fields_size) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (request->verdict == WEIR_NGX_DENIED)
        return deny(r, request);
    if (request->verdict == WEIR_NGX_ALLOWED || request->dry_run)
        return NGX_DECLINED;
    request->wait = WEIR_NGX_QUEUES;
    return wait_for(r, request->delay_ns);
}

/* A path, a host, a cost that the rules cannot read, or too many limits: the client chooses these,
 * so such a request never passes, whatever weir_on_error says. */
static bool is_of_request(int err)
{
    return weir_error_fault(err) == WEIR_FAULT_REQUEST;
}

static ngx_int_t decide(ngx_http_request_t *r, struct weir_ngx_location *location)
{
    struct weir_ngx_main *conf = weir_ngx_main_of(r);
    struct weir_ngx_worker *worker = conf->worker;
    int err = 0;
    if (!worker)
        return give_up(NULL, conf);
    struct weir_ngx_request *request = weir_ngx_request_add(r, worker);
    if (!request)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    request->location = location;
    request->dry_run = location->dry_run;
    if (!worker->weir)
        return give_up(request, conf);
    if (ask(r, request, location, &err) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (err == 0)
        return answer(r, request);
    if (is_of_request(err)) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0, "weir: refused: %s",
                      weir_error_text(err));
        request->verdict = WEIR_NGX_ERROR;
        weir_ngx_count(conf, WEIR_NGX_ERROR, NULL);
        return NGX_HTTP_BAD_REQUEST;
    }
    weir_ngx_tell(conf, r->connection->log, weir_error_text(err), NULL);
    return give_up(request, conf);
}

static ngx_int_t handle(ngx_http_request_t *r, enum weir_ngx_phase phase)
{
    struct weir_ngx_location *location = ngx_http_get_module_loc_conf(r, ngx_http_weir_module);
    if (r != r->main || !location->on || location->phase != phase)
        return NGX_DECLINED;
    struct weir_ngx_request *request = weir_ngx_request_of(r);
    return request ? resume(r, request) : decide(r, location);
}

ngx_int_t weir_ngx_preaccess(ngx_http_request_t *r)
{
    return handle(r, WEIR_NGX_PREACCESS);
}

ngx_int_t weir_ngx_precontent(ngx_http_request_t *r)
{
    return handle(r, WEIR_NGX_PRECONTENT);
}
