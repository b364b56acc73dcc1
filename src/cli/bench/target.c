/* SPDX-License-Identifier: Apache-2.0 */
/* see target.h */
#include "cli/bench/target.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/options.h"

#define LOGIN_MAX 1024 /* bytes of HELLO's answer, 300 in Redis 7; and of AUTH's question */

/* Errors: see the header; `error` comes back. */
static int fail(struct weir_reason *reason, int error, const char *what, const char *why)
{
    snprintf(reason->text, sizeof reason->text, "%s: %s", what, why);
    return error;
}

static int parse_unix(struct bench_target *target, const char *path, const char *text,
                      struct weir_reason *reason)
{
    size_t size = strlen(path);
    if (path[0] != '/' || size >= sizeof target->un.sun_path)
        return fail(reason, WEIR_ERR_SYNTAX, text, "not the path of a Unix socket");
    target->un.sun_family = AF_UNIX;
    memcpy(target->un.sun_path, path, size + 1);
    target->size = (socklen_t)sizeof target->un;
    memcpy(target->host, "localhost", sizeof "localhost");
    return 0;
}

/* Splits "host:port", "[::1]:port" or "host". False when it is none of them. */
static bool split_host(const char *text, const char *default_port, char host[BENCH_HOST_MAX],
                       const char **port)
{
    bool bracket = *text == '[';
    const char *end = bracket ? strchr(text, ']') : text + strcspn(text, ":");
    if (!end)
        return false;
    const char *start = text + bracket;
    size_t size = (size_t)(end - start);
    end += bracket;
    if (size == 0 || size >= BENCH_HOST_MAX || (*end != '\0' && *end != ':'))
        return false;
    memcpy(host, start, size);
    host[size] = '\0';
    *port = *end == ':' ? end + 1 : default_port;
    uint64_t number;
    return cli_parse_count(*port, UINT16_MAX, &number) && number > 0;
}

static int resolve(struct bench_target *target, const char *address, const char *default_port,
                   const char *text, struct weir_reason *reason)
{
    char host[BENCH_HOST_MAX];
    const char *port;
    if (!split_host(address, default_port, host, &port))
        return fail(reason, WEIR_ERR_SYNTAX, text, "not HOST, HOST:PORT or [IPV6]:PORT");
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    int problem = getaddrinfo(host, port, &hints, &found);
    if (problem != 0)
        return fail(reason, WEIR_ERR_NOT_FOUND, text, gai_strerror(problem));
    memcpy(&target->inet, found->ai_addr, found->ai_addrlen);
    target->size = found->ai_addrlen;
    freeaddrinfo(found);
    snprintf(target->host, sizeof target->host, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host,
             port);
    return 0;
}

int bench_target_parse(struct bench_target *target, const char *text, struct weir_reason *reason)
{
    *target = (struct bench_target){.protocol = BENCH_RESP};
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(target, text + 5, text, reason);
    if (strncmp(text, "redis://", 8) == 0)
        return resolve(target, text + 8, "6380", text, reason);
    target->protocol = BENCH_HTTP;
    if (strncmp(text, "http+unix:", 10) == 0)
        return parse_unix(target, text + 10, text, reason);
    if (strncmp(text, "http://", 7) == 0)
        return resolve(target, text + 7, "8080", text, reason);
    return fail(reason, WEIR_ERR_SYNTAX, text,
                "not redis://HOST:PORT, http://HOST:PORT, unix:/PATH or http+unix:/PATH");
}

/* Sends a question and waits for its one reply. Errors: WEIR_ERR_IO. */
static int ask(int fd, const char *question, size_t size, struct weir_reason *reason)
{
    static const struct bench_denial none = {0};
    char answer[LOGIN_MAX];
    size_t have = 0;
    struct bench_reader reader = {.protocol = BENCH_RESP};
    struct bench_reply reply;
    if (send(fd, question, size, MSG_NOSIGNAL) != (ssize_t)size)
        return fail(reason, WEIR_ERR_IO, "cannot log in", strerror(errno));
    for (;;) {
        ssize_t got = recv(fd, answer + have, sizeof answer - have, 0);
        if (got <= 0)
            return fail(reason, WEIR_ERR_IO, "cannot log in",
                        got < 0 ? strerror(errno) : "the server closed the connection");
        have += (size_t)got;
        long taken = bench_reply_read(&reader, &none, answer, have, &reply);
        if (taken < 0 || (taken == 0 && have == sizeof answer))
            return fail(reason, WEIR_ERR_IO, "cannot log in", "not a reply of the Redis protocol");
        if (taken > 0 && reply.verdict == BENCH_FAILED) {
            snprintf(reason->text, sizeof reason->text, "cannot log in: %.*s",
                     (int)reply.error.size, reply.error.data);
            return WEIR_ERR_IO;
        }
        if (taken > 0)
            return 0;
    }
}

static int log_in(int fd, const char *password, bool resp3, struct weir_reason *reason)
{
    char question[LOGIN_MAX];
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    if (password) {
        int size = snprintf(question, sizeof question, "*2\r\n$4\r\nAUTH\r\n$%zu\r\n%s\r\n",
                            strlen(password), password);
        if (size >= (int)sizeof question)
            return fail(reason, WEIR_ERR_IO, "cannot log in", "the password is too long");
        int error = ask(fd, question, (size_t)size, reason);
        if (error < 0)
            return error;
    }
    return resp3 ? ask(fd, hello, sizeof hello - 1, reason) : 0;
}

int bench_target_connect(const struct bench_target *target, const char *password, bool resp3,
                         struct weir_reason *reason)
{
    static const int on = 1;
    struct timeval limit = {.tv_sec = BENCH_CONNECT_TIMEOUT_S};
    int fd = socket(target->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(reason, WEIR_ERR_IO, "cannot make a socket", strerror(errno));
    /* Without them a log-in may only take longer, so that a failure needs no answer. */
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (target->any.sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int error = connect(fd, &target->any, target->size);
    if (error < 0)
        error = fail(reason, WEIR_ERR_IO, "cannot connect",
                     errno == EINPROGRESS ? "no answer in time" : strerror(errno));
    if (error == 0 && target->protocol == BENCH_RESP)
        error = log_in(fd, password, resp3, reason);
    if (error == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        error = fail(reason, WEIR_ERR_IO, "cannot use a socket", strerror(errno));
    if (error == 0)
        return fd;
    close(fd);
    return error;
}
