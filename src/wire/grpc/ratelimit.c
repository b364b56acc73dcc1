/* SPDX-License-Identifier: Apache-2.0 */
/* see ratelimit.h and protobuf.h */
#include "wire/grpc/ratelimit.h"

#include "core/text/utf8.h"
#include "wire/grpc/grpc.h"
#include "wire/grpc/message.h"
#include "wire/grpc/protobuf.h"
#include "wire/grpc/struct.h"

/* --- Requests ---------------------------------------------------------------------------------
 *
 * In two walks: one counts descriptors and entries, so that their arrays are taken at once, the
 * other fills them. Texts point into one copy of the message. A message that is given twice where
 * one is allowed is merged: the members of the later one win. */

enum request_field { REQUEST_DOMAIN = 1, REQUEST_DESCRIPTORS = 2, REQUEST_HITS_ADDEND = 3 };
enum descriptor_field {
    DESCRIPTOR_ENTRIES = 1,
    DESCRIPTOR_LIMIT = 2,
    DESCRIPTOR_HITS_ADDEND = 3,
    DESCRIPTOR_IS_NEGATIVE_HITS = 4,
};
enum entry_field { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum override_field { OVERRIDE_REQUESTS_PER_UNIT = 1, OVERRIDE_UNIT = 2 };

struct counts {
    size_t descriptors, entries;
};

static int request_count(struct counts *counts, struct weir_bytes message)
{
    struct weir_pb_reader request = weir_pb_read(message);
    while (weir_pb_next(&request)) {
        if (!weir_pb_is(&request, REQUEST_DESCRIPTORS, WEIR_PB_BYTES))
            continue;
        struct weir_pb_reader descriptor = weir_pb_read(request.bytes);
        while (weir_pb_next(&descriptor))
            counts->entries += weir_pb_is(&descriptor, DESCRIPTOR_ENTRIES, WEIR_PB_BYTES);
        if (descriptor.bad)
            return WEIR_ERR_SYNTAX;
        counts->descriptors++;
    }
    return request.bad ? WEIR_ERR_SYNTAX : 0;
}

static bool text_read(struct weir_bytes *text, struct weir_pb_reader *reader)
{
    *text = reader->bytes;
    return weir_utf8_valid(text->data, text->size) || weir_pb_fail(reader);
}

static bool entry_read(struct weir_envoy_entry *entry, struct weir_bytes message)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    *entry = (struct weir_envoy_entry){{"", 0}, {"", 0}};
    while (weir_pb_next(&reader)) {
        bool good = true;
        if (weir_pb_is(&reader, ENTRY_KEY, WEIR_PB_BYTES))
            good = text_read(&entry->key, &reader);
        else if (weir_pb_is(&reader, ENTRY_VALUE, WEIR_PB_BYTES))
            good = text_read(&entry->value, &reader);
        if (!good)
            return false;
    }
    return !reader.bad;
}

static bool limit_read(struct weir_envoy_descriptor *descriptor, struct weir_bytes message)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    descriptor->has_limit = true;
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, OVERRIDE_REQUESTS_PER_UNIT, WEIR_PB_VARINT))
            descriptor->requests_per_unit = (uint32_t)reader.value;
        else if (weir_pb_is(&reader, OVERRIDE_UNIT, WEIR_PB_VARINT))
            descriptor->unit = (uint32_t)reader.value;
    return !reader.bad;
}

static bool hits_read(struct weir_envoy_descriptor *descriptor, struct weir_bytes message)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    descriptor->has_hits_addend = true;
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, 1, WEIR_PB_VARINT))
            descriptor->hits_addend = reader.value;
    return !reader.bad;
}

static bool descriptor_field_read(struct weir_envoy_descriptor *descriptor,
                                  const struct weir_pb_reader *reader,
                                  struct weir_envoy_entry **entries)
{
    if (weir_pb_is(reader, DESCRIPTOR_ENTRIES, WEIR_PB_BYTES)) {
        descriptor->entry_count++;
        return entry_read((*entries)++, reader->bytes);
    }
    if (weir_pb_is(reader, DESCRIPTOR_LIMIT, WEIR_PB_BYTES))
        return limit_read(descriptor, reader->bytes);
    if (weir_pb_is(reader, DESCRIPTOR_HITS_ADDEND, WEIR_PB_BYTES))
        return hits_read(descriptor, reader->bytes);
    if (weir_pb_is(reader, DESCRIPTOR_IS_NEGATIVE_HITS, WEIR_PB_VARINT))
        descriptor->is_negative_hits = reader->value != 0;
    return true;
}

/* Takes its entries from the front of what is left of them. */
static bool descriptor_read(struct weir_envoy_descriptor *descriptor, struct weir_bytes message,
                            struct weir_envoy_entry **entries)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    *descriptor = (struct weir_envoy_descriptor){.entries = *entries};
    while (weir_pb_next(&reader))
        if (!descriptor_field_read(descriptor, &reader, entries))
            return false;
    return !reader.bad;
}

static bool request_fill(struct weir_envoy_request *request, struct weir_bytes message,
                         struct weir_envoy_descriptor *descriptors,
                         struct weir_envoy_entry *entries)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    bool good = true;
    while (good && weir_pb_next(&reader))
        if (weir_pb_is(&reader, REQUEST_DOMAIN, WEIR_PB_BYTES))
            good = text_read(&request->domain, &reader);
        else if (weir_pb_is(&reader, REQUEST_DESCRIPTORS, WEIR_PB_BYTES))
            good =
                descriptor_read(&descriptors[request->descriptor_count++], reader.bytes, &entries);
        else if (weir_pb_is(&reader, REQUEST_HITS_ADDEND, WEIR_PB_VARINT))
            request->hits_addend = (uint32_t)reader.value;
    return good && !reader.bad;
}

int weir_grpc_ratelimit_read(struct weir_envoy_request *request, struct weir_bytes message,
                             struct weir_grpc_arena *arena)
{
    struct counts counts = {0};
    int err = request_count(&counts, message);
    if (err < 0)
        return err;
    char *copy = weir_grpc_arena_take(arena, message.size);
    struct weir_envoy_descriptor *descriptors =
        weir_grpc_arena_take(arena, counts.descriptors * sizeof *descriptors);
    struct weir_envoy_entry *entries =
        weir_grpc_arena_take(arena, counts.entries * sizeof *entries);
    if (!copy || !descriptors || !entries)
        return WEIR_ERR_TOO_LARGE;
    if (message.size)
        memcpy(copy, message.data, message.size);
    *request = (struct weir_envoy_request){.domain = {"", 0}, .descriptors = descriptors};
    bool good =
        request_fill(request, (struct weir_bytes){copy, message.size}, descriptors, entries);
    return good ? 0 : WEIR_ERR_SYNTAX;
}

/* --- Responses -------------------------------------------------------------------------------- */

enum response_field {
    RESPONSE_OVERALL_CODE = 1,
    RESPONSE_STATUSES = 2,
    RESPONSE_HEADERS_TO_ADD = 3,
    RESPONSE_REQUEST_HEADERS_TO_ADD = 4,
    RESPONSE_DYNAMIC_METADATA = 6,
};
enum status_field {
    STATUS_CODE = 1,
    STATUS_CURRENT_LIMIT = 2,
    STATUS_LIMIT_REMAINING = 3,
    STATUS_DURATION_UNTIL_RESET = 4,
};
enum limit_field { LIMIT_REQUESTS_PER_UNIT = 1, LIMIT_UNIT = 2, LIMIT_NAME = 3 };
enum header_field { HEADER_KEY = 1, HEADER_VALUE = 2 };

static size_t text_size(struct weir_bytes text)
{
    return text.size ? weir_pb_bytes_size(text.size) : 0;
}

static char *put_text(char *out, unsigned number, struct weir_bytes text)
{
    return text.size ? weir_pb_put_bytes(out, number, text) : out;
}

static size_t limit_size(const struct weir_envoy_status *status)
{
    return weir_pb_number_size(status->requests_per_unit) + weir_pb_number_size(status->unit) +
           text_size(status->name);
}

static size_t status_size(const struct weir_envoy_status *status)
{
    size_t size = weir_pb_number_size(status->code) + weir_pb_number_size(status->limit_remaining);
    if (status->has_limit)
        size += weir_pb_bytes_size(limit_size(status)) +
                weir_pb_bytes_size(weir_pb_number_size(status->duration_until_reset_s));
    return size;
}

static char *put_status(char *out, const struct weir_envoy_status *status)
{
    out = weir_pb_put_head(out, RESPONSE_STATUSES, status_size(status));
    out = weir_pb_put_number(out, STATUS_CODE, status->code);
    if (status->has_limit) {
        out = weir_pb_put_head(out, STATUS_CURRENT_LIMIT, limit_size(status));
        out = weir_pb_put_number(out, LIMIT_REQUESTS_PER_UNIT, status->requests_per_unit);
        out = weir_pb_put_number(out, LIMIT_UNIT, status->unit);
        out = put_text(out, LIMIT_NAME, status->name);
    }
    out = weir_pb_put_number(out, STATUS_LIMIT_REMAINING, status->limit_remaining);
    if (status->has_limit) {
        out = weir_pb_put_head(out, STATUS_DURATION_UNTIL_RESET,
                               weir_pb_number_size(status->duration_until_reset_s));
        out = weir_pb_put_number(out, 1, status->duration_until_reset_s);
    }
    return out;
}

static size_t header_size(const struct weir_envoy_header *header)
{
    return text_size(header->key) + text_size(header->value);
}

static char *put_header(char *out, unsigned number, const struct weir_envoy_header *header)
{
    out = weir_pb_put_head(out, number, header_size(header));
    out = put_text(out, HEADER_KEY, header->key);
    return put_text(out, HEADER_VALUE, header->value);
}

int weir_grpc_ratelimit_write(const struct weir_envoy_response *from, struct weir_grpc_arena *arena,
                              struct weir_bytes *out)
{
    Google__Protobuf__Struct *metadata = NULL;
    size_t metadata_size = 0, size = weir_pb_number_size(from->overall_code);
    for (uint32_t i = 0; i < from->status_count; i++)
        size += weir_pb_bytes_size(status_size(&from->statuses[i]));
    for (uint32_t i = 0; i < from->header_count; i++)
        size += weir_pb_bytes_size(header_size(&from->headers[i]));
    if (from->request_header.key.data)
        size += weir_pb_bytes_size(header_size(&from->request_header));
    if (from->dynamic_metadata) {
        metadata = weir_grpc_struct(from->dynamic_metadata, arena);
        if (!metadata)
            return WEIR_ERR_TOO_LARGE;
        metadata_size = protobuf_c_message_get_packed_size(&metadata->base);
        size += weir_pb_bytes_size(metadata_size);
    }
    char *start = weir_grpc_arena_take(arena, WEIR_GRPC_PREFIX_BYTES + size), *at = start;
    if (!start)
        return WEIR_ERR_TOO_LARGE;
    weir_grpc_prefix_write(at, (uint32_t)size);
    at = weir_pb_put_number(at + WEIR_GRPC_PREFIX_BYTES, RESPONSE_OVERALL_CODE, from->overall_code);
    for (uint32_t i = 0; i < from->status_count; i++)
        at = put_status(at, &from->statuses[i]);
    for (uint32_t i = 0; i < from->header_count; i++)
        at = put_header(at, RESPONSE_HEADERS_TO_ADD, &from->headers[i]);
    if (from->request_header.key.data)
        at = put_header(at, RESPONSE_REQUEST_HEADERS_TO_ADD, &from->request_header);
    if (metadata) {
        at = weir_pb_put_head(at, RESPONSE_DYNAMIC_METADATA, metadata_size);
        at += protobuf_c_message_pack(&metadata->base, (uint8_t *)at);
    }
    *out = (struct weir_bytes){start, (size_t)(at - start)};
    return 0;
}
