/* SPDX-License-Identifier: Apache-2.0 */
/* see connection.h */
#include "server/net/connection.h"

#include <errno.h>
#include <string.h>

#include "rules/source.h"
#include "server/daemon/worker.h"
#include "server/net/listener.h"
#include "server/net/pieces.h"
#include "wire/http/forwarded.h"
#include "wire/socket_address.h"

/* Room that a read into a connection's own buffer has at least. */
#define READ_ROOM_MIN 2048
/* An answer that its socket did not take lies in a buffer behind its own uv_write_t. */
#define WRITE_CHUNK (WEIR_OUTPUT_MAX - sizeof(uv_write_t))

static uint64_t connection_now_ms(const struct weir_connection *connection)
{
    return uv_now(connection->worker->loop);
}

static void connection_on_closed(uv_handle_t *handle)
{
    struct weir_connection *connection = handle->data;
    weir_worker_forget(connection->worker, connection);
}

static void connection_drop_input(struct weir_connection *connection)
{
    weir_buffer_give(&connection->worker->buffers, connection->input);
    weir_buffer_give(&connection->worker->buffers, connection->aside);
    connection->input = connection->aside = NULL;
}

/* --- Replies that are owed -------------------------------------------------------------------- */

struct weir_slot *weir_connection_slot(struct weir_connection *connection)
{
    struct weir_slot *slot = weir_worker_slot(connection->worker);
    if (!slot)
        return NULL;
    slot->connection = connection;
    if (connection->last)
        connection->last->next = slot;
    else
        connection->first = slot;
    connection->last = slot;
    slot->weight = 1;
    connection->owed++;
    return slot;
}

void weir_slot_wait(struct weir_slot *slot, struct weir_decision *decision)
{
    struct weir_worker *worker = slot->connection->worker;
    slot->waiting++;
    slot->weight++;
    slot->connection->owed++;
    decision->owner = slot;
    weir_worker_queue(worker, decision);
}

void weir_slot_look(struct weir_slot *slot, struct weir_decision *decision)
{
    slot->waiting++;
    decision->owner = slot;
    weir_engine_look(slot->connection->worker->engine, decision);
}

void weir_slot_begin(struct weir_slot *slot, void (*more)(struct weir_slot *))
{
    struct weir_connection *connection = slot->connection;
    slot->more = more;
    slot->waiting++; /* for its own end */
    connection->begun = slot;
    weir_pieces_line_up(connection->worker, connection);
}

void weir_slot_end(struct weir_slot *slot)
{
    weir_pieces_end(slot->connection);
    if (--slot->waiting == 0)
        weir_worker_mark(slot->connection->worker, slot->connection);
}

static bool slot_goes_on(struct weir_slot *slot)
{
    slot->again = NULL;
    slot->waiting++;
    weir_pieces_go_on(slot->connection->worker, slot->connection);
    return true;
}

void weir_slot_pause(struct weir_slot *slot)
{
    slot->again = slot_goes_on;
    slot->waiting--;
}

void weir_slot_weigh(struct weir_slot *slot, size_t bytes)
{
    uint32_t weight = (uint32_t)(bytes / 256);
    slot->weight += weight;
    slot->connection->owed += weight;
}

static void slot_drop(struct weir_worker *worker, struct weir_slot *slot)
{
    if (slot->drop)
        slot->drop(slot);
    weir_worker_run_engine(worker); /* leases may have to end */
    if (slot->decision)
        weir_worker_cancel(worker, slot->decision);
    if (slot->buffer) {
        struct weir_decision **decisions = (struct weir_decision **)(void *)slot->buffer->data;
        for (uint32_t i = 0; i < slot->count; i++)
            weir_worker_cancel(worker, decisions[i]);
        weir_buffer_give(&worker->buffers, slot->buffer);
    }
    weir_worker_give_slot(worker, slot);
}

static void connection_drop_slots(struct weir_connection *connection)
{
    while (connection->first) {
        struct weir_slot *slot = connection->first;
        connection->first = slot->next;
        slot_drop(connection->worker, slot);
    }
    connection->last = NULL;
}

/* Unlinks a slot; `link` is what points at it. */
static void connection_unlink(struct weir_connection *connection, struct weir_slot **link,
                              struct weir_slot *before)
{
    struct weir_slot *slot = *link;
    *link = slot->next;
    if (connection->last == slot)
        connection->last = before;
    connection->owed -= slot->weight;
}

static struct weir_slot *connection_take_ready(struct weir_connection *connection)
{
    struct weir_slot **link = &connection->first, *before = NULL, *slot;
    bool unordered = connection->listener->front->unordered;
    while ((slot = *link) && slot->waiting && unordered) {
        before = slot;
        link = &slot->next;
    }
    if (!slot || slot->waiting)
        return NULL;
    connection_unlink(connection, link, before);
    return slot;
}

void weir_connection_drop_slot(struct weir_connection *connection, struct weir_slot *slot)
{
    struct weir_slot **link = &connection->first, *before = NULL;
    while (*link != slot) {
        before = *link;
        link = &before->next;
    }
    connection_unlink(connection, link, before);
    if (connection->begun == slot)
        weir_pieces_leave(connection);
    weir_worker_give_slot(connection->worker, slot);
}

void weir_connection_close(struct weir_connection *connection)
{
    if (connection->state == WEIR_CONNECTION_CLOSING)
        return;
    connection->state = WEIR_CONNECTION_CLOSING;
    if (connection->listener->front->end)
        connection->listener->front->end(connection);
    connection->held = NULL;
    if (connection->begun)
        weir_pieces_end(connection);
    connection_drop_slots(connection);
    connection_drop_input(connection);
    weir_worker_unwatch(connection->worker, connection);
    weir_tls_close(connection->tls);
    connection->tls = NULL;
    uv_close(&connection->handle, connection_on_closed);
}

/* --- Output ----------------------------------------------------------------------------------- */

static void connection_on_written(uv_write_t *write, int status)
{
    struct weir_buffer *buffer = write->data;
    struct weir_connection *connection = write->handle->data;
    connection->output_bytes -= buffer->used;
    weir_buffer_give(&connection->worker->buffers, buffer);
    if (connection->state == WEIR_CONNECTION_CLOSING)
        return;
    if (status < 0)
        weir_connection_close(connection);
    else
        weir_worker_mark(connection->worker, connection);
}

/* Keeps bytes that the socket did not take, and has libuv write them when it does. */
static void connection_keep_output(struct weir_connection *connection, const char *data,
                                   size_t size)
{
    while (size) {
        size_t chunk = size < WRITE_CHUNK ? size : WRITE_CHUNK;
        struct weir_buffer *buffer =
            weir_buffer_take(&connection->worker->buffers, sizeof(uv_write_t) + chunk);
        if (!buffer) {
            weir_connection_close(connection);
            return;
        }
        uv_write_t *write = (uv_write_t *)(void *)buffer->data;
        char *copy = buffer->data + sizeof *write;
        memcpy(copy, data, chunk);
        write->data = buffer;
        buffer->used = chunk;
        uv_buf_t out = uv_buf_init(copy, (unsigned)chunk);
        if (uv_write(write, &connection->stream, &out, 1, connection_on_written) < 0) {
            weir_buffer_give(&connection->worker->buffers, buffer);
            weir_connection_close(connection);
            return;
        }
        connection->output_bytes += chunk;
        data += chunk;
        size -= chunk;
    }
}

/* Sends bytes as they are. */
static void connection_write(struct weir_connection *connection, const char *data, size_t size)
{
    if (!size || connection->state == WEIR_CONNECTION_CLOSING)
        return;
    if (!connection->output_bytes) {
        uv_buf_t out = uv_buf_init((char *)(uintptr_t)data, (unsigned)size);
        int n = uv_try_write(&connection->stream, &out, 1);
        if (n < 0 && n != UV_EAGAIN) {
            weir_connection_close(connection);
            return;
        }
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    connection_keep_output(connection, data, size);
}

static void connection_send_pending(struct weir_connection *connection)
{
    struct weir_bytes pending = weir_tls_pending(connection->tls);
    connection_write(connection, pending.data, pending.size);
    if (connection->tls) /* else the write has closed it */
        weir_tls_sent(connection->tls, pending.size);
}

static void connection_write_encrypted(struct weir_connection *connection, const char *data,
                                       size_t size)
{
    if (!size || connection->state == WEIR_CONNECTION_CLOSING)
        return;
    if (weir_tls_write(connection->tls, data, size) < 0)
        weir_connection_close(connection);
    else
        connection_send_pending(connection);
}

void weir_connection_send(struct weir_connection *connection, struct weir_output *output,
                          const char *data, size_t size)
{
    if (connection->tls) {
        connection_write_encrypted(connection, output->data, output->used);
        output->used = 0;
        connection_write_encrypted(connection, data, size);
        return;
    }
    connection_write(connection, output->data, output->used);
    output->used = 0;
    connection_write(connection, data, size);
}

static void connection_say_end(struct weir_connection *connection)
{
    if (!connection->tls)
        return;
    weir_tls_end(connection->tls);
    connection_send_pending(connection);
}

/* --- Deadlines -------------------------------------------------------------------------------- */

/* Whether something is coming in: a PROXY header, a handshake, a request or an encrypted record. */
static bool connection_begun(const struct weir_connection *connection)
{
    return connection->input || connection->state == WEIR_CONNECTION_PROXY ||
           (connection->tls && weir_tls_midway(connection->tls));
}

/* Whether its protocol knows best how long it may take. */
static bool connection_has_own_deadlines(const struct weir_connection *connection)
{
    return connection->listener->front->deadline_ms && connection->state == WEIR_CONNECTION_OPEN &&
           (!connection->tls || weir_tls_ready(connection->tls));
}

/* Sets the deadline that the connection's present state asks for. */
static void connection_watch(struct weir_connection *connection)
{
    uint64_t now_ms = connection_now_ms(connection), deadline_ms = now_ms;
    uint32_t idle_ms = connection->listener->front->idle_ms;
    bool begun = connection_begun(connection);
    deadline_ms += idle_ms ? idle_ms : WEIR_IDLE_MS;
    if (!begun)
        connection->request_deadline_ms = 0;
    if (connection->state == WEIR_CONNECTION_LINGER) {
        deadline_ms = now_ms + WEIR_LINGER_MS;
    } else if (connection->held) {
        deadline_ms = connection->held_until_ms;
    } else if (connection->output_bytes) {
        deadline_ms = now_ms + WEIR_STALL_MS;
    } else if (connection_has_own_deadlines(connection)) {
        deadline_ms = connection->listener->front->deadline_ms(connection, now_ms);
    } else if (begun && !connection->paused && !connection->first) {
        if (!connection->request_deadline_ms)
            connection->request_deadline_ms = now_ms + WEIR_REQUEST_MS;
        deadline_ms = connection->request_deadline_ms;
    } else if (connection->worker->draining && !connection->first && !connection->paused) {
        deadline_ms = now_ms + WEIR_DRAIN_MS;
    }
    weir_worker_watch(connection->worker, connection, deadline_ms);
}

void weir_connection_begin_body(struct weir_connection *connection)
{
    connection->request_deadline_ms = connection_now_ms(connection) + WEIR_BODY_MS;
}

/* All is written: tells the client so and waits for it to close. */
static void connection_linger(struct weir_connection *connection)
{
    uv_os_fd_t fd;
    if (connection->eof || uv_fileno(&connection->handle, &fd) < 0 ||
        (shutdown(fd, SHUT_WR) < 0 && errno != ENOTCONN)) {
        weir_connection_close(connection);
        return;
    }
    connection->state = WEIR_CONNECTION_LINGER;
    connection->paused = false;
    connection_drop_input(connection);
    connection_watch(connection);
}

void weir_connection_expire(struct weir_connection *connection)
{
    bool begun = connection_begun(connection);
    if (connection->state == WEIR_CONNECTION_LINGER) {
        weir_connection_close(connection);
    } else if (connection->held) {
        connection->held->waiting--;
        connection->held = NULL;
        weir_worker_mark(connection->worker, connection); /* which sets the next one */
    } else if (connection->output_bytes) {
        weir_count(&connection->worker->counters.timeouts, 1);
        weir_connection_close(connection);
    } else if (connection_has_own_deadlines(connection)) {
        connection->listener->front->expire(connection, connection_now_ms(connection));
        weir_worker_mark(connection->worker, connection); /* which sets the next one */
    } else if (connection->first || connection->paused) {
        connection_watch(connection); /* it waits for us, not we for it */
    } else if (begun) {
        weir_count(&connection->worker->counters.timeouts, 1);
        weir_connection_cut(connection, WEIR_CUT_TIMEOUT);
    } else {
        weir_connection_close(connection);
    }
}

void weir_connection_drain(struct weir_connection *connection)
{
    if (connection->state == WEIR_CONNECTION_CLOSING || connection->state == WEIR_CONNECTION_LINGER)
        return;
    if (connection->listener->front->drain) {
        connection->listener->front->drain(connection);
        weir_worker_mark(connection->worker, connection);
    }
    connection_watch(connection);
}

void weir_connection_cut(struct weir_connection *connection, enum weir_cut why)
{
    bool shaking = connection->tls && !weir_tls_ready(connection->tls);
    if (connection->state == WEIR_CONNECTION_PROXY || shaking) { /* it cannot be answered */
        weir_connection_close(connection);
        return;
    }
    struct weir_output *output = &connection->worker->output;
    connection->state = WEIR_CONNECTION_ENDING;
    connection_drop_input(connection);
    output->used = 0;
    if (!connection->first) /* else its words would overtake replies that are owed */
        connection->listener->front->cut(connection, why, output);
    weir_connection_send(connection, output, NULL, 0);
    weir_worker_mark(connection->worker, connection);
}

/* --- Input ------------------------------------------------------------------------------------ */

static void connection_fail(struct weir_connection *connection)
{
    struct weir_worker *worker = connection->worker;
    weir_count(&worker->counters.tls_errors, 1);
    weir_log_event(worker->log, WEIR_LOG_WARNING, "tls_failed", "reason",
                   weir_tls_error(connection->tls));
    connection->state = WEIR_CONNECTION_ENDING;
    weir_worker_mark(worker, connection);
}

static void connection_receive(struct weir_connection *connection, const char *data, size_t size)
{
    bool was_ready = weir_tls_ready(connection->tls);
    int err = weir_tls_receive(connection->tls, data, size);
    if (err == WEIR_ERR_MEMORY) {
        weir_connection_close(connection);
        return;
    }
    if (weir_tls_ready(connection->tls) && !was_ready)
        connection->request_deadline_ms = 0;
    if (err < 0)
        connection_fail(connection); /* before the client hears of it: the metrics tell no less */
    else
        weir_worker_mark(connection->worker, connection);
    connection_send_pending(connection); /* an alert, where it has failed */
}

/* Reads the PROXY protocol's header. Returns the bytes taken, 0 for more, -1: not to be served. */
static long connection_read_proxy(struct weir_connection *connection, const char *data, size_t size)
{
    struct weir_address client = connection->peer;
    long n = weir_proxy_header_parse(&client, data, size);
    if (n < 0)
        weir_count(&connection->worker->counters.protocol_errors, 1);
    if (n < 0 ||
        (n > 0 && !weir_listener_admits(connection->listener, &client, &connection->places))) {
        weir_connection_close(connection);
        return -1;
    }
    if (n > 0) {
        connection->peer = client;
        connection->state = WEIR_CONNECTION_OPEN;
    }
    return n;
}

bool weir_connection_pause(struct weir_connection *connection)
{
    bool room = weir_worker_has_room(connection->worker);
    if (room && !connection->held && !connection->begun && connection->owed < WEIR_OWED_MAX &&
        connection->output_bytes <= WEIR_OUTPUT_MAX)
        return false;
    if (!room && !connection->begun)
        weir_worker_stall(connection->worker, connection);
    connection->paused = true;
    uv_read_stop(&connection->stream);
    return true;
}

/* Parses what it can. Returns the bytes that are done with. */
static size_t connection_parse(struct weir_connection *connection, char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        long n;
        if (connection->state == WEIR_CONNECTION_PROXY) {
            n = connection_read_proxy(connection, data + done, size - done);
            if (n > 0 && connection->tls) { /* what follows the header is encrypted */
                connection_receive(connection, data + done + n, size - done - (size_t)n);
                return size;
            }
        } else if (weir_connection_pause(connection))
            break;
        else
            n = connection->listener->front->parse(connection, data + done, size - done);
        if (n == 0)
            break;
        if (n < 0) {
            if (connection->state == WEIR_CONNECTION_OPEN)
                connection->state = WEIR_CONNECTION_ENDING;
            return size;
        }
        connection->request_deadline_ms = 0;
        done += (size_t)n;
    }
    return done;
}

/* Keeps the rest of the input for the next read. Returns whether it could. */
static bool connection_keep_input(struct weir_connection *connection, const char *rest, size_t size)
{
    struct weir_buffers *buffers = &connection->worker->buffers;
    if (!size) {
        weir_buffer_give(buffers, connection->input);
        connection->input = NULL;
        return true;
    }
    if (!connection->input) {
        connection->input = weir_buffer_take(buffers, size + READ_ROOM_MIN);
        if (!connection->input)
            return false;
    }
    memmove(connection->input->data, rest, size);
    connection->input->used = size;
    return true;
}

static void connection_take_input(struct weir_connection *connection, char *data, size_t size)
{
    size_t done = connection_parse(connection, data, size);
    if (connection->state == WEIR_CONNECTION_CLOSING)
        return;
    if (connection->state == WEIR_CONNECTION_ENDING) {
        connection_drop_input(connection);
    } else {
        size_t request_max = connection->listener->front->request_max;
        if (!connection->paused && size - done > request_max)
            weir_connection_cut(connection, WEIR_CUT_TOO_LARGE);
        else if (!connection_keep_input(connection, data + done, size - done))
            weir_connection_cut(connection, WEIR_CUT_BUSY);
    }
    weir_worker_mark(connection->worker, connection);
}

/* Where the next plain bytes go: the worker's buffer, or behind what the connection keeps. Without
 * memory its base is NULL. */
static uv_buf_t connection_room(struct weir_connection *connection)
{
    struct weir_worker *worker = connection->worker;
    if (!connection->input)
        return uv_buf_init(worker->read_buffer, WEIR_READ_BYTES);
    struct weir_buffer *input =
        weir_buffer_reserve(&worker->buffers, connection->input, READ_ROOM_MIN);
    if (!input)
        return uv_buf_init(NULL, 0);
    connection->input = input;
    return uv_buf_init(input->data + input->used, (unsigned)(input->size - input->used));
}

/* Takes `n` plain bytes that were put there. */
static void connection_take(struct weir_connection *connection, const uv_buf_t *room, size_t n)
{
    if (!connection->input) {
        connection_take_input(connection, room->base, n);
    } else {
        connection->input->used += n;
        connection_take_input(connection, connection->input->data, connection->input->used);
    }
}

void weir_connection_hold(struct weir_connection *connection, uint32_t wait_ms)
{
    connection->held = connection->last;
    connection->held->waiting++;
    connection->held_until_ms = connection_now_ms(connection) + wait_ms;
}

/* The client says nothing more; what it has asked before is still answered. */
static void connection_end_input(struct weir_connection *connection)
{
    connection->state = WEIR_CONNECTION_ENDING;
    connection_drop_input(connection);
    weir_worker_mark(connection->worker, connection);
}

/* Takes what can be decrypted of what has come, as far as there is room for it. */
static void connection_decrypt(struct weir_connection *connection)
{
    while (connection->state == WEIR_CONNECTION_OPEN && !connection->paused) {
        uv_buf_t room = connection_room(connection);
        long n = room.base ? weir_tls_read(connection->tls, room.base, room.len) : 0;
        if (!room.base)
            weir_connection_cut(connection, WEIR_CUT_BUSY);
        else if (n > 0)
            connection_take(connection, &room, (size_t)n);
        else if (n < 0)
            connection_end_input(connection);
        if (n <= 0)
            break;
    }
    if (connection->state == WEIR_CONNECTION_CLOSING)
        return;
    connection_send_pending(connection);
    weir_worker_mark(connection->worker, connection);
}

static void connection_on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct weir_connection *connection = handle->data;
    bool encrypted = connection->tls && connection->state != WEIR_CONNECTION_PROXY;
    (void)suggested;
    *out = encrypted ? uv_buf_init(connection->worker->read_buffer, WEIR_READ_BYTES)
                     : connection_room(connection); /* without a base: UV_ENOBUFS */
}

static void connection_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct weir_connection *connection = stream->data;
    if (n == 0 || connection->state == WEIR_CONNECTION_CLOSING)
        return;
    weir_worker_renew(connection->worker);
    if (n > 0) {
        if (connection->state == WEIR_CONNECTION_LINGER ||
            connection->state == WEIR_CONNECTION_ENDING)
            return; /* read only so that closing does not reset the connection */
        if (connection->tls && connection->state != WEIR_CONNECTION_PROXY)
            connection_receive(connection, buffer->base, (size_t)n);
        else
            connection_take(connection, buffer, (size_t)n);
        if (connection->tls && connection->state == WEIR_CONNECTION_OPEN)
            connection_decrypt(connection);
        return;
    }
    if (n == UV_ENOBUFS) {
        weir_connection_cut(connection, WEIR_CUT_BUSY);
        return;
    }
    connection->eof = true;
    uv_read_stop(stream);
    if (n != UV_EOF || connection->state == WEIR_CONNECTION_LINGER ||
        connection->state == WEIR_CONNECTION_PROXY) {
        weir_connection_close(connection);
        return;
    }
    connection_end_input(connection);
}

void weir_connection_resume(struct weir_connection *connection)
{
    if (!connection->paused || connection->stalled || connection->held || connection->begun ||
        connection->state != WEIR_CONNECTION_OPEN || connection->owed > WEIR_OWED_MAX / 2 ||
        connection->output_bytes > WEIR_OUTPUT_MAX / 2)
        return;
    connection->paused = false;
    if (connection->listener->front->resume)
        connection->listener->front->resume(connection);
    if (connection->input)
        connection_take_input(connection, connection->input->data, connection->input->used);
    if (connection->tls && connection->state == WEIR_CONNECTION_OPEN)
        connection_decrypt(connection);
    if (!connection->paused && connection->state <= WEIR_CONNECTION_ENDING)
        uv_read_start(&connection->stream, connection_on_alloc, connection_on_read);
}

void weir_connection_flush(struct weir_connection *connection)
{
    struct weir_output *output = &connection->worker->output;
    const struct weir_front *front = connection->listener->front;
    struct weir_slot *slot;
    output->used = 0;
    while ((slot = connection_take_ready(connection))) {
        slot->write(slot, output);
        weir_worker_give_slot(connection->worker, slot);
        if (output->size - output->used < WEIR_REPLY_MAX)
            weir_connection_send(connection, output, NULL, 0);
    }
    if (front->flush && connection->state <= WEIR_CONNECTION_ENDING &&
        !front->flush(connection, output) && connection->state == WEIR_CONNECTION_OPEN)
        connection->state = WEIR_CONNECTION_ENDING;
    weir_connection_send(connection, output, NULL, 0);
    if (connection->state == WEIR_CONNECTION_CLOSING || connection->state == WEIR_CONNECTION_LINGER)
        return;
    if (connection->state == WEIR_CONNECTION_ENDING) {
        if (!connection->first)
            connection_say_end(connection);
        if (connection->state == WEIR_CONNECTION_CLOSING)
            return;
        if (!connection->first && !connection->output_bytes) {
            connection_linger(connection);
            return;
        }
    } else {
        weir_connection_resume(connection);
        if (connection->state == WEIR_CONNECTION_CLOSING)
            return;
    }
    connection_watch(connection);
}

/* --- Begin ------------------------------------------------------------------------------------ */

bool weir_connection_own_address(const struct weir_connection *connection, struct weir_address *own)
{
    struct sockaddr_storage address;
    int size = sizeof address;
    own->family = 0;
    if (!connection->listener->unix_socket &&
        uv_tcp_getsockname(&connection->tcp, (struct sockaddr *)&address, &size) == 0)
        weir_socket_address_read(own, (struct sockaddr *)&address);
    return own->family != 0;
}

static bool connection_encrypt(struct weir_connection *connection)
{
    struct weir_tls_context *context =
        weir_worker_tls_context(connection->worker, connection->listener->front);
    return !context || weir_tls_open(&connection->tls, context, NULL) == 0;
}

void weir_connection_start(struct weir_connection *connection)
{
    connection->handle.data = connection;
    connection->state = WEIR_CONNECTION_OPEN;
    if (!connection_encrypt(connection)) {
        weir_connection_close(connection);
        return;
    }
    if (weir_listener_settings(connection->listener)->proxy_protocol) {
        connection->state = WEIR_CONNECTION_PROXY;
        if (!weir_worker_trusts(connection->worker, &connection->peer)) {
            weir_count(&connection->worker->counters.protocol_errors, 1);
            weir_connection_close(connection);
            return;
        }
    }
    const struct weir_front *front = connection->listener->front;
    if ((front->begin && !front->begin(connection)) ||
        uv_read_start(&connection->stream, connection_on_alloc, connection_on_read) < 0)
        weir_connection_close(connection);
    else
        connection_watch(connection);
}

/* --- For front ends --------------------------------------------------------------------------- */

void *weir_connection_workspace(struct weir_connection *connection)
{
    return connection->listener->workspace;
}

/* The other end is a proxy or a program, whose TLS library is not the client's. */
static bool speaks_for_others(const struct weir_connection *connection)
{
    return weir_listener_trusts(connection->listener) ||
           weir_worker_trusts(connection->worker, &connection->peer);
}

void weir_connection_tell_peer(const struct weir_connection *connection,
                               struct weir_request *request)
{
    if (!connection->tls)
        return;
    weir_request_put(request, weir_source_fixed(WEIR_ATTR_TLS_NAME),
                     weir_tls_peer_name(connection->tls), WEIR_TRUST_CONNECTION);
    weir_request_put(request, weir_source_fixed(WEIR_ATTR_TLS_CN),
                     weir_tls_peer_common_name(connection->tls), WEIR_TRUST_CONNECTION);
    if (!speaks_for_others(connection))
        weir_request_put(request, weir_source_fixed(WEIR_ATTR_TLS_JA4),
                         weir_tls_ja4(connection->tls), WEIR_TRUST_CONNECTION);
}
