/* SPDX-License-Identifier: Apache-2.0 */
/* see reply.h */
#include "envoy/reply.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "envoy/request.h"
#include "proxy/fields.h"

/* 24 KiB of fields, of 100 bytes and more. */
#define HEADERS_MAX 256

#define DETAILS_MAX 96
#define MESSAGE_MAX 384

/* https://grpc.io/docs/guides/status-codes/ */
enum grpc_status {
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16,
};

static struct weir_evy_text text_of(const char *text)
{
    return (struct weir_evy_text){text, strlen(text)};
}

/* "application/grpc", also with "+proto" or a parameter behind it; not grpc-web, whose clients
 * read HTTP's status. */
static bool is_grpc(void *envoy)
{
    static const char grpc[] = "application/grpc";
    struct weir_evy_text type = weir_evy_header(envoy, WEIR_EVY_REQUEST, "content-type");
    if (!type.data || type.size < sizeof grpc - 1 ||
        strncasecmp(type.data, grpc, sizeof grpc - 1) != 0)
        return false;
    return type.size == sizeof grpc - 1 || strchr("+; ", type.data[sizeof grpc - 1]);
}

static enum grpc_status grpc_status_of(const struct weir_evy_reply *reply)
{
    if (reply->status == 401)
        return GRPC_UNAUTHENTICATED;
    if (reply->status == 403)
        return GRPC_PERMISSION_DENIED;
    if (reply->limit)
        return GRPC_RESOURCE_EXHAUSTED;
    return reply->status == 400   ? GRPC_INVALID_ARGUMENT
           : reply->status == 503 ? GRPC_UNAVAILABLE
                                  : GRPC_INTERNAL;
}

static bool is_wanted(const struct weir_field *field, enum weir_evy_fields which)
{
    static const char *const limits[] = {"RateLimit", "X-RateLimit"};
    for (unsigned i = 0; which == WEIR_EVY_FIELDS_NONE && i < 2; i++) {
        size_t size = strlen(limits[i]);
        if (field->name_size >= size && strncasecmp(field->name, limits[i], size) == 0)
            return false;
    }
    return true;
}

/* Of a denial; returns their count. */
static size_t add_headers(struct weir_evy_header *headers, size_t count,
                          const struct weir_evy_reply *reply)
{
    const char *at = reply->fields.data, *end = at + reply->fields.size;
    struct weir_field field;
    while (reply->fields.size > 0 && count < HEADERS_MAX && weir_field_next(&field, &at, end))
        if (is_wanted(&field, reply->which))
            headers[count++] = (struct weir_evy_header){{field.name, field.name_size},
                                                        {field.value, field.value_size}};
    return count;
}

/* grpc-message: what is not printable ASCII is percent-encoded. */
static struct weir_evy_text message_of(const struct weir_evy_reply *reply, char *out)
{
    static const char digits[] = "0123456789ABCDEF";
    char plain[128];
    size_t size = 0;
    if (reply->limit)
        snprintf(plain, sizeof plain, "denied by \"%s\"", reply->limit);
    else
        snprintf(plain, sizeof plain, "%.*s", (int)reply->body.size, reply->body.data);
    for (const char *at = plain; *at && size + 3 < MESSAGE_MAX; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte >= ' ' && byte <= '~' && byte != '%') {
            out[size++] = *at;
            continue;
        }
        out[size++] = '%';
        out[size++] = digits[byte >> 4];
        out[size++] = digits[byte & 15];
    }
    return (struct weir_evy_text){out, size};
}

static void send_grpc(void *envoy, const struct weir_evy_reply *reply)
{
    struct weir_evy_header headers[HEADERS_MAX];
    char message[MESSAGE_MAX], status[12];
    snprintf(status, sizeof status, "%d", (int)grpc_status_of(reply));
    headers[0] = (struct weir_evy_header){text_of(":status"), text_of("200")};
    headers[1] = (struct weir_evy_header){text_of("content-type"), text_of("application/grpc")};
    headers[2] = (struct weir_evy_header){text_of("grpc-status"), text_of(status)};
    headers[3] = (struct weir_evy_header){text_of("grpc-message"), message_of(reply, message)};
    ENVOY(http_send_response_headers)(envoy, headers, add_headers(headers, 4, reply), true);
}

/* RESPONSE_CODE_DETAILS of access logs, which has no blanks. */
static struct weir_evy_text details_of(const struct weir_evy_reply *reply, char *out)
{
    int size = snprintf(out, DETAILS_MAX, "weir_%s%s", reply->limit ? "denied:" : "error",
                        reply->limit ? reply->limit : "");
    for (int i = 0; i < size; i++)
        if (!isgraph((unsigned char)out[i]))
            out[i] = '_';
    return (struct weir_evy_text){out, (size_t)size};
}

static void send_http(void *envoy, const struct weir_evy_reply *reply)
{
    struct weir_evy_header headers[HEADERS_MAX];
    char details[DETAILS_MAX];
    size_t count = 0;
    if (reply->type[0] != '\0')
        headers[count++] = (struct weir_evy_header){text_of("content-type"), text_of(reply->type)};
    count = add_headers(headers, count, reply);
    ENVOY(http_send_response)
    (envoy, reply->status, headers, count, reply->body, details_of(reply, details));
}

void weir_evy_send(void *envoy, const struct weir_evy_reply *reply)
{
    if (is_grpc(envoy))
        send_grpc(envoy, reply);
    else
        send_http(envoy, reply);
}

void weir_evy_refuse(void *envoy, unsigned status, const char *reason)
{
    struct weir_evy_reply reply = {.status = status, .type = "text/plain", .body = text_of(reason)};
    weir_evy_send(envoy, &reply);
}

void weir_evy_add_fields(void *envoy, struct weir_evy_text fields)
{
    const char *at = fields.data, *end = at + fields.size;
    struct weir_field field;
    while (weir_field_next(&field, &at, end))
        ENVOY(http_add_header)
    (envoy, WEIR_EVY_RESPONSE, (struct weir_evy_text){field.name, field.name_size},
     (struct weir_evy_text){field.value, field.value_size});
}
