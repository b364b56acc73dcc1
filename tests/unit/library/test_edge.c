/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of the library has decided, as others see it in the file beside the state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/embed.h>

#include "feature/use/edge.h"
#include "temporary.h"
#include "test.h"

static char folder[TEMPORARY_MAX], rules[TEMPORARY_MAX + 32], state_path[TEMPORARY_MAX + 32],
    edge_path[TEMPORARY_MAX + 48];

/* How often the library has waited. */
static atomic_uint pauses;

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    atomic_fetch_add(&pauses, 1);
    return __real_nanosleep(time, left);
}

static void write_rules(const char *more)
{
    FILE *file = fopen(rules, "we");
    assert_non_null(file);
    fprintf(file,
            "state: { file: %s, size: 1MiB }\n"
            "limits:\n"
            "- { name: api, key: [client.ip], rate: 3/d, algorithm: fixed_window }\n"
            "- { name: wide, key: [client.ip], rate: 1000/d, algorithm: fixed_window }\n%s",
            state_path, more);
    fclose(file);
}

static int setup(void **state)
{
    temporary_folder(folder);
    snprintf(rules, sizeof rules, "%s/rules.yaml", folder);
    snprintf(state_path, sizeof state_path, "%s/state", folder);
    snprintf(edge_path, sizeof edge_path, "%s.edge", state_path);
    write_rules("");
    return 0;
}

static int teardown(void **state)
{
    temporary_remove(folder);
    return 0;
}

static struct weir *open_weir(void)
{
    struct weir *weir;
    struct weir_reason reason;
    if (weir_open(&weir, rules, NULL, &reason) < 0)
        fail_msg("%s", reason.text);
    return weir;
}

/* Returns whether it was allowed. */
static bool check(struct weir *weir, const char *ip)
{
    const struct weir_attribute_value attribute = {"client.ip", ip};
    struct weir_answer_summary answer;
    assert_int_equal(weir_check(weir, &attribute, 1, 1, &answer), 0);
    return answer.allowed;
}

/* The same by the call that nginx makes. */
static bool check_full(struct weir *weir, const char *ip, bool peek)
{
    static struct weir_answer_summary answer;
    const struct weir_value value = {weir_attribute(weir, "client.ip"), ip, strlen(ip)};
    const struct weir_call call = {.values = &value, .count = 1, .cost = 1, .peek = peek};
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    return answer.allowed;
}

/* --- What the file says ----------------------------------------------------------------------- */

struct seen {
    uint64_t results[WEIR_EDGE_FRONTS][WEIR_EDGE_RESULTS];
    struct weir_edge_sum api, wide;
};

static void see_limit(void *context, uint64_t name, const struct weir_edge_sum *counts)
{
    struct seen *seen = context;
    struct weir_edge_sum *sum = name == weir_edge_name("api", 3) ? &seen->api : &seen->wide;
    sum->allowed += counts->allowed;
    sum->denied += counts->denied;
    sum->cost += counts->cost;
}

static struct seen see(void)
{
    struct seen seen;
    struct weir_edge *edge;
    struct weir_reason reason;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(weir_edge_open(&edge, state_path, WEIR_EDGE_WAIT, &reason), 0);
    assert_int_equal(weir_edge_read(edge, seen.results, see_limit, &seen), 0);
    weir_edge_close(edge);
    return seen;
}

static void check_results(const struct seen *seen, enum weir_edge_front front, uint64_t allowed,
                          uint64_t denied)
{
    assert_int_equal(seen->results[front][WEIR_EDGE_ALLOWED], allowed);
    assert_int_equal(seen->results[front][WEIR_EDGE_DENIED], denied);
}

/* --- The cases -------------------------------------------------------------------------------- */

TEST_WITH(setup, teardown, "decisions are counted by result and limit")
{
    struct weir *weir = open_weir();
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(check(weir, "192.0.2.1"), i < 3);
    assert_true(
        check_full(weir, "192.0.2.2", true)); /* a look charges nothing, and is no decision */
    assert_true(check_full(weir, "192.0.2.2", false));
    struct seen seen = see();
    check_results(&seen, WEIR_EDGE_LIBRARY, 4, 2);
    check_results(&seen, WEIR_EDGE_NGINX, 0, 0);
    assert_int_equal(seen.api.allowed, 4);
    assert_int_equal(seen.api.denied, 2);
    assert_int_equal(seen.api.cost, 4);
    assert_int_equal(seen.wide.denied, 0);
    weir_close(weir);
    seen = see();
    check_results(&seen, WEIR_EDGE_LIBRARY, 4, 2);
}

TEST_WITH(setup, teardown, "a program says what it is")
{
    struct weir *weir = open_weir();
    assert_int_equal(weir_front(weir, "nginx"), 0);
    assert_true(check(weir, "192.0.2.1"));
    assert_int_equal(weir_front(weir, "apache"), WEIR_ERR_RANGE);
    assert_int_equal(weir_front(weir, "library"), 0);
    assert_true(check(weir, "192.0.2.1"));
    struct seen seen = see();
    check_results(&seen, WEIR_EDGE_NGINX, 1, 0);
    check_results(&seen, WEIR_EDGE_LIBRARY, 1, 0);
    weir_close(weir);
}

TEST_WITH(setup, teardown, "counts survive a reload")
{
    struct weir *weir = open_weir();
    struct weir_reason reason;
    assert_true(check(weir, "192.0.2.1"));
    write_rules("- { name: new, match: { path: /new }, key: [client.ip], rate: 1/d }\n");
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_true(check(weir, "192.0.2.1"));
    struct seen seen = see();
    check_results(&seen, WEIR_EDGE_LIBRARY, 2, 0);
    assert_int_equal(seen.api.allowed, 2);
    weir_close(weir);
}

TEST_WITH(setup, teardown, "counts of a killed process stay")
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct weir *weir = open_weir();
        for (unsigned i = 0; i < 5; i++)
            (void)check(weir, "192.0.2.1");
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    struct seen seen = see();
    check_results(&seen, WEIR_EDGE_LIBRARY, 3, 2);
    struct weir *weir = open_weir(); /* which takes the slot of the dead one */
    assert_false(check(weir, "192.0.2.1"));
    seen = see();
    check_results(&seen, WEIR_EDGE_LIBRARY, 3, 3);
    assert_int_equal(seen.api.denied, 3);
    weir_close(weir);
}

TEST_WITH(setup, teardown, "weir tend begins where the file was missing")
{
    struct weir *weir = open_weir();
    assert_true(check(weir, "192.0.2.1"));
    assert_int_equal(unlink(edge_path), 0);
    assert_int_equal(weir_tend(weir), 0);
    assert_true(check(weir, "192.0.2.1"));
    assert_int_equal(weir_tend(weir), 0); /* the same file: nothing begins anew */
    assert_true(check(weir, "192.0.2.1"));
    struct seen seen = see();
    check_results(&seen, WEIR_EDGE_LIBRARY, 2, 0);
    assert_int_equal(seen.api.allowed, 2);
    weir_close(weir);
}

TEST_WITH(setup, teardown, "a file that cannot be made stops no decision")
{
    FILE *file = fopen(edge_path, "we");
    assert_non_null(file);
    assert_true(fputs("someone's diary", file) >= 0);
    fclose(file);
    struct weir *weir = open_weir();
    assert_true(check(weir, "192.0.2.1"));
    assert_int_equal(weir_front(weir, "nginx"), 0);
    assert_int_equal(weir_tend(weir), 0);
    assert_true(check(weir, "192.0.2.1"));
    assert_int_equal(unlink(edge_path), 0);
    assert_int_equal(weir_tend(weir), 0);
    assert_true(check(weir, "192.0.2.1"));
    struct seen seen = see();
    check_results(&seen, WEIR_EDGE_NGINX, 1, 0);
    weir_close(weir);
}

/* A process that was stopped while it made the file, or a member of the group that has its lock. */
TEST_WITH(setup, teardown, "only the start waits for a file that another process makes")
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int fd = open(edge_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0);
    pauses = 0;
    struct weir *weir = open_weir();
    assert_true(pauses > 0);
    pauses = 0;
    assert_int_equal(weir_tend(weir), 0);
    assert_int_equal(pauses, 0);
    assert_true(check(weir, "192.0.2.1"));
    close(fd);
    assert_int_equal(weir_tend(weir), 0);
    assert_true(check(weir, "192.0.2.1"));
    struct seen seen = see();
    check_results(&seen, WEIR_EDGE_LIBRARY, 1, 0);
    weir_close(weir);
}

static void *check_often(void *context)
{
    for (unsigned i = 0; i < 2000; i++)
        (void)check(context, "192.0.2.1");
    return NULL;
}

TEST_WITH(setup, teardown, "threads count all that they decide")
{
    pthread_t threads[4];
    struct weir *weir = open_weir();
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_often, weir), 0);
    for (unsigned i = 0; i < 50; i++) {
        (void)unlink(edge_path);
        assert_int_equal(weir_tend(weir), 0); /* moves all of them while they decide */
        assert_int_equal(weir_front(weir, i % 2 == 0 ? "nginx" : "library"), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    struct seen before = see();
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_often, weir), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    struct seen seen = see();
    assert_int_equal(seen.api.denied - before.api.denied, 8000);
    assert_int_equal(seen.results[WEIR_EDGE_LIBRARY][WEIR_EDGE_DENIED] -
                         before.results[WEIR_EDGE_LIBRARY][WEIR_EDGE_DENIED],
                     8000);
    weir_close(weir);
}

RUN_TESTS()
