/* SPDX-License-Identifier: Apache-2.0 */
/* see variables.h */
#include "nginx/variables.h"

#include "nginx/request.h"

enum variable {
    VERDICT,
    DENIED_BY,
    ACTION,
    REMAINING,
    RETRY_AFTER,
    DELAY_MS,
    COST,
    STANDING,
    CLASS
};

static const char *verdict_text(const struct weir_ngx_request *request)
{
    static const char *const texts[2][WEIR_NGX_VERDICTS] = {
        {"allowed", "delayed", "denied", "error"},
        {"allowed", "delayed_dry_run", "denied_dry_run", "error"},
    };
    return texts[request->dry_run][request->verdict];
}

static void set_text(ngx_http_variable_value_t *value, const u_char *text, size_t size)
{
    value->data = (u_char *)(uintptr_t)text;
    value->len = (unsigned)size & 0xfffffff;
}

static ngx_int_t set_number(ngx_http_request_t *r, ngx_http_variable_value_t *value,
                            uint64_t number)
{
    u_char *text = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (!text)
        return NGX_ERROR;
    set_text(value, text, (size_t)(ngx_sprintf(text, "%uL", number) - text));
    return NGX_OK;
}

static uint64_t round_up(uint64_t number, uint64_t unit)
{
    return number / unit + (number % unit != 0);
}

/* Numbers; `false`: there is none to tell. */
static bool number_of(const struct weir_ngx_request *request, uintptr_t variable, uint64_t *number)
{
    bool told = true;
    switch (variable) {
    case REMAINING:
        *number = request->remaining;
        told = request->decided && request->remaining != WEIR_NEVER;
        break;
    case RETRY_AFTER:
        *number = round_up(request->retry_after_ns, 1000000000);
        told = request->verdict == WEIR_NGX_DENIED && request->retry_after_ns != WEIR_NEVER;
        break;
    case DELAY_MS:
        *number = round_up(request->delay_ns, 1000000);
        told = request->decided;
        break;
    default:
        *number = request->cost;
        break;
    }
    return told;
}

static ngx_int_t get(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t variable)
{
    const struct weir_ngx_request *request = weir_ngx_request_of(r);
    uint64_t number;
    value->valid = 1;
    value->no_cacheable = 0;
    value->not_found = !request;
    value->len = 0;
    value->data = (u_char *)(uintptr_t) "";
    if (!request)
        return NGX_OK;
    if (variable == VERDICT)
        set_text(value, (const u_char *)verdict_text(request), ngx_strlen(verdict_text(request)));
    else if (variable == DENIED_BY)
        set_text(value, request->denied_by.data, request->denied_by.len);
    else if (variable == STANDING)
        set_text(value, request->standing.data, request->standing.len);
    else if (variable == CLASS)
        set_text(value, request->class_name.data, request->class_name.len);
    else if (variable == ACTION && request->action)
        set_text(value, (const u_char *)request->action, ngx_strlen(request->action));
    else if (variable != ACTION && number_of(request, variable, &number))
        return set_number(r, value, number);
    return NGX_OK;
}

ngx_int_t weir_ngx_variables_add(ngx_conf_t *cf)
{
    static ngx_str_t names[] = {
        ngx_string("weir_verdict"),   ngx_string("weir_denied_by"),   ngx_string("weir_action"),
        ngx_string("weir_remaining"), ngx_string("weir_retry_after"), ngx_string("weir_delay_ms"),
        ngx_string("weir_cost"),      ngx_string("weir_standing"),    ngx_string("weir_class"),
    };
    for (uintptr_t i = 0; i < sizeof names / sizeof *names; i++) {
        ngx_http_variable_t *variable =
            ngx_http_add_variable(cf, &names[i], NGX_HTTP_VAR_NOCACHEABLE);
        if (!variable)
            return NGX_ERROR;
        variable->get_handler = get;
        variable->data = i;
    }
    return NGX_OK;
}
