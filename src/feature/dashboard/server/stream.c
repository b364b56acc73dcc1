/* SPDX-License-Identifier: Apache-2.0 */
/* see stream.h */
#include "feature/dashboard/server/stream.h"

#include <string.h>

#include "server/http/reply.h"
#include "server/http/request.h"

/* Behind the head of a reply; nginx buffers replies that do not forbid it. */
static const char begin[] = "Content-Type: text/event-stream\r\n"
                            "X-Accel-Buffering: no\r\n"
                            "\r\n"
                            "retry: 1000\n\n";

static void head_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    weir_http_begin(http, output, WEIR_HTTP_200, slot->detail, slot->flags);
    weir_output_put(output, begin, sizeof begin - 1);
}

static void forget(struct weir_stream_client *client)
{
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
                      const unsigned char *session)
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
    head->detail = call->route;
    head->write = head_write;
    *client = (struct weir_stream_client){.stream = stream, .slot = slot, .by_session = session};
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

/* A client gets a text when its head and the texts before have left. */
static void send_one(struct weir_stream_client *client, const char *text, size_t size)
{
    struct weir_connection *connection = client->slot->connection;
    struct weir_output nothing = {0};
    if (connection->eof) {
        end_one(client);
        return;
    }
    if (connection->first != client->slot || connection->output_bytes > 0) {
        client->stream->lost++;
        return;
    }
    client->stream->ticks++;
    weir_connection_send(connection, &nothing, text, size); /* may close it, and drop the slot */
    if (client->slot)
        weir_worker_mark(connection->worker, connection); /* which watches what it did not take */
}

void weir_stream_send(struct weir_stream *stream, const char *text, size_t size)
{
    for (unsigned i = 0; i < WEIR_STREAM_CLIENTS_MAX; i++)
        if (stream->clients[i].slot)
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
