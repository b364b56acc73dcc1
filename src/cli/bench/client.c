/* SPDX-License-Identifier: Apache-2.0 */
/* see client.h */
#include "cli/bench/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench/connection.h"

#define NS_PER_S UINT64_C(1000000000)
#define EVENTS_MAX 256
/* How late the end, or a server that does not answer, may be seen. For as long what an open loop
 * has due is sent after the end, so that waking up late there is not taken for a server that does
 * not keep up. */
#define LOOK_NS (NS_PER_S / 20)

struct bench_client {
    const struct bench_plan *plan;
    int epoll;
    uint32_t count, alive; /* connections, and those not given up */
    uint32_t turn;         /* the connection that is asked next for room */
    uint32_t idle;         /* connections of a closed loop that want their first requests */
    uint64_t under_way, left_to_send;
    uint64_t sent;
    uint64_t waits_since_ns; /* the last reply, or the first request after none was in flight */
    double interval_ns, first_ns; /* of an open loop */
    struct bench_keys keys;
    struct bench_result result;
    struct bench_connection connections[];
};

uint64_t bench_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Keeps the first one, as printable ASCII. */
static void note_error(struct bench_client *client, const char *text, size_t size)
{
    char *kept = client->result.error;
    if (*kept != '\0')
        return;
    for (size_t i = 0; i < size && i < BENCH_ERROR_MAX - 1; i++)
        *kept++ = (char)(text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?');
    *kept = '\0';
}

static void watch(struct bench_client *client, struct bench_connection *connection, int operation)
{
    struct epoll_event event = {.events = connection->blocked ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                .data.ptr = connection};
    if (epoll_ctl(client->epoll, operation, connection->fd, &event) < 0)
        note_error(client, "epoll_ctl failed", strlen("epoll_ctl failed"));
}

/* Of `total`, what falls to one thread. */
static uint64_t share(uint64_t total, unsigned threads, unsigned index)
{
    return total / threads + (index < total % threads);
}

int bench_client_open(struct bench_client **client, const struct bench_plan *plan, unsigned index,
                      struct weir_reason *reason)
{
    uint32_t count = (uint32_t)share(plan->connections, plan->threads, index);
    struct bench_client *made = calloc(1, sizeof *made + count * sizeof(struct bench_connection));
    int error = WEIR_ERR_MEMORY;
    if (!made)
        goto fail;
    made->plan = plan;
    made->left_to_send =
        plan->requests > 0 ? share(plan->requests, plan->threads, index) : UINT64_MAX;
    if (plan->rate > 0) {
        made->interval_ns = (double)NS_PER_S * plan->threads / plan->rate;
        made->first_ns = made->interval_ns * index / plan->threads;
    }
    bench_keys_start(&made->keys, &plan->keyspace, plan->seed, index, plan->threads);
    error = WEIR_ERR_IO;
    made->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (made->epoll < 0)
        goto free_client;
    for (; made->count < count; made->count++) {
        struct bench_connection *connection = &made->connections[made->count];
        error = bench_connection_open(connection, plan, reason);
        if (error < 0) {
            bench_connection_close(connection);
            bench_client_close(made);
            return error;
        }
        watch(made, connection, EPOLL_CTL_ADD);
    }
    made->alive = made->idle = count;
    *client = made;
    return 0;
free_client:
    free(made);
fail:
    snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(error));
    return error;
}

void bench_client_close(struct bench_client *client)
{
    for (uint32_t i = 0; i < client->count; i++)
        bench_connection_close(&client->connections[i]);
    close(client->epoll);
    free(client);
}

const struct bench_result *bench_client_result(const struct bench_client *client)
{
    return &client->result;
}

static bool may_send(const struct bench_client *client, uint64_t now_ns)
{
    return client->left_to_send > 0 && now_ns < client->plan->end_ns;
}

/* Gives up what is in flight on a connection, and opens it again. */
static void lose(struct bench_client *client, struct bench_connection *connection, const char *why)
{
    struct weir_reason reason;
    client->result.lost += connection->under_way;
    client->under_way -= connection->under_way;
    if (connection->under_way > 0)
        note_error(client, why, strlen(why));
    if (bench_connection_reopen(connection, client->plan, &reason) < 0) {
        note_error(client, reason.text, strlen(reason.text));
        client->alive--;
        return;
    }
    watch(client, connection, EPOLL_CTL_ADD);
    client->idle++;
}

static void queue(struct bench_client *client, struct bench_connection *connection, uint64_t due_ns)
{
    bench_connection_queue(connection, client->plan, bench_keys_next(&client->keys), due_ns);
    if (client->under_way++ == 0)
        client->waits_since_ns = due_ns;
    client->sent++;
    client->left_to_send--;
}

static void flush(struct bench_client *client, struct bench_connection *connection)
{
    bool was_blocked = connection->blocked;
    if (bench_connection_flush(connection) < 0)
        lose(client, connection, "the server closed a connection");
    else if (connection->blocked != was_blocked)
        watch(client, connection, EPOLL_CTL_MOD);
}

/* Closed loop: as many requests as may be in flight. */
static void refill(struct bench_client *client, struct bench_connection *connection,
                   uint64_t now_ns)
{
    while (bench_connection_has_room(connection, client->plan) && may_send(client, now_ns))
        queue(client, connection, now_ns);
    if (!connection->blocked && connection->out_size > 0)
        flush(client, connection);
}

/* Closed loop: starts the connections that have nothing in flight. */
static void refill_idle(struct bench_client *client, uint64_t now_ns)
{
    client->idle = 0;
    for (uint32_t i = 0; i < client->count; i++)
        if (client->connections[i].fd >= 0 && client->connections[i].under_way == 0)
            refill(client, &client->connections[i], now_ns);
}

static struct bench_connection *find_room(struct bench_client *client)
{
    for (uint32_t i = 0; i < client->count; i++) {
        struct bench_connection *connection = &client->connections[client->turn];
        client->turn = client->turn + 1 < client->count ? client->turn + 1 : 0;
        if (bench_connection_has_room(connection, client->plan))
            return connection;
    }
    return NULL;
}

static uint64_t due_ns(const struct bench_client *client, uint64_t number)
{
    return client->plan->start_ns +
           (uint64_t)(client->first_ns + client->interval_ns * (double)number);
}

/* Open loop: sends what is due. Returns whether some of it found no room. */
static bool send_due(struct bench_client *client, uint64_t now_ns)
{
    uint64_t first = client->sent;
    bool waits = false;
    if (client->plan->end_ns < UINT64_MAX && now_ns > client->plan->end_ns + LOOK_NS)
        return false;
    while (client->left_to_send > 0) {
        uint64_t due = due_ns(client, client->sent);
        if (due > now_ns || due >= client->plan->end_ns)
            break;
        struct bench_connection *connection = find_room(client);
        waits = !connection;
        if (waits)
            break;
        queue(client, connection, due);
    }
    for (uint32_t i = 0; i < client->count && client->sent > first; i++) {
        struct bench_connection *connection = &client->connections[i];
        if (connection->fd >= 0 && !connection->blocked && connection->out_size > 0)
            flush(client, connection);
    }
    return waits;
}

static void count_reply(struct bench_client *client, const struct bench_reply *reply,
                        uint64_t latency_ns)
{
    struct bench_result *result = &client->result;
    result->replies++;
    if (reply->verdict == BENCH_DENIED)
        result->denied++;
    if (reply->verdict == BENCH_FAILED) {
        result->failed++;
        note_error(client, reply->error.data, reply->error.size);
    }
    if (client->plan->expected_interval_ns > 0)
        bench_histogram_record_expected(&result->latency, latency_ns,
                                        client->plan->expected_interval_ns);
    else
        bench_histogram_record(&result->latency, latency_ns);
}

static void lose_by_error(struct bench_client *client, struct bench_connection *connection,
                          int error)
{
    const char *why = error == WEIR_ERR_IO ? "the server closed a connection"
                      : error == WEIR_ERR_SYNTAX
                          ? "a reply is not of the protocol that was asked for"
                          : weir_error_text(error);
    if (error != WEIR_ERR_IO && connection->under_way == 0) {
        client->result.failed++; /* a reply to nothing */
        note_error(client, why, strlen(why));
    }
    lose(client, connection, why);
}

/* Reads replies; in a closed loop each makes the next request. */
static void receive(struct bench_client *client, struct bench_connection *connection)
{
    struct bench_reply reply = {0};
    uint64_t due;
    long error = bench_connection_read(connection), more = 0;
    uint64_t now_ns = bench_clock_ns();
    bool counts = now_ns >= client->plan->measure_ns;
    while (error > 0 && !reply.last &&
           (more = bench_connection_next(connection, client->plan, &reply, &due)) > 0) {
        client->under_way--;
        if (counts)
            count_reply(client, &reply, now_ns > due ? now_ns - due : 0);
        client->result.last_ns = client->waits_since_ns = now_ns;
    }
    if (error < 0 || more < 0) {
        error = error < 0 ? error : more;
        lose_by_error(client, connection, (int)error);
    } else if (reply.last) {
        lose(client, connection, "the server closed a connection behind a reply");
    } else if (client->plan->rate <= 0) {
        refill(client, connection, now_ns);
    }
}

/* Whether there is nothing more to wait for: all is answered, or nothing ever will be. */
static bool is_over(struct bench_client *client, uint64_t now_ns)
{
    const struct bench_plan *plan = client->plan;
    bool sending = may_send(client, now_ns);
    if (!sending && client->under_way == 0)
        return true;
    if (client->alive == 0) {
        client->result.ended_early = true;
        return true;
    }
    if (client->under_way > 0 && now_ns > client->waits_since_ns + plan->timeout_ns) {
        static const char text[] = "the server has stopped answering";
        note_error(client, text, sizeof text - 1);
        client->result.lost += client->under_way;
        client->result.ended_early = true;
        return true;
    }
    return false;
}

/* How long to wait for replies: until the next request is due, if it will find room. */
static struct timespec patience(const struct bench_client *client, bool waits, uint64_t now_ns)
{
    uint64_t wait_ns = LOOK_NS;
    if (client->plan->rate > 0 && !waits && may_send(client, now_ns)) {
        uint64_t due = due_ns(client, client->sent), now = bench_clock_ns();
        wait_ns = client->plan->spin || due <= now ? 0 : due - now;
    }
    if (wait_ns > LOOK_NS)
        wait_ns = LOOK_NS;
    return (struct timespec){.tv_nsec = (long)wait_ns};
}

/* Those of an open loop that were due before the end. */
static void count_unsent(struct bench_client *client)
{
    uint64_t number = client->sent, left = client->left_to_send;
    if (client->plan->end_ns == UINT64_MAX) {
        client->result.unsent = left; /* not 0 only when it ended early */
        return;
    }
    while (left-- > 0 && due_ns(client, number) < client->plan->end_ns) {
        number++;
        client->result.unsent++;
    }
}

void bench_client_run(struct bench_client *client)
{
    const struct bench_plan *plan = client->plan;
    struct epoll_event events[EVENTS_MAX];
    struct timespec start = {.tv_sec = (time_t)(plan->start_ns / NS_PER_S),
                             .tv_nsec = (long)(plan->start_ns % NS_PER_S)};
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL,
          0UL); /* the kernel adds 50 us to each sleep otherwise */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL) == EINTR)
        ;
    client->result.last_ns = plan->measure_ns;
    for (;;) {
        bool waits = false;
        uint64_t now_ns = bench_clock_ns();
        if (plan->rate > 0)
            waits = send_due(client, now_ns);
        else if (client->idle > 0)
            refill_idle(client, now_ns);
        if (is_over(client, now_ns))
            break;
        struct timespec wait = patience(client, waits, now_ns);
        int ready = epoll_pwait2(client->epoll, events, EVENTS_MAX, &wait, NULL);
        for (int i = 0; i < ready; i++) {
            struct bench_connection *connection = events[i].data.ptr;
            if (connection->blocked && (events[i].events & EPOLLOUT))
                flush(client, connection);
            if (connection->fd >= 0 && (events[i].events & ~(uint32_t)EPOLLOUT))
                receive(client, connection);
        }
    }
    if (plan->rate > 0)
        count_unsent(client);
}
