/* SPDX-License-Identifier: Apache-2.0 */
/* See socket.h. */
#include "store/redis/client/socket.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define KEEPALIVE_S 15

static void address_next(struct redis_socket *socket);

static void part_gone(struct redis_socket *socket)
{
    if (--socket->parts == 0 && socket->ended)
        socket->gone(socket);
}

static void socket_tell(struct redis_socket *socket, int status)
{
    if (!socket->ended)
        socket->connected(socket, status);
}

static void on_closed(uv_handle_t *handle)
{
    part_gone(handle->data);
}

/* --- Connecting ------------------------------------------------------------------------------- */

/* An address was of no use: the next one, with the same handle. */
static void on_address_closed(uv_handle_t *handle)
{
    struct redis_socket *socket = handle->data;
    if (!socket->ended)
        address_next(socket);
    part_gone(socket);
}

static void on_connected(uv_connect_t *request, int status)
{
    struct redis_socket *socket = request->data;
    if (status != 0 && !socket->ended && socket->tried < socket->address_count) {
        socket->lives = false;
        uv_close(&socket->handle, on_address_closed);
        return;
    }
    if (status == 0 && socket->handle.type == UV_TCP) {
        uv_tcp_nodelay(&socket->tcp, 1);
        uv_tcp_keepalive(&socket->tcp, 1, KEEPALIVE_S);
    }
    socket_tell(socket, status);
}

static int handle_init(struct redis_socket *socket, int status)
{
    if (status == 0) {
        socket->lives = true;
        socket->parts++;
        socket->stream.data = socket;
        socket->connect.data = socket;
    }
    return status;
}

static int address_try(struct redis_socket *socket)
{
    uint32_t index = (socket->first + socket->tried++) % socket->address_count;
    int status = handle_init(socket, uv_tcp_init(socket->loop, &socket->tcp));
    return status != 0
               ? status
               : uv_tcp_connect(&socket->connect, &socket->tcp,
                                (const struct sockaddr *)&socket->addresses[index], on_connected);
}

static void address_next(struct redis_socket *socket)
{
    int status = address_try(socket);
    if (status != 0 && socket->lives && socket->tried < socket->address_count) {
        socket->lives = false;
        uv_close(&socket->handle, on_address_closed);
    } else if (status != 0) {
        socket_tell(socket, status);
    }
}

/* --- Names ------------------------------------------------------------------------------------ */

static void addresses_take(struct redis_socket *socket, const struct addrinfo *list)
{
    for (; list && socket->address_count < REDIS_ADDRESSES_MAX; list = list->ai_next)
        if (list->ai_addrlen <= sizeof socket->addresses[0])
            memcpy(&socket->addresses[socket->address_count++], list->ai_addr, list->ai_addrlen);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct redis_socket *socket = request->data;
    if (status == 0) {
        addresses_take(socket, list);
        status = socket->address_count > 0 ? 0 : UV_EAI_NODATA;
    }
    uv_freeaddrinfo(list);
    if (status != 0) {
        socket_tell(socket, status);
    } else if (!socket->ended) {
        socket->resolving = false;
        address_next(socket);
    }
    part_gone(socket);
}

static int resolve_start(struct redis_socket *socket, const struct redis_host *host)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};
    char port[8];

    snprintf(port, sizeof port, "%u", host->port);
    socket->resolving = true;
    socket->resolve.data = socket;
    int status =
        uv_getaddrinfo(socket->loop, &socket->resolve, on_resolved, host->name, port, &hints);
    socket->parts += status == 0;
    return status;
}

int redis_socket_open(struct redis_socket *socket, const struct redis_host *host, const char *path,
                      uint32_t first)
{
    socket->first = first;
    if (!host) {
        int status = handle_init(socket, uv_pipe_init(socket->loop, &socket->pipe, 0));
        if (status == 0)
            uv_pipe_connect(&socket->connect, &socket->pipe, path, on_connected);
        return status;
    }
    /* An address needs no thread. */
    if (uv_ip4_addr(host->name, host->port, (struct sockaddr_in *)&socket->addresses[0]) == 0 ||
        uv_ip6_addr(host->name, host->port, (struct sockaddr_in6 *)&socket->addresses[0]) == 0) {
        socket->address_count = 1;
        return address_try(socket);
    }
    return resolve_start(socket, host);
}

bool redis_socket_close(struct redis_socket *socket)
{
    socket->ended = true;
    if (socket->resolving)
        uv_cancel((uv_req_t *)&socket->resolve); /* or `gone` waits for it */
    if (socket->lives) {
        socket->lives = false;
        uv_close(&socket->handle, on_closed);
    }
    return socket->parts > 0;
}
