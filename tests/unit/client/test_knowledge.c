/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of hosts, in memory and in a file of several processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/knowledge.h"
#include "core/bytes.h"
#include "temporary.h"
#include "test.h"

#define S UINT64_C(1000000000)

static struct weir_knowledge *open_good(const char *path)
{
    struct weir_knowledge *knowledge;
    struct weir_reason reason;

    assert_int_equal(weir_knowledge_open(&knowledge, path, &reason), 0);
    return knowledge;
}

TEST("a host is found again")
{
    struct weir_knowledge *knowledge = open_good(NULL);

    for (uint64_t i = 1; i <= 3; i++) {
        struct weir_host *host = weir_knowledge_lock(knowledge, "https://a:443", i);
        assert_int_equal(weir_host_send(host, i), i);
        weir_knowledge_unlock(knowledge);
    }
    struct weir_host *host = weir_knowledge_lock(knowledge, "https://b:443", 9);
    assert_int_equal(host->sent, 0);
    weir_knowledge_unlock(knowledge);
    weir_knowledge_close(knowledge);
}

TEST("the host that was not used for longest makes room")
{
    struct weir_knowledge *knowledge = open_good(NULL);
    char name[32];

    for (uint64_t i = 0; i < WEIR_KNOWLEDGE_HOSTS + 1; i++) {
        snprintf(name, sizeof name, "https://%d:443", (int)i);
        (void)weir_host_send(weir_knowledge_lock(knowledge, name, S + i), S + i);
        weir_knowledge_unlock(knowledge);
    }
    assert_int_equal(weir_knowledge_lock(knowledge, "https://1:443", 2 * S)->sent, 1);
    weir_knowledge_unlock(knowledge);
    assert_int_equal(weir_knowledge_lock(knowledge, "https://0:443", 2 * S)->sent, 0);
    weir_knowledge_unlock(knowledge);
    weir_knowledge_close(knowledge);
}

/* Else a rate of one's own could be sent again in full. */
TEST("a host that makes requests wait stays while others have room")
{
    struct weir_knowledge *knowledge = open_good(NULL);
    char name[32];

    for (uint64_t i = 0; i < WEIR_KNOWLEDGE_HOSTS + 2; i++) {
        snprintf(name, sizeof name, "https://%d:443", (int)i);
        struct weir_host *host = weir_knowledge_lock(knowledge, name, S + i);
        (void)weir_host_send(host, S + i);
        host->own_ns = i == 0 ? 9 * S : S + i;
        host->paused_ns = i == 1 ? 9 * S : 0;
        weir_knowledge_unlock(knowledge);
    }
    assert_int_equal(weir_knowledge_lock(knowledge, "https://0:443", 2 * S)->own_ns, 9 * S);
    weir_knowledge_unlock(knowledge);
    assert_int_equal(weir_knowledge_lock(knowledge, "https://1:443", 2 * S)->paused_ns, 9 * S);
    weir_knowledge_unlock(knowledge);
    assert_int_equal(weir_knowledge_lock(knowledge, "https://2:443", 2 * S)->sent, 0);
    weir_knowledge_unlock(knowledge);
    weir_knowledge_close(knowledge);
}

TEST("a scope is kept as a hash")
{
    char name[WEIR_HOST_NAME_MAX], other[WEIR_HOST_NAME_MAX];
    static char origin[5000];

    weir_knowledge_name("https://a:443", "s3cret-key", name);
    assert_null(strstr(name, "s3cret"));
    weir_knowledge_name("https://a:443", "other-key", other);
    assert_string_not_equal(name, other);
    weir_knowledge_name("https://a:443", NULL, other);
    assert_string_equal(other, "https://a:443");
    memset(origin, 'a', sizeof origin - 1);
    weir_knowledge_name(origin, "key", name);
    origin[4000] = 'b';
    weir_knowledge_name(origin, "key", other);
    assert_string_not_equal(name, other);
}

/* 4 processes with 2 threads each send 500 requests a thread: none is lost. */
static void *send_many(void *context)
{
    for (int i = 0; i < 500; i++) {
        (void)weir_host_send(weir_knowledge_lock(context, "https://a:443", S), S);
        weir_knowledge_unlock(context);
    }
    return NULL;
}

TEST("processes and threads share a file")
{
    char path[TEMPORARY_MAX];

    temporary_path(path);
    for (int i = 0; i < 4; i++) {
        if (fork() != 0)
            continue;
        struct weir_reason reason;
        struct weir_knowledge *knowledge;
        pthread_t thread;
        if (weir_knowledge_open(&knowledge, path, &reason) < 0 ||
            pthread_create(&thread, NULL, send_many, knowledge) != 0)
            _exit(1);
        send_many(knowledge);
        pthread_join(thread, NULL);
        weir_knowledge_close(knowledge);
        _exit(0);
    }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    struct weir_knowledge *knowledge = open_good(path);
    assert_int_equal(weir_knowledge_lock(knowledge, "https://a:443", S)->sent, 4000);
    weir_knowledge_unlock(knowledge);
    weir_knowledge_close(knowledge);
    temporary_remove(path);
}

/* One client of a crowd is three processes with two threads each, which take turns under the lock:
 * its requests are counted as one, and what it knows is never half of an answer. */
#define TURNS 200
#define LATE (1000 * S) /* after all that happens: nothing is repaired away */

static void field(struct weir_advice *advice, const char *name, const char *value)
{
    weir_advice_field(advice, weir_bytes_of(name), weir_bytes_of(value));
}

static void *learn_many(void *context)
{
    static const struct weir_backoff_spec backoff = {WEIR_CLIENT_JITTER_FULL, 1000000, 1000000, 2};
    uint64_t seed = 1;

    for (int i = 0; i < TURNS; i++) {
        struct weir_advice advice;
        struct weir_host *host = weir_knowledge_lock(context, "https://a:443", LATE);
        /* Time is what has been sent: a request each 100 ms, of a window that others use. */
        uint64_t now_ns = S + host->sent * (S / 10), used = now_ns / (S / 10) % 100;
        char text[50];
        uint64_t number = weir_host_send(host, now_ns);
        weir_advice_begin(&advice);
        field(&advice, "RateLimit-Policy", "\"x\";q=100;w=10");
        snprintf(text, sizeof text, "\"x\";r=%d;t=%d", (int)(99 - used), (int)(10 - used / 10));
        field(&advice, "RateLimit", text);
        weir_advice_finish(&advice, 1800000000);
        struct weir_host_result result = {used == 99 ? 429 : 200, number, now_ns, now_ns + 1000000,
                                          &advice};
        weir_host_learn(host, &result, &backoff, &seed);
        if (host->pace_count != 1 || !weir_pace_valid(&host->paces[0], now_ns + 1000000))
            abort();
        weir_knowledge_unlock(context);
    }
    return NULL;
}

TEST("processes and threads are one client of a crowd")
{
    char path[TEMPORARY_MAX];

    temporary_path(path);
    for (int i = 0; i < 3; i++) {
        if (fork() != 0)
            continue;
        struct weir_knowledge *knowledge = open_good(path);
        pthread_t thread;
        if (pthread_create(&thread, NULL, learn_many, knowledge) != 0)
            _exit(1);
        learn_many(knowledge);
        pthread_join(thread, NULL);
        weir_knowledge_close(knowledge);
        _exit(0);
    }
    for (int i = 0; i < 3; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    struct weir_knowledge *knowledge = open_good(path);
    const struct weir_host *host = weir_knowledge_lock(knowledge, "https://a:443", LATE);
    assert_int_equal(host->sent, 6 * TURNS);
    assert_int_equal(host->pace_count, 1);
    assert_int_equal(host->paces[0].limit, 100);
    assert_int_equal(host->paces[0].number, 6 * TURNS);
    /* All of what is used in a window of ten seconds is this client's. */
    assert_int_equal(host->paces[0].crowd.state, WEIR_CROWD_NONE);
    assert_true(host->paces[0].crowd.own_before >= 95 && host->paces[0].crowd.own_before <= 101);
    weir_knowledge_unlock(knowledge);
    weir_knowledge_close(knowledge);
    temporary_remove(path);
}

TEST("a process that dies with the lock does not block")
{
    char path[TEMPORARY_MAX];
    int status;

    temporary_path(path);
    struct weir_knowledge *knowledge = open_good(path);
    if (fork() == 0) {
        struct weir_reason reason;
        struct weir_knowledge *own;
        if (weir_knowledge_open(&own, path, &reason) < 0)
            _exit(1);
        struct weir_host *host = weir_knowledge_lock(own, "https://a:443", S);
        host->pace_count = 77; /* half-made */
        host->learned.rate = -1;
        _exit(0);
    }
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
    struct weir_host *host = weir_knowledge_lock(knowledge, "https://a:443", S);
    assert_int_equal(host->pace_count, 0);
    assert_true(host->learned.rate == 0);
    weir_knowledge_unlock(knowledge);
    weir_knowledge_close(knowledge);
    temporary_remove(path);
}

TEST("another file is refused and left alone")
{
    char path[TEMPORARY_MAX], text[8] = "";
    struct weir_knowledge *knowledge;
    struct weir_reason reason;

    close(temporary_file(path));
    FILE *file = fopen(path, "w");
    fputs("mine", file);
    fclose(file);
    assert_int_equal(weir_knowledge_open(&knowledge, path, &reason), WEIR_ERR_FORMAT);
    assert_null(knowledge);
    assert_non_null(strstr(reason.text, path));
    file = fopen(path, "r");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "mine");
    temporary_remove(path);
    assert_int_equal(weir_knowledge_open(&knowledge, "/nonexistent/state", &reason), WEIR_ERR_IO);
}

RUN_TESTS()
