/* SPDX-License-Identifier: Apache-2.0 */
/* see redis_server.h */
#include "redis_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/resp/write.h"

/* Far more than a server takes to start, or to answer, on a machine that does other things too. */
#define WAIT_MS 60000
#define BUS_OFFSET 10000
#define PORT_FIRST 20000
#define PORT_COUNT 12000 /* below the range that the kernel gives to clients */
#define START_ATTEMPTS 5

static const char *program(void)
{
    const char *set = getenv("REDIS_SERVER");

    return set != NULL ? set : "redis-server";
}

static void print_log(const struct redis_server *server)
{
    char path[REDIS_SERVER_PATH_MAX + 8], line[512];

    snprintf(path, sizeof path, "%s/log", server->directory);

    FILE *log = fopen(path, "r");

    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        fputs(line, stderr);
    if (log != NULL)
        fclose(log);
}

static void __attribute__((noreturn, format(printf, 2, 3)))
give_up(const struct redis_server *server, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    if (server != NULL)
        print_log(server);
    abort();
}

static int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static bool port_is_free(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool is_free = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;

    close(fd);
    return is_free;
}

/* Tests run beside each other: each begins to look at a place of its own. */
static uint16_t choose_port(void)
{
    static uint32_t turn;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    uint32_t start = (uint32_t)getpid() * 2654435761u + (uint32_t)now.tv_nsec + turn++ * 7919u;

    for (uint32_t i = 0; i < PORT_COUNT; i++) {
        uint16_t port = (uint16_t)(PORT_FIRST + (start + i) % PORT_COUNT);

        if (port_is_free(port) && port_is_free((uint16_t)(port + BUS_OFFSET)))
            return port;
    }
    give_up(NULL, "no free port");
}

void redis_server_prepare(struct redis_server *server)
{
    const char *parent = getenv("TMPDIR");

    memset(server, 0, sizeof *server);
    snprintf(server->directory, sizeof server->directory, "%s/weir-redis-XXXXXX",
             parent != NULL && strlen(parent) < 40 ? parent : "/tmp");
    if (mkdtemp(server->directory) == NULL)
        give_up(NULL, "%s: %s", server->directory, strerror(errno));
    snprintf(server->socket, sizeof server->socket, "%.80s/s", server->directory);
    server->port = choose_port();
}

/* Runs in the child; only returns when there is no such program. */
static void execute(const struct redis_server *server, pid_t parent)
{
    const char *words[REDIS_SERVER_ARGUMENTS_MAX + 24];
    char port[8], log[REDIS_SERVER_PATH_MAX + 8];
    size_t count = 0, first = 0;
    bool sentinel = false;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    snprintf(port, sizeof port, "%u", server->port);
    snprintf(log, sizeof log, "%s/log", server->directory);
    for (size_t i = 0; server->arguments[i] != NULL; i++)
        sentinel = sentinel || strcmp(server->arguments[i], "--sentinel") == 0;
    words[count++] = program();
    if (server->arguments[0] != NULL && server->arguments[0][0] != '-')
        words[count++] = server->arguments[first++];

    const char *const own[] = {"--port",       port,
                               "--bind",       "127.0.0.1",
                               "--dir",        server->directory,
                               "--logfile",    log,
                               "--unixsocket", server->socket,
                               "--daemonize",  "no",
                               "--save",       "",
                               "--appendonly", "no"};

    for (size_t i = 0; i < sizeof own / sizeof own[0] - (sentinel ? 4 : 0); i++)
        words[count++] = own[i];
    while (server->arguments[first] != NULL)
        words[count++] = server->arguments[first++];
    words[count] = NULL;
    execvp(words[0], (char *const *)(uintptr_t)words);
    perror(words[0]);
}

static int connect_to(const struct redis_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, server->socket, sizeof server->socket);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Whether the process still runs; its end is collected. */
static bool is_running(struct redis_server *server)
{
    int status;

    if (waitpid(server->pid, &status, WNOHANG) != server->pid)
        return true;
    server->pid = 0;
    return false;
}

/* A server that loads its data refuses commands; one with a password refuses PING. */
static bool answers(const struct redis_server *server)
{
    char reply[64] = "";
    int fd = connect_to(server);

    if (fd < 0)
        return false;
    bool good = write(fd, "PING\r\n", 6) == 6 && read(fd, reply, sizeof reply - 1) > 0 &&
                strncmp(reply, "-LOADING", 8) != 0;

    close(fd);
    return good;
}

static bool try_to_run(struct redis_server *server)
{
    int64_t deadline = clock_ms() + WAIT_MS;
    pid_t parent = getpid();

    unlink(server->socket);
    server->pid = fork();
    if (server->pid < 0)
        give_up(server, "fork: %s", strerror(errno));
    if (server->pid == 0) {
        execute(server, parent);
        _exit(127);
    }
    while (is_running(server)) {
        if (answers(server))
            return true;
        if (clock_ms() > deadline)
            give_up(server, "redis-server does not answer");
        pause_briefly();
    }
    return false;
}

static void keep_arguments(struct redis_server *server, const char *const *arguments)
{
    size_t count = 0;

    while (arguments != NULL && arguments[count] != NULL) {
        if (count + 1 == REDIS_SERVER_ARGUMENTS_MAX)
            give_up(NULL, "too many arguments");
        server->arguments[count] = arguments[count];
        if (strcmp(arguments[count], "--requirepass") == 0 && arguments[count + 1] != NULL)
            snprintf(server->password, sizeof server->password, "%s", arguments[count + 1]);
        count++;
    }
    server->arguments[count] = NULL;
}

void redis_server_run(struct redis_server *server, const char *const *arguments)
{
    keep_arguments(server, arguments);
    redis_server_restart(server);
}

void redis_server_start(struct redis_server *server, const char *const *arguments)
{
    redis_server_prepare(server);
    keep_arguments(server, arguments);
    for (int attempt = 1; !try_to_run(server); attempt++) {
        if (attempt == START_ATTEMPTS)
            give_up(server, "redis-server has ended");
        server->port = choose_port(); /* somebody else was quicker */
    }
}

void redis_server_signal(const struct redis_server *server, int signal)
{
    if (server->pid > 0)
        kill(server->pid, signal);
}

void redis_server_end(struct redis_server *server)
{
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

void redis_server_restart(struct redis_server *server)
{
    if (!try_to_run(server))
        give_up(server, "redis-server has ended");
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

void redis_server_stop(struct redis_server *server)
{
    redis_server_end(server);
    if (server->directory[0] != '\0')
        nftw(server->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    server->directory[0] = '\0';
}

void redis_link_open(struct redis_link *link, const struct redis_server *server)
{
    link->fd = connect_to(server);
    if (link->fd < 0)
        give_up(server, "cannot connect: %s", strerror(errno));

    struct timeval patience = {.tv_sec = WAIT_MS / 1000};

    setsockopt(link->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    link->room = 65536;
    link->size = 0;
    link->buffer = malloc(link->room);
    if (link->buffer == NULL)
        give_up(NULL, "out of memory");
    if (server->password[0] != '\0') {
        const char *const words[] = {"AUTH", server->password};

        redis_link_ask(link, words, NULL, 2);
    }
}

void redis_link_close(struct redis_link *link)
{
    close(link->fd);
    free(link->buffer);
}

static bool is_closed(int err)
{
    return err == EPIPE || err == ECONNRESET;
}

/* False: the server has closed the connection. */
static bool try_send(const struct redis_link *link, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(link->fd, bytes, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR) /* this process was stopped for a moment */
            continue;
        if (sent < 0 && is_closed(errno))
            return false;
        if (sent < 0)
            give_up(NULL, "send: %s", strerror(errno));
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static void send_all(const struct redis_link *link, const char *bytes, size_t size)
{
    if (!try_send(link, bytes, size))
        give_up(NULL, "send: connection closed");
}

/* NULL: the server has closed the connection. */
static const struct weir_resp_node *try_read(struct redis_link *link)
{
    struct weir_resp_reader reader = {0};

    link->size = 0;
    for (;;) {
        if (link->room - link->size < 4096) {
            link->room *= 2;
            link->buffer = realloc(link->buffer, link->room);
            if (link->buffer == NULL)
                give_up(NULL, "out of memory");
        }
        ssize_t got = recv(link->fd, link->buffer + link->size, link->room - link->size, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0 || (got < 0 && is_closed(errno)))
            return NULL;
        if (got < 0)
            give_up(NULL, "no reply: %s", strerror(errno));
        link->size += (size_t)got;

        long taken = weir_resp_reply_parse(&reader, link->buffer, link->size, link->nodes,
                                           REDIS_LINK_NODES, &link->count);

        if (taken < 0 || link->count > REDIS_LINK_NODES)
            give_up(NULL, "not a reply");
        if (taken > 0 && (size_t)taken != link->size)
            give_up(NULL, "more than one reply");
        if (taken > 0)
            return &link->nodes[0];
    }
}

const struct weir_resp_node *redis_link_read(struct redis_link *link)
{
    const struct weir_resp_node *reply = try_read(link);

    if (reply == NULL)
        give_up(NULL, "no reply: connection closed");
    return reply;
}

const struct weir_resp_node *redis_link_exchange(struct redis_link *link, const char *bytes,
                                                 size_t size)
{
    send_all(link, bytes, size);
    return redis_link_read(link);
}

const struct weir_resp_node *redis_link_ask(struct redis_link *link, const char *const *words,
                                            const size_t *sizes, uint32_t count)
{
    char head[WEIR_RESP_HEAD_MAX];

    send_all(link, head, (size_t)(weir_resp_write_array(head, count) - head));
    for (uint32_t i = 0; i < count; i++) {
        size_t size = sizes != NULL ? sizes[i] : strlen(words[i]);

        send_all(link, head, (size_t)(weir_resp_write_head(head, '$', size) - head));
        send_all(link, words[i], size);
        send_all(link, "\r\n", 2);
    }
    return redis_link_read(link);
}

const struct weir_resp_node *redis_link_try(struct redis_link *link, const char *command)
{
    char line[1024];
    int size = snprintf(line, sizeof line, "%s\r\n", command);

    if (size < 0 || (size_t)size >= sizeof line)
        give_up(NULL, "the command is too long");
    return try_send(link, line, (size_t)size) ? try_read(link) : NULL;
}

const struct weir_resp_node *redis_link_say(struct redis_link *link, const char *command)
{
    const struct weir_resp_node *reply = redis_link_try(link, command);

    if (reply == NULL)
        give_up(NULL, "%s: connection closed", command);
    return reply;
}
