/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a small server of one thread, which answers by a script and keeps what it was
 * asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/client.h>

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define SEEN_MAX 64

/* Its answers in their order; the last is repeated. "": it never answers. */
static struct {
    int listener, wake[2];
    pthread_t thread;
    char url[64];
    const char *const *script;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char seen[SEEN_MAX][4096];
    unsigned count;
    int held; /* a connection that is not answered */
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void answer_one(int peer)
{
    char head[4096];
    size_t size = 0;

    while (size < sizeof head - 1 && !memmem(head, size, "\r\n\r\n", 4)) {
        ssize_t got = read(peer, head + size, sizeof head - 1 - size);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    head[size] = '\0';
    pthread_mutex_lock(&server.mutex);
    const char *const *at = server.script;
    for (unsigned i = 0; i < server.count && at[1]; i++)
        at++;
    if (server.count < SEEN_MAX)
        memcpy(server.seen[server.count++], head, size + 1);
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.mutex);
    if ((*at)[0] == '\0') {
        server.held = peer;
        return;
    }
    if (write(peer, *at, strlen(*at)) < 0)
        perror("write");
    shutdown(peer, SHUT_WR);
    while (read(peer, head, sizeof head) > 0)
        ;
    close(peer);
}

static void *serve(void *context)
{
    struct pollfd polls[2] = {{server.listener, POLLIN, 0}, {server.wake[0], POLLIN, 0}};

    while (poll(polls, 2, -1) > 0 && polls[1].revents == 0)
        answer_one(accept(server.listener, NULL, NULL));
    return NULL;
}

static void begin(const char *const *script)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    server.script = script;
    server.count = 0;
    server.held = -1;
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server.listener, 64), 0);
    assert_int_equal(getsockname(server.listener, (struct sockaddr *)&address, &size), 0);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d/path", ntohs(address.sin_port));
    assert_int_equal(pipe(server.wake), 0);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void end(void)
{
    assert_int_equal(write(server.wake[1], "x", 1), 1);
    pthread_join(server.thread, NULL);
    close(server.wake[0]);
    close(server.wake[1]);
    close(server.listener);
    if (server.held >= 0)
        close(server.held);
}

static unsigned requests(void)
{
    pthread_mutex_lock(&server.mutex);
    unsigned count = server.count;
    pthread_mutex_unlock(&server.mutex);
    return count;
}

static void wait_for_requests(unsigned count)
{
    pthread_mutex_lock(&server.mutex);
    while (server.count < count)
        pthread_cond_wait(&server.changed, &server.mutex);
    pthread_mutex_unlock(&server.mutex);
}

static struct weir_client *open_with(struct weir_client_options options)
{
    struct weir_client *client;
    struct weir_reason reason;

    options.backoff_base_ns = MS;
    options.backoff_cap_ns = 10 * MS;
    options.seed = 7;
    assert_int_equal(weir_client_open(&client, &options, &reason), 0);
    return client;
}

/* One request of one client against a script; the answer is the caller's. */
static int fetch(const char *const *script, struct weir_client_options options,
                 struct weir_client_request request, struct weir_client_answer *answer)
{
    begin(script);
    struct weir_client *client = open_with(options);
    request.url = server.url;
    int error = weir_client_fetch(client, &request, answer);
    weir_client_close(client);
    end();
    return error;
}

#define OK                                                                                         \
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\nX-Thing: Value\r\n\r\nhello"
#define BUSY "HTTP/1.1 429 Too Many\r\nRetry-After: Thu, 01 Jan 1998 00:00:00 GMT\r\n\r\nbusy"
#define BROKEN "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops"
#define CUT "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"

TEST("an answer has status headers and body")
{
    static const char *const script[] = {OK, NULL};
    struct weir_client_answer answer;

    assert_int_equal(
        fetch(script, (struct weir_client_options){0}, (struct weir_client_request){0}, &answer),
        0);
    assert_int_equal(answer.outcome, WEIR_CLIENT_ANSWERED);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.tries, 1);
    assert_string_equal(answer.body, "hello");
    assert_non_null(strstr(answer.headers, "x-thing: Value\n"));
    assert_memory_equal(server.seen[0], "GET /path HTTP/1.1\r\n", 20);
    weir_client_answer_free(&answer);
}

TEST("failures are retried until an answer")
{
    static const char *const script[] = {BUSY, BROKEN, CUT, OK, NULL};
    struct weir_client_answer answer;

    assert_int_equal(
        fetch(script, (struct weir_client_options){0}, (struct weir_client_request){0}, &answer),
        0);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.tries, 4);
    assert_string_equal(answer.body, "hello");
    weir_client_answer_free(&answer);
}

TEST("a 404 is an answer")
{
    static const char *const script[] = {"HTTP/1.1 404 No\r\n\r\nno", NULL};
    struct weir_client_answer answer;

    assert_int_equal(
        fetch(script, (struct weir_client_options){0}, (struct weir_client_request){0}, &answer),
        0);
    assert_int_equal(answer.status, 404);
    assert_int_equal(requests(), 1);
    weir_client_answer_free(&answer);
}

TEST("tries have a cap and errors a type")
{
    static const char *const busy[] = {BUSY, NULL}, *const broken[] = {BROKEN, NULL};
    struct weir_client_answer answer;

    assert_int_equal(fetch(busy, (struct weir_client_options){.tries = 3},
                           (struct weir_client_request){0}, &answer),
                     WEIR_ERR_BUSY);
    assert_int_equal(answer.outcome, WEIR_CLIENT_LIMITED);
    assert_int_equal(answer.status, 429);
    assert_int_equal(requests(), 3);
    assert_string_equal(answer.body, "busy");
    weir_client_answer_free(&answer);
    assert_int_equal(fetch(broken, (struct weir_client_options){.tries = 9},
                           (struct weir_client_request){.tries = 2}, &answer),
                     WEIR_ERR_IO);
    assert_int_equal(answer.outcome, WEIR_CLIENT_GAVE_UP);
    assert_int_equal(requests(), 2);
    weir_client_answer_free(&answer);
    /* The budget ends what the cap would allow: 10 tokens, of which half may be spent. */
    assert_int_equal(fetch(broken, (struct weir_client_options){.tries = 50},
                           (struct weir_client_request){0}, &answer),
                     WEIR_ERR_IO);
    assert_int_equal(requests(), 5);
    assert_non_null(strstr(answer.reason.text, "budget"));
    weir_client_answer_free(&answer);
}

TEST("a wait beyond the requests time is not waited for")
{
    static const char *const script[] = {
        "HTTP/1.1 429 Too Many\r\nRetry-After: 3600\r\nRateLimit-Policy: \"d\";q=10;w=86400\r\n"
        "RateLimit: \"d\";r=0;t=3600\r\n\r\n",
        NULL};
    struct weir_client_answer answer;

    assert_int_equal(
        fetch(script, (struct weir_client_options){0}, (struct weir_client_request){0}, &answer),
        WEIR_ERR_BUSY);
    assert_int_equal(answer.outcome, WEIR_CLIENT_LIMITED);
    assert_int_equal(requests(), 1);
    assert_int_equal(answer.limit.limit, 10);
    assert_int_equal(answer.limit.remaining, 0);
    assert_true(answer.limit.reset_ns > 3590 * S && answer.limit.reset_ns <= 3600 * S);
    assert_true(answer.retry_after_ns >= 3600 * S && answer.retry_after_ns <= 3960 * S);
    weir_client_answer_free(&answer);
}

static bool take_body(void *context, int status, uint64_t offset, const void *data, size_t size)
{
    char *text = context;

    assert_int_equal(status, 200);
    memcpy(text + offset, data, size);
    text[offset + size] = '\0';
    return strcmp(text, "hello") != 0 || text[20] == '\0';
}

TEST("statuses are retried if the caller names them")
{
    static const char *const script[] = {"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n",
                                         "HTTP/1.1 408 Timeout\r\nContent-Length: 0\r\n\r\n", OK,
                                         NULL};
    struct weir_client_options options = {.retry_on = {408, 409}};
    struct weir_client_answer answer;
    struct weir_client *client;
    struct weir_reason reason;

    assert_int_equal(fetch(script, options, (struct weir_client_request){0}, &answer), 0);
    assert_int_equal(answer.status, 200);
    assert_int_equal(requests(), 3);
    weir_client_answer_free(&answer);
    options.retry_on[1] = 200;
    assert_int_equal(weir_client_open(&client, &options, &reason), WEIR_ERR_RANGE);
}

/* GitHub's way: the body goes to nobody, since it is not the final answer. */
TEST("a 403 of a used up limit is retried")
{
    static const char *const script[] = {
        "HTTP/1.1 403 Forbidden\r\nX-RateLimit-Remaining: 0\r\nretry-after-ms: 20\r\n"
        "Content-Length: 4\r\n\r\nbusy",
        OK, NULL};
    struct weir_client_answer answer;
    char body[50] = "";

    assert_int_equal(fetch(script, (struct weir_client_options){0},
                           (struct weir_client_request){.on_body = take_body, .context = body},
                           &answer),
                     0);
    assert_int_equal(answer.status, 200);
    assert_int_equal(requests(), 2);
    weir_client_answer_free(&answer);
}

/* Also of a request that may not be tried again. */
TEST("a limited answer says when a try may succeed")
{
    static const char *const stated[] = {"Retry-After: 7", "Retry-After: 3, 7",
                                         "RateLimit: \"d\";r=0;t=7"};

    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++) {
        struct weir_client_answer answer;
        char text[200];
        snprintf(text, sizeof text, "HTTP/1.1 429 Too Many\r\n%s\r\n\r\n", stated[i]);
        const char *const script[] = {text, NULL};
        assert_int_equal(fetch(script, (struct weir_client_options){0},
                               (struct weir_client_request){.method = "POST"}, &answer),
                         WEIR_ERR_BUSY);
        assert_int_equal(answer.outcome, WEIR_CLIENT_LIMITED);
        assert_true(answer.retry_after_ns > 5 * S && answer.retry_after_ns <= 7 * S);
        weir_client_answer_free(&answer);
    }
}

TEST("what one request learns holds for the next")
{
    static const char *const script[] = {
        "HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 0\r\n"
        "X-RateLimit-Reset: 3600\r\n\r\n",
        OK, NULL};
    struct weir_client_answer answer;
    struct weir_client_limit limit;

    begin(script);
    struct weir_client *client = open_with((struct weir_client_options){0});
    struct weir_client_request request = {.url = server.url};
    assert_int_equal(weir_client_known(client, server.url, NULL, &limit), WEIR_ERR_NOT_FOUND);
    assert_int_equal(weir_client_fetch(client, &request, &answer), 0);
    weir_client_answer_free(&answer);
    assert_int_equal(weir_client_known(client, server.url, NULL, &limit), 0);
    assert_int_equal(limit.remaining, 0);
    /* The limit leaves no room within its time: it is not sent. */
    assert_int_equal(weir_client_fetch(client, &request, &answer), WEIR_ERR_BUSY);
    assert_int_equal(answer.outcome, WEIR_CLIENT_LIMITED);
    assert_int_equal(answer.tries, 0);
    weir_client_answer_free(&answer);
    assert_int_equal(requests(), 1);
    request.scope = "another key";
    assert_int_equal(weir_client_fetch(client, &request, &answer), 0);
    weir_client_answer_free(&answer);
    assert_int_equal(requests(), 2);
    weir_client_close(client);
    end();
}

TEST("a post is retried only with a key and keeps it")
{
    static const char *const script[] = {BROKEN, OK, NULL};
    struct weir_client_answer answer;
    struct weir_client_request post = {.method = "POST", .body = "{}", .body_size = 2};

    assert_int_equal(fetch(script, (struct weir_client_options){0}, post, &answer), WEIR_ERR_IO);
    assert_int_equal(requests(), 1);
    weir_client_answer_free(&answer);
    post.idempotency_key = true;
    assert_int_equal(fetch(script, (struct weir_client_options){0}, post, &answer), 0);
    assert_int_equal(requests(), 2);
    weir_client_answer_free(&answer);
    const char *first = strstr(server.seen[0], "Idempotency-Key: \"");
    const char *second = strstr(server.seen[1], "Idempotency-Key: \"");
    assert_true(first && second);
    assert_int_equal(strspn(first + 18, "0123456789abcdef"), 32);
    assert_memory_equal(first, second, 18 + 32);
}

static void on_try(void *context, const struct weir_client_try *one)
{
    char *text = context;
    size_t size = strlen(text);

    snprintf(text + size, 200 - size, "%u:%d%s ", one->number, one->status,
             one->next_wait_ns == WEIR_CLIENT_UNKNOWN ? "." : "");
}

TEST("hooks see each try and the body begins anew")
{
    static const char *const script[] = {BUSY, CUT, OK, NULL};
    struct weir_client_answer answer;
    char tries[200] = "", body[50] = "";

    assert_int_equal(fetch(script, (struct weir_client_options){.on_try = on_try, .context = tries},
                           (struct weir_client_request){.on_body = take_body, .context = body},
                           &answer),
                     0);
    assert_string_equal(tries, "1:429 2:0 3:200. ");
    assert_string_equal(body, "hello");
    assert_null(answer.body);
    weir_client_answer_free(&answer);
    /* A caller that refuses the body ends the request. */
    body[20] = 'x';
    assert_int_equal(fetch((const char *const[]){OK, NULL}, (struct weir_client_options){0},
                           (struct weir_client_request){.on_body = take_body, .context = body},
                           &answer),
                     WEIR_ERR_UNSUPPORTED);
    assert_int_equal(answer.outcome, WEIR_CLIENT_REFUSED);
    assert_int_equal(requests(), 1);
    weir_client_answer_free(&answer);
}

TEST("answers that are too large are refused")
{
    static const char *const script[] = {OK, NULL};
    struct weir_client_answer answer;

    assert_int_equal(fetch(script, (struct weir_client_options){.body_most = 4},
                           (struct weir_client_request){0}, &answer),
                     WEIR_ERR_UNSUPPORTED);
    assert_int_equal(requests(), 1);
    weir_client_answer_free(&answer);
}

TEST("a server that never answers is a timeout")
{
    static const char *const script[] = {"", NULL};
    struct weir_client_answer answer;

    assert_int_equal(fetch(script, (struct weir_client_options){.tries = 1},
                           (struct weir_client_request){.time_ns = 50 * MS}, &answer),
                     WEIR_ERR_IO);
    assert_int_equal(requests(), 1);
    weir_client_answer_free(&answer);
    assert_int_equal(fetch(script, (struct weir_client_options){0},
                           (struct weir_client_request){.time_ns = 50 * MS}, &answer),
                     WEIR_ERR_DEADLINE);
    assert_int_equal(answer.outcome, WEIR_CLIENT_TIMEOUT);
    weir_client_answer_free(&answer);
}

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char order[64];
    unsigned count, outcomes[6];
} ended = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_done(void *context, const struct weir_client_answer *answer)
{
    pthread_mutex_lock(&ended.mutex);
    ended.order[ended.count++] = *(const char *)context;
    ended.outcomes[answer->outcome]++;
    pthread_cond_signal(&ended.changed);
    pthread_mutex_unlock(&ended.mutex);
}

static void wait_for_ends(unsigned count)
{
    pthread_mutex_lock(&ended.mutex);
    while (ended.count < count)
        pthread_cond_wait(&ended.changed, &ended.mutex);
    pthread_mutex_unlock(&ended.mutex);
}

static void reset_ended(void)
{
    memset(ended.order, 0, sizeof ended.order);
    memset(ended.outcomes, 0, sizeof ended.outcomes);
    ended.count = 0;
}

/* The first request is in flight until it is cancelled; those that wait go by priority. */
TEST("waiting requests go by priority and can be cancelled")
{
    static const char *const script[] = {"", OK, NULL};
    uint64_t ids[5];

    reset_ended();
    begin(script);
    struct weir_client *client = open_with((struct weir_client_options){.host_concurrency = 1});
    for (int i = 0; i < 5; i++) {
        static const char *const names[] = {"0", "1", "2", "3", "4"};
        struct weir_client_request request = {.url = server.url,
                                              .priority = i == 3   ? 9
                                                          : i == 2 ? -1
                                                                   : 0,
                                              .on_done = on_done,
                                              .context = (void *)names[i]};
        assert_int_equal(weir_client_submit(client, &request, &ids[i]), 0);
        wait_for_requests(1);
    }
    weir_client_cancel(client, ids[4]);
    wait_for_ends(1);
    weir_client_cancel(client, ids[0]);
    wait_for_ends(5);
    assert_string_equal(ended.order, "40312");
    assert_int_equal(ended.outcomes[WEIR_CLIENT_CANCELLED], 2);
    assert_int_equal(ended.outcomes[WEIR_CLIENT_ANSWERED], 3);
    weir_client_cancel(client, ids[1]); /* has ended */
    weir_client_close(client);
    end();
}

TEST("closing cancels what is left")
{
    static const char *const script[] = {"", NULL};

    reset_ended();
    begin(script);
    struct weir_client *client = open_with((struct weir_client_options){.queue_most = 8});
    struct weir_client_request request = {.url = server.url, .on_done = on_done, .context = "x"};
    for (int i = 0; i < 8; i++)
        assert_int_equal(weir_client_submit(client, &request, NULL), 0);
    assert_int_equal(weir_client_submit(client, &request, NULL), WEIR_ERR_FULL);
    wait_for_requests(1);
    weir_client_close(client);
    assert_int_equal(ended.outcomes[WEIR_CLIENT_CANCELLED], 8);
    end();
}

static void *fetch_some(void *context)
{
    for (int i = 0; i < 5; i++) {
        struct weir_client_request request = {.url = server.url};
        struct weir_client_answer answer;
        if (weir_client_fetch(context, &request, &answer) != 0 || answer.status != 200)
            abort();
        weir_client_answer_free(&answer);
    }
    return NULL;
}

TEST("threads share a client")
{
    static const char *const script[] = {OK, NULL};
    pthread_t threads[8];

    begin(script);
    struct weir_client *client = open_with((struct weir_client_options){0});
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fetch_some, client), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(requests(), 40);
    weir_client_close(client);
    end();
}

TEST("wrong requests and options are refused")
{
    static const char *const bad_header[] = {"A: b\r\nInjected: yes"};
    static const char *const no_name[] = {": value"};
    const struct weir_client_request bad[] = {
        {.url = NULL},
        {.url = ""},
        {.url = "ftp://x/"},
        {.url = "file:///etc/passwd"},
        {.url = "http://"},
        {.url = "http://x/", .method = "GET / HTTP/1.1\r\nX: "},
        {.url = "http://x/", .method = ""},
        {.url = "http://x/", .headers = bad_header, .header_count = 1},
        {.url = "http://x/", .headers = no_name, .header_count = 1},
        {.url = "http://x/", .headers = bad_header, .header_count = 65}};
    struct weir_client *client = open_with((struct weir_client_options){0});
    struct weir_client_answer answer;
    struct weir_reason reason;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(weir_client_submit(client, &bad[i], NULL), WEIR_ERR_SYNTAX);
        assert_int_equal(weir_client_fetch(client, &bad[i], &answer), WEIR_ERR_SYNTAX);
        assert_int_equal(answer.outcome, WEIR_CLIENT_REFUSED);
        weir_client_answer_free(&answer);
    }
    weir_client_close(client);
    struct weir_client_options options = {.concurrency = 1001};
    assert_int_equal(weir_client_open(&client, &options, &reason), WEIR_ERR_RANGE);
    assert_null(client);
    options = (struct weir_client_options){.backoff_base_ns = 2, .backoff_cap_ns = 1};
    assert_int_equal(weir_client_open(&client, &options, &reason), WEIR_ERR_RANGE);
    weir_client_close(NULL);
    weir_client_answer_free(NULL);
}

TEST("structs of programs with other headers are read and written by their size")
{
    struct {
        struct weir_client_options options;
        uint64_t more;
    } newer = {.more = 1};
    struct {
        struct weir_client_request request;
        uint64_t more;
    } request = {.request = {.url = "ftp://x/"}, .more = 1};
    struct weir_client_options older;
    struct weir_client *client;
    struct weir_client_answer answer;
    struct weir_reason reason;
    memset(&older, 0xa5, sizeof older); /* what is beyond is garbage */
    memset(&older, 0, offsetof(struct weir_client_options, tries));
    assert_int_equal(weir_client_open_sized(&client, &newer.options, sizeof newer, &reason),
                     WEIR_ERR_UNSUPPORTED);
    assert_null(client);
    assert_int_equal(weir_client_open_sized(&client, &older,
                                            offsetof(struct weir_client_options, tries), &reason),
                     0);
    assert_int_equal(weir_client_submit_sized(client, &request.request, sizeof request, NULL),
                     WEIR_ERR_UNSUPPORTED);
    request.more = 0;
    memset(&answer, 0xa5, sizeof answer);
    assert_int_equal(weir_client_fetch_sized(client, &request.request, sizeof request, &answer,
                                             offsetof(struct weir_client_answer, tries)),
                     WEIR_ERR_SYNTAX);
    assert_int_equal(answer.outcome, WEIR_CLIENT_REFUSED);
    assert_int_equal(answer.tries, 0xa5a5a5a5);
    weir_client_close(client);
}

RUN_TESTS()
