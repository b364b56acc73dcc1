/* SPDX-License-Identifier: Apache-2.0 */
/* see stream.h */
#include "feature/dashboard/server/stream.h"

#include <stdlib.h>
#include <string.h>

#include "server/http/packer.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* Behind the head of a reply; nginx buffers replies that do not forbid it. */
static const char fields[] = "Content-Type: text/event-stream\r\n"
                             "Vary: Accept-Encoding\r\n"
                             "X-Accel-Buffering: no\r\n";
static const char packed_field[] = "Content-Encoding: gzip\r\n";
/* Before the first text. */
static const char begin[] = "retry: 1000\n\n";

static void begin_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    weir_http_begin(http, output, WEIR_HTTP_200, slot->detail, slot->flags);
    weir_output_put(output, fields, sizeof fields - 1);
}

static void head_write(struct weir_slot *slot, struct weir_output *output)
{
    begin_write(slot, output);
    weir_output_text(output, "\r\n");
}

static void packed_head_write(struct weir_slot *slot, struct weir_output *output)
{
    begin_write(slot, output);
    weir_output_put(output, packed_field, sizeof packed_field - 1);
    weir_output_text(output, "\r\n");
}

static void forget(struct weir_stream_client *client)
{
    weir_packer_close(client->packer);
    client->packer = NULL;
    client->slot = NULL;
    client->stream->count--;
}

/* The stream has ended: there is nothing more to say. */
static void client_write(struct weir_slot *slot, struct weir_output *output)
{
}

/* Its connection goes, during the stream or after its end. */
static void client_drop(struct weir_slot *slot)
{
    struct weir_stream_client *client = slot->owner;
    if (client && client->slot == slot)
        forget(client);
}

static struct weir_stream_client *free_place(struct weir_stream *stream)
{
    for (unsigned i = 0; i < WEIR_STREAM_CLIENTS_MAX && !stream->stopping; i++)
        if (!stream->clients[i].slot)
            return &stream->clients[i];
    return NULL;
}

void weir_stream_join(struct weir_stream *stream, struct weir_http_call *call,
                      const unsigned char *session, unsigned parts)
{
    struct weir_stream_client *client = free_place(stream);
    if (!client) {
        stream->refused++;
        weir_http_problem(call, WEIR_HTTP_503, "Retry-After: 5\r\n",
                          stream->stopping ? "the server is stopping"
                                           : "too many browsers listen; close one");
        return;
    }
    call->keep_alive = false; /* the reply lasts until the connection ends */
    struct weir_slot *head = weir_http_slot(call);
    struct weir_slot *slot = head ? weir_http_slot(call) : NULL;
    if (!slot) {
        if (head)
            weir_connection_drop_slot(call->connection, head);
        return;
    }
    struct weir_packer *packer = weir_http_takes_gzip(call) ? weir_packer_open() : NULL;
    head->detail = call->route;
    head->write = packer ? packed_head_write : head_write;
    *client = (struct weir_stream_client){
        .stream = stream, .slot = slot, .packer = packer, .parts = parts, .by_session = session};
    if (session)
        memcpy(client->session, session, sizeof client->session);
    slot->owner = client;
    slot->write = client_write;
    slot->drop = client_drop;
    slot->waiting++;
    stream->count++;
}

static void end_one(struct weir_stream_client *client)
{
    struct weir_slot *slot = client->slot;
    forget(client);
    slot->owner = NULL;
    slot->waiting--;
    weir_worker_mark(slot->connection->worker, slot->connection);
}

unsigned weir_stream_parts(const struct weir_stream *stream)
{
    unsigned parts = 0;
    for (unsigned i = 0; i < WEIR_STREAM_CLIENTS_MAX; i++)
        if (stream->clients[i].slot)
            parts |= stream->clients[i].parts;
    return parts;
}

/* Sends bytes as they are; the connection may close, and drop the slot. */
static void pass(struct weir_stream_client *client, const char *data, size_t size)
{
    struct weir_output nothing = {0};
    if (!client->slot || size == 0)
        return;
    client->stream->bytes += size;
    weir_connection_send(client->slot->connection, &nothing, data, size);
}

/* False: no memory; the client lost the text. */
static bool pass_packed(struct weir_stream_client *client, const char *text, size_t size)
{
    size_t room = weir_packer_bound(client->packer, size + sizeof begin), used = 0;
    char *out = malloc(2 * room);
    if (!out)
        return false;
    if (!client->begun)
        used = weir_packer_put(client->packer, begin, sizeof begin - 1, false, out, room);
    used += weir_packer_put(client->packer, text, size, false, out + used, room);
    pass(client, out, used);
    free(out);
    return true;
}

static bool pass_text(struct weir_stream_client *client, const char *text, size_t size)
{
    if (client->packer)
        return pass_packed(client, text, size);
    if (!client->begun)
        pass(client, begin, sizeof begin - 1);
    pass(client, text, size);
    return true;
}

/* A client gets a text when its head and the texts before have left. */
static void send_one(struct weir_stream_client *client, const char *text, size_t size)
{
    struct weir_connection *connection = client->slot->connection;
    if (connection->eof) {
        end_one(client);
        return;
    }
    if (connection->first != client->slot || connection->output_bytes > 0) {
        client->stream->lost++;
        return;
    }
    if (!pass_text(client, text, size)) { /* which may close it, and drop the slot */
        client->stream->lost++;
        return;
    }
    client->stream->ticks++;
    client->begun = true;
    if (client->slot)
        weir_worker_mark(connection->worker, connection); /* which watches what it did not take */
}

void weir_stream_send(struct weir_stream *stream, unsigned parts, const char *text, size_t size)
{
    for (unsigned i = 0; i < WEIR_STREAM_CLIENTS_MAX; i++)
        if (stream->clients[i].slot && stream->clients[i].parts == parts)
            send_one(&stream->clients[i], text, size);
}

void weir_stream_check(struct weir_stream *stream,
                       bool (*is_good)(void *context, const unsigned char *session), void *context)
{
    for (unsigned i = 0; i < WEIR_STREAM_CLIENTS_MAX; i++) {
        struct weir_stream_client *client = &stream->clients[i];
        if (client->slot && client->by_session && !is_good(context, client->session))
            end_one(client);
    }
}

void weir_stream_end(struct weir_stream *stream)
{
    for (unsigned i = 0; i < WEIR_STREAM_CLIENTS_MAX; i++)
        if (stream->clients[i].slot)
            end_one(&stream->clients[i]);
}
