/* SPDX-License-Identifier: Apache-2.0 */
/* see reply.h */
#include "nginx/reply.h"

#include "proxy/fields.h"

/* As ngx_palloc gives it: the name's colon and the value's line break become NULs. */
static ngx_int_t add_field(ngx_http_request_t *r, const struct weir_field *from)
{
    ngx_table_elt_t *field = ngx_list_push(&r->headers_out.headers);
    if (!field)
        return NGX_ERROR;
    field->hash = 1;
#if nginx_version >= 1023000
    field->next = NULL;
#endif
    field->lowcase_key = NULL;
    field->key.data = (u_char *)(uintptr_t)from->name;
    field->key.len = from->name_size;
    field->key.data[from->name_size] = '\0';
    field->value.data = (u_char *)(uintptr_t)from->value;
    field->value.len = from->value_size;
    field->value.data[from->value_size] = '\0';
    return NGX_OK;
}

ngx_int_t weir_ngx_add_fields(ngx_http_request_t *r, const char *fields, size_t size)
{
    char *copy = size > 0 ? ngx_pnalloc(r->pool, size) : NULL;
    struct weir_field field;
    if (!copy)
        return size > 0 ? NGX_ERROR : NGX_OK;
    ngx_memcpy(copy, fields, size);
    const char *at = copy, *end = copy + size;
    while (weir_field_next(&field, &at, end))
        if (add_field(r, &field) != NGX_OK)
            return NGX_ERROR;
    return at == end ? NGX_OK : NGX_ERROR;
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
