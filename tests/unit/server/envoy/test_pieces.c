/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of 1,024 descriptors, by gRPC and by POST /json, leave others their turn: they are
 * matched, filled and queued in pieces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "envoy_test.h"
#include "feature/envoy/server/daemon.h"
#include "feature/envoy/server/shared.h"
#include "server/daemon/daemon.h"
#include "server/grpc/front.h"
#include "server/grpc/stream.h"
#include "server/http/front.h"
#include "test.h"
#include "worker_rig.h"

#define GREEDY 8
#define LONG 1024
/* What a turn decides beyond WEIR_TURN_MAX: what was gathered last, by two rounds and a poll. */
#define TURN_CHECKS (WEIR_TURN_MAX + 3 * WEIR_GATHER_MAX)
/* Each decision has as many checks as fit. */
#define TURN_DECISIONS (TURN_CHECKS / WEIR_CHECKS_MAX)

static const char rules[] = "version: 1\nlimits: []\n";
static const char config[] = "domain: d\ndescriptors:\n- key: k\n"
                             "  rate_limit: {unit: hour, requests_per_unit: 100000}\n";

struct door {
    const struct weir_front *front;
    char *(*text)(unsigned descriptors, size_t *size); /* allocated */
    unsigned (*answers)(struct rig *rig);              /* good ones, of all clients */
};

static struct weir_daemon owner;
static struct weir_envoy_run run;

/* --- Doors ------------------------------------------------------------------------------------ */

static void *allocate(size_t size)
{
    void *memory = malloc(size);
    if (!memory)
        abort(); /* which gcc 14 knows to end the test */
    return memory;
}

static char *json_text(unsigned descriptors, size_t *size)
{
    char *body = allocate(descriptors * 64 + 64), *text = allocate(descriptors * 64 + 256);
    char *at = body + sprintf(body, "{\"domain\":\"d\",\"descriptors\":[");
    for (unsigned i = 0; i < descriptors; i++)
        at += sprintf(at, "%s{\"entries\":[{\"key\":\"k\",\"value\":\"%u\"}]}", i ? "," : "", i);
    at += sprintf(at, "]}");
    *size = (size_t)sprintf(text, "POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
                            (size_t)(at - body), body);
    free(body);
    return text;
}

static unsigned json_answers(struct rig *rig)
{
    return count_of(rig, "HTTP/1.1 200 ");
}

static char *put_frame(char *at, unsigned type, unsigned flags, unsigned stream, const char *data,
                       size_t size)
{
    const unsigned char head[9] = {(unsigned char)(size >> 16),
                                   (unsigned char)(size >> 8),
                                   (unsigned char)size,
                                   (unsigned char)type,
                                   (unsigned char)flags,
                                   0,
                                   0,
                                   0,
                                   (unsigned char)stream};
    memcpy(at, head, sizeof head);
    if (size > 0)
        memcpy(at + sizeof head, data, size);
    return at + sizeof head + size;
}

/* A literal field of HPACK that no table keeps (RFC 7541 6.2.2). */
static size_t put_field(char *at, const char *name, const char *value)
{
    return (size_t)sprintf(at, "%c%c%s%c%s", 0x10, (char)strlen(name), name, (char)strlen(value),
                           value);
}

/* Preface, settings, and a call of one message. */
static char *grpc_text(unsigned descriptors, size_t *size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const char path[] = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    const char *const fields[][2] = {{":method", "POST"},
                                     {":scheme", "http"},
                                     {":path", path},
                                     {":authority", "a"},
                                     {"content-type", "application/grpc"},
                                     {"te", "trailers"}};
    char head[512], *message = allocate(descriptors * 16 + 16);
    char *text = allocate(descriptors * 16 + 1024), *at = text, *end = message + 5;
    size_t head_size = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        head_size += put_field(head + head_size, fields[i][0], fields[i][1]);
    end += sprintf(end, "\n\1d"); /* the domain, then descriptors of one entry each */
    for (unsigned i = 0; i < descriptors; i++)
        end += sprintf(end, "\x12%c\n%c\n\1k\x12%c%04u", 2 + 9, 9, 4, i);
    size_t body = (size_t)(end - message) - 5;
    memcpy(message, (char[5]){0, 0, 0, (char)(body >> 8), (char)body}, 5);
    memcpy(at, preface, sizeof preface - 1);
    at = put_frame(at + sizeof preface - 1, 4, 0, 0, NULL, 0);
    at = put_frame(at, 1, 4, 1, head, head_size);
    at = put_frame(at, 0, 1, 1, message, (size_t)(end - message));
    free(message);
    *size = (size_t)(at - text);
    return text;
}

static struct weir_grpc *grpc_of(struct rig *rig)
{
    return rig->state->listeners[0].workspace;
}

static unsigned grpc_answers(struct rig *rig)
{
    struct weir_grpc *grpc = grpc_of(rig);
    uint64_t good = 0;
    for (uint32_t i = 0; i < WEIR_GRPC_METHODS_MAX; i++)
        good += atomic_load(&grpc->calls[i][WEIR_GRPC_OK]);
    return (unsigned)good;
}

static const struct door doors[] = {{&weir_http_front, json_text, json_answers},
                                    {&weir_grpc_front, grpc_text, grpc_answers}};
#define DOORS (sizeof doors / sizeof doors[0])

/* --- The worker ------------------------------------------------------------------------------- */

static struct rig *open_door(const struct door *door)
{
    static struct weir_log log;
    memset(&owner, 0, sizeof owner);
    memset(&run, 0, sizeof run);
    weir_own_set(&owner, WEIR_OWN_ENVOY, &run);
    weir_log_init(&log, STDERR_FILENO, WEIR_LOG_TEXT);
    const struct weir_envoy_shared_options options = {.log = &log};
    assert_int_equal(weir_envoy_shared_open(&run.shared, &options), 0);
    struct rig *rig = rig_open_front(rules, door->front, &owner);
    rig->store->later_every = 0;
    run.shared->current = envoy_load(config, &envoy_defaults);
    assert_int_equal(weir_envoy_prepare(run.shared->current, rig_prepare, rig->store), 0);
    atomic_fetch_add(&run.shared->version, 1);
    return rig;
}

static void close_door(struct rig *rig)
{
    run_until_no_connection(rig);
    assert_int_equal(rig->state->held, 0);
    assert_int_equal(rig->state->pieces.begun, 0);
    assert_int_equal(rig->state->pieces.promised, 0);
    rig_close(rig);
    weir_envoy_shared_close(run.shared);
}

static int ask(struct rig *rig, const struct door *door, unsigned descriptors)
{
    size_t size;
    char *text = door->text(descriptors, &size);
    int fd = client_open(rig);
    assert_int_equal(send(fd, text, size, 0), size);
    free(text);
    return fd;
}

static void run_until_begun(struct rig *rig)
{
    for (int i = 0; i < STEPS_MAX && !rig->state->pieces.begun; i++)
        step(rig);
    assert_true(rig->state->pieces.begun > 0);
}

static uint64_t decided(const struct rig *rig)
{
    return atomic_load(&rig->worker->counters.decisions);
}

/* --- Tests ------------------------------------------------------------------------------------ */

TEST("long requests share turns")
{
    for (size_t d = 0; d < DOORS; d++) {
        struct rig *rig = open_door(&doors[d]);
        uint64_t longest = 0, before = 0;
        int fds[GREEDY];
        for (int i = 0; i < GREEDY; i++)
            fds[i] = ask(rig, &doors[d], LONG);
        for (int steps = 0; steps < 5000 && doors[d].answers(rig) < GREEDY; steps++) {
            step(rig);
            longest = decided(rig) - before > longest ? decided(rig) - before : longest;
            before = decided(rig);
            for (int i = 0; i < GREEDY; i++)
                client_read(rig, fds[i]);
        }
        assert_int_equal(doors[d].answers(rig), GREEDY);
        assert_int_equal(decided(rig), GREEDY * LONG / WEIR_CHECKS_MAX);
        assert_in_range(longest, 1, TURN_DECISIONS);
        for (int i = 0; i < GREEDY; i++)
            close(fds[i]);
        close_door(rig);
    }
}

/* The long ones of all others are read; then one client asks, and is answered in the next turn but
 * one, before any of those is. */
TEST("one request waits for a turn and not for the long ones")
{
    for (size_t d = 0; d < DOORS; d++) {
        struct rig *rig = open_door(&doors[d]);
        int fds[GREEDY];
        for (int i = 0; i < GREEDY; i++)
            fds[i] = ask(rig, &doors[d], LONG);
        run_until_begun(rig);
        int fd = ask(rig, &doors[d], 1);
        for (int steps = 0; steps < 400 && doors[d].answers(rig) == 0; steps++) {
            step(rig);
            client_read(rig, fd);
        }
        assert_int_equal(doors[d].answers(rig), 1);
        assert_in_range(decided(rig), 1, 3 * TURN_DECISIONS);
        for (int i = 0; i < GREEDY; i++)
            client_reset(fds[i]);
        close(fd);
        close_door(rig);
    }
}

/* However far a request has come when its client goes away, nothing of it is left. */
TEST("a client may leave between any two pieces")
{
    for (unsigned round = 0; round < 24 * DOORS; round++) {
        const struct door *door = &doors[round % DOORS];
        struct rig *rig = open_door(door);
        int fds[3];
        rig->store->later_every = round % 3 == 0 ? 3 : 0; /* some decisions stay at the store */
        for (int i = 0; i < 3; i++)
            fds[i] = ask(rig, door, LONG);
        run_until_begun(rig);
        for (unsigned i = 0; i < round / 2; i++)
            uv_run(rig->worker->loop, UV_RUN_NOWAIT);
        for (int i = 0; i < 3; i++)
            client_reset(fds[i]);
        run_until_no_connection(rig);
        rig->store->later_every = 0;
        unsigned before = door->answers(rig);
        int fd = ask(rig, door, 1);
        for (int i = 0; i < STEPS_MAX && door->answers(rig) == before; i++) {
            step(rig);
            client_read(rig, fd);
        }
        assert_int_equal(door->answers(rig), before + 1);
        close(fd);
        close_door(rig);
    }
}

/* A call whose deadline passes between two pieces: its connection continues. */
TEST("a call that is given up leaves its connection reading")
{
    const struct door *door = &doors[1];
    struct rig *rig = open_door(door);
    size_t size;
    char *text = grpc_text(1, &size);
    int fd = ask(rig, door, LONG);
    run_until_begun(rig);
    struct weir_grpc_stream *stream = weir_grpc_session(rig->state->all)->streams;
    stream->deadline_ms = 1;
    weir_grpc_stream_check(stream, uv_now(rig->worker->loop));
    assert_int_equal(rig->state->pieces.begun, 0);
    char *call = text + sizeof "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" - 1 + 9; /* without settings */
    size -= (size_t)(call - text);
    for (size_t at = 0; at < size;) { /* as stream 3 */
        size_t frame = 9 + ((size_t)(unsigned char)call[at + 1] << 8 | (unsigned char)call[at + 2]);
        call[at + 8] = 3;
        at += frame;
    }
    assert_int_equal(send(fd, call, size, 0), size);
    for (int i = 0; i < STEPS_MAX && door->answers(rig) == 0; i++) {
        step(rig);
        client_read(rig, fd);
    }
    assert_int_equal(door->answers(rig), 1);
    free(text);
    close(fd);
    close_door(rig);
}

/* A request that cannot begin is answered, and leaves nothing. */
TEST("a long request that fails is answered")
{
    for (size_t d = 0; d < DOORS; d++) {
        struct rig *rig = open_door(&doors[d]);
        weir_envoy_unref(run.shared->current);
        run.shared->current = NULL; /* no configuration */
        int fd = ask(rig, &doors[d], LONG);
        struct weir_grpc *grpc = d == 1 ? grpc_of(rig) : NULL;
        for (int i = 0; i < STEPS_MAX; i++) {
            uint64_t failed = 0;
            for (uint32_t m = 0; grpc && m < WEIR_GRPC_METHODS_MAX; m++)
                failed += atomic_load(&grpc->calls[m][WEIR_GRPC_UNKNOWN]);
            if (failed > 0 || count_of(rig, "HTTP/1.1 400 ") > 0)
                break;
            assert_true(i + 1 < STEPS_MAX);
            step(rig);
            client_read(rig, fd);
        }
        close(fd);
        close_door(rig);
    }
}

RUN_TESTS()
