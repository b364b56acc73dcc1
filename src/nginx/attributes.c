/* SPDX-License-Identifier: Apache-2.0 */
/* see attributes.h */
#include "nginx/attributes.h"

/* Values that are being gathered. */
struct gathering {
    ngx_http_request_t *r;
    struct weir_value *values;
    size_t count;
    size_t room[WEIR_NGX_VALUES_MAX]; /* of a value that is joined; set by add */
};

static void add(struct gathering *gathering, int handle, const ngx_str_t *text)
{
    if (handle < 0 || gathering->count >= WEIR_NGX_VALUES_MAX || !text->data)
        return;
    gathering->room[gathering->count] = 0; /* the request's own memory */
    gathering->values[gathering->count++] =
        (struct weir_value){handle, (const char *)text->data, text->len};
}

/* Room doubles: a client that repeats a field a thousand times costs no more than twice its bytes.
 */
static ngx_int_t make_room(struct gathering *gathering, size_t i, size_t size)
{
    struct weir_value *value = &gathering->values[i];
    if (size <= gathering->room[i])
        return NGX_OK;
    u_char *more = ngx_pnalloc(gathering->r->pool, 2 * size);
    if (!more)
        return NGX_ERROR;
    ngx_memcpy(more, value->data, value->size);
    value->data = (const char *)more;
    gathering->room[i] = 2 * size;
    return NGX_OK;
}

/* A field that came before is joined with this one, as weir reads repeated fields. */
static ngx_int_t add_field(struct gathering *gathering, size_t first, int handle,
                           const ngx_str_t *text)
{
    for (size_t i = first; i < gathering->count; i++) {
        struct weir_value *value = &gathering->values[i];
        if (value->attribute != handle)
            continue;
        if (make_room(gathering, i, value->size + 2 + text->len) != NGX_OK)
            return NGX_ERROR;
        u_char *end = (u_char *)(uintptr_t)value->data + value->size;
        *end++ = ',';
        *end++ = ' ';
        ngx_memcpy(end, text->data, text->len);
        value->size += 2 + text->len;
        return NGX_OK;
    }
    add(gathering, handle, text);
    return NGX_OK;
}

static const struct weir_ngx_header *find_header(const struct weir_ngx_worker *worker,
                                                 const ngx_table_elt_t *field)
{
    for (ngx_uint_t i = 0; i < worker->header_count; i++) {
        const struct weir_ngx_header *header = &worker->headers[i];
        if (header->hash == field->hash && header->name.len == field->key.len &&
            ngx_memcmp(header->name.data, field->lowcase_key, field->key.len) == 0)
            return header;
    }
    return NULL;
}

static ngx_int_t add_fields(struct gathering *gathering, const struct weir_ngx_worker *worker)
{
    if (worker->header_count == 0)
        return NGX_OK;
    /* Without a value: the fields that are not here are absent, which a match may ask for. */
    gathering->values[gathering->count++] = (struct weir_value){worker->headers[0].handle, NULL, 0};
    size_t first = gathering->count;
    for (ngx_list_part_t *part = &gathering->r->headers_in.headers.part; part; part = part->next) {
        const ngx_table_elt_t *fields = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            const struct weir_ngx_header *header = find_header(worker, &fields[i]);
            if (header && add_field(gathering, first, header->handle, &fields[i].value) != NGX_OK)
                return NGX_ERROR;
        }
    }
    return NGX_OK;
}

/* What the configuration says; an empty value is an absent attribute, as in nginx a variable
 * without a value is empty. */
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
            if (attribute->handle >= 0 && !weir_attribute_read(worker->weir, attribute->handle))
                attribute->handle = -1;
        }
        if (attribute->handle < 0)
            continue;
        if (ngx_http_complex_value(gathering->r, &attribute->value, &text) != NGX_OK)
            return NGX_ERROR;
        if (text.len == 0)
            text.data = NULL;
        if (gathering->count < WEIR_NGX_VALUES_MAX)
            gathering->values[gathering->count++] =
                (struct weir_value){attribute->handle, (const char *)text.data, text.len};
    }
    return NGX_OK;
}

ngx_int_t weir_ngx_attributes(ngx_http_request_t *r, struct weir_ngx_worker *worker,
                              struct weir_ngx_location *location, size_t *count)
{
    struct gathering gathering; /* `room` is set as values are added */
    gathering.r = r;
    gathering.values = worker->values;
    gathering.count = 0;
    add(&gathering, worker->method, &r->method_name);
    add(&gathering, worker->path, &r->unparsed_uri);
    add(&gathering, worker->host, &r->headers_in.server);
    if (worker->requests >= 0) {
        ngx_str_t number = {.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN)};
        if (!number.data)
            return NGX_ERROR;
        number.len =
            (size_t)(ngx_sprintf(number.data, "%ui", r->connection->requests) - number.data);
        add(&gathering, worker->requests, &number);
    }
    if (add_fields(&gathering, worker) != NGX_OK ||
        add_configured(&gathering, worker, location) != NGX_OK)
        return NGX_ERROR;
    *count = gathering.count;
    return NGX_OK;
}

const struct sockaddr *weir_ngx_client(const ngx_http_request_t *r)
{
    const struct sockaddr *address = r->connection->sockaddr;
    return address->sa_family == AF_INET || address->sa_family == AF_INET6 ? address : NULL;
}
