/* SPDX-License-Identifier: Apache-2.0 */
/* see listener.h */
#include "server/net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text/address.h"
#include "rules/counted.h"
#include "server/daemon/worker.h"
#include "server/net/fronts.h"
#include "wire/socket_address.h"

/* --- Addresses -------------------------------------------------------------------------------- */

static int endpoint_refuse(struct weir_reason *reason, const char *text)
{
    snprintf(reason->text, sizeof reason->text,
             "'%.100s' is not an address: use HOST:PORT, [IPV6]:PORT, unix:/PATH or off", text);
    return WEIR_ERR_SYNTAX;
}

static int endpoint_parse_unix(struct weir_endpoint *endpoint, const char *path,
                               struct weir_reason *reason)
{
    size_t size = strlen(path);
    if (size < 1 || size >= sizeof endpoint->un.sun_path) {
        snprintf(reason->text, sizeof reason->text,
                 "the path of a Unix socket has 1 to %zu bytes, not %zu",
                 sizeof endpoint->un.sun_path - 1, size);
        return WEIR_ERR_SYNTAX;
    }
    endpoint->kind = WEIR_ENDPOINT_UNIX;
    endpoint->local = true;
    endpoint->un.sun_family = AF_UNIX;
    memcpy(endpoint->un.sun_path, path, size + 1);
    endpoint->size = sizeof endpoint->un;
    return 0;
}

/* Digits only, at most 65535. Returns the port or -1. */
static long port_parse(const char *text)
{
    long port = 0;
    if (!*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        port = port * 10 + (*text - '0');
        if (port > 65535)
            return -1;
    }
    return port;
}

static void endpoint_set(struct weir_endpoint *endpoint, const struct weir_address *address,
                         uint16_t port)
{
    endpoint->kind = WEIR_ENDPOINT_TCP;
    if (address->family == 4) {
        endpoint->in.sin_family = AF_INET;
        endpoint->in.sin_port = htons(port);
        memcpy(&endpoint->in.sin_addr, address->bytes, 4);
        endpoint->size = sizeof endpoint->in;
        endpoint->local = address->bytes[0] == 127;
    } else {
        endpoint->in6.sin6_family = AF_INET6;
        endpoint->in6.sin6_port = htons(port);
        memcpy(&endpoint->in6.sin6_addr, address->bytes, 16);
        endpoint->size = sizeof endpoint->in6;
        endpoint->local = IN6_IS_ADDR_LOOPBACK(&endpoint->in6.sin6_addr);
    }
}

int weir_endpoint_parse(struct weir_endpoint *endpoint, const char *text,
                        struct weir_reason *reason)
{
    memset(endpoint, 0, sizeof *endpoint);
    if (!strcmp(text, "off"))
        return 0;
    if (!strncmp(text, "unix:", 5))
        return endpoint_parse_unix(endpoint, text + 5, reason);
    const char *colon = strrchr(text, ':');
    long port = colon ? port_parse(colon + 1) : -1;
    if (port < 0)
        return endpoint_refuse(reason, text);
    size_t size = (size_t)(colon - text);
    struct weir_address address = {.family = 6}; /* "*": in6addr_any is all zeros */
    if (size == 9 && !memcmp(text, "localhost", 9))
        address = (struct weir_address){.family = 4, .bytes = {127, 0, 0, 1}};
    else if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
        if (weir_address_parse(&address, text + 1, size - 2) < 0)
            return endpoint_refuse(reason, text);
    } else if (!(size == 1 && text[0] == '*') &&
               (weir_address_parse(&address, text, size) < 0 || address.family != 4)) {
        return endpoint_refuse(reason, text);
    }
    endpoint_set(endpoint, &address, (uint16_t)port);
    return 0;
}

void weir_endpoint_format(const struct weir_endpoint *endpoint, char text[WEIR_ENDPOINT_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN];
    if (endpoint->kind == WEIR_ENDPOINT_OFF) {
        memcpy(text, "off", 4);
    } else if (endpoint->kind == WEIR_ENDPOINT_UNIX) {
        snprintf(text, WEIR_ENDPOINT_TEXT_MAX, "unix:%s", endpoint->un.sun_path);
    } else if (endpoint->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &endpoint->in.sin_addr, host, sizeof host);
        snprintf(text, WEIR_ENDPOINT_TEXT_MAX, "%s:%u", host, ntohs(endpoint->in.sin_port));
    } else {
        inet_ntop(AF_INET6, &endpoint->in6.sin6_addr, host, sizeof host);
        snprintf(text, WEIR_ENDPOINT_TEXT_MAX, "[%s]:%u", host, ntohs(endpoint->in6.sin6_port));
    }
}

/* --- Sockets ---------------------------------------------------------------------------------- */

static int bind_refuse(const struct weir_endpoint *endpoint, struct weir_reason *reason)
{
    char text[WEIR_ENDPOINT_TEXT_MAX];
    const char *why = strerror(errno);
    weir_endpoint_format(endpoint, text);
    snprintf(reason->text, sizeof reason->text, "cannot listen on %s: %s", text, why);
    return WEIR_ERR_IO;
}

/* Accepted sockets inherit all these: system calls less for each. */
static void set_options(int fd)
{
    const int on = 1, idle_s = WEIR_KEEPALIVE_S;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
}

void weir_endpoint_prepare(int fd, const struct weir_endpoint *endpoint)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    if (endpoint->kind == WEIR_ENDPOINT_TCP)
        set_options(fd);
}

/* A bound TCP socket, or -1 with errno. */
static int socket_bind(const struct weir_endpoint *endpoint, bool share)
{
    const int on = 1, off = 0;
    int fd = socket(endpoint->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    set_options(fd);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (endpoint->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if ((share && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0) ||
        bind(fd, &endpoint->any, endpoint->size) < 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* Fails if another process listens on the port, even with SO_REUSEPORT. */
static int endpoint_probe(const struct weir_endpoint *endpoint)
{
    int fd = socket_bind(endpoint, false);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

static in_port_t endpoint_port(const struct weir_endpoint *endpoint)
{
    return endpoint->any.sa_family == AF_INET ? endpoint->in.sin_port : endpoint->in6.sin6_port;
}

static int bind_tcp(struct weir_endpoint *endpoint, int *fds, unsigned count,
                    struct weir_reason *reason)
{
    if (endpoint_port(endpoint) != 0 && endpoint_probe(endpoint) < 0)
        return bind_refuse(endpoint, reason);
    for (unsigned i = 0; i < count; i++) {
        fds[i] = socket_bind(endpoint, true);
        socklen_t size = sizeof endpoint->in6;
        if (fds[i] < 0 || getsockname(fds[i], &endpoint->any, &size) < 0) {
            int err = bind_refuse(endpoint, reason);
            for (unsigned j = 0; j <= i; j++)
                if (fds[j] >= 0)
                    close(fds[j]);
            return err;
        }
    }
    return 0;
}

/* Removes a socket that no process listens on. Anything else at the path stays. */
static void unix_take_over(const struct weir_endpoint *endpoint)
{
    struct stat file;
    if (lstat(endpoint->un.sun_path, &file) < 0 || !S_ISSOCK(file.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, &endpoint->any, endpoint->size) < 0 && errno == ECONNREFUSED)
        unlink(endpoint->un.sun_path);
    close(fd);
}

static int bind_unix(const struct weir_endpoint *endpoint, int *fds, unsigned count,
                     struct weir_reason *reason)
{
    unix_take_over(endpoint);
    unsigned made = 0;
    fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fds[0] < 0)
        return bind_refuse(endpoint, reason);
    made = 1;
    if (bind(fds[0], &endpoint->any, endpoint->size) < 0)
        goto close_all;
    for (; made < count; made++) {
        fds[made] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
        if (fds[made] < 0)
            goto close_all;
    }
    return 0;

close_all:;
    int err = bind_refuse(endpoint, reason);
    while (made)
        close(fds[--made]);
    return err;
}

int weir_endpoint_bind(struct weir_endpoint *endpoint, int *fds, unsigned count,
                       struct weir_reason *reason)
{
    return endpoint->kind == WEIR_ENDPOINT_UNIX ? bind_unix(endpoint, fds, count, reason)
                                                : bind_tcp(endpoint, fds, count, reason);
}

/* 0.0.0.0, or [::], which takes IPv4 too. */
static bool endpoint_is_wildcard(const struct weir_endpoint *endpoint)
{
    return endpoint->any.sa_family == AF_INET ? endpoint->in.sin_addr.s_addr == htonl(INADDR_ANY)
                                              : IN6_IS_ADDR_UNSPECIFIED(&endpoint->in6.sin6_addr);
}

static bool endpoint_same_host(const struct weir_endpoint *a, const struct weir_endpoint *b)
{
    return a->any.sa_family == AF_INET ? a->in.sin_addr.s_addr == b->in.sin_addr.s_addr
                                       : IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

bool weir_endpoint_same(const struct weir_endpoint *a, const struct weir_endpoint *b)
{
    if (a->kind != b->kind || a->kind == WEIR_ENDPOINT_OFF)
        return a->kind == b->kind;
    if (a->kind == WEIR_ENDPOINT_UNIX)
        return !strncmp(a->un.sun_path, b->un.sun_path, sizeof a->un.sun_path);
    return a->any.sa_family == b->any.sa_family && endpoint_port(a) == endpoint_port(b) &&
           endpoint_same_host(a, b);
}

bool weir_endpoint_overlap(const struct weir_endpoint *a, const struct weir_endpoint *b)
{
    if (a->kind != WEIR_ENDPOINT_TCP || b->kind != WEIR_ENDPOINT_TCP ||
        endpoint_port(a) != endpoint_port(b))
        return false;
    if (a->any.sa_family == b->any.sa_family)
        return endpoint_same_host(a, b) || endpoint_is_wildcard(a) || endpoint_is_wildcard(b);
    return endpoint_is_wildcard(a->any.sa_family == AF_INET6 ? a : b);
}

void weir_endpoint_remove(const struct weir_endpoint *endpoint)
{
    if (endpoint->kind == WEIR_ENDPOINT_UNIX)
        unlink(endpoint->un.sun_path);
}

/* --- Accepting -------------------------------------------------------------------------------- */

static int connection_init(struct weir_connection *connection)
{
    uv_loop_t *loop = connection->worker->loop;
    return connection->listener->unix_socket ? uv_pipe_init(loop, &connection->pipe, 0)
                                             : uv_tcp_init(loop, &connection->tcp);
}

/* Begins a line about a listener, unless there was one of this kind lately. */
static bool listener_log_begin(struct weir_log_line *line, const struct weir_listener *listener,
                               _Atomic uint64_t *said_ms, const char *event)
{
    uint64_t now_ms = uv_now(listener->worker->loop), before_ms = atomic_load(said_ms);
    if ((before_ms && now_ms < before_ms + WEIR_LOG_AGAIN_MS) ||
        !atomic_compare_exchange_strong(said_ms, &before_ms, now_ms | 1))
        return false;
    weir_log_begin(line, listener->worker->log, WEIR_LOG_WARNING, event);
    weir_log_text(line, "front", listener->front->name);
    return true;
}

static void listener_log(const struct weir_listener *listener, _Atomic uint64_t *said_ms,
                         const char *event, const char *reason)
{
    struct weir_log_line line;
    if (!listener_log_begin(&line, listener, said_ms, event))
        return;
    weir_log_number(&line, "connections_max", listener->pool->max);
    weir_log_text(&line, "reason", reason);
    weir_log_end(&line);
}

static void listener_count_refused(struct weir_listener *listener)
{
    weir_count(&listener->worker->counters.refused, 1);
    atomic_fetch_add_explicit(&listener->pool->refused, 1, memory_order_relaxed);
}

static void listener_log_peer(const struct weir_listener *listener, const struct weir_address *peer,
                              enum weir_peer_verdict verdict)
{
    static const char *const reasons[WEIR_PEER_VERDICTS] = {
        [WEIR_PEER_ADDRESS] = "the address has as many connections as per_address allows",
        [WEIR_PEER_PREFIX] = "the prefix has as many connections as per_prefix allows",
        [WEIR_PEER_RATE] = "the address opens connections faster than rate allows",
    };
    char text[WEIR_ADDRESS_TEXT_MAX];
    struct weir_log_line line;
    if (!listener_log_begin(&line, listener, &listener->pool->limited_ms, "connection_limited"))
        return;
    weir_address_format(peer, text);
    weir_log_text(&line, "peer", text);
    weir_log_text(&line, "reason", reasons[verdict]);
    weir_log_end(&line);
}

bool weir_listener_admits(struct weir_listener *listener, const struct weir_address *peer,
                          struct weir_peer_places *places)
{
    struct weir_worker *worker = listener->worker;
    weir_worker_renew(worker);
    const struct weir_peer_settings *settings = &weir_worker_settings(worker)->connections;
    if (!settings->per_address && !settings->per_prefix && !settings->paced)
        return true;
    if (!worker->peers || listener->kind == WEIR_LISTENER_ADMIN || !peer->family ||
        weir_worker_trusts(worker, peer))
        return true;
    struct weir_address inside;
    enum weir_peer_verdict verdict = weir_peers_take(
        worker->peers, settings, weir_rules_counted_by(weir_worker_rules(worker), peer, &inside),
        uv_hrtime(), places);
    if (verdict == WEIR_PEER_ADMITTED)
        return true;
    atomic_fetch_add_explicit(&listener->pool->limited[verdict], 1, memory_order_relaxed);
    listener_log_peer(listener, peer, verdict);
    return false;
}

/* Serves a connection, or says that there are too many. */
static void connection_admit(struct weir_connection *connection)
{
    struct weir_listener *listener = connection->listener;
    const struct weir_connection_pool *pool = listener->pool;
    uint32_t open = atomic_load_explicit(&pool->open, memory_order_relaxed);
    weir_connection_start(connection);
    if (open <= pool->max)
        return;
    listener_count_refused(listener);
    listener_log(listener, &listener->pool->full_ms, "listener_full",
                 "the listener has reached its maximum of connections; new ones are refused");
    if (open > pool->max + pool->refusals)
        weir_connection_close(connection);
    else if (connection->state != WEIR_CONNECTION_CLOSING)
        weir_connection_cut(connection, WEIR_CUT_BUSY);
}

/* Serves an accepted socket, if its peer may have one more. */
static void listener_serve(struct weir_listener *listener, int fd, const struct sockaddr *address)
{
    struct weir_peer_places places = {0, 0};
    struct weir_address peer;
    weir_socket_address_read(&peer, address);
    if (!weir_listener_admits(listener, &peer, &places)) {
        close(fd);
        return;
    }
    struct weir_connection *connection = weir_worker_connection(listener->worker, listener);
    if (!connection) {
        weir_peers_give(listener->worker->peers, &places);
        listener_count_refused(listener);
        close(fd);
        return;
    }
    connection->peer = peer;
    connection->places = places;
    connection_init(connection);
    connection->handle.data = connection;
    int err = listener->unix_socket ? uv_pipe_open(&connection->pipe, fd)
                                    : uv_tcp_open(&connection->tcp, fd);
    if (err == 0) {
        connection_admit(connection);
    } else {
        close(fd);
        weir_connection_close(connection);
    }
}

/* Accepts one connection. Returns whether another may be waiting. Where the system has no file left
 * for one, it waits in the backlog until weir_listener_retry: asking again at once would be all
 * that this worker ever did again, for no connection could be closed meanwhile. */
static bool listener_accept(struct weir_listener *listener)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof address;
    int fd =
        accept4(listener->fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        listener_serve(listener, fd, (struct sockaddr *)&address);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        const char *reason = strerror(errno);
        listener->paused = true;
        atomic_fetch_add_explicit(&listener->pool->paused, 1, memory_order_relaxed);
        listener_log(listener, &listener->pool->paused_ms, "accept_paused", reason);
        uv_poll_stop(&listener->poll);
        return false;
    }
    return errno != EAGAIN && errno != EWOULDBLOCK; /* else that one is gone already: accept(2) */
}

static void listener_on_readable(uv_poll_t *poll, int status, int events)
{
    struct weir_listener *listener = poll->data;
    for (int i = 0; i < WEIR_ACCEPTS_MAX && listener->open && listener_accept(listener); i++)
        ;
}

void weir_listener_retry(struct weir_listener *listener)
{
    if (!listener->paused || !listener->open)
        return;
    listener->paused = false;
    uv_poll_start(&listener->poll, UV_READABLE, listener_on_readable);
}

int weir_listener_open(struct weir_listener *listener, uv_loop_t *loop, int fd,
                       struct weir_reason *reason)
{
    int err = listen(fd, WEIR_BACKLOG) < 0 ? uv_translate_sys_error(errno) : 0;
    if (err == 0)
        err = uv_poll_init(loop, &listener->poll, fd);
    if (err < 0) {
        close(fd);
        snprintf(reason->text, sizeof reason->text, "cannot listen: %s", uv_strerror(err));
        return WEIR_ERR_IO;
    }
    listener->poll.data = listener;
    listener->fd = fd;
    listener->open = true;
    err = uv_poll_start(&listener->poll, UV_READABLE, listener_on_readable);
    if (err == 0)
        return 0;
    snprintf(reason->text, sizeof reason->text, "cannot listen: %s", uv_strerror(err));
    return WEIR_ERR_IO;
}

void weir_listener_close(struct weir_listener *listener)
{
    if (!listener->open)
        return;
    for (int i = 0; i < WEIR_BACKLOG && listener_accept(listener); i++)
        ;
    listener->open = false;
    uv_close((uv_handle_t *)&listener->poll, NULL);
    close(listener->fd);
}

/* --- Settings --------------------------------------------------------------------------------- */

const struct weir_listener_settings *weir_listener_settings(const struct weir_listener *listener)
{
    return weir_front_settings(listener->front, weir_worker_settings(listener->worker));
}

bool weir_listener_trusts(const struct weir_listener *listener)
{
    const struct weir_listener_settings *settings = weir_listener_settings(listener);
    return settings->trusted_set ? settings->trusted : listener->local;
}
