/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the library: several at once, lanes that threads keep, and structs of programs that were
 * built with other headers. */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "library_place.h"
#include "test.h"

#include <weir/embed.h>

static const char rules[] =
    "limits:\n"
    "  - { name: all, key: [], rate: 10/h, algorithm: token_bucket }\n"
    "  - { name: each, match: { path: /each }, key: [client.ip], rate: 2/h, algorithm: gcra }\n";

static struct weir *open_rules(struct place *place, unsigned threads)
{
    const struct weir_options options = {.threads = threads, .state_bytes = 1 << 20};
    write_rules(place, rules);
    return open_weir(place, &options);
}

/* --- Several at once -------------------------------------------------------------------------- */

#define CALLS 23 /* no multiple of what a lane decides together */

struct many {
    struct weir_value values[CALLS][2];
    struct weir_call calls[CALLS];
    struct weir_answer_summary answers[CALLS];
    struct weir_limit_answer limits[CALLS][WEIR_LIMITS_MAX];
    int errors[CALLS];
};

/* Requests of three addresses, some without a path, some malformed. */
static void fill_many(struct weir *weir, struct many *many)
{
    static const char *const addresses[] = {"192.0.2.1", "192.0.2.2", "192.0.2.3"};
    memset(many, 0, sizeof *many);
    for (int i = 0; i < CALLS; i++) {
        const char *path = i % 7 == 3 ? "each" : "/each"; /* of which the first is malformed */
        many->values[i][0] =
            (struct weir_value){weir_attribute(weir, "path"), path, i % 5 == 4 ? 1 : strlen(path)};
        many->values[i][1] =
            (struct weir_value){weir_attribute(weir, "client.ip"), addresses[i % 3], 9};
        many->calls[i] = (struct weir_call){
            .values = many->values[i], .count = 2, .cost = 1, .limits = many->limits[i]};
    }
}

TEST_WITH(place_setup, place_teardown, "many calls are answered as one after the other")
{
    struct place *place = *state;
    static struct many many, one;
    int decided = 0, denied = 0;
    struct weir *weir = open_rules(place, 1), *other = open_rules(place, 1);
    fill_many(weir, &many);
    fill_many(other, &one);
    for (int i = 0; i < CALLS; i++) {
        one.errors[i] = weir_check_full(other, &one.calls[i], &one.answers[i]);
        decided += one.errors[i] == 0;
        denied += one.errors[i] == 0 && !one.answers[i].allowed;
    }
    assert_int_equal(weir_check_many(weir, many.calls, many.answers, many.errors, CALLS), decided);
    assert_in_range(decided, 1, CALLS - 1);
    assert_in_range(denied, 1, decided - 1);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(many.errors[i], one.errors[i]);
        if (many.errors[i] < 0)
            continue;
        assert_int_equal(many.answers[i].allowed, one.answers[i].allowed);
        assert_int_equal(many.answers[i].remaining, one.answers[i].remaining);
        assert_string_equal(many.answers[i].denied_by, one.answers[i].denied_by);
        assert_int_equal(many.answers[i].limit_count, one.answers[i].limit_count);
        for (unsigned k = 0; k < one.answers[i].limit_count; k++)
            assert_int_equal(many.limits[i][k].report.remaining, one.limits[i][k].report.remaining);
    }
    weir_close(other);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "fields of many calls that are joined stay apart")
{
    struct place *place = *state;
    struct weir_answer_summary answers[3];
    struct weir_limit_answer limits[3][WEIR_LIMITS_MAX];
    int errors[3];
    write_rules(place, "limits: [ { name: a, key: [header.x], rate: 5/h } ]\n");
    struct weir *weir = open_weir(place, NULL);
    int x = WEIR_OF_REQUEST + weir_attribute(weir, "header.x");
    const struct weir_value lines[3][2] = {
        {{x, "a", 1}, {x, "b", 1}}, {{x, "c", 1}, {x, "d", 1}}, {{x, "a, b", 4}, {-1, NULL, 0}}};
    struct weir_call calls[3];
    for (int i = 0; i < 3; i++)
        calls[i] =
            (struct weir_call){.values = lines[i], .count = 2, .cost = 1, .limits = limits[i]};
    assert_int_equal(weir_check_many(weir, calls, answers, errors, 3), 3);
    assert_int_equal(answers[0].remaining, 4);
    assert_int_equal(answers[1].remaining, 4);
    assert_int_equal(answers[2].remaining, 3);
    weir_close(weir);
}

/* --- Lanes ------------------------------------------------------------------------------------ */

TEST_WITH(place_setup, place_teardown, "a thread keeps one lane of as many as there are")
{
    struct place *place = *state;
    struct weir_lane *lane, *second;
    struct weir_answer_summary answer;
    struct weir *weir = open_rules(place, 1);
    assert_int_equal(weir_lane_keep(&lane, weir), 0);
    assert_int_equal(weir_lane_keep(&second, weir), WEIR_ERR_BUSY);
    assert_null(second);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(weir_check(weir, NULL, 0, 1, &answer), 0);
        assert_true(answer.allowed);
    }
    assert_int_equal(weir_reload(weir, NULL), 0); /* which needs the lane, too */
    assert_int_equal(weir_check(weir, NULL, 0, 1, &answer), 0);
    assert_false(answer.allowed);
    weir_lane_give(lane);
    assert_int_equal(weir_lane_keep(&lane, weir), 0);
    weir_lane_give(lane);
    weir_lane_give(NULL);
    weir_close(weir);
}

static void *keep_and_end(void *context)
{
    struct weir_lane *lane;
    struct weir_answer_summary answer;
    int err = weir_lane_keep(&lane, context);
    if (err == 0)
        err = weir_check(context, NULL, 0, 1, &answer);
    return (void *)(intptr_t)err;
}

/* A new thread may be at the place of one that ended: it is another one nevertheless. */
TEST_WITH(place_setup, place_teardown, "a thread that ends gives its lane back")
{
    struct place *place = *state;
    struct weir_lane *lane;
    struct weir *weir = open_rules(place, 2);
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        void *err;
        assert_int_equal(pthread_create(&thread, NULL, keep_and_end, weir), 0);
        assert_int_equal(pthread_join(thread, &err), 0);
        assert_int_equal((intptr_t)err, 0);
    }
    assert_int_equal(weir_lane_keep(&lane, weir), 0);
    weir_lane_give(lane);
    weir_lane_give(lane); /* which this thread does not keep any more */
    weir_close(weir);
}

/* A key is the process's: no struct weir keeps one beyond its close. */
TEST_WITH(place_setup, place_teardown, "keys of threads are given back")
{
    struct place *place = *state;
    for (int i = 0; i < PTHREAD_KEYS_MAX + 10; i++) {
        struct weir_lane *lane;
        struct weir *weir = open_rules(place, 1);
        assert_int_equal(weir_lane_keep(&lane, weir), 0);
        weir_lane_give(lane);
        weir_close(weir);
    }
}

TEST_WITH(place_setup, place_teardown, "a child of the process gets no lane")
{
    struct place *place = *state;
    struct weir_lane *lane;
    int status;
    struct weir *weir = open_rules(place, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(weir_lane_keep(&lane, weir) == WEIR_ERR_UNSUPPORTED && !lane ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    weir_close(weir);
}

#define KEEPERS 3
#define CHECKS 2000

struct work {
    struct weir *weir;
    _Atomic uint64_t admitted, failed, full;
    _Atomic bool stop;
};

static void *check_again_and_again(void *context)
{
    struct work *work = context;
    struct weir_lane *lane;
    struct weir_answer_summary answer;
    int err = weir_lane_keep(&lane, work->weir);
    if (err == WEIR_ERR_FULL)
        atomic_fetch_add(&work->full, 1);
    else if (err < 0)
        atomic_fetch_add(&work->failed, 1);
    for (int i = 0; i < CHECKS; i++)
        if (weir_check(work->weir, NULL, 0, 1, &answer) < 0)
            atomic_fetch_add(&work->failed, 1);
        else
            atomic_fetch_add(&work->admitted, answer.allowed);
    weir_lane_give(lane);
    return NULL;
}

static void *reload_again_and_again(void *context)
{
    struct work *work = context;
    while (!atomic_load(&work->stop))
        if (weir_reload(work->weir, NULL) < 0)
            atomic_fetch_add(&work->failed, 1);
    return NULL;
}

/* One thread more than lanes: at times it has to take another's. */
TEST_WITH(place_setup, place_teardown,
          "kept lanes are taken away and given back without a lost count")
{
    struct place *place = *state;
    const struct weir_options options = {.threads = KEEPERS - 1, .state_bytes = 1 << 20};
    pthread_t threads[KEEPERS], reloader;
    struct weir_answer_summary answer;
    write_rules(place, "limits: [ { name: all, key: [], rate: 4294967295/366day,"
                       " algorithm: fixed_window } ]\n");
    struct work work = {.weir = open_weir(place, &options)};
    assert_int_equal(pthread_create(&reloader, NULL, reload_again_and_again, &work), 0);
    for (int i = 0; i < KEEPERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_again_and_again, &work), 0);
    for (int i = 0; i < KEEPERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    atomic_store(&work.stop, true);
    assert_int_equal(pthread_join(reloader, NULL), 0);
    assert_int_equal(work.failed, 0);
    assert_in_range(work.full, 0, 1);
    assert_int_equal(work.admitted, KEEPERS * CHECKS);
    assert_int_equal(weir_check(work.weir, NULL, 0, 1, &answer), 0);
    assert_int_equal(answer.remaining, UINT32_MAX - KEEPERS * CHECKS - 1);
    weir_close(work.weir);
}

/* --- Other headers ---------------------------------------------------------------------------- */

/* A program gives a struct weir_limit room, and reads what is above its line (limit.h): with
 * another layout the library needs another soversion. */
TEST("a program's struct of a limit keeps its layout")
{
    assert_int_equal(sizeof(struct weir_limit), 160);
    assert_int_equal(offsetof(struct weir_limit, spec), 0);
    assert_int_equal(offsetof(struct weir_limit, capacity), 72);
    assert_int_equal(offsetof(struct weir_limit, span_words), 80);
    assert_int_equal(offsetof(struct weir_limit, id), 84);
    assert_int_equal(offsetof(struct weir_limit, packs), 86);
}

/* As WEIR_SIZES of headers with other structs. */
static uint64_t sizes_of(size_t call, size_t answer, size_t limit)
{
    return call | (uint64_t)answer << 16 | (uint64_t)limit << 32;
}

TEST_WITH(place_setup, place_teardown, "a program with smaller structs gets no byte beyond them")
{
    struct place *place = *state;
    enum {
        CALL = offsetof(struct weir_call, fields),
        ANSWER = offsetof(struct weir_answer_summary, type),
        LIMIT = offsetof(struct weir_limit_answer, overflow)
    };
    struct weir *weir = open_rules(place, 1);
    struct weir_call call;
    struct weir_answer_summary answer;
    struct weir_limit_answer limits[2];
    memset(&call, 0xa5, sizeof call); /* what is beyond is garbage */
    memset(&call, 0, CALL);
    memset(&answer, 0xa5, sizeof answer);
    call.cost = 1;
    assert_int_equal(weir_check_sized(weir, &call, &answer, sizes_of(CALL, ANSWER, LIMIT)), 0);
    assert_int_equal(answer.remaining, 9);
    for (size_t i = ANSWER; i < sizeof answer; i++)
        assert_int_equal(((unsigned char *)&answer)[i], 0xa5);
    memset(&answer, 0xa5, sizeof answer);
    assert_int_equal(weir_check_named_sized(weir, NULL, 0, 1, NULL, &answer, ANSWER), 0);
    assert_int_equal(answer.remaining, 8);
    assert_int_equal(((unsigned char *)&answer)[ANSWER], 0xa5);
    struct weir_value values[] = {{weir_attribute(weir, "path"), "/each", 5},
                                  {weir_attribute(weir, "client.ip"), "192.0.2.1", 9}};
    call = (struct weir_call){.values = values, .count = 2, .cost = 1, .limits = limits};
    memset(limits, 0xa5, sizeof limits);
    assert_int_equal(
        weir_check_sized(weir, &call, &answer, sizes_of(sizeof call, sizeof answer, LIMIT)), 0);
    const unsigned char *second = (unsigned char *)limits + LIMIT;
    struct weir_report report;
    memcpy(&report, second, sizeof report);
    assert_int_equal(report.limit, 2); /* of the second limit, which begins there */
    assert_int_equal(second[LIMIT], 0xa5);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "what a newer program sets is refused, not ignored")
{
    struct place *place = *state;
    struct {
        struct weir_call call;
        uint64_t more;
    } newer[2] = {{.call = {.cost = 1}}, {.call = {.cost = 1}, .more = 1}};
    struct {
        struct weir_options options;
        uint64_t more;
    } options = {.options = {.state_bytes = 1 << 20}, .more = 1};
    struct {
        struct weir_answer_summary answer;
        uint64_t more;
    } answers[2];
    struct weir_reason reason;
    struct weir *weir;
    int errors[2];
    uint64_t sizes = sizes_of(sizeof newer[0], sizeof answers[0], sizeof(struct weir_limit_answer));
    struct {
        struct weir_limit_answer limit;
        uint64_t more;
    } limits[WEIR_LIMITS_MAX];
    memset(answers, 0xa5, sizeof answers);
    memset(limits, 0xa5, sizeof limits);
    write_rules(place, rules);
    assert_int_equal(
        weir_open_sized(&weir, place->rules, &options.options, sizeof options, &reason),
        WEIR_ERR_UNSUPPORTED);
    assert_null(weir);
    assert_non_null(strstr(reason.text, "weir_options"));
    assert_int_equal(
        weir_open_check_sized(place->rules, &options.options, sizeof options, NULL, NULL),
        WEIR_ERR_UNSUPPORTED);
    options.more = 0;
    assert_int_equal(
        weir_open_sized(&weir, place->rules, &options.options, sizeof options, &reason), 0);
    assert_int_equal(
        weir_check_many_sized(weir, &newer[0].call, &answers[0].answer, errors, 2, sizes), 1);
    assert_int_equal(errors[0], 0);
    assert_int_equal(answers[0].answer.remaining, 9);
    assert_int_equal(answers[0].more, 0);
    assert_int_equal(errors[1], WEIR_ERR_UNSUPPORTED);
    assert_int_equal(weir_check_sized(weir, &newer[1].call, &answers[1].answer, sizes),
                     WEIR_ERR_UNSUPPORTED);
    assert_int_equal(weir_outcome_sized(weir, &newer[1].call, 500, sizes), WEIR_ERR_UNSUPPORTED);
    assert_int_equal(weir_outcome_sized(weir, &newer[0].call, 500, sizes), 0);
    newer[0].call.limits = &limits[0].limit;
    sizes = sizes_of(sizeof newer[0], sizeof answers[1], sizeof limits[0]);
    assert_int_equal(weir_check_sized(weir, &newer[0].call, &answers[1].answer, sizes), 0);
    assert_int_equal(limits[0].limit.report.remaining, 8);
    assert_int_equal(limits[0].more, 0);
    assert_int_equal(answers[1].more, 0);
    answers[1].more = 1;
    assert_int_equal(
        weir_check_named_sized(weir, NULL, 0, 1, NULL, &answers[1].answer, sizeof answers[1]), 0);
    assert_int_equal(answers[1].answer.remaining, 7);
    assert_int_equal(answers[1].more, 0);
    weir_close(weir);
}

RUN_TESTS()
