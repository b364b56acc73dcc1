/* see grpc_ratelimit.h */
#include "wire/grpc_ratelimit.h"

#include "envoy_service_ratelimit_v3.pb-c.h"
#include "wire/grpc_message.h"
#include "wire/grpc_struct.h"
#include "wire/utf8.h"

typedef Envoy__Extensions__Common__Ratelimit__V3__RateLimitDescriptor pb_descriptor;
typedef Envoy__Service__Ratelimit__V3__RateLimitRequest pb_request;
typedef Envoy__Service__Ratelimit__V3__RateLimitResponse pb_response;
typedef Envoy__Service__Ratelimit__V3__RateLimitResponse__DescriptorStatus pb_status;
typedef Envoy__Service__Ratelimit__V3__RateLimitResponse__RateLimit pb_limit;
typedef Envoy__Config__Core__V3__HeaderValue pb_header;

/* --- Requests --------------------------------------------------------------------------------- */

static int text_read(struct weir_bytes *text, ProtobufCBinaryData data)
{
    *text = weir_grpc_text(data);
    return weir_utf8_valid(text->data, text->size) ? 0 : WEIR_ERR_SYNTAX;
}

static int entries_read(struct weir_envoy_descriptor *descriptor, const pb_descriptor *from,
                        struct weir_grpc_arena *arena)
{
    struct weir_envoy_entry *entries =
        weir_grpc_arena_take(arena, from->n_entries * sizeof *entries);
    if (!entries)
        return WEIR_ERR_TOO_LARGE;
    descriptor->entries = entries;
    descriptor->entry_count = (uint32_t)from->n_entries;
    for (size_t i = 0; i < from->n_entries; i++) {
        int err = text_read(&entries[i].key, from->entries[i]->key);
        if (err == 0)
            err = text_read(&entries[i].value, from->entries[i]->value);
        if (err < 0)
            return err;
    }
    return 0;
}

static int descriptor_read(struct weir_envoy_descriptor *descriptor, const pb_descriptor *from,
                           struct weir_grpc_arena *arena)
{
    *descriptor = (struct weir_envoy_descriptor){.is_negative_hits = from->is_negative_hits};
    if (from->limit) {
        descriptor->has_limit = true;
        descriptor->requests_per_unit = from->limit->requests_per_unit;
        descriptor->unit = (uint32_t)from->limit->unit;
    }
    if (from->hits_addend) {
        descriptor->has_hits_addend = true;
        descriptor->hits_addend = from->hits_addend->value;
    }
    return entries_read(descriptor, from, arena);
}

int weir_grpc_ratelimit_read(struct weir_envoy_request *request, struct weir_bytes message,
                             struct weir_grpc_arena *arena)
{
    ProtobufCMessage *unpacked;
    int err = weir_grpc_unpack(&envoy__service__ratelimit__v3__rate_limit_request__descriptor,
                               message, arena, &unpacked);
    if (err < 0)
        return err;
    const pb_request *from = (const pb_request *)unpacked;
    struct weir_envoy_descriptor *descriptors =
        weir_grpc_arena_take(arena, from->n_descriptors * sizeof *descriptors);
    if (!descriptors)
        return WEIR_ERR_TOO_LARGE;
    request->descriptors = descriptors;
    request->descriptor_count = (uint32_t)from->n_descriptors;
    request->hits_addend = from->hits_addend;
    err = text_read(&request->domain, from->domain);
    for (size_t i = 0; i < from->n_descriptors && err == 0; i++)
        err = descriptor_read(&descriptors[i], from->descriptors[i], arena);
    return err;
}

/* --- Responses -------------------------------------------------------------------------------- */

/* One status with what hangs on it. */
struct status_block {
    pb_status status;
    pb_limit limit;
    Google__Protobuf__Duration until_reset;
};

static void status_fill(struct status_block *block, const struct weir_envoy_status *from)
{
    block->status =
        (pb_status)ENVOY__SERVICE__RATELIMIT__V3__RATE_LIMIT_RESPONSE__DESCRIPTOR_STATUS__INIT;
    block->status.code = (int)from->code;
    block->status.limit_remaining = from->limit_remaining;
    if (!from->has_limit)
        return;
    block->limit = (pb_limit)ENVOY__SERVICE__RATELIMIT__V3__RATE_LIMIT_RESPONSE__RATE_LIMIT__INIT;
    block->limit.requests_per_unit = from->requests_per_unit;
    block->limit.unit = (int)from->unit;
    block->limit.name = weir_grpc_data(from->name);
    block->status.current_limit = &block->limit;
    block->until_reset = (Google__Protobuf__Duration)GOOGLE__PROTOBUF__DURATION__INIT;
    block->until_reset.seconds = (int64_t)from->duration_until_reset_s;
    block->status.duration_until_reset = &block->until_reset;
}

static bool statuses_fill(pb_response *response, const struct weir_envoy_response *from,
                          struct weir_grpc_arena *arena)
{
    struct status_block *blocks = weir_grpc_arena_take(arena, from->status_count * sizeof *blocks);
    pb_status **pointers = weir_grpc_arena_take(arena, from->status_count * sizeof *pointers);
    if (!blocks || !pointers)
        return false;
    for (uint32_t i = 0; i < from->status_count; i++) {
        status_fill(&blocks[i], &from->statuses[i]);
        pointers[i] = &blocks[i].status;
    }
    response->statuses = pointers;
    response->n_statuses = from->status_count;
    return true;
}

int weir_grpc_ratelimit_write(const struct weir_envoy_response *from, struct weir_grpc_arena *arena,
                              struct weir_bytes *out)
{
    pb_response response = ENVOY__SERVICE__RATELIMIT__V3__RATE_LIMIT_RESPONSE__INIT;
    pb_header headers[WEIR_ENVOY_HEADERS], *header_pointers[WEIR_ENVOY_HEADERS];
    response.overall_code = (int)from->overall_code;
    if (!statuses_fill(&response, from, arena))
        return WEIR_ERR_TOO_LARGE;
    for (uint32_t i = 0; i < from->header_count; i++) {
        headers[i] = (pb_header)ENVOY__CONFIG__CORE__V3__HEADER_VALUE__INIT;
        headers[i].key = weir_grpc_data(from->headers[i].key);
        headers[i].value = weir_grpc_data(from->headers[i].value);
        header_pointers[i] = &headers[i];
    }
    response.response_headers_to_add = header_pointers;
    response.n_response_headers_to_add = from->header_count;
    if (from->dynamic_metadata) {
        response.dynamic_metadata = weir_grpc_struct(from->dynamic_metadata, arena);
        if (!response.dynamic_metadata)
            return WEIR_ERR_TOO_LARGE;
    }
    return weir_grpc_pack(&response.base, arena, out);
}
