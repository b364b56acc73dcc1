/* SPDX-License-Identifier: Apache-2.0 */
/* see request.h */
#include "nginx/request.h"

#include "nginx/attributes.h"
#include "nginx/metrics.h"
#include "proxy/lease.h"

static struct weir_ngx_location *location_of(ngx_http_request_t *r)
{
    return ngx_http_get_module_loc_conf(r, ngx_http_weir_module);
}

/* --- Its end ---------------------------------------------------------------------------------- */

static void end_lease(struct weir_ngx_request *request)
{
    if (!request->lease)
        return;
    ngx_queue_remove(&request->leases);
    if (request->worker->weir)
        (void)weir_release(request->worker->weir, request->lease); /* else it ends with its life */
    request->lease = NULL;
}

/* The pool of the request goes: whatever way it took. */
static void clean_up(void *data)
{
    struct weir_ngx_request *request = data;
    struct weir_ngx_worker *worker = request->worker;
    end_lease(request);
    if (request->wait == WEIR_NGX_HELD)
        worker->held--;
    if (request->wait == WEIR_NGX_QUEUES && request->reservation && worker->weir &&
        weir_cancel(worker->weir, request->reservation) == 0)
        weir_ngx_count_cancelled(worker->conf);
    request->reservation = NULL;
}

/* The status that the log has. */
static ngx_uint_t status_of(const ngx_http_request_t *r)
{
    return r->err_status != 0 ? r->err_status : r->headers_out.status;
}

/* The true cost, by `weir_settle`; false: it says none. */
static bool read_cost(ngx_http_request_t *r, struct weir_ngx_worker *worker,
                      const struct weir_ngx_location *location, uint64_t *cost)
{
    ngx_str_t text;
    if (!location->settle || ngx_http_complex_value(r, location->settle, &text) != NGX_OK ||
        text.len == 0)
        return false;
    return weir_ngx_read_number(r, &worker->settlements, "weir_settle", "the charge stays", &text,
                                cost) == NGX_OK;
}

/* A strike of penalties with this status in `outcomes`: of a request that weir let pass. */
static void tell_outcome(ngx_http_request_t *r, const struct weir_ngx_request *request,
                         ngx_uint_t status)
{
    struct weir_ngx_worker *worker = request->worker;
    struct weir_call call = {
        .client = weir_ngx_client(r), .untrusted = !request->location->trusted, .cost = 1};
    if (status < 100 || status > 599 || !request->decided || request->wait != WEIR_NGX_RUNS ||
        (request->verdict == WEIR_NGX_DENIED && !request->dry_run) ||
        !weir_reads_strike(&worker->reads, (unsigned)status))
        return;
    if (weir_ngx_attributes(r, worker, request->location, &call) == NGX_OK)
        (void)!weir_outcome(worker->weir, &call, (unsigned)status);
}

ngx_int_t weir_ngx_request_log(ngx_http_request_t *r)
{
    struct weir_ngx_request *request = r == r->main ? weir_ngx_request_of(r) : NULL;
    uint64_t cost;
    if (!request)
        return NGX_OK;
    end_lease(request);
    ngx_uint_t status = status_of(r);
    if (request->worker->weir)
        tell_outcome(r, request, status);
    if (!request->reservation || request->wait != WEIR_NGX_RUNS || !request->worker->weir)
        return NGX_OK;
    int err = 0;
    if (read_cost(r, request->worker, location_of(r), &cost))
        err = weir_settle(request->worker->weir, request->reservation, cost);
    else if (request->worker->reads.refunds && status >= 100 && status <= 599)
        err = weir_report(request->worker->weir, request->reservation, (unsigned)status);
    if (err < 0)
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0, "weir: cannot settle: %s",
                      weir_error_text(err));
    request->reservation = NULL;
    return NGX_OK;
}

/* --- Keeping it ------------------------------------------------------------------------------- */

struct weir_ngx_request *weir_ngx_request_add(ngx_http_request_t *r, struct weir_ngx_worker *worker)
{
    struct weir_ngx_request *request = ngx_palloc(r->pool, sizeof *request);
    if (!request)
        return NULL;
    *request = (struct weir_ngx_request){.worker = worker};
    request->cleanup = (ngx_pool_cleanup_t){clean_up, request, r->pool->cleanup};
    r->pool->cleanup = &request->cleanup; /* as ngx_pool_cleanup_add, in the same piece of memory */
    ngx_http_set_ctx(r, request, ngx_http_weir_module);
    return request;
}

struct weir_ngx_request *weir_ngx_request_of(ngx_http_request_t *r)
{
    ngx_http_request_t *main = r->main;
    struct weir_ngx_request *request = ngx_http_get_module_ctx(main, ngx_http_weir_module);
    if (request || !(main->internal || main->filter_finalize))
        return request;
    for (ngx_pool_cleanup_t *cleanup = main->pool->cleanup; cleanup; cleanup = cleanup->next)
        if (cleanup->handler == clean_up) {
            request = cleanup->data;
            ngx_http_set_ctx(main, request, ngx_http_weir_module);
            return request;
        }
    return NULL;
}

static ngx_int_t copy_text(ngx_pool_t *pool, ngx_str_t *to, const char *from, size_t size)
{
    to->len = 0;
    to->data = NULL;
    if (size == 0)
        return NGX_OK;
    to->data = ngx_pnalloc(pool, size);
    if (!to->data)
        return NGX_ERROR;
    ngx_memcpy(to->data, from, size);
    to->len = size;
    return NGX_OK;
}

/* Most are empty, as the request's memory is. */
static ngx_int_t copy_name(ngx_pool_t *pool, ngx_str_t *to, const char *from)
{
    return from[0] == '\0' ? NGX_OK : copy_text(pool, to, from, ngx_strlen(from));
}

static ngx_int_t keep_lease(ngx_http_request_t *r, struct weir_ngx_request *request,
                            const struct weir_answer_summary *answer)
{
    const struct weir_lease_token *lease = &answer->lease;
    if (lease->text[0] == '\0')
        return NGX_OK;
    request->lease = ngx_palloc(r->pool, sizeof *lease);
    if (!request->lease) {
        (void)weir_release(request->worker->weir, lease);
        return NGX_ERROR;
    }
    ngx_memcpy(request->lease->text, lease->text, ngx_strlen(lease->text) + 1);
    request->life_ms =
        (ngx_msec_t)(weir_lease_life_ns(request->worker->limits, answer->limit_count) / 1000000);
    request->renewed = ngx_current_msec;
    ngx_queue_insert_tail(&request->worker->leases, &request->leases);
    weir_ngx_worker_renews(request->worker, request->life_ms);
    return NGX_OK;
}

static ngx_int_t keep_reservation(ngx_http_request_t *r, struct weir_ngx_request *request)
{
    if (request->worker->reservation.text[0] == '\0')
        return NGX_OK;
    request->reservation = ngx_palloc(r->pool, sizeof *request->reservation);
    if (!request->reservation)
        return NGX_ERROR;
    *request->reservation = request->worker->reservation;
    return NGX_OK;
}

ngx_int_t weir_ngx_request_keep(ngx_http_request_t *r, struct weir_ngx_request *request,
                                const struct weir_answer_summary *answer)
{
    request->decided = true;
    request->action = answer->action;
    request->remaining = answer->remaining;
    request->retry_after_ns = answer->retry_after_ns;
    request->delay_ns = answer->delay_ns;
    if (keep_lease(r, request, answer) != NGX_OK || keep_reservation(r, request) != NGX_OK)
        return NGX_ERROR;
    if (copy_name(r->pool, &request->standing, answer->standing) != NGX_OK ||
        copy_name(r->pool, &request->class_name, answer->class_name) != NGX_OK)
        return NGX_ERROR;
    if (answer->allowed)
        return NGX_OK;
    request->status = (uint16_t)answer->status;
    if (copy_name(r->pool, &request->denied_by, answer->denied_by) != NGX_OK ||
        copy_name(r->pool, &request->type, answer->type) != NGX_OK)
        return NGX_ERROR;
    return copy_text(r->pool, &request->body, request->worker->body, answer->body_size);
}

/* As ngx_queue_data, whose cast -Wcast-align refuses. */
static struct weir_ngx_request *request_of(ngx_queue_t *lease)
{
    return (void *)((u_char *)lease - offsetof(struct weir_ngx_request, leases));
}

void weir_ngx_renew_leases(struct weir_ngx_worker *worker)
{
    for (ngx_queue_t *at = ngx_queue_head(&worker->leases);
         at != ngx_queue_sentinel(&worker->leases); at = ngx_queue_next(at)) {
        struct weir_ngx_request *request = request_of(at);
        if (ngx_current_msec - request->renewed < request->life_ms / 3)
            continue;
        request->renewed = ngx_current_msec;
        (void)weir_renew(worker->weir, request->lease); /* one that is gone has no more to renew */
    }
}
