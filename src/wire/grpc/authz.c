/* SPDX-License-Identifier: Apache-2.0 */
/* see authz.h */
#include "wire/grpc/authz.h"

#include <string.h>

#include "core/bytes.h"
#include "envoy_service_auth_v3.pb-c.h"
#include "wire/grpc/message.h"

typedef Envoy__Service__Auth__V3__AttributeContext pb_context;
typedef Envoy__Service__Auth__V3__AttributeContext__HttpRequest pb_http;
typedef Envoy__Service__Auth__V3__AttributeContext__Peer pb_peer;
typedef Envoy__Service__Auth__V3__BytesPair pb_pair;
typedef Envoy__Config__Core__V3__HeaderValueOption pb_option;

/* --- Requests --------------------------------------------------------------------------------- */

static int pairs_read(struct weir_grpc_pairs *pairs, pb_pair *const *from, size_t count,
                      struct weir_grpc_arena *arena)
{
    struct weir_grpc_pair *list = weir_grpc_arena_take(arena, count * sizeof *list);
    if (!list)
        return WEIR_ERR_TOO_LARGE;
    for (size_t i = 0; i < count; i++)
        list[i] =
            (struct weir_grpc_pair){weir_grpc_text(from[i]->key), weir_grpc_text(from[i]->value)};
    *pairs = (struct weir_grpc_pairs){list, count};
    return 0;
}

/* Envoy fills header_map instead if it is configured to send headers unchanged. */
static int header_map_read(struct weir_grpc_pairs *pairs,
                           const Envoy__Config__Core__V3__HeaderMap *map,
                           struct weir_grpc_arena *arena)
{
    struct weir_grpc_pair *list = weir_grpc_arena_take(arena, map->n_headers * sizeof *list);
    if (!list)
        return WEIR_ERR_TOO_LARGE;
    for (size_t i = 0; i < map->n_headers; i++) {
        const Envoy__Config__Core__V3__HeaderValue *header = map->headers[i];
        bool raw = header->raw_value.len > 0;
        list[i] = (struct weir_grpc_pair){weir_grpc_text(header->key),
                                          weir_grpc_text(raw ? header->raw_value : header->value)};
    }
    *pairs = (struct weir_grpc_pairs){list, map->n_headers};
    return 0;
}

static int http_read(struct weir_grpc_authz_request *request, const pb_http *http,
                     struct weir_grpc_arena *arena)
{
    request->method = weir_grpc_text(http->method);
    request->path = weir_grpc_text(http->path);
    request->host = weir_grpc_text(http->host);
    if (!http->n_headers && http->header_map)
        return header_map_read(&request->headers, http->header_map, arena);
    return pairs_read(&request->headers, http->headers, http->n_headers, arena);
}

static void peer_read(struct weir_grpc_authz_request *request, const pb_peer *peer)
{
    const Envoy__Config__Core__V3__Address *address = peer->address;
    request->principal = weir_grpc_text(peer->principal);
    if (address &&
        address->address_case == ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS)
        request->source = weir_grpc_text(address->socket_address->address);
}

int weir_grpc_authz_read(struct weir_grpc_authz_request *request, struct weir_bytes message,
                         struct weir_grpc_arena *arena)
{
    ProtobufCMessage *unpacked;
    int err = weir_grpc_unpack(&envoy__service__auth__v3__check_request__descriptor, message, arena,
                               &unpacked);
    *request = (struct weir_grpc_authz_request){.method = {"", 0}};
    if (err < 0)
        return err;
    const pb_context *context =
        ((const Envoy__Service__Auth__V3__CheckRequest *)unpacked)->attributes;
    if (!context)
        return 0;
    if (context->source)
        peer_read(request, context->source);
    if (context->request && context->request->http)
        err = http_read(request, context->request->http, arena);
    if (err < 0)
        return err;
    return pairs_read(&request->extensions, context->context_extensions,
                      context->n_context_extensions, arena);
}

/* --- Responses -------------------------------------------------------------------------------- */

/* One header with what hangs on it. */
struct option_block {
    pb_option option;
    Envoy__Config__Core__V3__HeaderValue header;
    Google__Protobuf__BoolValue append;
};

/* NULL: no room. */
static pb_option **options_make(const struct weir_grpc_pairs *pairs, struct weir_grpc_arena *arena)
{
    struct option_block *blocks = weir_grpc_arena_take(arena, pairs->count * sizeof *blocks);
    pb_option **pointers = weir_grpc_arena_take(arena, pairs->count * sizeof(void *));
    if (!blocks || !pointers)
        return NULL;
    for (size_t i = 0; i < pairs->count; i++) {
        struct option_block *block = &blocks[i];
        block->header =
            (Envoy__Config__Core__V3__HeaderValue)ENVOY__CONFIG__CORE__V3__HEADER_VALUE__INIT;
        block->header.key = weir_grpc_data(pairs->list[i].name);
        block->header.value = weir_grpc_data(pairs->list[i].value);
        /* Both ways of saying so: Envoy before 1.20 knows the first alone. */
        block->append = (Google__Protobuf__BoolValue)GOOGLE__PROTOBUF__BOOL_VALUE__INIT;
        block->option = (pb_option)ENVOY__CONFIG__CORE__V3__HEADER_VALUE_OPTION__INIT;
        block->option.header = &block->header;
        block->option.append = &block->append;
        block->option.append_action =
            ENVOY__CONFIG__CORE__V3__HEADER_VALUE_OPTION__HEADER_APPEND_ACTION__OVERWRITE_IF_EXISTS_OR_ADD;
        pointers[i] = &block->option;
    }
    return pointers;
}

static int write_denied(const struct weir_grpc_authz_response *from, struct weir_grpc_arena *arena,
                        Google__Rpc__Status *code, struct weir_bytes *out)
{
    Envoy__Service__Auth__V3__CheckResponse response =
        ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__INIT;
    Envoy__Service__Auth__V3__DeniedHttpResponse denied =
        ENVOY__SERVICE__AUTH__V3__DENIED_HTTP_RESPONSE__INIT;
    Envoy__Type__V3__HttpStatus status = ENVOY__TYPE__V3__HTTP_STATUS__INIT;
    status.code = (Envoy__Type__V3__StatusCode)from->http_status;
    denied.status = &status;
    denied.body = weir_grpc_data(from->body);
    denied.headers = options_make(&from->headers, arena);
    denied.n_headers = from->headers.count;
    response.status = code;
    response.http_response_case =
        ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__HTTP_RESPONSE_DENIED_RESPONSE;
    response.denied_response = &denied;
    return denied.headers ? weir_grpc_pack(&response.base, arena, out) : WEIR_ERR_TOO_LARGE;
}

static int write_allowed(const struct weir_grpc_authz_response *from, struct weir_grpc_arena *arena,
                         Google__Rpc__Status *code, struct weir_bytes *out)
{
    Envoy__Service__Auth__V3__CheckResponse response =
        ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__INIT;
    Envoy__Service__Auth__V3__OkHttpResponse allowed =
        ENVOY__SERVICE__AUTH__V3__OK_HTTP_RESPONSE__INIT;
    ProtobufCBinaryData removed[WEIR_GRPC_AUTHZ_REMOVE_MAX];
    allowed.headers = options_make(&from->headers, arena);
    allowed.n_headers = from->headers.count;
    allowed.response_headers_to_add = options_make(&from->response_headers, arena);
    allowed.n_response_headers_to_add = from->response_headers.count;
    for (size_t i = 0; i < from->remove_count; i++)
        removed[i] = weir_grpc_data(weir_bytes_of(from->remove[i]));
    allowed.headers_to_remove = removed;
    allowed.n_headers_to_remove = from->remove_count;
    response.status = code;
    response.http_response_case =
        ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__HTTP_RESPONSE_OK_RESPONSE;
    response.ok_response = &allowed;
    bool whole = allowed.headers && allowed.response_headers_to_add;
    return whole ? weir_grpc_pack(&response.base, arena, out) : WEIR_ERR_TOO_LARGE;
}

int weir_grpc_authz_write(const struct weir_grpc_authz_response *from,
                          struct weir_grpc_arena *arena, struct weir_bytes *out)
{
    Google__Rpc__Status code = GOOGLE__RPC__STATUS__INIT;
    code.code = from->status;
    return from->allowed ? write_allowed(from, arena, &code, out)
                         : write_denied(from, arena, &code, out);
}
