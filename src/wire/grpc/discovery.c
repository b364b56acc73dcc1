/* SPDX-License-Identifier: Apache-2.0 */
/* see discovery.h */
#include "wire/grpc/discovery.h"

#include <string.h>

#include "wire/grpc/protobuf.h"

enum { VERSION = 1, NODE = 2, RESOURCES = 2, TYPE_URL = 4, NONCE = 5, ERROR_DETAIL = 6 };
enum { NODE_ID = 1, NODE_METADATA = 3 };
enum { STRUCT_FIELDS = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2, VALUE_STRING = 3 };
enum { STATUS_CODE = 1, STATUS_MESSAGE = 2 };
enum { ANY_TYPE_URL = 1, ANY_VALUE = 2 };

#define INVALID_ARGUMENT 3 /* of google.rpc.Code */

static struct weir_bytes text_of(const char *text)
{
    return (struct weir_bytes){text, text ? strlen(text) : 0};
}

/* --- Writing ---------------------------------------------------------------------------------- */

/* Bytes are written while there is room, and counted always. */
struct writer {
    char *out;
    size_t size, used;
};

static void put(struct writer *writer, const void *data, size_t size)
{
    if (size > 0 && writer->used + size <= writer->size)
        memcpy(writer->out + writer->used, data, size);
    writer->used += size;
}

static void put_head(struct writer *writer, unsigned number, size_t size)
{
    char head[12];
    put(writer, head, (size_t)(weir_pb_put_head(head, number, size) - head));
}

/* Empty texts are left out. */
static void put_text(struct writer *writer, unsigned number, struct weir_bytes text)
{
    if (text.size == 0)
        return;
    put_head(writer, number, text.size);
    put(writer, text.data, text.size);
}

static size_t text_size(struct weir_bytes text)
{
    return text.size == 0 ? 0 : weir_pb_bytes_size(text.size);
}

/* A field of google.protobuf.Struct: its name, and a google.protobuf.Value of a text, which is
 * written where it is empty, too. */
static size_t value_size(const struct weir_discovery_pair *pair)
{
    return weir_pb_bytes_size(strlen(pair->value));
}

static size_t pair_size(const struct weir_discovery_pair *pair)
{
    return text_size(text_of(pair->name)) + weir_pb_bytes_size(value_size(pair));
}

static void put_pair(struct writer *writer, const struct weir_discovery_pair *pair)
{
    struct weir_bytes value = text_of(pair->value);
    put_head(writer, STRUCT_FIELDS, pair_size(pair));
    put_text(writer, ENTRY_KEY, text_of(pair->name));
    put_head(writer, ENTRY_VALUE, value_size(pair));
    put_head(writer, VALUE_STRING, value.size);
    put(writer, value.data, value.size);
}

static void put_node(struct writer *writer, const struct weir_discovery_request *request)
{
    size_t metadata = 0, id = text_size(text_of(request->node));
    for (uint32_t i = 0; i < request->metadata_count; i++)
        metadata += weir_pb_bytes_size(pair_size(&request->metadata[i]));
    put_head(writer, NODE, id + (metadata > 0 ? weir_pb_bytes_size(metadata) : 0));
    put_text(writer, NODE_ID, text_of(request->node));
    if (metadata > 0)
        put_head(writer, NODE_METADATA, metadata);
    for (uint32_t i = 0; i < request->metadata_count; i++)
        put_pair(writer, &request->metadata[i]);
}

static void put_error(struct writer *writer, const char *error)
{
    static const char code[] = {STATUS_CODE << 3 | WEIR_PB_VARINT, INVALID_ARGUMENT};
    put_head(writer, ERROR_DETAIL, sizeof(code) + text_size(text_of(error)));
    put(writer, code, sizeof(code));
    put_text(writer, STATUS_MESSAGE, text_of(error));
}

size_t weir_discovery_request_write(const struct weir_discovery_request *request, char *out,
                                    size_t size)
{
    struct writer writer = {out, size, 0};
    put_text(&writer, VERSION, request->version);
    put_node(&writer, request);
    put_text(&writer, TYPE_URL, request->type_url);
    put_text(&writer, NONCE, request->nonce);
    if (request->error)
        put_error(&writer, request->error);
    return writer.used;
}

/* --- Reading ---------------------------------------------------------------------------------- */

int weir_discovery_response_read(struct weir_discovery_response *response,
                                 struct weir_bytes message)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    struct weir_bytes empty = {"", 0};
    *response = (struct weir_discovery_response){empty, empty, empty, 0};
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, VERSION, WEIR_PB_BYTES))
            response->version = reader.bytes;
        else if (weir_pb_is(&reader, TYPE_URL, WEIR_PB_BYTES))
            response->type_url = reader.bytes;
        else if (weir_pb_is(&reader, NONCE, WEIR_PB_BYTES))
            response->nonce = reader.bytes;
        else if (weir_pb_is(&reader, RESOURCES, WEIR_PB_BYTES))
            response->count++;
    return reader.bad ? WEIR_ERR_SYNTAX : 0;
}

static void read_any(struct weir_discovery_resource *resource, struct weir_bytes message)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    struct weir_bytes empty = {"", 0};
    *resource = (struct weir_discovery_resource){empty, empty};
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, ANY_TYPE_URL, WEIR_PB_BYTES))
            resource->type_url = reader.bytes;
        else if (weir_pb_is(&reader, ANY_VALUE, WEIR_PB_BYTES))
            resource->value = reader.bytes;
    if (reader.bad)
        *resource = (struct weir_discovery_resource){empty, empty}; /* of no type that is known */
}

bool weir_discovery_resource_next(struct weir_bytes message, size_t *at,
                                  struct weir_discovery_resource *resource)
{
    const struct weir_bytes rest = {message.data + *at, message.size - *at};
    struct weir_pb_reader reader = weir_pb_read(rest);
    while (weir_pb_next(&reader)) {
        *at = message.size - (size_t)(reader.end - reader.at);
        if (!weir_pb_is(&reader, RESOURCES, WEIR_PB_BYTES))
            continue;
        read_any(resource, reader.bytes);
        return true;
    }
    return false;
}
