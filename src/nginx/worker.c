/* SPDX-License-Identifier: Apache-2.0 */
/* see worker.h */
#include "nginx/worker.h"

#include "nginx/request.h"

#define TICK_MS 1000
#define TICK_MIN_MS 10
#define TELL_EVERY_S 60

/* A worker serves nobody while it waits, so it waits shortly for a neighbour that is stopped. It
 * waits longer for one that opens the file, which reads all of it, but only before it serves. */
#define PATIENCE_NS UINT64_C(5000000)
#define START_PATIENCE_NS UINT64_C(2000000000)

static const char header_prefix[] = "header.";
#define HEADER_PREFIX (sizeof header_prefix - 1)

/* --- Configuring ------------------------------------------------------------------------------ */

static void tell_mistake(void *context, const char *file, unsigned line, unsigned column,
                         const char *message)
{
    ngx_conf_t *cf = context;
    if (line > 0) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "weir_rules: %s:%ui:%ui: %s", file,
                      (ngx_uint_t)line, (ngx_uint_t)column, message);
    } else {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "weir_rules: %s: %s", file, message);
    }
}

ngx_int_t weir_ngx_check_rules(ngx_conf_t *cf, struct weir_ngx_main *conf)
{
    struct weir_reason reason;
    int err = weir_rules_check_file((const char *)conf->rules.data, tell_mistake, cf, &reason);
    if (err == 0)
        return NGX_OK;
    if (err != WEIR_ERR_RULES)
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "weir_rules: %s",
                      reason.text[0] != '\0' ? reason.text : weir_error_text(err));
    return NGX_ERROR;
}

ngx_int_t weir_ngx_make_folder(ngx_cycle_t *cycle, const struct weir_ngx_main *conf)
{
    const ngx_core_conf_t *core = (const void *)ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    ngx_file_info_t info;
    u_char folder[NGX_MAX_PATH];
    size_t size = conf->state.len;
    while (size > 0 && conf->state.data[size - 1] != '/')
        size--;
    if (size < 2 || size > sizeof folder)
        return NGX_OK;
    ngx_cpystrn(folder, conf->state.data, size); /* without its last slash */
    if (ngx_file_info(folder, &info) != NGX_FILE_ERROR || ngx_errno != NGX_ENOENT)
        return NGX_OK;
    if (ngx_create_dir(folder, 0750) == NGX_FILE_ERROR) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno, "weir_state: cannot create the folder %s",
                      folder);
        return NGX_OK; /* the workers say what it means */
    }
    if (geteuid() == 0 && chown((const char *)folder, core->user, core->group) != 0)
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                      "weir_state: cannot give the folder %s to the workers", folder);
    return NGX_OK;
}

/* --- The state -------------------------------------------------------------------------------- */

void weir_ngx_worker_tell(struct weir_ngx_worker *worker, ngx_log_t *log, const char *what)
{
    time_t now = ngx_time();
    if (worker->told != 0 && now - worker->told < TELL_EVERY_S)
        return;
    worker->told = now;
    ngx_log_error(NGX_LOG_ERR, log, 0, "weir: %s; requests %s (weir_on_error)", what,
                  worker->conf->on_error == WEIR_NGX_OPEN ? "pass without a limit"
                                                          : "are answered with 503");
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

/* Which values the rules read. */
static ngx_int_t find_attributes(struct weir_ngx_worker *worker)
{
    const char *name;
    int handle = 0;
    worker->method = worker->path = worker->host = worker->requests = -1;
    worker->header_count = 0;
    if (!worker->headers)
        worker->headers = ngx_calloc(WEIR_HANDLES_MAX * sizeof *worker->headers, ngx_cycle->log);
    if (!worker->headers)
        return NGX_ERROR;
    for (; (name = weir_attribute_name(worker->weir, handle)); handle++) {
        if (ngx_strcmp(name, "method") == 0) {
            worker->method = handle;
        } else if (ngx_strcmp(name, "path") == 0) {
            worker->path = handle;
        } else if (ngx_strcmp(name, "host") == 0) {
            worker->host = handle;
        } else if (ngx_strcmp(name, "connection.requests") == 0) {
            worker->requests = handle;
        } else if (ngx_strncmp(name, header_prefix, HEADER_PREFIX) == 0) {
            struct weir_ngx_header *header = &worker->headers[worker->header_count++];
            header->name.data = (u_char *)(uintptr_t)(name + HEADER_PREFIX);
            header->name.len = ngx_strlen(header->name.data);
            header->hash = ngx_hash_key(header->name.data, header->name.len);
            header->handle = handle;
        }
    }
    return NGX_OK;
}

static void find_outcomes(struct weir_ngx_worker *worker)
{
    ngx_memzero(worker->outcomes, sizeof worker->outcomes);
    for (unsigned status = 100; status <= 599; status++)
        if (weir_rules_outcome(worker->weir, status))
            worker->outcomes[(status - 100) / 8] |= (uint8_t)(1u << (status - 100) % 8);
}

static void open_state(struct weir_ngx_worker *worker, ngx_log_t *log, uint64_t patience_ns)
{
    const struct weir_ngx_main *conf = worker->conf;
    const struct weir_options options = {
        .state_file = (const char *)conf->state.data,
        .state_bytes = (uint64_t)conf->state_bytes,
        .state_patience_ns = PATIENCE_NS,
        .state_open_patience_ns = patience_ns,
        .state_owner = (const char *)conf->owner.data,
        .state_group = (const char *)conf->group.data,
        .state_mode = (unsigned)conf->state_mode,
        .threads = 1,
        .leases_end_with_process = true,
    };
    struct weir_reason reason;
    if (weir_open(&worker->weir, (const char *)conf->rules.data, &options, &reason) < 0) {
        worker->weir = NULL;
        weir_ngx_worker_tell(worker, log, reason.text);
        return;
    }
    (void)weir_front(worker->weir, "nginx"); /* a name that it knows, and no child */
    if (find_attributes(worker) != NGX_OK) {
        weir_close(worker->weir);
        worker->weir = NULL;
        return;
    }
    worker->refunds = weir_rules_refund(worker->weir);
    find_outcomes(worker);
    if (worker->told != 0)
        ngx_log_error(NGX_LOG_NOTICE, log, 0, "weir: the state can be used again");
    worker->told = 0;
}

/* Once in TICK_MS, however often the timer fires. */
static void tend(struct weir_ngx_worker *worker, ngx_log_t *log)
{
    if (ngx_current_msec - worker->tended < TICK_MS)
        return;
    worker->tended = ngx_current_msec;
    if (worker->weir)
        (void)weir_tend(worker->weir);
    else
        open_state(worker, log, PATIENCE_NS);
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
    if (!worker)
        return NGX_OK; /* requests find no worker, and are answered by weir_on_error */
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
    weir_close(worker->weir);
    if (worker->headers)
        ngx_free(worker->headers);
    conf->worker = NULL;
}
