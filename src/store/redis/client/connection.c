/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. */
#include "store/redis/client/connection.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/refusal.h"
#include "store/redis/client/reply_reader.h"
#include "store/redis/client/socket.h"

#define OUTPUT_FIRST (16 * 1024)
#define OUTPUT_MAX (256 * 1024)  /* some thousand commands; a longer command makes it longer */
#define SECRET_INPUT (16 * 1024) /* of a TLS connection, per read: one record */

enum connection_state { CONNECTING, SECURING, OPEN, ENDED };

struct redis_connection {
    struct redis_connection_options options;
    uv_timer_t timer;
    struct redis_socket socket;
    uv_write_t write;
    uint8_t state; /* enum connection_state */
    uint8_t parts; /* timer and socket: what libuv still knows */
    bool silent;   /* the owner has closed it */
    bool writing;  /* `write` is on its way, from the output */
    bool wanted;   /* the owner was refused room */
    struct weir_tls *tls;
    struct redis_reply_reader reader;
    char *output, *secret;
    size_t output_used, output_room;
    char why[WEIR_REASON_MAX];
};

/* --- The end ---------------------------------------------------------------------------------- */

static struct redis_connection *connection_of(struct redis_socket *socket)
{
    return (struct redis_connection *)(void *)((char *)socket -
                                               offsetof(struct redis_connection, socket));
}

static void connection_free(struct redis_connection *connection)
{
    weir_tls_close(connection->tls);
    redis_reply_reader_free(&connection->reader);
    if (connection->output)
        explicit_bzero(connection->output, connection->output_room); /* it had the password */
    free(connection->output);
    free(connection->secret);
    free(connection);
}

static void part_gone(struct redis_connection *connection)
{
    if (--connection->parts > 0)
        return;
    connection->options.handlers->gone(connection->options.owner);
    connection_free(connection);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct redis_connection *connection = handle->data;
    if (!connection->silent)
        connection->options.handlers->lost(connection->options.owner, connection->why);
    part_gone(connection);
}

static void on_socket_gone(struct redis_socket *socket)
{
    part_gone(connection_of(socket));
}

static void connection_end(struct redis_connection *connection)
{
    if (connection->state == ENDED)
        return;
    connection->state = ENDED;
    uv_close((uv_handle_t *)&connection->timer, on_timer_closed);
    connection->parts += redis_socket_close(&connection->socket);
}

void redis_connection_close(struct redis_connection *connection)
{
    connection->silent = true;
    connection_end(connection);
}

void redis_connection_fail(struct redis_connection *connection, const char *why)
{
    if (connection->state != ENDED) {
        snprintf(connection->why, sizeof connection->why, "%s", why);
        connection_end(connection);
    }
}

static void fail_with(struct redis_connection *connection, const char *what, int status)
{
    char text[WEIR_REASON_MAX];
    snprintf(text, sizeof text, "%s: %s", what, uv_strerror(status));
    redis_connection_fail(connection, text);
}

static void on_timeout(uv_timer_t *timer)
{
    struct redis_connection *connection = timer->data;
    redis_connection_fail(connection,
                          connection->socket.resolving      ? "its name was not resolved in time"
                          : connection->state == CONNECTING ? "it was not reached in time"
                          : connection->state == SECURING   ? "no TLS handshake in time"
                                                            : "it did not answer in time");
}

void redis_connection_settle(struct redis_connection *connection)
{
    if (connection->state != ENDED)
        uv_timer_stop(&connection->timer);
}

/* --- Output ----------------------------------------------------------------------------------- */

static void output_push(struct redis_connection *connection);

static void on_written(uv_write_t *request, int status)
{
    struct redis_connection *connection = request->data;
    connection->writing = false;
    connection->output_used = 0;
    if (connection->state == ENDED)
        return;
    if (status < 0) {
        fail_with(connection, "writing", status);
        return;
    }
    output_push(connection);
    if (connection->wanted && !connection->writing) {
        connection->wanted = false;
        connection->options.handlers->writable(connection->options.owner);
    }
}

/* Has libuv write output[from..output_used) when the socket takes it; until then nothing is put
 * into the output. */
static void output_wait(struct redis_connection *connection, size_t from)
{
    uv_buf_t rest =
        uv_buf_init(connection->output + from, (unsigned)(connection->output_used - from));
    connection->write.data = connection;
    int status = uv_write(&connection->write, &connection->socket.stream, &rest, 1, on_written);
    connection->writing = status == 0;
    if (status != 0)
        fail_with(connection, "writing", status);
}

/* Returns the bytes that the socket took, 0 if it is full or has failed. */
static size_t output_try(struct redis_connection *connection, struct weir_bytes bytes)
{
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)bytes.data, (unsigned)bytes.size);
    int taken = uv_try_write(&connection->socket.stream, &buffer, 1);
    if (taken < 0 && taken != UV_EAGAIN)
        fail_with(connection, "writing", taken);
    return taken > 0 ? (size_t)taken : 0;
}

/* Sends what TLS has made. The session moves its bytes at its next use, so what the socket does not
 * take is copied into the output, which is empty here. */
static void secret_push(struct redis_connection *connection)
{
    for (;;) {
        struct weir_bytes pending = weir_tls_pending(connection->tls);
        if (pending.size == 0 || connection->state == ENDED || connection->writing)
            return;
        size_t taken = output_try(connection, pending);
        if (taken == 0 && connection->state != ENDED) {
            taken = pending.size < connection->output_room ? pending.size : connection->output_room;
            memcpy(connection->output, pending.data, taken);
            connection->output_used = taken;
            output_wait(connection, 0);
        }
        weir_tls_sent(connection->tls, taken);
    }
}

static void output_push(struct redis_connection *connection)
{
    if (connection->tls) {
        if (connection->output_used > 0) {
            if (weir_tls_write(connection->tls, connection->output, connection->output_used) != 0) {
                redis_connection_fail(connection, weir_tls_error(connection->tls));
                return;
            }
            connection->output_used = 0;
        }
        secret_push(connection);
        return;
    }
    if (connection->output_used == 0)
        return;
    size_t taken =
        output_try(connection, (struct weir_bytes){connection->output, connection->output_used});
    if (taken == connection->output_used)
        connection->output_used = 0;
    else if (connection->state != ENDED)
        output_wait(connection, taken);
}

void redis_connection_flush(struct redis_connection *connection)
{
    if (connection->state == OPEN && !connection->writing)
        output_push(connection);
}

/* Makes the output longer. Returns whether `size` bytes fit then. */
static bool output_grow(struct redis_connection *connection, size_t size)
{
    size_t need = connection->output_used + size, room = connection->output_room;
    while (room < need)
        room *= 2;
    if (room > OUTPUT_MAX && connection->output_used > 0)
        return false; /* flush first */
    char *grown = realloc(connection->output, room);
    if (!grown) {
        if (connection->output_used == 0)
            redis_connection_fail(connection, "no memory for a command");
        return false;
    }
    connection->output = grown;
    connection->output_room = room;
    return true;
}

char *redis_connection_room(struct redis_connection *connection, size_t size)
{
    if (connection->state != OPEN)
        return NULL;
    if (connection->writing) {
        connection->wanted = true;
        return NULL;
    }
    if (connection->output_room - connection->output_used < size && !output_grow(connection, size))
        return NULL;
    return connection->output + connection->output_used;
}

void redis_connection_put(struct redis_connection *connection, size_t size)
{
    connection->output_used += size;
}

/* --- Input ------------------------------------------------------------------------------------ */

/* What came is no reply. Its first bytes often tell what answers there. */
static void fail_with_bytes(struct redis_connection *connection, int error)
{
    char quote[33], text[WEIR_REASON_MAX] = "a reply exceeds the limits of the client";
    if (error == WEIR_ERR_SYNTAX) {
        redis_quote(quote, sizeof quote, redis_reply_reader_rest(&connection->reader));
        snprintf(text, sizeof text, "it does not speak the Redis protocol: \"%s\"", quote);
    }
    redis_connection_fail(connection, text);
}

static void fail_with_room(struct redis_connection *connection)
{
    redis_connection_fail(connection, redis_reply_reader_is_full(&connection->reader)
                                          ? "a reply exceeds the limits of the client"
                                          : "no memory for a reply");
}

static void input_parse(struct redis_connection *connection)
{
    const struct redis_connection_handlers *handlers = connection->options.handlers;
    const struct weir_resp_node *nodes;
    uint32_t count;
    int got = 0;

    while (connection->state == OPEN &&
           (got = redis_reply_reader_next(&connection->reader, &count)) > 0) {
        nodes = connection->reader.nodes;
        if (nodes[0].type == WEIR_RESP_PUSH || nodes[0].type == WEIR_RESP_ATTRIBUTE)
            redis_connection_fail(connection, "it sent an unexpected message");
        else
            handlers->replied(connection->options.owner, nodes, count);
    }
    if (got < 0)
        fail_with_bytes(connection, got);
    else if (connection->state == OPEN)
        handlers->paused(connection->options.owner);
}

/* Without room, on_read gets UV_ENOBUFS: libuv does not allow a close from here. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct redis_connection *connection = connection_of(handle->data);
    size_t size = SECRET_INPUT;
    char *room =
        connection->tls ? connection->secret : redis_reply_reader_room(&connection->reader, &size);
    if (room)
        *buffer = uv_buf_init(room, (unsigned)size);
}

/* Moves what TLS has into the input. Returns as weir_tls_read. */
static long secret_take(struct redis_connection *connection)
{
    size_t size;
    char *room = redis_reply_reader_room(&connection->reader, &size);
    if (!room) {
        fail_with_room(connection);
        return 0;
    }
    long got = weir_tls_read(connection->tls, room, size);
    if (got > 0)
        redis_reply_reader_take(&connection->reader, (size_t)got);
    return got;
}

/* Bytes of TLS: through the session, into the input. */
static void secret_read(struct redis_connection *connection, size_t size)
{
    bool failed = weir_tls_receive(connection->tls, connection->secret, size) != 0;
    long got = 0;

    if (!connection->writing)
        output_push(connection); /* of the handshake, or an alert */
    if (connection->state == SECURING && weir_tls_ready(connection->tls)) {
        connection->state = OPEN;
        connection->options.handlers->opened(connection->options.owner);
    }
    while (!failed && connection->state == OPEN && (got = secret_take(connection)) > 0)
        input_parse(connection);
    if (failed || got < 0) {
        const char *why = weir_tls_error(connection->tls);
        redis_connection_fail(connection, why && *why != '\0' ? why : "it ended the TLS session");
    }
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct redis_connection *connection = connection_of(stream->data);
    if (size < 0) {
        if (size == UV_EOF)
            redis_connection_fail(connection, "it closed the connection");
        else if (size == UV_ENOBUFS)
            fail_with_room(connection);
        else
            fail_with(connection, "reading", (int)size);
    } else if (size > 0 && connection->tls) {
        secret_read(connection, (size_t)size);
    } else if (size > 0) {
        redis_reply_reader_take(&connection->reader, (size_t)size);
        input_parse(connection);
    }
}

/* --- Opening ---------------------------------------------------------------------------------- */

static void on_connected(struct redis_socket *socket, int status)
{
    struct redis_connection *connection = connection_of(socket);
    if (status != 0) {
        fail_with(connection, socket->resolving ? "resolving its name" : "connecting", status);
        return;
    }
    status = uv_read_start(&socket->stream, on_alloc, on_read);
    if (status != 0) {
        fail_with(connection, "reading", status);
    } else if (connection->tls) {
        connection->state = SECURING;
        output_push(connection); /* the ClientHello */
    } else {
        connection->state = OPEN;
        connection->options.handlers->opened(connection->options.owner);
    }
}

static bool connection_allocate(struct redis_connection *connection)
{
    const struct redis_connection_options *options = &connection->options;
    const char *name = options->server_name;
    connection->output = malloc(connection->output_room = OUTPUT_FIRST);
    if (!connection->output || redis_reply_reader_init(&connection->reader) != 0)
        return false;
    if (!options->tls)
        return true;
    connection->secret = malloc(SECRET_INPUT);
    return connection->secret &&
           weir_tls_open(&connection->tls, options->tls, name ? name : options->host->name) == 0;
}

int redis_connection_open(struct redis_connection **out,
                          const struct redis_connection_options *options)
{
    struct redis_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return WEIR_ERR_MEMORY;
    connection->options = *options;
    if (!connection_allocate(connection)) {
        connection_free(connection);
        return WEIR_ERR_MEMORY;
    }
    connection->socket.loop = options->loop;
    connection->socket.connected = on_connected;
    connection->socket.gone = on_socket_gone;
    uv_timer_init(options->loop, &connection->timer);
    connection->timer.data = connection;
    connection->parts = 1;
    uv_timer_start(&connection->timer, on_timeout, options->open_ms, 0);
    int status =
        redis_socket_open(&connection->socket, options->host, options->path, options->first);
    if (status != 0)
        fail_with(connection, "connecting", status);
    *out = connection;
    return 0;
}
