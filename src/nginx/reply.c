/* SPDX-License-Identifier: Apache-2.0 */
/* see reply.h */
#include "nginx/reply.h"

static ngx_int_t add_field(ngx_http_request_t *r, u_char *line, const u_char *end)
{
    u_char *colon = memchr(line, ':', (size_t)(end - line));
    ngx_table_elt_t *field = colon ? ngx_list_push(&r->headers_out.headers) : NULL;
    if (!field)
        return NGX_ERROR;
    field->hash = 1;
#if nginx_version >= 1023000
    field->next = NULL;
#endif
    field->lowcase_key = NULL;
    field->key.data = line;
    field->key.len = (size_t)(colon - line);
    *colon = '\0';
    field->value.data = colon + 2; /* ": " */
    field->value.len = (size_t)(end - field->value.data);
    return NGX_OK;
}

ngx_int_t weir_ngx_add_fields(ngx_http_request_t *r, const char *fields, size_t size)
{
    u_char *at = size > 0 ? ngx_pnalloc(r->pool, size) : NULL;
    if (!at)
        return size > 0 ? NGX_ERROR : NGX_OK;
    ngx_memcpy(at, fields, size);
    for (u_char *end = at + size; at < end;) {
        u_char *line = at, *stop = memchr(at, '\r', (size_t)(end - at));
        if (!stop)
            return NGX_ERROR;
        at = stop + 2; /* "\r\n" */
        *stop = '\0';
        if (add_field(r, line, stop) != NGX_OK)
            return NGX_ERROR;
    }
    return NGX_OK;
}

static bool has_error_page(ngx_http_request_t *r, ngx_int_t status)
{
    const ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    const ngx_http_err_page_t *pages = core->error_pages ? core->error_pages->elts : NULL;
    for (ngx_uint_t i = 0; pages && i < core->error_pages->nelts; i++)
        if (pages[i].status == status)
            return true;
    return false;
}

ngx_int_t weir_ngx_deny(ngx_http_request_t *r, const struct weir_ngx_request *request)
{
    if (request->body.len == 0 || has_error_page(r, request->status))
        return request->status;
    r->err_status = 0; /* in the page of another error: the denial counts */
    ngx_str_t type = request->type;
    ngx_http_complex_value_t body = {.value = request->body};
    ngx_http_finalize_request(r, ngx_http_send_response(r, request->status, &type, &body));
    return NGX_DONE;
}
