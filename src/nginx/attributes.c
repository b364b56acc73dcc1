/* SPDX-License-Identifier: Apache-2.0 */
/* see attributes.h */
#include "nginx/attributes.h"

/* Values that are being gathered: in the worker's place, and, where a client repeats fields
 * hundreds of times, in the request's memory. */
struct gathering {
    ngx_http_request_t *r;
    struct weir_value *values;
    size_t count, room;
};

static ngx_int_t add_value(struct gathering *gathering, int attribute, const ngx_str_t *text)
{
    if (gathering->count == gathering->room) {
        size_t size = gathering->count * sizeof *gathering->values;
        struct weir_value *more = ngx_palloc(gathering->r->pool, 2 * size);
        if (!more)
            return NGX_ERROR;
        ngx_memcpy(more, gathering->values, size);
        gathering->values = more;
        gathering->room *= 2;
    }
    gathering->values[gathering->count++] =
        (struct weir_value){attribute, (const char *)text->data, text->len};
    return NGX_OK;
}

/* What the request itself says; a handle below 0: no rule reads it. */
static ngx_int_t add(struct gathering *gathering, int handle, const ngx_str_t *text)
{
    if (handle < 0 || !text->data)
        return NGX_OK;
    return add_value(gathering, WEIR_OF_REQUEST + handle, text);
}

static const struct weir_reads_header *find_header(const struct weir_ngx_worker *worker,
                                                   const ngx_table_elt_t *field)
{
    const struct weir_reads *reads = &worker->reads;
    for (unsigned i = 0; i < reads->header_count; i++) {
        const struct weir_reads_header *header = &reads->headers[i];
        if (worker->hashes[i] == field->hash && header->size == field->key.len &&
            ngx_memcmp(header->name, field->lowcase_key, field->key.len) == 0)
            return header;
    }
    return NULL;
}

static ngx_int_t add_fields(struct gathering *gathering, const struct weir_ngx_worker *worker)
{
    if (worker->reads.header_count == 0)
        return NGX_OK;
    /* Without a value: the fields that are not here are absent, which a match may ask for. */
    ngx_str_t none = ngx_null_string;
    if (add_value(gathering, WEIR_OF_REQUEST + worker->reads.headers[0].handle, &none) != NGX_OK)
        return NGX_ERROR;
    for (ngx_list_part_t *part = &gathering->r->headers_in.headers.part; part; part = part->next) {
        const ngx_table_elt_t *fields = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            const struct weir_reads_header *header = find_header(worker, &fields[i]);
            if (header && add(gathering, header->handle, &fields[i].value) != NGX_OK)
                return NGX_ERROR;
        }
    }
    return NGX_OK;
}

/* A variable alone is read where it is; anything else is put together in the request's memory. */
static ngx_int_t read_value(ngx_http_request_t *r, struct weir_ngx_attribute *attribute,
                            ngx_str_t *text)
{
    if (attribute->variable == NGX_ERROR)
        return ngx_http_complex_value(r, &attribute->value, text);
    const ngx_http_variable_value_t *value =
        ngx_http_get_flushed_variable(r, (ngx_uint_t)attribute->variable);
    text->len = value && !value->not_found ? value->len : 0;
    text->data = text->len > 0 ? value->data : NULL;
    return NGX_OK;
}

/* What the configuration says; an empty value is an absent attribute, as in nginx a variable
 * without a value is empty. It goes before what the client sends: as with proxy_set_header, ""
 * hides a field, and a client that makes the variable empty cannot put its own in its place. */
static ngx_int_t add_configured(struct gathering *gathering, struct weir_ngx_worker *worker,
                                struct weir_ngx_location *location)
{
    struct weir_ngx_attribute *attributes =
        location->attributes ? location->attributes->elts : NULL;
    for (ngx_uint_t i = 0; attributes && i < location->attributes->nelts; i++) {
        struct weir_ngx_attribute *attribute = &attributes[i];
        ngx_str_t text;
        if (attribute->handle == WEIR_NGX_HANDLE_UNKNOWN) {
            attribute->handle = weir_attribute(worker->weir, (const char *)attribute->name.data);
            if (attribute->handle >= 0 && !weir_attribute_is_read(worker->weir, attribute->handle))
                attribute->handle = -1;
        }
        if (attribute->handle < 0)
            continue;
        if (read_value(gathering->r, attribute, &text) != NGX_OK)
            return NGX_ERROR;
        if (text.len == 0)
            text.data = NULL;
        if (add_value(gathering, attribute->handle, &text) != NGX_OK)
            return NGX_ERROR;
    }
    return NGX_OK;
}

static ngx_int_t add_requests(struct gathering *gathering, const struct weir_ngx_worker *worker)
{
    ngx_http_request_t *r = gathering->r;
    ngx_str_t number = ngx_null_string;
    if (worker->reads.connection_requests < 0)
        return NGX_OK;
    number.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (!number.data)
        return NGX_ERROR;
    number.len = (size_t)(ngx_sprintf(number.data, "%ui", r->connection->requests) - number.data);
    return add(gathering, worker->reads.connection_requests, &number);
}

ngx_int_t weir_ngx_attributes(ngx_http_request_t *r, struct weir_ngx_worker *worker,
                              struct weir_ngx_location *location, struct weir_call *call)
{
    struct gathering gathering = {r, worker->values, 0, WEIR_NGX_VALUES_MAX};
    if (add(&gathering, worker->reads.method, &r->method_name) != NGX_OK ||
        add(&gathering, worker->reads.path, &r->unparsed_uri) != NGX_OK ||
        add(&gathering, worker->reads.host, &r->headers_in.server) != NGX_OK ||
        add_requests(&gathering, worker) != NGX_OK || add_fields(&gathering, worker) != NGX_OK ||
        add_configured(&gathering, worker, location) != NGX_OK)
        return NGX_ERROR;
    call->values = gathering.values;
    call->count = gathering.count;
    return NGX_OK;
}

const struct sockaddr *weir_ngx_client(const ngx_http_request_t *r)
{
    const struct sockaddr *address = r->connection->sockaddr;
    return address->sa_family == AF_INET || address->sa_family == AF_INET6 ? address : NULL;
}
