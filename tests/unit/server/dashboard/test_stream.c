/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events to browsers that read, do not read, or go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "feature/dashboard/server/daemon.h"
#include "feature/dashboard/server/dashboard.h"
#include "feature/dashboard/server/snapshot.h"
#include "http_harness.h"
#include "test.h"

/* More than a socket takes. */
#define LARGE ((size_t)1 << 20)

static const char rules[] = "version: 1\nlimits: []\n";
static const char request[] = "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const char hello[] = "data: hello\n\n";

static struct http_harness *open_all(void)
{
    struct http_harness *http = http_harness_open(rules, WEIR_LISTENER_ADMIN);
    struct weir_reason reason;
    struct weir_dashboard *opened;
    assert_int_equal(weir_dashboard_open(&opened, &http->daemon, &reason), 0);
    weir_own_set(&http->daemon, WEIR_OWN_DASHBOARD, opened);
    return http;
}

static struct weir_stream *stream_of(struct http_harness *http)
{
    return &weir_daemon_dashboard(&http->daemon)->stream;
}

static void close_all(struct http_harness *http)
{
    struct weir_dashboard *dashboard = weir_daemon_dashboard(&http->daemon);
    http_harness_close(http);
    assert_int_equal(dashboard->stream.count, 0); /* its slot was dropped with the connection */
    weir_dashboard_close(dashboard);
}

static void listen_to(struct http_harness *http)
{
    http_harness_send(http, request, sizeof request - 1);
    assert_int_equal(http_harness_reply(http, true), 200);
}

/* Lets the worker write, and reads what has come. */
static void turn(struct http_harness *http)
{
    http_harness_send(http, "", 0);
}

TEST("a client gets each text after the head")
{
    struct http_harness *http = open_all();
    listen_to(http);
    assert_true(http_harness_has(http, "Content-Type: text/event-stream"));
    assert_true(http_harness_has(http, "Cache-Control: no-store"));
    assert_true(http_harness_has(http, "Connection: close"));
    assert_false(strstr(http->fields, "Content-Length"));
    assert_int_equal(stream_of(http)->count, 1);
    for (int i = 0; i < 3; i++) {
        weir_stream_send(stream_of(http), WEIR_SNAPSHOT_ALL, hello, sizeof hello - 1);
        turn(http);
    }
    assert_string_equal(http->raw, "retry: 1000\n\ndata: hello\n\ndata: hello\n\ndata: hello\n\n");
    assert_int_equal(stream_of(http)->ticks, 3);
    assert_int_equal(stream_of(http)->lost, 0);
    close_all(http);
}

TEST("an end ends the connection and the place is free")
{
    struct http_harness *http = open_all();
    listen_to(http);
    weir_stream_end(stream_of(http));
    assert_int_equal(stream_of(http)->count, 0);
    turn(http);
    assert_true(http->closed);
    close_all(http);
}

TEST("a server that stops takes no more clients")
{
    struct http_harness *http = open_all();
    listen_to(http);
    weir_dashboard_stop(weir_daemon_dashboard(&http->daemon));
    turn(http);
    assert_true(http->closed);
    assert_int_equal(http_harness_get(http, "/v1/events"), 503);
    close_all(http);
}

/* A text that the socket does not take is kept, once; those that follow are lost. */
TEST("a slow client loses texts and never costs more than one")
{
    struct http_harness *http = open_all();
    char *large = malloc(LARGE);
    assert_non_null(large);
    memset(large, 'x', LARGE);
    listen_to(http);
    weir_stream_send(stream_of(http), WEIR_SNAPSHOT_ALL, large, LARGE);
    size_t kept = http->connection->output_bytes;
    assert_in_range(kept, 1, LARGE);
    for (int i = 0; i < 1000; i++)
        weir_stream_send(stream_of(http), WEIR_SNAPSHOT_ALL, large, LARGE);
    assert_int_equal(http->connection->output_bytes, kept);
    assert_int_equal(stream_of(http)->ticks, 1);
    assert_int_equal(stream_of(http)->lost, 1000);
    free(large);
    close_all(http);
}

TEST("a client that has gone is forgotten by the next text")
{
    struct http_harness *http = open_all();
    listen_to(http);
    shutdown(http->client, SHUT_RDWR);
    for (int i = 0; i < 4; i++)
        uv_run(http->worker->loop, UV_RUN_NOWAIT);
    weir_stream_send(stream_of(http), WEIR_SNAPSHOT_ALL, hello, sizeof hello - 1);
    assert_int_equal(stream_of(http)->count, 0);
    weir_stream_send(stream_of(http), WEIR_SNAPSHOT_ALL, hello, sizeof hello - 1);
    close_all(http);
}

static bool never(void *context, const unsigned char *session)
{
    return false;
}

TEST("the end of a session ends its stream and no other")
{
    struct http_harness *http = open_all();
    struct weir_stream *stream = stream_of(http);
    listen_to(http);
    weir_stream_check(stream, never, NULL);
    assert_int_equal(stream->count, 1);
    for (unsigned i = 0; i < WEIR_STREAM_CLIENTS_MAX; i++)
        stream->clients[i].by_session = stream->clients[i].slot;
    weir_stream_check(stream, never, NULL);
    assert_int_equal(stream->count, 0);
    close_all(http);
}

TEST("clients beyond the bound are refused")
{
    struct http_harness *http = open_all();
    struct weir_stream *stream = stream_of(http);
    struct weir_slot taken = {0};
    for (unsigned i = 0; i < WEIR_STREAM_CLIENTS_MAX; i++)
        stream->clients[i] = (struct weir_stream_client){.stream = stream, .slot = &taken};
    assert_int_equal(http_harness_get(http, "/v1/events"), 503);
    assert_true(http_harness_has(http, "Retry-After: 5"));
    assert_int_equal(stream->refused, 1);
    memset(stream->clients, 0, sizeof stream->clients);
    assert_int_equal(http_harness_ask(http, "POST", "/v1/events", NULL, "{}"), 405);
    close_all(http);
}

RUN_TESTS()
