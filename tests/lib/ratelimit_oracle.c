/* see ratelimit_oracle.h */
#include "ratelimit_oracle.h"

#include <stdlib.h>
#include <string.h>

#include "envoy_service_ratelimit_v3.pb-c.h"
#include "wire/utf8.h"

typedef Envoy__Extensions__Common__Ratelimit__V3__RateLimitDescriptor pb_descriptor;
typedef Envoy__Service__Ratelimit__V3__RateLimitRequest pb_request;
typedef Envoy__Service__Ratelimit__V3__RateLimitResponse pb_response;
typedef Envoy__Service__Ratelimit__V3__RateLimitResponse__DescriptorStatus pb_status;

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
    for (size_t i = 0; i < wanted->n_entries; i++) {
        if (!same_text(wanted->entries[i]->key, got->entries[i].key) ||
            !same_text(wanted->entries[i]->value, got->entries[i].value))
            return false;
    }
    return true;
}

bool oracle_reads(struct weir_bytes message, const struct weir_envoy_request *request)
{
    pb_request *wanted = envoy__service__ratelimit__v3__rate_limit_request__unpack(
        NULL, message.size, (const uint8_t *)message.data);
    bool good = wanted && same_text(wanted->domain, request->domain) &&
                wanted->hits_addend == request->hits_addend &&
                wanted->n_descriptors == request->descriptor_count;
    for (size_t i = 0; good && i < wanted->n_descriptors; i++)
        good = same_descriptor(wanted->descriptors[i], &request->descriptors[i]);
    if (wanted)
        envoy__service__ratelimit__v3__rate_limit_request__free_unpacked(wanted, NULL);
    return good;
}

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
