/* SPDX-License-Identifier: Apache-2.0 */
/* see request.h */
#include "envoy/request.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

/* --- Envoy's texts ---------------------------------------------------------------------------- */

static bool header_line(void *envoy, enum weir_evy_headers of, struct weir_evy_text name,
                        size_t index, struct weir_evy_text *value, size_t *count)
{
    *value = (struct weir_evy_text){NULL, 0};
    return ENVOY(http_get_header)(envoy, of, name, value, index, count) && value->data;
}

struct weir_evy_text weir_evy_header(void *envoy, enum weir_evy_headers of, const char *name)
{
    struct weir_evy_text value;
    (void)header_line(envoy, of, (struct weir_evy_text){name, strlen(name)}, 0, &value, NULL);
    return value;
}

int weir_evy_metadata_number(void *envoy, const struct weir_evy_place *place, uint64_t *number)
{
    struct weir_evy_text text;
    double value;
    if (!place->key.data)
        return 0;
    if (!ENVOY(http_get_metadata_number)(envoy, WEIR_EVY_DYNAMIC, place->space, place->key, &value))
        return ENVOY(http_get_metadata_string)(envoy, WEIR_EVY_DYNAMIC, place->space, place->key,
                                               &text)
                   ? WEIR_ERR_SYNTAX
                   : 0;
    if (!(value >= 0 && value <= 9007199254740992.0)) /* 2^53: beyond, a double skips numbers */
        return WEIR_ERR_RANGE;
    *number = (uint64_t)value;
    *number += (double)*number < value;
    return 1;
}

bool weir_evy_address(struct weir_evy_text text, struct sockaddr_storage *address)
{
    char host[INET6_ADDRSTRLEN];
    struct sockaddr_in *ip4 = (struct sockaddr_in *)(void *)address;
    struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)(void *)address;
    bool is_ip6 = text.size > 0 && text.data[0] == '[';
    const char *start = text.data + is_ip6;
    const char *end = text.data ? memchr(text.data, is_ip6 ? ']' : ':', text.size) : NULL;
    const char *zone = end && is_ip6 ? memchr(start, '%', (size_t)(end - start)) : NULL;
    end = zone ? zone : end; /* of a link-local address: it is this machine's name of the link */
    if (!end || end <= start || (size_t)(end - start) >= sizeof host)
        return false;
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    memset(address, 0, is_ip6 ? sizeof *ip6 : sizeof *ip4);
    address->ss_family = is_ip6 ? AF_INET6 : AF_INET;
    return inet_pton(address->ss_family, host,
                     is_ip6 ? (void *)&ip6->sin6_addr : (void *)&ip4->sin_addr) == 1;
}

/* --- Values ----------------------------------------------------------------------------------- */

struct gathering {
    void *envoy;
    struct weir_value *values;
    size_t count;
};

static int add(struct gathering *gathering, int attribute, struct weir_evy_text text)
{
    if (gathering->count == WEIR_EVY_VALUES_MAX)
        return WEIR_ERR_TOO_LARGE;
    gathering->values[gathering->count++] = (struct weir_value){attribute, text.data, text.size};
    return 0;
}

static int add_pseudo(struct gathering *gathering, int handle, const char *name)
{
    if (handle < 0)
        return 0;
    struct weir_evy_text value = weir_evy_header(gathering->envoy, WEIR_EVY_REQUEST, name);
    return value.data ? add(gathering, WEIR_OF_REQUEST + handle, value) : 0;
}

static int add_lines(struct gathering *gathering, const struct weir_reads_header *header)
{
    struct weir_evy_text name = {header->name, header->size}, value;
    size_t count = 0;
    if (!header_line(gathering->envoy, WEIR_EVY_REQUEST, name, 0, &value, &count))
        return 0;
    int err = add(gathering, WEIR_OF_REQUEST + header->handle, value);
    for (size_t i = 1; i < count && err == 0; i++)
        if (header_line(gathering->envoy, WEIR_EVY_REQUEST, name, i, &value, NULL))
            err = add(gathering, WEIR_OF_REQUEST + header->handle, value);
    return err;
}

static int add_fields(struct gathering *gathering, const struct weir_reads *reads)
{
    unsigned count = atomic_load_explicit(&reads->header_count, memory_order_acquire);
    if (count == 0)
        return 0;
    /* Without a value: the fields that are not here are absent, which a match may ask for. */
    int err =
        add(gathering, WEIR_OF_REQUEST + reads->headers[0].handle, (struct weir_evy_text){NULL, 0});
    for (unsigned i = 0; i < count && err == 0; i++)
        err = add_lines(gathering, &reads->headers[i]);
    return err;
}

/* A route does not know which states its requests meet: the handle of its attribute is looked up at
 * the first one, and kept with the number of the opening that it belongs to. Below 0: no handle. */
static int handle_of(struct weir_evy_attribute *attribute, struct weir_evy_shared *shared)
{
    uint64_t kept = atomic_load_explicit(&attribute->handle, memory_order_relaxed);
    if (kept >> 32 == shared->number)
        return (int)(kept & UINT32_MAX) - 1;
    int handle = weir_attribute(shared->weir, attribute->name);
    uint32_t from_one = handle < 0 ? 0 : (uint32_t)handle + 1;
    atomic_store_explicit(&attribute->handle, (uint64_t)shared->number << 32 | from_one,
                          memory_order_relaxed);
    return handle < 0 ? -1 : handle;
}

/* As with nginx: an empty text makes the attribute absent, and each hides what the client sends. */
static int add_said(struct gathering *gathering, struct weir_evy_shared *shared,
                    struct weir_evy_settings *said)
{
    int err = 0;
    for (unsigned i = 0; i < said->attribute_count && err == 0; i++) {
        struct weir_evy_attribute *attribute = &said->attributes[i];
        struct weir_evy_text text = attribute->text;
        int handle = handle_of(attribute, shared);
        if (attribute->of.key.data &&
            !ENVOY(http_get_metadata_string)(gathering->envoy, WEIR_EVY_DYNAMIC,
                                             attribute->of.space, attribute->of.key, &text))
            text.size = 0;
        if (text.size == 0)
            text.data = NULL;
        if (handle >= 0)
            err = add(gathering, handle, text);
    }
    return err;
}

/* --- The client ------------------------------------------------------------------------------- */

/* The lines of a field, joined by commas. Errors: WEIR_ERR_TOO_LARGE. */
static int join(void *envoy, const char *name, char *out, const char **joined, size_t *size)
{
    struct weir_evy_text key = {name, strlen(name)}, value;
    size_t count = 0, used = 0;
    if (!header_line(envoy, WEIR_EVY_REQUEST, key, 0, &value, &count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (!header_line(envoy, WEIR_EVY_REQUEST, key, i, &value, NULL))
            continue;
        if (value.size + 2 > WEIR_EVY_FORWARDED_MAX - used)
            return WEIR_ERR_TOO_LARGE;
        if (used > 0)
            out[used++] = ',';
        memcpy(out + used, value.data, value.size);
        used += value.size;
    }
    *joined = out;
    *size = used;
    return 0;
}

static int read_client(struct weir_evy_request *request, void *envoy, bool trusted_proxies,
                       struct weir_call *call)
{
    struct weir_evy_text text = {NULL, 0};
    if (ENVOY(http_filter_get_attribute_string)(envoy, WEIR_EVY_SOURCE_ADDRESS, &text) &&
        weir_evy_address(text, &request->client))
        call->client = (const struct sockaddr *)&request->client;
    if (!trusted_proxies)
        return 0;
    int err = join(envoy, "x-forwarded-for", request->forwarded_for, &call->forwarded_for,
                   &call->forwarded_for_size);
    return err < 0 ? err
                   : join(envoy, "forwarded", request->forwarded, &call->forwarded,
                          &call->forwarded_size);
}

int weir_evy_request_read(struct weir_evy_request *request, void *envoy,
                          struct weir_evy_shared *shared, struct weir_evy_settings *said,
                          bool trusted_proxies, struct weir_call *call)
{
    struct gathering gathering = {envoy, request->values, 0};
    const struct weir_reads *reads = &shared->reads;
    int err = add_pseudo(&gathering, reads->method, ":method");
    if (err == 0)
        err = add_pseudo(&gathering, reads->path, ":path");
    if (err == 0)
        err = add_pseudo(&gathering, reads->host, ":authority");
    if (err == 0)
        err = add_fields(&gathering, reads);
    if (err == 0)
        err = add_said(&gathering, shared, said);
    if (err == 0)
        err = read_client(request, envoy, trusted_proxies, call);
    call->values = gathering.values;
    call->count = gathering.count;
    return err;
}
