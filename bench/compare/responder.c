/* SPDX-License-Identifier: Apache-2.0 */
/* What libuv costs beside a bare epoll loop: loop-responder uv|epoll
 *
 * One thread that reads commands with weir's codec and answers each with the five integers of
 * CL.THROTTLE, without deciding anything. The two loops share everything else: all that a socket
 * has is read at once, every complete command is answered, one write a read. Prints "port N" and
 * serves until it is killed. bench/compare/run.py drives it.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "wire/resp/resp.h"
#include "wire/resp/write.h"

#define IN_MAX 65536 /* what is read at once; 1,000 commands */
#define REPLY_MAX (WEIR_RESP_HEAD_MAX + 5 * WEIR_RESP_INTEGER_MAX)
#define COMMAND_MIN 4 /* bytes: "*0\r\n" */
#define EVENTS_MAX 256
#define BACKLOG 128

struct peer {
    uv_tcp_t tcp; /* of the libuv loop */
    int fd;       /* of the bare one */
    size_t in_size;
    struct weir_resp_parser parser;
    struct weir_resp_request request;
    char in[IN_MAX], out[IN_MAX / COMMAND_MIN * REPLY_MAX];
};

static void die(const char *what)
{
    fprintf(stderr, "responder: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static char *reply_write(char *out)
{
    out = weir_resp_write_array(out, 5);
    out = weir_resp_write_integer(out, 0);
    out = weir_resp_write_integer(out, 16);
    out = weir_resp_write_integer(out, 15);
    out = weir_resp_write_integer(out, -1);
    return weir_resp_write_integer(out, 2);
}

/* Answers what is complete. Returns the bytes of the answers, or -1 for what is no command. */
static long answer(struct peer *peer)
{
    size_t at = 0;
    char *out = peer->out;
    long taken;
    while ((taken = weir_resp_parse(&peer->parser, peer->in + at, peer->in_size - at,
                                    &peer->request)) > 0) {
        at += (size_t)taken;
        out = reply_write(out);
    }
    peer->in_size -= at;
    memmove(peer->in, peer->in + at, peer->in_size);
    return taken < 0 || peer->in_size == IN_MAX ? -1 : (long)(out - peer->out);
}

static struct peer *peer_new(void)
{
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL)
        die("no memory");
    return peer;
}

static int listen_anywhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        die("cannot listen");
    printf("port %u\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

/* --- A bare epoll loop ------------------------------------------------------------------------ */

static void epoll_accept(int epoll, int listener)
{
    static const int on = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct peer *peer = peer_new();
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    peer->fd = fd;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        die("cannot serve a connection");
}

/* A connection that cannot take its answers at once is closed: the driver reads all of them. */
static void epoll_serve(struct peer *peer)
{
    ssize_t got = read(peer->fd, peer->in + peer->in_size, IN_MAX - peer->in_size);
    long size = -1;
    if (got < 0 && errno == EAGAIN)
        return;
    if (got > 0) {
        peer->in_size += (size_t)got;
        size = answer(peer);
    }
    if (size < 0 || (size > 0 && write(peer->fd, peer->out, (size_t)size) != size)) {
        close(peer->fd);
        free(peer);
    }
}

static void epoll_run(int listener)
{
    struct epoll_event events[EVENTS_MAX], event = {.events = EPOLLIN, .data.ptr = NULL};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0)
        die("epoll");
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++)
            if (events[i].data.ptr == NULL)
                epoll_accept(epoll, listener);
            else
                epoll_serve(events[i].data.ptr);
    }
}

/* --- libuv ------------------------------------------------------------------------------------ */

static void uv_free(uv_handle_t *handle)
{
    free(handle->data);
}

static void uv_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct peer *peer = handle->data;
    *buffer = uv_buf_init(peer->in + peer->in_size, (unsigned)(IN_MAX - peer->in_size));
}

static void uv_serve(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct peer *peer = stream->data;
    long size = -1;
    if (got == 0)
        return;
    if (got > 0) {
        peer->in_size += (size_t)got;
        size = answer(peer);
    }
    uv_buf_t out = uv_buf_init(peer->out, size > 0 ? (unsigned)size : 0);
    if (size < 0 || (size > 0 && uv_try_write(stream, &out, 1) != size))
        uv_close((uv_handle_t *)stream, uv_free);
}

static void uv_welcome(uv_stream_t *listener, int status)
{
    struct peer *peer = peer_new();
    peer->tcp.data = peer;
    if (status < 0 || uv_tcp_init(listener->loop, &peer->tcp) < 0 ||
        uv_accept(listener, (uv_stream_t *)&peer->tcp) < 0 || uv_tcp_nodelay(&peer->tcp, 1) < 0 ||
        uv_read_start((uv_stream_t *)&peer->tcp, uv_room, uv_serve) < 0)
        die("cannot serve a connection");
}

static void uv_serve_all(int fd)
{
    uv_loop_t loop;
    uv_tcp_t listener;
    if (uv_loop_init(&loop) < 0 || uv_tcp_init(&loop, &listener) < 0 ||
        uv_tcp_open(&listener, fd) < 0 ||
        uv_listen((uv_stream_t *)&listener, BACKLOG, uv_welcome) < 0)
        die("libuv");
    uv_run(&loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "epoll") == 0) {
        epoll_run(listen_anywhere());
    } else if (argc == 2 && strcmp(argv[1], "uv") == 0) {
        uv_serve_all(listen_anywhere());
    } else {
        fputs("Usage: loop-responder uv|epoll\n", stderr);
        return 2;
    }
    return EXIT_SUCCESS;
}
