/* SPDX-License-Identifier: Apache-2.0 */
/* see request.h */
#include "server/http/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "core/text/hex.h"
#include "server/http/reply.h"
#include "server/net/guesses.h"
#include "server/net/secret.h"
#include "wire/http/forwarded.h"

bool weir_http_refuse_method(struct weir_http_call *call, const char *first, const char *second)
{
    char fields[64];
    snprintf(fields, sizeof fields, "Allow: %s%s%s\r\n", first, second ? ", " : "",
             second ? second : "");
    weir_http_problem(call, WEIR_HTTP_405, fields, NULL);
    return false;
}

bool weir_http_next_parameter(struct weir_bytes *query, struct weir_bytes *name,
                              struct weir_bytes *value)
{
    if (!query->size)
        return false;
    const char *end = query->data + query->size;
    const char *stop = memchr(query->data, '&', query->size);
    const char *item_end = stop ? stop : end;
    size_t size = (size_t)(item_end - query->data);
    const char *equals = memchr(query->data, '=', size);
    *name = (struct weir_bytes){query->data, equals ? (size_t)(equals - query->data) : size};
    *value = equals ? (struct weir_bytes){equals + 1, (size_t)(item_end - equals - 1)}
                    : (struct weir_bytes){item_end, 0};
    query->data = stop ? stop + 1 : end;
    query->size = (size_t)(end - query->data);
    return true;
}

long weir_http_decode(struct weir_bytes value, char *out)
{
    long used = 0;
    for (size_t i = 0; i < value.size; i++) {
        char c = value.data[i];
        if (c == '%') {
            int high = i + 2 < value.size ? weir_hex_value(value.data[i + 1]) : -1;
            int low = i + 2 < value.size ? weir_hex_value(value.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return WEIR_ERR_SYNTAX;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        out[used++] = c;
    }
    return used;
}

bool weir_http_has_token(struct weir_http_call *call, const char *token)
{
    struct weir_bytes own = weir_http1_field(call->request, "x-weir-token");
    struct weir_bytes bearer = weir_http1_field(call->request, "authorization");
    bool borne = bearer.size >= 7 && !strncasecmp(bearer.data, "Bearer ", 7);
    if ((own.data && weir_secret_equal(own, token)) ||
        (borne &&
         weir_secret_equal((struct weir_bytes){bearer.data + 7, bearer.size - 7}, token))) {
        call->connection->guesses = 0;
        return true;
    }
    if (own.data || borne) {
        struct weir_guess guess = weir_guess_of(call->connection, false);
        call->hold_ms = guess.wait_ms;
        call->keep_alive &= !guess.last;
    }
    return false;
}

enum weir_trust weir_http_begin_request(struct weir_http_call *call)
{
    struct weir_http *http = call->http;
    weir_request_begin(&http->attributes, weir_worker_rules(call->worker), WEIR_FIELDS_ALL,
                       (struct weir_room){http->joined, sizeof http->joined});
    return weir_trust_of(weir_listener_trusts(call->connection->listener));
}

/* Collects the values of a field that may be repeated, in order. */
static size_t field_values(const struct weir_http1_request *request, const char *name,
                           struct weir_bytes values[WEIR_HTTP1_FIELDS_MAX])
{
    size_t count = 0;
    for (uint16_t i = 0; i < request->field_count; i++) {
        const struct weir_http1_field *field = &request->fields[i];
        if (field->name.size == strlen(name) &&
            !strncasecmp(field->name.data, name, field->name.size))
            values[count++] = field->value;
    }
    return count;
}

int weir_http_find_client(const struct weir_http_call *call, struct weir_address *client,
                          struct weir_reason *reason)
{
    const struct weir_proxies proxies = weir_worker_proxies(call->worker);
    struct weir_bytes x_forwarded_for[WEIR_HTTP1_FIELDS_MAX], rfc7239[WEIR_HTTP1_FIELDS_MAX];
    *client = call->connection->peer;
    if (!weir_forwarded_trusts(client, &proxies))
        return 0;
    const struct weir_forwarded fields = {
        x_forwarded_for, rfc7239, field_values(call->request, "x-forwarded-for", x_forwarded_for),
        field_values(call->request, "forwarded", rfc7239)};
    return weir_forwarded_client(client, &fields, &proxies, reason);
}

/* The essence of a media type, without parameters and the white space before them. */
static struct weir_bytes media_type(struct weir_bytes field)
{
    size_t size = 0;
    while (size < field.size && field.data[size] != ';' && field.data[size] != ' ' &&
           field.data[size] != '\t')
        size++;
    return (struct weir_bytes){field.data, size};
}

static bool type_is(struct weir_bytes type, const char *name)
{
    return type.size == strlen(name) && !strncasecmp(type.data, name, type.size);
}

/* JSON, anything whose syntax is JSON (RFC 6839), no type at all; and the type that `curl -d` puts
 * on whatever it sends, so that a first try works. A real form is refused as
 * malformed JSON. Types are here to find mistakes; they keep no web page out. */
static bool content_is_json(const struct weir_http1_request *request)
{
    static const char suffix[] = "+json";
    const size_t suffix_size = sizeof suffix - 1;
    static const char json[] = "application/json";
    struct weir_bytes field = request->content_type;
    if (!field.data ||
        (field.size == sizeof json - 1 && memcmp(field.data, json, sizeof json - 1) == 0))
        return true;
    struct weir_bytes type = media_type(field);
    return type_is(type, json) || type_is(type, "application/x-www-form-urlencoded") ||
           (type.size > suffix_size && memchr(type.data, '/', type.size - suffix_size) &&
            !strncasecmp(type.data + type.size - suffix_size, suffix, suffix_size));
}

bool weir_http_json_post(struct weir_http_call *call)
{
    if (!weir_http_allow(call, "POST", NULL))
        return false;
    if (content_is_json(call->request))
        return true;
    weir_http_problem(call, WEIR_HTTP_415, NULL, "use Content-Type: application/json");
    return false;
}
