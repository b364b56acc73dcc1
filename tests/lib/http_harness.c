/* SPDX-License-Identifier: Apache-2.0 */
/* see http_harness.h */
#include "http_harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "feature/reserve/server/daemon.h"
#include "feature/reserve/server/reservations.h"
#include "server/adhoc/daemon.h"
#include "server/daemon/clock.h"
#include "server/daemon/services/services.h"
#include "server/http/front.h"
#include "server/net/daemon.h"
#include "server/pressure/pressure_log.h"

/* Steps of the loop that are more than enough for any request here. */
#define STEPS_MAX 1000
/* Steps without news after which a worker has nothing more to say. */
#define QUIET_STEPS 4

static void check(bool ok)
{
    if (!ok)
        abort();
}

static int prepare_limit(void *context, struct weir_limit *limit, const char *name)
{
    struct weir_reason reason;
    (void)name;
    return weir_store_prepare(context, NULL, limit, &reason);
}

static void open_worker(struct http_harness *harness, const char *text)
{
    static const char no_rules[] = "version: 1\nlimits: []\n";
    struct weir_daemon *daemon = &harness->daemon;
    struct weir_problems problems = {0};
    struct weir_reason reason = {{0}};
    const struct weir_table_options table = {
        .bytes = 4 << 20, .wall_ns = weir_clock_wall_ns(), .boot_ns = weir_clock_boot_ns()};
    text = text ? text : no_rules;
    weir_services_take(daemon);
    check(weir_services_route(daemon) == 0);
    weir_log_init(&daemon->log, open("/dev/null", O_WRONLY | O_CLOEXEC), WEIR_LOG_TEXT);
    check(weir_table_open(&daemon->table, &table, &reason) == 0);
    if (weir_rules_parse(&daemon->rules, "rules", ".", text, strlen(text), &problems) < 0) {
        fprintf(stderr, "%s\n", problems.count ? problems.list[0].message : "no rules");
        abort();
    }
    weir_problems_free(&problems);
    struct weir_reservations *reservations;
    check(weir_reservations_open(&reservations, 16) == 0);
    weir_own_set(daemon, WEIR_OWN_RESERVATIONS, reservations);
    struct weir_resp_shared *redis = calloc(1, sizeof *redis);
    check(redis != NULL);
    weir_own_set(daemon, WEIR_OWN_ADHOC, redis);
    check(weir_adhoc_limits_open(&redis->limits, HTTP_HARNESS_LIMITS, daemon->table, 0) == 0);
    const struct weir_worker_options options = {.log = &daemon->log,
                                                .table = daemon->table,
                                                .rules = daemon->rules,
                                                .reservations = weir_daemon_reservations(daemon)};
    check(weir_worker_open(&harness->decides, &options, &reason) == 0);
    check(weir_worker_open(&daemon->admin, &options, &reason) == 0);
    check(weir_rules_prepare(daemon->rules, prepare_limit, harness->decides->store) == 0);
    check(weir_service_net.open(daemon, &reason) == 0);
    check(weir_daemon_pressure_open(daemon, &reason) == 0);
    daemon->workers = &harness->decides;
    daemon->worker_count = 1;
}

/* Listens, but the kernel never sees a connection there. */
static void open_listener(struct http_harness *harness, struct weir_worker *worker,
                          const struct weir_front *front)
{
    bool admin = front->kind == WEIR_LISTENER_ADMIN;
    struct weir_reason reason = {{0}};
    int fd;
    check(weir_endpoint_parse(&harness->endpoints[admin], "127.0.0.1:0", &reason) == 0);
    check(weir_endpoint_bind(&harness->endpoints[admin], &fd, 1, &reason) == 0);
    harness->pools[admin] = (struct weir_connection_pool){.max = 16};
    const struct weir_listening listening = {front, &harness->endpoints[admin],
                                             &harness->pools[admin], &harness->daemon};
    check(weir_worker_listen(worker, &listening, fd, &reason) == 0);
}

struct http_harness *http_harness_open(const char *rules, enum weir_listener_kind kind)
{
    struct http_harness *harness = calloc(1, sizeof *harness);
    check(harness != NULL);
    harness->client = -1;
    open_worker(harness, rules);
    open_listener(harness, harness->decides, &weir_http_front);
    open_listener(harness, harness->daemon.admin, &weir_admin_front);
    http_harness_connect_to(harness, kind);
    return harness;
}

static void disconnect(struct http_harness *harness)
{
    if (!harness->worker)
        return;
    struct weir_worker_state *state = weir_worker_state_of(harness->worker);
    if (state->all)
        weir_connection_close(state->all);
    for (int i = 0; i < STEPS_MAX && state->all; i++)
        uv_run(harness->worker->loop, UV_RUN_NOWAIT);
    check(state->all == NULL);
    check(state->taken == 0);
    check(harness->worker->buffers.used_bytes == 0);
    if (harness->client >= 0)
        close(harness->client);
    harness->client = -1;
}

void http_harness_connect_to(struct http_harness *harness, enum weir_listener_kind kind)
{
    int pair[2];
    disconnect(harness);
    harness->worker = kind == WEIR_LISTENER_ADMIN ? harness->daemon.admin : harness->decides;
    harness->listener = &weir_worker_state_of(harness->worker)->listeners[0];
    harness->listener->unix_socket = true;
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    harness->connection = weir_worker_connection(harness->worker, harness->listener);
    check(harness->connection != NULL);
    check(uv_pipe_init(harness->worker->loop, &harness->connection->pipe, 0) == 0);
    check(uv_pipe_open(&harness->connection->pipe, pair[1]) == 0);
    weir_connection_start(harness->connection);
    harness->client = pair[0];
    harness->closed = false;
    harness->raw_size = 0;
}

void http_harness_connect(struct http_harness *harness)
{
    http_harness_connect_to(harness, harness->listener->kind);
}

void http_harness_come_from(struct http_harness *harness, const char *address)
{
    check(weir_address_parse(&harness->connection->peer, address, strlen(address)) == 0);
    harness->listener->unix_socket = false;
}

/* Runs the worker until it has nothing more to say, and reads what it says. */
static void run(struct http_harness *harness)
{
    for (int i = 0, quiet = 0; i < STEPS_MAX && quiet < QUIET_STEPS; i++, quiet++) {
        ssize_t n;
        uv_run(harness->worker->loop, UV_RUN_NOWAIT);
        while ((n = recv(harness->client, harness->raw + harness->raw_size,
                         HTTP_HARNESS_TEXT - harness->raw_size, MSG_DONTWAIT)) > 0) {
            harness->raw_size += (size_t)n;
            quiet = 0;
        }
        harness->closed = harness->closed || n == 0;
    }
    harness->raw[harness->raw_size] = '\0';
}

void http_harness_send(struct http_harness *harness, const char *data, size_t size)
{
    for (int i = 0; i < STEPS_MAX && size && !harness->closed; i++) {
        ssize_t n = send(harness->client, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
        run(harness);
    }
    run(harness);
}

unsigned http_harness_reply(struct http_harness *harness, bool head)
{
    char *end = strstr(harness->raw, "\r\n\r\n");
    size_t length = 0;
    harness->status = 0;
    if (!end || sscanf(harness->raw, "HTTP/1.1 %u ", &harness->status) != 1)
        return 0;
    size_t head_size = (size_t)(end + 4 - harness->raw);
    memcpy(harness->reply, harness->raw, head_size);
    harness->reply[head_size - 2] = '\0';
    harness->fields = strstr(harness->reply, "\r\n") + 2;
    const char *field = strcasestr(harness->fields, "content-length: ");
    if (field && !head)
        length = (size_t)strtoull(field + 16, NULL, 10);
    check(head_size + length <= harness->raw_size);
    memcpy(harness->reply + head_size, harness->raw + head_size, length);
    harness->reply[head_size + length] = '\0';
    harness->body = harness->reply + head_size;
    harness->body_size = length;
    harness->raw_size -= head_size + length;
    memmove(harness->raw, harness->raw + head_size + length, harness->raw_size + 1);
    return harness->status;
}

unsigned http_harness_ask(struct http_harness *harness, const char *method, const char *target,
                          const char *fields, const char *body)
{
    static char text[HTTP_HARNESS_TEXT];
    if (harness->closed)
        http_harness_connect(harness);
    int size = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method,
                        target, fields ? fields : "");
    check(size > 0 && (size_t)size < sizeof text);
    size_t used = (size_t)size;
    size = body ? snprintf(text + used, sizeof text - used, "Content-Length: %zu\r\n\r\n%s",
                           strlen(body), body)
                : snprintf(text + used, sizeof text - used, "\r\n");
    check(size > 0 && (size_t)size < sizeof text - used);
    http_harness_send(harness, text, used + (size_t)size);
    return http_harness_reply(harness, !strcmp(method, "HEAD"));
}

unsigned http_harness_get(struct http_harness *harness, const char *target)
{
    return http_harness_ask(harness, "GET", target, NULL, NULL);
}

unsigned http_harness_post(struct http_harness *harness, const char *target, const char *body)
{
    return http_harness_ask(harness, "POST", target, "Content-Type: application/json\r\n", body);
}

bool http_harness_has(const struct http_harness *harness, const char *line)
{
    size_t size = strlen(line);
    for (const char *at = harness->fields; *at;) {
        const char *end = strstr(at, "\r\n");
        if ((size_t)(end - at) == size && !strncasecmp(at, line, size))
            return true;
        at = end + 2;
    }
    return false;
}

bool http_harness_says(const struct http_harness *harness, const char *text)
{
    return strstr(harness->body, text) != NULL;
}

void http_harness_close(struct http_harness *harness)
{
    struct weir_daemon *daemon = &harness->daemon;
    disconnect(harness);
    weir_worker_close(harness->decides);
    weir_worker_close(daemon->admin);
    weir_reservations_close(weir_daemon_reservations(daemon));
    weir_adhoc_limits_close(weir_daemon_given_limits(daemon));
    free(weir_daemon_redis(daemon));
    weir_daemon_pressure_close(daemon);
    weir_service_net.close(daemon);
    weir_table_close(daemon->table);
    weir_rules_unref(daemon->rules);
    free(daemon->routes);
    close(daemon->log.fd);
    free(harness);
}
