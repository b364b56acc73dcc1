/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are handed on while they arrive: the server sends the next part when the client has
 * got the one before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/client.h>

#include "client/stream.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define WINDOW 32768
#define LARGE (4 << 20)

#define STREAM "HTTP/1.1 200 OK\r\nX-Thing: Value\r\nTransfer-Encoding: chunked\r\n\r\n"
#define END "0\r\n\r\n"
#define BUSY "HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy"

/* What the client has seen of one request. */
struct seen {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned heads, pieces, dones;
    int status;
    bool has_field, refuses_head, over;
    char text[200];
    uint64_t got, consumed;
    enum weir_client_outcome outcome;
    char body[20], reason[WEIR_REASON_MAX];
};

static struct seen seen;

static bool on_head(void *context, const struct weir_client_head *head)
{
    struct seen *one = context;

    pthread_mutex_lock(&one->mutex);
    one->heads++;
    one->status = head->status;
    one->has_field = head->headers && strstr(head->headers, "x-thing: Value\n");
    pthread_cond_broadcast(&one->changed);
    pthread_mutex_unlock(&one->mutex);
    return !one->refuses_head;
}

static bool on_body(void *context, int status, uint64_t offset, const void *data, size_t size)
{
    struct seen *one = context;

    pthread_mutex_lock(&one->mutex);
    one->pieces++;
    if (one->got == offset && offset + size < sizeof one->text)
        memcpy(one->text + offset, data, size);
    one->got += size;
    one->over |=
        size > WEIR_CLIENT_PIECE_MOST || one->got - one->consumed > WINDOW + WEIR_CLIENT_PIECE_MOST;
    pthread_cond_broadcast(&one->changed);
    pthread_mutex_unlock(&one->mutex);
    return true;
}

static void on_done(void *context, const struct weir_client_answer *answer)
{
    struct seen *one = context;

    pthread_mutex_lock(&one->mutex);
    one->dones++;
    one->outcome = answer->outcome;
    snprintf(one->body, sizeof one->body, "%s", answer->body ? answer->body : "");
    snprintf(one->reason, sizeof one->reason, "%s", answer->reason.text);
    pthread_cond_broadcast(&one->changed);
    pthread_mutex_unlock(&one->mutex);
}

static void reset(struct seen *one)
{
    *one = (struct seen){.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
}

static void wait_heads(struct seen *one, unsigned count)
{
    pthread_mutex_lock(&one->mutex);
    while (one->heads < count && one->dones == 0)
        pthread_cond_wait(&one->changed, &one->mutex);
    pthread_mutex_unlock(&one->mutex);
}

static void wait_got(struct seen *one, uint64_t count)
{
    pthread_mutex_lock(&one->mutex);
    while (one->got < count && one->dones == 0)
        pthread_cond_wait(&one->changed, &one->mutex);
    pthread_mutex_unlock(&one->mutex);
}

static void wait_done(struct seen *one)
{
    pthread_mutex_lock(&one->mutex);
    while (one->dones == 0)
        pthread_cond_wait(&one->changed, &one->mutex);
    pthread_mutex_unlock(&one->mutex);
}

/* The server: plays one function for each connection, in their order. */
static struct {
    int listener;
    char request[4096]; /* the last head, and `taken` bytes with what follows */
    size_t taken;
    char url[64];
    pthread_t thread;
    void (*const *plays)(int peer);
    unsigned served;
} server;

static void take_request(int peer)
{
    char *head = server.request;
    size_t size = 0;

    memset(head, 0, sizeof server.request);
    while (size < sizeof server.request - 1 && !memmem(head, size, "\r\n\r\n", 4)) {
        ssize_t got = read(peer, head + size, sizeof server.request - 1 - size);
        if (got <= 0)
            return;
        size += (size_t)got;
    }
    server.taken = size;
}

static void say(int peer, const char *text)
{
    size_t size = strlen(text);
    for (ssize_t sent; size > 0; text += sent, size -= (size_t)sent)
        if ((sent = send(peer, text, size, MSG_NOSIGNAL)) <= 0)
            return;
}

/* Until the client has closed the connection. */
static void wait_for_close(int peer)
{
    char byte[100];
    while (read(peer, byte, sizeof byte) > 0)
        ;
}

static void *serve(void *context)
{
    for (void (*const *play)(int) = server.plays; *play; play++) {
        int peer = accept(server.listener, NULL, NULL);
        take_request(peer);
        server.served++;
        (*play)(peer);
        shutdown(peer, SHUT_WR);
        wait_for_close(peer);
        close(peer);
    }
    return NULL;
}

static void begin(void (*const *plays)(int))
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    reset(&seen);
    server.plays = plays;
    server.served = 0;
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server.listener, 8), 0);
    assert_int_equal(getsockname(server.listener, (struct sockaddr *)&address, &size), 0);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d/path", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void end(struct weir_client *client)
{
    weir_client_close(client);
    pthread_join(server.thread, NULL);
    close(server.listener);
}

static struct weir_client *open_with(struct weir_client_options options)
{
    struct weir_client *client;
    struct weir_reason reason;

    options.backoff_base_ns = options.backoff_cap_ns = MS;
    options.seed = 7;
    assert_int_equal(weir_client_open(&client, &options, &reason), 0);
    return client;
}

static uint64_t start(struct weir_client *client, struct weir_client_request request,
                      struct seen *one)
{
    uint64_t id;

    request.url = server.url;
    request.on_head = on_head;
    request.on_body = on_body;
    request.on_done = on_done;
    request.context = one;
    assert_int_equal(weir_client_submit(client, &request, &id), 0);
    return id;
}

/* --- Plays ------------------------------------------------------------------------------------ */

static void events(int peer)
{
    say(peer, STREAM);
    wait_heads(&seen, 1);
    say(peer, "4\r\none\n\r\n");
    wait_got(&seen, 4);
    say(peer, "4\r\ntwo\n\r\n");
    wait_got(&seen, 8);
    say(peer, END);
}

static void busy(int peer)
{
    say(peer, BUSY);
}

static void fails(int peer)
{
    say(peer, "HTTP/1.1 500 Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

static void cut(int peer)
{
    say(peer, STREAM "4\r\none\n\r\n");
    wait_got(&seen, 4);
}

static void never_ends(int peer)
{
    say(peer, STREAM "4\r\none\n\r\n");
    wait_for_close(peer);
}

static void large(int peer)
{
    char *text = malloc(LARGE + 1), head[100];

    if (!text)
        return;
    memset(text, 'x', LARGE);
    text[LARGE] = '\0';
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LARGE);
    say(peer, head);
    say(peer, text);
    free(text);
}

static void moved(int peer)
{
    say(peer, "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 4\r\n"
              "Connection: close\r\n\r\ngone");
}

/* libcurl takes it as an answer, though nobody asked for it. */
static void switches(int peer)
{
    say(peer, "HTTP/1.1 101 Switching\r\n\r\nraw");
}

static void moved_nowhere(int peer)
{
    say(peer, "HTTP/1.1 302 Found\r\nLocation: \r\nContent-Length: 4\r\n\r\ngone");
}

/* More fields than are kept come before the one that libcurl follows. */
static void moved_late(int peer)
{
    char line[1010];

    memset(line, 'x', sizeof line);
    memcpy(line, "X-Field: ", 9);
    memcpy(line + sizeof line - 3, "\r\n", 3);
    say(peer, "HTTP/1.1 302 Found\r\n");
    for (int i = 0; i < 80; i++)
        say(peer, line);
    say(peer, "Location: /there\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone");
}

/* Takes the body only of one that does not wait for a 100. */
static void expects_nothing(int peer)
{
    char bytes[65536];
    size_t left = LARGE;

    if (strstr(server.request, "Expect:")) {
        say(peer, "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    char *body = memmem(server.request, sizeof server.request, "\r\n\r\n", 4);
    left -= body ? server.taken - (size_t)(body + 4 - server.request) : 0;
    for (ssize_t got; left > 0; left -= (size_t)got)
        if ((got = read(peer, bytes, left < sizeof bytes ? left : sizeof bytes)) <= 0)
            return;
    say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone");
}

static struct seen second;

static void whole(int peer)
{
    say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nwhole");
}

/* --- Cases ------------------------------------------------------------------------------------ */

TEST("events arrive as they are sent")
{
    begin((void (*const[])(int)){events, NULL});
    struct weir_client *client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){0}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_ANSWERED);
    assert_int_equal(seen.heads, 1);
    assert_int_equal(seen.status, 200);
    assert_true(seen.has_field);
    assert_int_equal(seen.pieces, 2);
    assert_string_equal(seen.text, "one\ntwo\n");
    assert_string_equal(seen.body, "");
}

TEST("a retry comes before the head")
{
    begin((void (*const[])(int)){busy, busy, events, NULL});
    struct weir_client *client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){0}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_ANSWERED);
    assert_int_equal(seen.heads, 1);
    assert_string_equal(seen.text, "one\ntwo\n");
}

TEST("none comes after it")
{
    begin((void (*const[])(int)){cut, NULL});
    struct weir_client *client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){0}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_GAVE_UP);
    assert_int_equal(seen.heads, 1);
    assert_string_equal(seen.text, "one\n");
    assert_non_null(strstr(seen.reason, "broke off"));
    assert_int_equal(server.served, 1);
}

TEST("a last refusal has no head")
{
    begin((void (*const[])(int)){busy, NULL});
    struct weir_client *client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){.tries = 1}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_LIMITED);
    assert_int_equal(seen.heads, 0);
    assert_int_equal(seen.pieces, 0);
    assert_string_equal(seen.body, "busy");
}

TEST("a slow reader pauses the transfer")
{
    begin((void (*const[])(int)){large, NULL});
    struct weir_client *client = open_with((struct weir_client_options){0});
    uint64_t id = start(client, (struct weir_client_request){.body_window = WINDOW}, &seen);
    for (uint64_t consumed = 0; consumed < LARGE;) {
        uint64_t next = consumed + WINDOW < LARGE ? consumed + WINDOW : LARGE;
        wait_got(&seen, next); /* as much as comes without more being consumed */
        pthread_mutex_lock(&seen.mutex);
        uint64_t more = seen.got - consumed;
        seen.consumed = consumed += more;
        pthread_mutex_unlock(&seen.mutex);
        assert_int_equal(weir_client_consumed(client, id, more), 0);
    }
    wait_done(&seen);
    assert_int_equal(weir_client_consumed(client, id, 1), 0); /* has ended */
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_ANSWERED);
    assert_int_equal(seen.got, LARGE);
    assert_false(seen.over);
}

TEST("a paused stream can be cancelled")
{
    begin((void (*const[])(int)){large, NULL});
    struct weir_client *client = open_with((struct weir_client_options){0});
    uint64_t id = start(client, (struct weir_client_request){.body_window = WINDOW}, &seen);
    wait_got(&seen, WINDOW);
    weir_client_cancel(client, id);
    wait_done(&seen);
    end(client); /* the server sees that its connection is closed */
    assert_int_equal(seen.outcome, WEIR_CLIENT_CANCELLED);
    assert_false(seen.over);
}

TEST("closing ends an open stream")
{
    begin((void (*const[])(int)){never_ends, NULL});
    struct weir_client *client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){0}, &seen);
    wait_got(&seen, 4);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_CANCELLED);
    assert_int_equal(seen.dones, 1);
}

TEST("who refuses the head gets no body")
{
    begin((void (*const[])(int)){never_ends, NULL});
    seen.refuses_head = true;
    struct weir_client *client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){0}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_REFUSED);
    assert_int_equal(seen.pieces, 0);
    assert_int_equal(server.served, 1);
}

TEST("a silent stream is a timeout")
{
    begin((void (*const[])(int)){never_ends, NULL});
    struct weir_client *client = open_with((struct weir_client_options){.try_ns = 50 * MS});
    start(client, (struct weir_client_request){0}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_TIMEOUT);
    assert_int_equal(seen.heads, 1);
    assert_int_equal(server.served, 1);
}

/* Before the head, the time of the request counts as for any other. */
TEST("no head in time is a timeout")
{
    begin((void (*const[])(int)){wait_for_close, NULL});
    struct weir_client *client = open_with((struct weir_client_options){.tries = 1});
    start(client, (struct weir_client_request){.time_ns = 50 * MS}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_GAVE_UP);
    assert_int_equal(seen.heads, 0);
}

TEST("the head is that of the last redirect")
{
    begin((void (*const[])(int)){moved, events, NULL});
    struct weir_client *client = open_with((struct weir_client_options){.follow = true});
    start(client, (struct weir_client_request){0}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.heads, 1);
    assert_int_equal(seen.status, 200);
    assert_string_equal(seen.text, "one\ntwo\n");
    begin((void (*const[])(int)){moved, NULL});
    client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){0}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.status, 302);
    assert_string_equal(seen.text, "gone");
}

TEST("an answer that only its body shows to be final has a head")
{
    begin((void (*const[])(int)){switches, NULL});
    struct weir_client *client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){.tries = 1}, &seen);
    wait_done(&seen);
    end(client);
    if (seen.outcome == WEIR_CLIENT_ANSWERED) /* else this libcurl refuses it */
        assert_string_equal(seen.text, "raw");
    assert_int_equal(seen.heads, seen.outcome == WEIR_CLIENT_ANSWERED ? 1 : 0);
}

TEST("a redirect to nowhere is final")
{
    begin((void (*const[])(int)){moved_nowhere, NULL});
    struct weir_client *client = open_with((struct weir_client_options){.follow = true});
    start(client, (struct weir_client_request){0}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_ANSWERED);
    assert_int_equal(seen.heads, 1);
    assert_int_equal(seen.status, 302);
    assert_string_equal(seen.text, "gone");
}

TEST("a redirect after many fields is followed before the head")
{
    begin((void (*const[])(int)){moved_late, events, NULL});
    struct weir_client *client = open_with((struct weir_client_options){.follow = true});
    start(client, (struct weir_client_request){0}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_ANSWERED);
    assert_int_equal(seen.heads, 1);
    assert_int_equal(seen.status, 200);
    assert_string_equal(seen.text, "one\ntwo\n");
}

TEST("a large body is sent without waiting for a 100")
{
    char *body = calloc(1, LARGE);
    assert_non_null(body);
    begin((void (*const[])(int)){expects_nothing, NULL});
    struct weir_client *client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){.method = "POST", .body = body, .body_size = LARGE},
          &seen);
    wait_done(&seen);
    end(client);
    free(body);
    assert_int_equal(seen.outcome, WEIR_CLIENT_ANSWERED);
    assert_int_equal(seen.status, 200);
    assert_string_equal(seen.text, "done");
}

/* A head gives a tenth of a retry back; each silence that was learned would take a whole one. */
TEST("silence after a head is no failure")
{
    begin((void (*const[])(int)){never_ends, never_ends, never_ends, never_ends, never_ends,
                                 never_ends, never_ends, never_ends, never_ends, never_ends,
                                 never_ends, never_ends, fails, whole, NULL});
    struct weir_client *client = open_with((struct weir_client_options){.try_ns = 250 * MS});
    for (int i = 0; i < 12; i++) {
        pthread_mutex_lock(&seen.mutex);
        seen.dones = 0;
        seen.got = 0;
        pthread_mutex_unlock(&seen.mutex);
        start(client, (struct weir_client_request){0}, &seen);
        wait_done(&seen);
        assert_int_equal(seen.outcome, WEIR_CLIENT_TIMEOUT);
    }
    seen.dones = 0;
    start(client, (struct weir_client_request){.time_ns = 60 * S}, &seen);
    wait_done(&seen);
    end(client);
    assert_int_equal(seen.outcome, WEIR_CLIENT_ANSWERED);
}

TEST("the reason of who waits for open streams names the bound")
{
    begin((void (*const[])(int)){never_ends, NULL});
    reset(&second);
    struct weir_client *client = open_with((struct weir_client_options){.host_concurrency = 1});
    uint64_t id = start(client, (struct weir_client_request){0}, &seen);
    wait_got(&seen, 4);
    start(client, (struct weir_client_request){.time_ns = 50 * MS}, &second);
    wait_done(&second);
    weir_client_cancel(client, id);
    wait_done(&seen);
    end(client);
    assert_int_equal(second.outcome, WEIR_CLIENT_TIMEOUT);
    assert_non_null(
        strstr(second.reason, "requests in flight and open streams use up host_concurrency"));
}

TEST("small pieces count for more than their bytes")
{
    struct weir_client_stream one = {.window = WINDOW};
    uint64_t pieces = 0;

    for (; weir_stream_takes(&one); pieces++)
        weir_stream_took(&one, 1, S);
    assert_int_equal(pieces, WINDOW / WEIR_STREAM_SMALL + 2);
    assert_false(weir_stream_consumed(&one, pieces / 2 - 1, S));
    assert_true(weir_stream_consumed(&one, 1, S));
    assert_true(weir_stream_takes(&one));
    assert_false(weir_stream_consumed(&one, pieces / 2, S)); /* it was not paused */
    weir_stream_took(&one, WINDOW - 1, S);
    assert_true(weir_stream_takes(&one)); /* a large one is its bytes */
}

static void *answer_second(void *context)
{
    int peer = accept(server.listener, NULL, NULL);

    take_request(peer);
    whole(peer);
    shutdown(peer, SHUT_WR);
    wait_for_close(peer);
    close(peer);
    return NULL;
}

/* Until the second request has been answered, the first one stays open. */
static void open_until_the_second_ends(int peer)
{
    pthread_t thread;

    say(peer, STREAM "4\r\none\n\r\n");
    if (pthread_create(&thread, NULL, answer_second, NULL) != 0)
        abort();
    wait_done(&second);
    pthread_join(thread, NULL);
    say(peer, END);
}

TEST("an open stream keeps no other request waiting")
{
    begin((void (*const[])(int)){open_until_the_second_ends, NULL});
    reset(&second);
    struct weir_client *client = open_with((struct weir_client_options){0});
    start(client, (struct weir_client_request){0}, &seen);
    wait_got(&seen, 4);
    start(client, (struct weir_client_request){0}, &second);
    wait_done(&second);
    wait_done(&seen);
    end(client);
    assert_string_equal(second.text, "whole");
    assert_int_equal(second.outcome, WEIR_CLIENT_ANSWERED);
    assert_int_equal(seen.outcome, WEIR_CLIENT_ANSWERED);
}

/* In virtual time. */
TEST("bytes and pauses move the end of silence")
{
    struct weir_streams streams;
    struct weir_client_stream one = {.window = 10}, other = {0};

    weir_streams_init(&streams);
    assert_true(weir_streams_wake(&streams) == UINT64_MAX);
    assert_true(weir_streams_begin(&streams, &one, 5 * S, S, 0));
    assert_true(weir_streams_begin(&streams, &other, UINT64_MAX, S, S));
    assert_true(weir_streams_wake(&streams) == 5 * S);
    assert_null(weir_streams_silent(&streams, 5 * S - 1));
    assert_ptr_equal(weir_streams_silent(&streams, 5 * S), &one); /* no head in time */
    one.open = true;
    weir_stream_took(&one, 10, 4500 * MS);
    assert_null(weir_streams_silent(&streams, 5 * S));
    assert_true(weir_streams_wake(&streams) == 5500 * MS);
    assert_false(weir_stream_takes(&one)); /* paused: no byte can come */
    assert_null(weir_streams_silent(&streams, 100 * S));
    assert_false(weir_stream_consumed(&one, 4, 100 * S));
    assert_true(weir_stream_consumed(&one, 1, 100 * S));
    assert_false(weir_stream_consumed(&one, 1, 100 * S));
    assert_null(weir_streams_silent(&streams, 101 * S - 1));
    assert_ptr_equal(weir_streams_silent(&streams, 101 * S), &one);
    weir_streams_end(&streams, &one);
    weir_streams_end(&streams, &one);
    assert_null(weir_streams_silent(&streams, UINT64_MAX - 1));
    weir_streams_end(&streams, &other);
    weir_streams_free(&streams);
}

RUN_TESTS()
