/* SPDX-License-Identifier: Apache-2.0 */
/* see ratelimit_oracle.h */
#include "ratelimit_oracle.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/utf8.h"
#include "envoy_service_ratelimit_v3.pb-c.h"

typedef Envoy__Extensions__Common__Ratelimit__V3__RateLimitDescriptor pb_descriptor;
typedef Envoy__Service__Ratelimit__V3__RateLimitRequest pb_request;
typedef Envoy__Service__Ratelimit__V3__RateLimitResponse pb_response;
typedef Envoy__Service__Ratelimit__V3__RateLimitResponse__DescriptorStatus pb_status;

/* --- Messages as protobuf-c can read them -----------------------------------------------------
 * It refuses groups, and a known number with another type, which a reader of protobuf skips. So
 * they are left out first, by a slow walk of its own. */

struct shape {
    unsigned number, type;
    const struct shape *inner; /* of a message; NULL: a text, or a number */
};

static const struct shape entry_shape[] = {{1, 2, NULL}, {2, 2, NULL}, {0, 0, NULL}};
static const struct shape limit_shape[] = {{1, 0, NULL}, {2, 0, NULL}, {0, 0, NULL}};
static const struct shape hits_shape[] = {{1, 0, NULL}, {0, 0, NULL}};
static const struct shape descriptor_shape[] = {
    {1, 2, entry_shape}, {2, 2, limit_shape}, {3, 2, hits_shape}, {4, 0, NULL}, {0, 0, NULL}};
static const struct shape request_shape[] = {
    {1, 2, NULL}, {2, 2, descriptor_shape}, {3, 0, NULL}, {0, 0, NULL}};

struct text {
    const uint8_t *at, *end;
};

static bool take_varint(struct text *text, size_t most, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < most && text->at < text->end; i++) {
        uint8_t byte = *text->at++;
        if (i == 9 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 127) << 7 * i;
        if (!(byte & 128))
            return true;
    }
    return false;
}

/* Reads a field of `type`, its tag read before. *body is what a field of type 2 holds. */
static bool take_value(struct text *text, unsigned number, unsigned type, unsigned depth,
                       struct text *body)
{
    uint64_t value, size = type == 1 ? 8 : 4;
    if (type == 0)
        return take_varint(text, 10, &value);
    if (type == 3) {
        while (depth < 100 && take_varint(text, 5, &value) && value >> 3 && value <= UINT32_MAX) {
            if ((value & 7) == 4)
                return value >> 3 == number;
            if (!take_value(text, (unsigned)(value >> 3), value & 7, depth + 1, body))
                return false;
        }
        return false;
    }
    if (type == 4 || type > 5 || (type == 2 && !take_varint(text, 5, &size)) ||
        size > (size_t)(text->end - text->at))
        return false;
    *body = (struct text){text->at, text->at + size};
    text->at += size;
    return true;
}

static size_t put(uint8_t *out, const uint8_t *from, const uint8_t *end)
{
    if (end > from)
        memcpy(out, from, (size_t)(end - from));
    return (size_t)(end - from);
}

/* Writes what `shape` knows of a message. Returns its size, no longer than it was; or -1. */
static long keep_known(uint8_t *out, struct text text, const struct shape *shape)
{
    size_t used = 0;
    while (text.at < text.end) {
        const uint8_t *start = text.at;
        const struct shape *of = shape;
        struct text body = {NULL, NULL};
        uint64_t tag;
        if (!take_varint(&text, 5, &tag) || tag >> 3 == 0 || tag > UINT32_MAX ||
            !take_value(&text, (unsigned)(tag >> 3), tag & 7, 0, &body))
            return -1;
        while (of->number && (of->number != tag >> 3 || of->type != (tag & 7)))
            of++;
        if (!of->number)
            continue;
        if (!of->inner) {
            struct weir_bytes held = {(const char *)body.at, (size_t)(body.end - body.at)};
            if (of->type == 2 && !weir_utf8_valid(held.data, held.size))
                return -1;
            used += put(out + used, start, text.at);
            continue;
        }
        uint8_t *inner = malloc((size_t)(body.end - body.at) + 1);
        long size = inner ? keep_known(inner, body, of->inner) : -1;
        if (size >= 0) {
            out[used++] = (uint8_t)tag;
            for (size_t rest = (size_t)size;; rest >>= 7) {
                out[used++] = (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
                if (rest <= 127)
                    break;
            }
            used += put(out + used, inner, inner + size);
        }
        free(inner);
        if (size < 0)
            return -1;
    }
    return (long)used;
}

/* What protobuf-c makes of a request; NULL: it is malformed. */
static pb_request *unpack(struct weir_bytes message)
{
    const uint8_t *data = (const uint8_t *)message.data;
    uint8_t *known = malloc(message.size + 1);
    long size =
        known ? keep_known(known, (struct text){data, data + message.size}, request_shape) : -1;
    pb_request *request =
        size < 0
            ? NULL
            : envoy__service__ratelimit__v3__rate_limit_request__unpack(NULL, (size_t)size, known);
    free(known);
    return request;
}

/* --- Requests --------------------------------------------------------------------------------- */

static bool same(ProtobufCBinaryData data, struct weir_bytes text)
{
    return data.len == text.size && (!data.len || !memcmp(data.data, text.data, data.len));
}

static bool same_text(ProtobufCBinaryData data, struct weir_bytes text)
{
    return same(data, text) && weir_utf8_valid(text.data, text.size);
}

/* Of a message that stands twice protobuf-c forgets the numbers of the first; the others merge
 * them. */
static bool same_number(uint64_t wanted, uint64_t got)
{
    return wanted == got || !wanted;
}

static bool same_descriptor(const pb_descriptor *wanted, const struct weir_envoy_descriptor *got)
{
    if (wanted->n_entries != got->entry_count || !wanted->limit == got->has_limit ||
        !wanted->hits_addend == got->has_hits_addend ||
        (wanted->is_negative_hits != 0) != got->is_negative_hits)
        return false;
    if (wanted->limit && (!same_number(wanted->limit->requests_per_unit, got->requests_per_unit) ||
                          !same_number((uint32_t)wanted->limit->unit, got->unit)))
        return false;
    if (wanted->hits_addend && !same_number(wanted->hits_addend->value, got->hits_addend))
        return false;
    for (size_t i = 0; i < wanted->n_entries; i++)
        if (!same_text(wanted->entries[i]->key, got->entries[i].key) ||
            !same_text(wanted->entries[i]->value, got->entries[i].value))
            return false;
    return true;
}

bool oracle_reads(struct weir_bytes message, const struct weir_envoy_request *request)
{
    pb_request *wanted = unpack(message);
    bool good = wanted && same_text(wanted->domain, request->domain) &&
                wanted->hits_addend == request->hits_addend &&
                wanted->n_descriptors == request->descriptor_count;
    for (size_t i = 0; good && i < wanted->n_descriptors; i++)
        good = same_descriptor(wanted->descriptors[i], &request->descriptors[i]);
    if (wanted)
        envoy__service__ratelimit__v3__rate_limit_request__free_unpacked(wanted, NULL);
    return good;
}

bool oracle_refuses(struct weir_bytes message)
{
    pb_request *read = unpack(message);
    if (read)
        envoy__service__ratelimit__v3__rate_limit_request__free_unpacked(read, NULL);
    return !read;
}

/* --- Responses -------------------------------------------------------------------------------- */

static bool same_status(const pb_status *got, const struct weir_envoy_status *wanted)
{
    if ((int)got->code != wanted->code || got->limit_remaining != wanted->limit_remaining ||
        !got->current_limit == wanted->has_limit || !got->duration_until_reset == wanted->has_limit)
        return false;
    return !wanted->has_limit ||
           (got->current_limit->requests_per_unit == wanted->requests_per_unit &&
            (uint32_t)got->current_limit->unit == wanted->unit &&
            same(got->current_limit->name, wanted->name) &&
            (uint64_t)got->duration_until_reset->seconds == wanted->duration_until_reset_s);
}

static bool same_response(const pb_response *got, const struct weir_envoy_response *wanted)
{
    bool good = (int)got->overall_code == wanted->overall_code &&
                got->n_statuses == wanted->status_count &&
                got->n_response_headers_to_add == wanted->header_count &&
                !got->dynamic_metadata == !wanted->dynamic_metadata;
    for (size_t i = 0; good && i < got->n_statuses; i++)
        good = same_status(got->statuses[i], &wanted->statuses[i]);
    for (size_t i = 0; good && i < got->n_response_headers_to_add; i++)
        good = same(got->response_headers_to_add[i]->key, wanted->headers[i].key) &&
               same(got->response_headers_to_add[i]->value, wanted->headers[i].value);
    return good;
}

bool oracle_writes(const struct weir_envoy_response *response, struct weir_bytes written)
{
    pb_response *got = envoy__service__ratelimit__v3__rate_limit_response__unpack(
        NULL, written.size, (const uint8_t *)written.data);
    bool good = got && same_response(got, response);
    uint8_t *packed = good ? malloc(written.size + 1) : NULL;
    if (packed) {
        good = protobuf_c_message_get_packed_size(&got->base) == written.size;
        good = good && protobuf_c_message_pack(&got->base, packed) == written.size &&
               !memcmp(packed, written.data, written.size);
    }
    free(packed);
    if (got)
        envoy__service__ratelimit__v3__rate_limit_response__free_unpacked(got, NULL);
    return good;
}
