/* SPDX-License-Identifier: Apache-2.0 */
/* Encrypted connections; see connection.h */
#include "server/daemon/worker.h"
#include "server/net/listener.h"

bool weir_connection_encrypt(struct weir_connection *connection)
{
    struct weir_tls_context *context =
        weir_certificates_of(connection->worker->certificates, connection->listener->kind);
    return !context || weir_tls_open(&connection->tls, context, NULL) == 0;
}

void weir_connection_send_pending(struct weir_connection *connection)
{
    struct weir_bytes pending = weir_tls_pending(connection->tls);
    weir_connection_write(connection, pending.data, pending.size);
    if (connection->tls) /* else the write has closed it */
        weir_tls_sent(connection->tls, pending.size);
}

static void connection_fail(struct weir_connection *connection)
{
    struct weir_worker *worker = connection->worker;
    weir_count(&worker->counters.tls_errors, 1);
    weir_log_event(worker->log, WEIR_LOG_WARNING, "tls_failed", "reason",
                   weir_tls_error(connection->tls));
    connection->state = WEIR_CONNECTION_ENDING;
    weir_worker_mark(worker, connection);
}

void weir_connection_receive(struct weir_connection *connection, const char *data, size_t size)
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
    weir_connection_send_pending(connection); /* an alert, where it has failed */
}

void weir_connection_write_encrypted(struct weir_connection *connection, const char *data,
                                     size_t size)
{
    if (!size || connection->state == WEIR_CONNECTION_CLOSING)
        return;
    if (weir_tls_write(connection->tls, data, size) < 0)
        weir_connection_close(connection);
    else
        weir_connection_send_pending(connection);
}

void weir_connection_say_end(struct weir_connection *connection)
{
    if (!connection->tls)
        return;
    weir_tls_end(connection->tls);
    weir_connection_send_pending(connection);
}

void weir_connection_tell_peer(const struct weir_connection *connection,
                               struct weir_request *request)
{
    struct weir_bytes *values = request->values;
    values[WEIR_ATTR_TLS_NAME] = values[WEIR_ATTR_TLS_CN] = (struct weir_bytes){NULL, 0};
    if (!connection->tls)
        return;
    values[WEIR_ATTR_TLS_NAME] = weir_tls_peer_name(connection->tls);
    values[WEIR_ATTR_TLS_CN] = weir_tls_peer_common_name(connection->tls);
}
