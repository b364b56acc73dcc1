/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection sends; see connection.h */
#include <string.h>

#include "server/daemon/worker.h"

/* An answer that its socket did not take lies in a buffer behind its own uv_write_t. */
#define WRITE_CHUNK (WEIR_OUTPUT_MAX - sizeof(uv_write_t))

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
void weir_connection_write(struct weir_connection *connection, const char *data, size_t size)
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

void weir_connection_send(struct weir_connection *connection, struct weir_output *output,
                          const char *data, size_t size)
{
    if (connection->tls) {
        weir_connection_write_encrypted(connection, output->data, output->used);
        output->used = 0;
        weir_connection_write_encrypted(connection, data, size);
        return;
    }
    weir_connection_write(connection, output->data, output->used);
    output->used = 0;
    weir_connection_write(connection, data, size);
}
