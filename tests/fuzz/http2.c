/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of HTTP/2, into a worker with a gRPC listener: whatever a peer sends, and however it is
 * cut, the worker continues, and when the connection is gone nothing of it is left: no decision, no
 * buffer, no memory of its session.
 *
 * An input is what follows the client's preface. The worker lives on from input to input. */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"
#include "server/daemon/worker_state.h"
#include "server/grpc/front.h"

#define INPUT_MAX (64 << 10)
#define SPLIT_MAX 1024
#define STEPS_MAX 1000

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
static const char rules_text[] = "version: 1\n"
                                 "limits:\n"
                                 "  - { name: all, key: [client.ip], rate: 3/min }\n"
                                 "  - { name: key, key: [header.x-key], rate: 5/min }\n"
                                 "  - { name: seats, match: { path: /seat }, key: [host],\n"
                                 "      limit: 2, life: 30s, algorithm: concurrency }\n";

struct rig {
    struct weir_daemon daemon;
    struct weir_log log;
    struct weir_worker *worker;
    struct weir_worker_state *state;
    struct weir_listener *listener;
};

static int prepare(void *context, struct weir_limit *limit, const char *name)
{
    struct weir_reason reason;
    (void)name;
    return weir_store_prepare(context, NULL, limit, &reason);
}

/* A worker with one gRPC listener, on which the kernel never sees a connection. */
static struct rig *rig_open(void)
{
    static struct rig rig;
    struct weir_problems problems = {0};
    struct weir_reason reason = {{0}};
    struct weir_rules *rules;
    struct weir_endpoint endpoint;
    struct weir_table *table;
    int fd, quiet = open("/dev/null", O_WRONLY);
    weir_log_init(&rig.log, quiet, WEIR_LOG_TEXT);
    const struct weir_table_options options = {
        .bytes = 1 << 20, .wall_ns = weir_clock_wall_ns(), .boot_ns = weir_clock_boot_ns()};
    REQUIRE(weir_table_open(&table, &options, &reason) == 0);
    REQUIRE(weir_rules_parse(&rules, "fuzz", ".", rules_text, sizeof rules_text - 1, &problems) ==
            0);
    const struct weir_worker_options worker = {.log = &rig.log, .table = table, .rules = rules};
    REQUIRE(weir_worker_open(&rig.worker, &worker, &reason) == 0);
    rig.state = weir_worker_state_of(rig.worker);
    REQUIRE(weir_rules_prepare(rules, prepare, rig.worker->store) == 0);
    REQUIRE(weir_endpoint_parse(&endpoint, "127.0.0.1:0", &reason) == 0);
    REQUIRE(weir_endpoint_bind(&endpoint, &fd, 1, &reason) == 0);
    static struct weir_connection_pool pool = {.max = 16};
    const struct weir_listening listening = {&weir_grpc_front, &endpoint, &pool, &rig.daemon};
    REQUIRE(weir_worker_listen(rig.worker, &listening, fd, &reason) == 0);
    rig.listener = &rig.state->listeners[0];
    rig.listener->unix_socket = true;
    return &rig;
}

static struct weir_connection *connect_pair(struct rig *rig, int *client)
{
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    struct weir_connection *connection = weir_worker_connection(rig->worker, rig->listener);
    REQUIRE(connection != NULL);
    REQUIRE(uv_pipe_init(rig->worker->loop, &connection->pipe, 0) == 0);
    REQUIRE(uv_pipe_open(&connection->pipe, pair[1]) == 0);
    weir_connection_start(connection);
    *client = pair[0];
    return connection;
}

/* Lets the worker do what it can, and reads what it says. */
static void run(struct rig *rig, int client)
{
    char bytes[65536];
    for (int i = 0; i < 3; i++) {
        uv_run(rig->worker->loop, UV_RUN_NOWAIT);
        while (recv(client, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            ;
    }
}

static void deliver(struct rig *rig, int client, const char *data, size_t size)
{
    for (int steps = 0; size && steps < STEPS_MAX; steps++) {
        ssize_t n = send(client, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
        run(rig, client);
        if (n < 0 && rig->state->all == NULL)
            return;
    }
}

static void converse(const uint8_t *data, size_t size, size_t at)
{
    static struct rig *rig;
    if (!rig)
        rig = rig_open();
    int client;
    struct weir_connection *connection = connect_pair(rig, &client);
    deliver(rig, client, preface, sizeof preface - 1);
    deliver(rig, client, (const char *)data, at);
    deliver(rig, client, (const char *)data + at, size - at);
    if (rig->state->all == connection)
        weir_connection_close(connection);
    close(client);
    for (int i = 0; i < STEPS_MAX && rig->state->all; i++)
        uv_run(rig->worker->loop, UV_RUN_NOWAIT);
    const struct weir_grpc *grpc = rig->listener->workspace;
    REQUIRE(rig->state->all == NULL);
    REQUIRE(rig->state->taken == 0);
    REQUIRE(rig->worker->buffers.used_bytes == 0);
    REQUIRE(grpc->memory.used_bytes == 0);
    REQUIRE(grpc->watches == NULL);
}

void weir_fuzz_split(const uint8_t *data, size_t size, size_t at)
{
    /* A conversation takes system calls: of long inputs only some splits. */
    if (size <= INPUT_MAX && (size <= SPLIT_MAX || at % 61 == 0))
        converse(data, size, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= INPUT_MAX)
        converse(data, size, size / 2);
    return 0;
}
