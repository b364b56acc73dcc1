/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's directory: lives, single flight, what is used while nobody can be asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "feature/identity/server/directory.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define LIFE (60 * SECOND)
#define UNKNOWN_LIFE (10 * SECOND)
#define STALE (3600 * SECOND)
#define DEADLINE (20 * MS)
#define ASKED_MAX 8192

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

static uint32_t allocations; /* of our code, so far */
static bool no_memory;

void *__wrap_malloc(size_t size)
{
    allocations++;
    return no_memory ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return no_memory ? NULL : __real_calloc(count, size);
}

static const char rules_text[] = "version: 1\n"
                                 "identities: redis://127.0.0.1:6379\n"
                                 "identify: [header.x-key]\n"
                                 "plans: {free: {api: 5/h}, pro: {api: 100/h}}\n"
                                 "default_plan: free\n"
                                 "limits:\n"
                                 "- {name: api, key: [user], rate: plan}\n"
                                 "- {name: month, key: [user], rate: 7/h}\n";

struct scene {
    struct weir_caller_directory directory; /* first */
    struct weir_directory_terms terms;
    struct weir_directory_source source;
    struct weir_rules *rules;
    uint64_t now_ns;
    bool down; /* the source cannot ask */
    struct weir_directory_lookup *asked[ASKED_MAX];
    uint32_t asked_count, problems, ups, downs, compiled;
    char problem[WEIR_REASON_MAX];
    struct weir_caller caller;
};

struct waiter {
    struct weir_directory_waiter base; /* first */
    struct scene *scene;
    uint8_t digest[WEIR_DIGEST_BYTES];
    int result; /* of the find when it heard; 99: not yet */
};

static int ask_source(struct weir_directory_source *source, struct weir_directory_lookup *lookup)
{
    struct scene *s = (struct scene *)(void *)((char *)source - offsetof(struct scene, source));
    if (s->down)
        return WEIR_ERR_STORE;
    assert_true(s->asked_count < ASKED_MAX);
    s->asked[s->asked_count++] = lookup;
    return 0;
}

static uint64_t clock_of(void *context)
{
    const struct scene *s = context;
    return s->now_ns;
}

static int make_override(void *context, const struct weir_rules *rules, struct weir_bytes limit,
                         struct weir_bytes text, struct weir_override *override,
                         struct weir_reason *reason)
{
    struct scene *s = context;
    int rule = weir_rules_find(rules, limit.data, limit.size);
    s->compiled++;
    *override = (struct weir_override){.rule = (uint32_t)rule};
    if (rule >= 0)
        return 0;
    snprintf(reason->text, sizeof reason->text, "no such limit");
    return WEIR_ERR_NOT_FOUND;
}

static void on_problem(void *context, const uint8_t digest[WEIR_DIGEST_BYTES], const char *text)
{
    struct scene *s = context;
    s->problems++;
    snprintf(s->problem, sizeof s->problem, "%s", text);
}

static void on_up(void *context, bool up)
{
    struct scene *s = context;
    s->ups += up;
    s->downs += !up;
}

static struct weir_rules *parse(const char *text)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    assert_int_equal(weir_rules_parse(&rules, "rules.yaml", ".", text, strlen(text), &problems), 0);
    weir_problems_free(&problems);
    return rules;
}

static struct scene *scene_open(uint32_t max_keys, uint32_t lookups_max)
{
    struct scene *s = calloc(1, sizeof *s);
    s->rules = parse(rules_text);
    s->now_ns = 1000 * SECOND;
    s->terms.life_ns = LIFE;
    s->terms.unknown_life_ns = UNKNOWN_LIFE;
    s->terms.stale_ns = STALE;
    s->terms.deadline_ns = DEADLINE;
    s->source.ask = ask_source;
    s->source.room = 8;
    const struct weir_caller_directory_options options = {
        .terms = &s->terms,
        .max_keys = max_keys,
        .lookups_max = lookups_max,
        .seed = 42,
        .source = &s->source,
        .clock = clock_of,
        .override = make_override,
        .problem = on_problem,
        .up = on_up,
        .context = s,
    };
    assert_int_equal(weir_caller_directory_open(&s->directory, &options), 0);
    return s;
}

static void scene_close(struct scene *s)
{
    weir_caller_directory_close(&s->directory);
    weir_rules_unref(s->rules);
    free(s);
}

static void digest_of(uint32_t key, uint8_t digest[WEIR_DIGEST_BYTES])
{
    for (uint32_t i = 0; i < WEIR_DIGEST_BYTES; i++)
        digest[i] = (uint8_t)((key + 1) * 2654435761U >> i % 25);
    memcpy(digest, &key, sizeof key);
}

static int find(struct scene *s, uint32_t key)
{
    uint8_t digest[WEIR_DIGEST_BYTES];
    digest_of(key, digest);
    return s->directory.base.ops->find(&s->directory.base, s->rules, digest, &s->caller);
}

static void reply(struct weir_directory_waiter *base)
{
    struct waiter *waiter = (struct waiter *)(void *)base;
    struct scene *s = waiter->scene;
    assert_int_equal(waiter->result, 99);
    waiter->result =
        s->directory.base.ops->find(&s->directory.base, s->rules, waiter->digest, &s->caller);
}

static void wait_for(struct scene *s, uint32_t key, struct waiter *waiter)
{
    *waiter = (struct waiter){.base.done = reply, .scene = s, .result = 99};
    digest_of(key, waiter->digest);
    assert_int_equal(find(s, key), WEIR_ERR_PENDING);
    s->directory.base.ops->wait(&s->directory.base, &waiter->base);
}

static struct weir_directory_record *record_of(const char *user, const char *plan,
                                               const char *field, const char *value)
{
    const char *texts[] = {"user", user, "plan", plan, field, value};
    struct weir_resp_node nodes[7] = {{.type = WEIR_RESP_ARRAY, .count = 6}};
    struct weir_directory_record *record;
    struct weir_reason problem;
    for (int i = 0; i < 6; i++)
        nodes[i + 1] = (struct weir_resp_node){
            .type = WEIR_RESP_BULK, .depth = 1, .text = {texts[i], strlen(texts[i])}};
    assert_int_equal(weir_directory_record_read(nodes, 7, &record, &problem), 1);
    return record;
}

static void answer_user(struct scene *s, uint32_t i, const char *user)
{
    weir_caller_directory_answer(&s->directory, s->asked[i], 1,
                                 record_of(user, "pro", "limit.month", "9/h"), MS);
}

static void answer(struct scene *s, uint32_t i, int result)
{
    weir_caller_directory_answer(&s->directory, s->asked[i], result, NULL, MS);
}

static void expect_user(const struct scene *s, const char *user)
{
    assert_int_equal(s->caller.user.size, strlen(user));
    assert_memory_equal(s->caller.user.data, user, strlen(user));
}

static uint64_t counted(const _Atomic uint64_t *counter)
{
    return atomic_load(counter);
}

TEST("a caller is asked for once and known for its life")
{
    struct scene *s = scene_open(100, 0);
    struct waiter first, second;
    wait_for(s, 1, &first);
    wait_for(s, 1, &second);
    assert_int_equal(s->asked_count, 1);
    answer_user(s, 0, "alice");
    assert_int_equal(first.result, 1);
    assert_int_equal(second.result, 1);
    expect_user(s, "alice");
    assert_int_equal(s->caller.override_count, 1);
    assert_int_equal(s->caller.overrides[0].rule, 1);
    assert_int_equal(s->compiled, 1);
    assert_int_equal(counted(&s->directory.counters.hit), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(find(s, 1), 1);
    assert_int_equal(counted(&s->directory.counters.hit), 5);
    assert_int_equal(counted(&s->directory.counters.found), 1);
    assert_int_equal(counted(&s->directory.counters.latency_ns), MS);
    s->now_ns += LIFE;
    assert_int_equal(find(s, 1), WEIR_ERR_PENDING);
    assert_int_equal(s->asked_count, 2);
    scene_close(s);
}

TEST("a key in use is asked for again before its life ends")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    wait_for(s, 1, &waiter);
    answer_user(s, 0, "alice");
    s->now_ns += LIFE * 7 / 8 + 1;
    for (int i = 0; i < 3; i++)
        assert_int_equal(find(s, 1), 1); /* none of them waits */
    assert_int_equal(s->asked_count, 2);
    weir_caller_directory_answer(&s->directory, s->asked[1], 1,
                                 record_of("alice", "free", "colour", "blue"), MS);
    assert_int_equal(find(s, 1), 1);
    assert_memory_equal(s->caller.plan.data, "free", 4);
    assert_int_equal(s->caller.override_count, 0);
    s->now_ns += LIFE * 7 / 8;
    assert_int_equal(find(s, 1), 1);
    scene_close(s);
}

TEST("a refresh that says the same compiles nothing again")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    wait_for(s, 1, &waiter);
    answer_user(s, 0, "alice");
    s->now_ns += LIFE * 7 / 8 + 1;
    assert_int_equal(find(s, 1), 1);
    answer_user(s, 1, "alice");
    assert_int_equal(find(s, 1), 1);
    assert_int_equal(s->compiled, 1);
    scene_close(s);
}

TEST("a refresh that cannot be asked is tried again")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    wait_for(s, 1, &waiter);
    answer_user(s, 0, "alice");
    s->now_ns += LIFE * 7 / 8 + 1;
    s->down = true;
    assert_int_equal(find(s, 1), 1);
    s->down = false;
    assert_int_equal(find(s, 1), 1);
    assert_int_equal(s->asked_count, 1);
    s->now_ns += LIFE / 32;
    assert_int_equal(find(s, 1), 1);
    assert_int_equal(s->asked_count, 2);
    scene_close(s);
}

TEST("that a key is nobodys is known for a shorter life")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    wait_for(s, 1, &waiter);
    answer(s, 0, 0);
    assert_int_equal(waiter.result, 0);
    assert_int_equal(find(s, 1), 0);
    assert_int_equal(counted(&s->directory.counters.negative_hit), 1);
    assert_int_equal(counted(&s->directory.counters.unknown), 1);
    assert_int_equal(counted(&s->directory.counters.nobody), 1);
    s->now_ns += UNKNOWN_LIFE;
    wait_for(s, 1, &waiter);
    answer_user(s, 1, "alice"); /* the key was made meanwhile */
    assert_int_equal(waiter.result, 1);
    assert_int_equal(counted(&s->directory.counters.nobody), 0);
    assert_int_equal(counted(&s->directory.counters.known), 1);
    scene_close(s);
}

TEST("a flood of made up keys evicts no key that is somebodys")
{
    struct scene *s = scene_open(10, 0);
    struct waiter waiter;
    for (uint32_t key = 0; key < 10; key++) {
        wait_for(s, key, &waiter);
        answer_user(s, s->asked_count - 1, "alice");
    }
    for (uint32_t key = 1000; key < 1000 + 3 * WEIR_DIRECTORY_NOBODY_MAX; key++) {
        s->asked_count = 0;
        assert_int_equal(find(s, key), WEIR_ERR_PENDING);
        answer(s, 0, 0);
    }
    assert_int_equal(counted(&s->directory.counters.nobody), WEIR_DIRECTORY_NOBODY_MAX);
    for (uint32_t key = 0; key < 10; key++)
        assert_int_equal(find(s, key), 1);
    scene_close(s);
}

TEST("after the deadline what is old is used and nobody waits again")
{
    struct scene *s = scene_open(100, 0);
    struct waiter known, unknown;
    wait_for(s, 1, &known);
    answer_user(s, 0, "alice");
    s->now_ns += LIFE + STALE / 2;
    wait_for(s, 1, &known);
    wait_for(s, 2, &unknown);
    assert_int_equal(weir_caller_directory_expire(&s->directory), s->now_ns + DEADLINE);
    s->now_ns += DEADLINE;
    assert_true(weir_caller_directory_expire(&s->directory) == WEIR_NEVER);
    assert_int_equal(known.result, 1);
    expect_user(s, "alice");
    assert_int_equal(unknown.result, 0);
    assert_int_equal(find(s, 2), 0);
    assert_int_equal(find(s, 1), 1);
    assert_int_equal(s->asked_count, 3);
    assert_int_equal(counted(&s->directory.counters.late), 2);
    assert_int_equal(counted(&s->directory.counters.stale), 2);
    assert_int_equal(counted(&s->directory.counters.guessed), 2);
    answer_user(s, 2, "bob"); /* late, but kept */
    assert_int_equal(find(s, 2), 1);
    expect_user(s, "bob");
    scene_close(s);
}

TEST("what is older than stale is not used")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    wait_for(s, 1, &waiter);
    answer_user(s, 0, "alice");
    s->down = true;
    s->now_ns += LIFE;
    assert_int_equal(find(s, 1), 1);
    s->now_ns += STALE;
    assert_int_equal(find(s, 1), 0);
    scene_close(s);
}

TEST("on error may deny")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    s->terms.deny = true;
    wait_for(s, 1, &waiter);
    s->now_ns += DEADLINE;
    weir_caller_directory_expire(&s->directory);
    assert_int_equal(waiter.result, WEIR_ERR_STORE);
    s->down = true;
    assert_int_equal(find(s, 2), WEIR_ERR_STORE);
    scene_close(s);
}

TEST("a lookup that fails is reported at once and tried anew")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    wait_for(s, 1, &waiter);
    answer(s, 0, WEIR_ERR_IO);
    assert_int_equal(waiter.result, 0);
    assert_int_equal(counted(&s->directory.counters.error), 1);
    wait_for(s, 1, &waiter);
    assert_int_equal(s->asked_count, 2);
    answer(s, 1, WEIR_ERR_STORE);
    assert_int_equal(waiter.result, 0);
    scene_close(s);
}

TEST("who does not answer is spared and probed")
{
    struct scene *s = scene_open(100, 0);
    uint32_t key = 0;
    for (int i = 0; i < WEIR_BREAKER_FAILURES; i++) {
        assert_int_equal(find(s, key++), WEIR_ERR_PENDING);
        s->now_ns += DEADLINE;
        weir_caller_directory_expire(&s->directory);
    }
    assert_int_equal(s->downs, 1);
    uint32_t asked = s->asked_count;
    assert_int_equal(find(s, key++), 0); /* at once */
    assert_int_equal(s->asked_count, asked);
    s->now_ns += WEIR_BREAKER_PAUSE_MIN_NS;
    assert_int_equal(find(s, key), WEIR_ERR_PENDING); /* the probe */
    assert_int_equal(find(s, key + 1), 0);
    assert_int_equal(s->asked_count, asked + 1);
    answer(s, asked, 0);
    assert_int_equal(s->ups, 1);
    assert_int_equal(find(s, key + 1), WEIR_ERR_PENDING);
    scene_close(s);
}

TEST("so many lookups are in flight at most")
{
    struct scene *s = scene_open(100, 16);
    for (uint32_t key = 0; key < 16; key++)
        assert_int_equal(find(s, key), WEIR_ERR_PENDING);
    assert_int_equal(find(s, 16), 0);
    assert_int_equal(find(s, 15), WEIR_ERR_PENDING);
    answer(s, 3, 0);
    assert_int_equal(find(s, 16), WEIR_ERR_PENDING);
    assert_int_equal(s->asked_count, 17);
    scene_close(s);
}

TEST("one that is hurried is answered by what there is")
{
    struct scene *s = scene_open(100, 0);
    s->directory.base.hurried = true;
    assert_int_equal(find(s, 1), 0);
    assert_int_equal(s->asked_count, 1); /* for the next one */
    s->directory.base.hurried = false;
    assert_int_equal(find(s, 1), WEIR_ERR_PENDING);
    answer_user(s, 0, "alice");
    assert_int_equal(find(s, 1), 1);
    scene_close(s);
}

TEST("one that leaves is not reported")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiters[5];
    for (int i = 0; i < 5; i++)
        wait_for(s, 1, &waiters[i]);
    static const int leaving[] = {0, 4, 2};
    for (int i = 0; i < 3; i++)
        s->directory.base.ops->leave(&s->directory.base, &waiters[leaving[i]].base);
    answer_user(s, 0, "alice");
    for (int i = 0; i < 5; i++)
        assert_int_equal(waiters[i].result, i % 2 ? 1 : 99);
    scene_close(s);
}

TEST("what is forgotten is asked anew")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    uint8_t digest[WEIR_DIGEST_BYTES];
    digest_of(1, digest);
    wait_for(s, 1, &waiter);
    answer_user(s, 0, "alice");
    weir_caller_directory_forget(&s->directory, digest);
    wait_for(s, 1, &waiter);
    weir_caller_directory_forget(&s->directory, digest); /* its answer may be of before */
    answer_user(s, 1, "alice");
    assert_int_equal(waiter.result, 1);
    assert_int_equal(find(s, 1), WEIR_ERR_PENDING);
    answer_user(s, 2, "bob");
    assert_int_equal(find(s, 1), 1);
    weir_caller_directory_forget_all(&s->directory);
    assert_int_equal(counted(&s->directory.counters.known), 0);
    s->down = true;
    assert_int_equal(find(s, 1), 0); /* not even stale */
    scene_close(s);
}

TEST("a caller that asks after a key was forgotten gets no earlier lookup's answer")
{
    struct scene *s = scene_open(100, 0);
    struct waiter before, after, third;
    uint8_t digest[WEIR_DIGEST_BYTES];
    digest_of(1, digest);
    wait_for(s, 1, &before);
    weir_caller_directory_forget(&s->directory, digest);
    wait_for(s, 1, &after);
    wait_for(s, 1, &third); /* single flight all the same */
    assert_int_equal(s->asked_count, 2);
    answer(s, 0, 0);
    assert_int_equal(before.result, 0);
    assert_int_equal(after.result, 99);
    answer_user(s, 1, "alice");
    assert_int_equal(after.result, 1);
    assert_int_equal(third.result, 1);
    assert_int_equal(find(s, 1), 1);
    assert_int_equal(s->directory.lookups, 0);

    wait_for(s, 3, &before);
    s->now_ns += DEADLINE / 2;
    weir_caller_directory_forget_all(&s->directory);
    wait_for(s, 3, &after);
    s->now_ns += DEADLINE / 2;
    weir_caller_directory_expire(&s->directory);
    assert_int_equal(before.result, 0); /* it has waited for as long as it may */
    assert_int_equal(after.result, 99);
    answer_user(s, 3, "alice");
    assert_int_equal(after.result, 1);

    wait_for(s, 2, &before); /* also where its deadline has passed */
    s->now_ns += DEADLINE;
    weir_caller_directory_expire(&s->directory);
    assert_int_equal(before.result, 0);
    weir_caller_directory_forget_all(&s->directory);
    wait_for(s, 2, &after);
    answer_user(s, 5, "bob");
    assert_int_equal(after.result, 1);
    scene_close(s);
}

TEST("a reload compiles overrides anew")
{
    static const char other[] = "version: 1\n"
                                "identities: redis://127.0.0.1:6379\n"
                                "identify: [header.x-key]\n"
                                "limits:\n"
                                "- {name: first, key: [user], rate: 1/s}\n"
                                "- {name: second, key: [user], rate: 1/s}\n"
                                "- {name: month, key: [user], rate: 7/h}\n";
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    wait_for(s, 1, &waiter);
    answer_user(s, 0, "alice");
    assert_int_equal(find(s, 1), 1);
    assert_int_equal(s->caller.overrides[0].rule, 1);
    struct weir_rules *old = s->rules;
    s->rules = parse(other);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(find(s, 1), 1);
        assert_int_equal(s->caller.overrides[0].rule, 2);
    }
    assert_int_equal(s->compiled, 2);
    weir_rules_unref(old);
    scene_close(s);
}

TEST("bad plans and overrides are reported and skipped")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    wait_for(s, 1, &waiter);
    weir_caller_directory_answer(&s->directory, s->asked[0], 1,
                                 record_of("alice", "gold", "limit.moon", "9/h"), MS);
    assert_int_equal(waiter.result, 1);
    assert_int_equal(s->problems, 2);
    assert_string_equal(s->problem, "no such limit");
    assert_int_equal(s->caller.override_count, 0);
    assert_memory_equal(s->caller.plan.data, "gold", 4);
    assert_int_equal(find(s, 1), 1);
    assert_int_equal(s->problems, 2);
    scene_close(s);
}

TEST("what is known allocates nothing")
{
    struct scene *s = scene_open(100, 0);
    struct waiter waiter;
    wait_for(s, 1, &waiter);
    answer_user(s, 0, "alice");
    wait_for(s, 2, &waiter);
    answer(s, 1, 0);
    uint32_t before = allocations;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(find(s, 1), 1);
        assert_int_equal(find(s, 2), 0);
    }
    assert_int_equal(allocations, before);
    /* Nor does a lookup, once there has been one. */
    for (uint32_t key = 3; key < 1003; key++) {
        assert_int_equal(find(s, key), WEIR_ERR_PENDING);
        answer(s, s->asked_count - 1, 0);
    }
    assert_int_equal(allocations, before);
    scene_close(s);
}

TEST("without memory it is as if nobody could be asked")
{
    struct scene *s = scene_open(100, 0);
    no_memory = true;
    assert_int_equal(find(s, 1), 0);
    no_memory = false;
    assert_int_equal(find(s, 1), WEIR_ERR_PENDING);
    assert_int_equal(s->asked_count, 1);
    answer(s, 0, WEIR_ERR_MEMORY); /* for the record */
    assert_int_equal(find(s, 1), WEIR_ERR_PENDING);
    scene_close(s);

    struct weir_caller_directory directory;
    struct weir_directory_terms terms = {.life_ns = 1};
    struct weir_directory_source source = {.ask = ask_source, .room = 8};
    const struct weir_caller_directory_options options = {
        .terms = &terms, .max_keys = 10, .source = &source};
    no_memory = true;
    assert_int_equal(weir_caller_directory_open(&directory, &options), WEIR_ERR_MEMORY);
    no_memory = false;
}

RUN_TESTS()
