/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions that wait until a directory has found out who is calling. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "engine/hook.h"
#include "engine/lookup.h"
#include "engine/pool.h"
#include "fake_directory.h"
#include "feature/reserve/engine/reservation.h"
#include "rig.h"
#include "rules/source.h"
#include "test.h"

void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);
static bool no_memory;

void *__wrap_malloc(size_t size)
{
    return no_memory ? NULL : __real_malloc(size);
}

static const char rules_text[] =
    "version: 1\n"
    "identities: redis://127.0.0.1:6379\n"
    "identify: [header.x-key, header.x-token, client.ip]\n"
    "plans: {free: {api: 5/h}, pro: {api: 100/h}}\n"
    "default_plan: free\n"
    "limits:\n"
    "- {name: api, key: [user], rate: plan, algorithm: fixed_window}\n"
    "- {name: dear, match: {plan: pro}, key: [user], rate: 1000/h, algorithm: fixed_window,\n"
    "   cost: {from: header.x-cost, max: 50}}\n";

struct scene {
    struct rig rig;
    struct weir_rules *rules;
    struct fake_directory *directory;
    bool trusted; /* its requests are */
};

static void scene_open_with(struct scene *scene, const char *text)
{
    scene->trusted = false;
    scene->directory = malloc(sizeof *scene->directory);
    fake_directory_init(scene->directory);
    scene->rules = rig_rules(text);
    rig_open_directory(&scene->rig, scene->rules, &scene->directory->base);
}

static void scene_open(struct scene *scene)
{
    scene_open_with(scene, rules_text);
}

static void scene_close(struct scene *scene)
{
    rig_close(&scene->rig);
    weir_rules_unref(scene->rules);
    free(scene->directory);
}

/* Applies the rules to a request whose values are gone afterwards. `token`, `cost` may be NULL. */
static int apply(struct scene *scene, struct weir_decision *d, const char *key, const char *token,
                 const char *cost, struct weir_reason *reason)
{
    struct weir_engine *engine = scene->rig.engine;
    struct weir_rules *rules = weir_engine_rules(engine);
    const char *names[] = {"x-key", "x-token", "x-cost"}, *values[] = {key, token, cost};
    char *copies[3];
    struct weir_request request;
    weir_request_clear(&request, weir_rules_attribute_count(rules));
    memset(request.trusted, scene->trusted ? 0xff : 0, sizeof request.trusted);
    assert_int_equal(weir_address_parse(&request.client, "192.0.2.1", 9), 0);
    for (int i = 0; i < 3; i++) {
        copies[i] = values[i] != NULL ? strdup(values[i]) : NULL;
        int attribute = weir_rules_field(rules, names[i], strlen(names[i])).attribute;
        if (copies[i] != NULL && attribute >= 0)
            request.values[attribute] = weir_bytes_of(copies[i]);
    }
    no_memory = false;
    int err = weir_engine_apply_rules(engine, d, &request, reason);
    for (int i = 0; i < 3; i++) {
        if (copies[i] != NULL)
            memset(copies[i], '#', strlen(copies[i]));
        free(copies[i]);
    }
    return err;
}

static struct weir_decision *take(struct scene *scene, const char *key, const char *token,
                                  const char *cost)
{
    struct weir_decision *d = rig_take(&scene->rig, 0);
    struct weir_reason reason = {""};
    assert_int_equal(apply(scene, d, key, token, cost, &reason), 0);
    return d;
}

static struct weir_decision *ask(struct scene *scene, const char *key)
{
    struct weir_decision *d = take(scene, key, NULL, NULL);
    weir_engine_queue(scene->rig.engine, d);
    return d;
}

static void run(struct scene *scene)
{
    weir_engine_run(scene->rig.engine, START);
}

TEST("a decision waits until it is known who is calling")
{
    struct scene s;
    scene_open(&s);
    struct weir_decision *d = ask(&s, "secret");
    assert_true(weir_engine_looks(d));
    assert_int_equal(weir_engine_pending(s.rig.engine), 1);
    run(&s);
    assert_int_equal(s.rig.done_count, 0);
    assert_false(weir_engine_waits(s.rig.engine));

    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", "pro");
    assert_true(weir_engine_waits(s.rig.engine));
    assert_int_equal(weir_engine_pending(s.rig.engine), 0);
    run(&s);
    assert_int_equal(s.rig.done_count, 1);
    assert_null(weir_engine_refusal(d));
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    assert_int_equal(d->count, 2);
    rig_expect_key(d, 0, "user=alice");
    assert_int_equal(d->checks[0].limit->capacity, 100);

    struct weir_decision *known = ask(&s, "secret");
    assert_false(weir_engine_looks(known));
    run(&s);
    assert_int_equal(s.rig.done_count, 2);
    scene_close(&s);
}

TEST("an operation for homes stays one while its caller is looked up")
{
    struct scene s;
    scene_open(&s);
    struct weir_decision *d = take(&s, "secret", NULL, NULL);
    assert_true(weir_engine_looks(d));
    d->op = WEIR_OP_RESET;
    weir_engine_reach_homes(d);
    weir_engine_queue(s.rig.engine, d);
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", "pro");
    assert_true(weir_entry_of(d)->hooks & WEIR_HOOK_BIT(REACH));
    run(&s);
    assert_int_equal(s.rig.done_count, 1);
    scene_close(&s);
}

TEST("a key that is nobodys is skipped for the next source")
{
    struct scene s;
    scene_open(&s);
    struct weir_decision *d = take(&s, "made up", "token", NULL);
    weir_engine_queue(s.rig.engine, d);
    fake_directory_answer(s.directory, 0, FAKE_NOBODY, NULL, NULL);
    assert_int_equal(weir_engine_pending(s.rig.engine), 1);
    assert_int_equal(s.directory->callers[1].waited, 1);
    fake_directory_answer(s.directory, 1, FAKE_KNOWN, "bob", NULL);
    run(&s);
    rig_expect_key(d, 0, "user=bob");
    assert_int_equal(d->checks[0].limit->capacity, 5);

    struct weir_decision *nobody = take(&s, "made up", NULL, NULL);
    weir_engine_queue(s.rig.engine, nobody);
    run(&s);
    rig_expect_key(nobody, 0, "user=ip:192.0.2.1");
    scene_close(&s);
}

TEST("all that wait for one key are reported in their order")
{
    struct scene s;
    scene_open(&s);
    struct weir_decision *d[7];
    for (int i = 0; i < 7; i++)
        d[i] = ask(&s, "secret");
    assert_int_equal(s.directory->count, 1);
    assert_int_equal(s.directory->callers[0].waited, 7);
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", NULL);
    run(&s);
    for (int i = 0; i < 7; i++) {
        assert_ptr_equal(s.rig.done[i], d[i]);
        assert_int_equal(d[i]->verdict, i < 5 ? WEIR_ALLOWED : WEIR_DENIED);
    }
    scene_close(&s);
}

TEST("one that is cancelled leaves and returns to the pool")
{
    struct scene s;
    scene_open(&s);
    struct weir_decision *first = ask(&s, "secret"), *second = ask(&s, "secret");
    struct weir_decision *taken = take(&s, "other", NULL, NULL);
    weir_engine_cancel(s.rig.engine, first);
    weir_engine_release(s.rig.engine, taken);
    assert_int_equal(weir_engine_pending(s.rig.engine), 1);
    assert_int_equal(s.directory->callers[0].waited, 1);
    assert_int_equal(s.directory->callers[1].waited, 0);
    assert_ptr_equal(rig_take(&s.rig, 0), taken); /* the one that was given back last */
    assert_ptr_equal(rig_take(&s.rig, 0), first);
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", NULL);
    run(&s);
    assert_int_equal(s.rig.done_count, 1);
    assert_ptr_equal(s.rig.done[0], second);
    scene_close(&s);
}

TEST("a reset is done although nobody waits for it any more")
{
    struct scene s;
    scene_open(&s);
    ask(&s, "secret");
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", NULL);
    run(&s);
    assert_int_equal(s.rig.store->state_count, 1);
    s.directory->callers[0].state = FAKE_PENDING;
    struct weir_decision *reset = rig_take(&s.rig, 0);
    reset->op = WEIR_OP_RESET;
    assert_int_equal(apply(&s, reset, "secret", NULL, NULL, NULL), 0);
    weir_engine_queue(s.rig.engine, reset);
    weir_engine_cancel(s.rig.engine, reset);
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", NULL);
    run(&s);
    assert_int_equal(s.rig.done_count, 1);
    s.rig.done[0] = ask(&s, "secret");
    run(&s);
    struct weir_report report;
    weir_decision_report(s.rig.done[1], 0, &report);
    assert_int_equal(report.remaining, 4); /* it began anew */
    scene_close(&s);
}

TEST("what the rules refuse late is said in the same words")
{
    struct scene s;
    struct weir_reason at_once = {""};
    scene_open(&s);
    struct weir_decision *late = take(&s, "secret", NULL, "many");
    weir_engine_queue(s.rig.engine, late);
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", "pro");
    assert_int_equal(s.rig.done_count, 1);
    struct weir_decision *now = rig_take(&s.rig, 0);
    assert_int_equal(apply(&s, now, "secret", NULL, "many", &at_once), WEIR_ERR_SYNTAX);
    assert_int_equal(late->error, WEIR_ERR_SYNTAX);
    assert_int_equal(late->verdict, WEIR_DENIED);
    assert_int_equal(late->count, 0);
    assert_string_equal(weir_engine_refusal(late)->text, at_once.text);
    assert_true(at_once.text[0] != '\0');
    weir_engine_release(s.rig.engine, late);
    run(&s);
    assert_int_equal(s.rig.store->submits, 0);
    scene_close(&s);
}

TEST("a directory that cannot find out may have requests refused")
{
    struct scene s;
    struct weir_reason at_once = {""};
    scene_open(&s);
    struct weir_decision *late = ask(&s, "secret");
    fake_directory_answer(s.directory, 0, FAKE_FAILED, NULL, NULL);
    struct weir_decision *now = rig_take(&s.rig, 0);
    assert_int_equal(apply(&s, now, "secret", NULL, NULL, &at_once), WEIR_ERR_STORE);
    assert_int_equal(late->error, WEIR_ERR_STORE);
    assert_string_equal(weir_engine_refusal(late)->text, at_once.text);
    assert_string_equal(at_once.text, "who is calling cannot be looked up now");
    scene_close(&s);
}

/* Only a trusted request may say its class. */
TEST("whether a request is trusted is remembered meanwhile")
{
    static const char text[] =
        "identities: redis://127.0.0.1:6379\n"
        "identify: [header.x-key]\n"
        "priority: {from: header.x-cost}\n"
        "limits: [{name: api, key: [], rate: 10/h, shed: {normal: 50%, sheddable: 20%}}]\n"
        "plans: {free: {}}\n"
        "default_plan: free\n";
    struct scene s;
    scene_open_with(&s, text);
    for (int i = 0; i < 2; i++) {
        s.trusted = i == 1;
        struct weir_decision *d = take(&s, i == 1 ? "one" : "two", NULL, "critical");
        weir_engine_queue(s.rig.engine, d);
        fake_directory_answer(s.directory, (unsigned)i, FAKE_KNOWN, "alice", "free");
        run(&s);
        assert_int_equal(d->count, 1);
        assert_int_equal(d->checks[0].scale, s.trusted ? 0 : 50);
    }
    scene_close(&s);
}

TEST("an idempotency key is remembered meanwhile")
{
    struct scene s;
    struct weir_reason reason = {""};
    scene_open(&s);
    for (int i = 0; i < 3; i++) {
        char key[] = "k1";
        struct weir_decision *d = take(&s, "secret", NULL, NULL);
        assert_int_equal(
            weir_engine_apply_idempotency(s.rig.engine, d, (struct weir_bytes){key, 2}, &reason),
            0);
        memset(key, '#', 2);
        weir_engine_queue(s.rig.engine, d);
        if (i == 1)
            fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", NULL);
    }
    run(&s);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s.rig.done[i]->count, 2);
        assert_true(s.rig.done[i]->checks[1].flags & WEIR_CHECK_IDEMPOTENCY);
        assert_int_equal(s.rig.done[i]->repeated, i > 0);
    }
    scene_close(&s);
}

TEST("a reservation is remembered meanwhile and may be refused")
{
    struct scene s;
    struct weir_reason reason = {""};
    char token[WEIR_RESERVATION_TEXT_MAX];
    uint64_t life_ns, id;
    scene_open(&s);
    struct weir_decision *d = take(&s, "secret", NULL, NULL);
    assert_int_equal(weir_engine_apply_reservation(s.rig.engine, d, 1, SECOND, &reason), 0);
    weir_engine_queue(s.rig.engine, d);
    struct weir_decision *large = rig_take(&s.rig, 0);
    assert_int_equal(apply(&s, large, "secret", NULL, NULL, &reason), 0);
    assert_int_equal(
        weir_engine_apply_reservation(s.rig.engine, large, UINT64_MAX, SECOND, &reason), 0);
    weir_engine_queue(s.rig.engine, large);
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", NULL);
    run(&s);
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    size_t size = weir_engine_reservation(s.rig.engine, d, START, &life_ns, &id, token);
    assert_true(size > 0);
    assert_int_equal(life_ns, SECOND);
    assert_null(weir_engine_refusal(large));
    scene_close(&s);
}

TEST("a reload meanwhile changes nothing for those that wait")
{
    static const char other[] = "version: 1\n"
                                "identities: redis://127.0.0.1:6379\n"
                                "identify: [header.x-token, header.x-key]\n"
                                "limits:\n"
                                "- {name: other, key: [header.x-cost, user], rate: 7/h}\n";
    struct scene s;
    scene_open(&s);
    struct weir_decision *before = ask(&s, "secret");
    struct weir_rules *rules = rig_rules(other);
    assert_int_equal(weir_engine_set_rules(s.rig.engine, rules), 0);
    weir_rules_unref(rules);
    struct weir_decision *after = take(&s, "secret", NULL, "x");
    weir_engine_queue(s.rig.engine, after);
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", "pro");
    run(&s);
    rig_expect_key(before, 0, "user=alice");
    assert_int_equal(before->count, 2);
    assert_ptr_equal(weir_decision_rules(before), s.rules);
    rig_expect_key(after, 0, "header.x-cost=x,user=alice");
    assert_ptr_equal(weir_decision_rules(after), rules);
    scene_close(&s);
}

TEST("an engine ends while decisions wait")
{
    struct scene s;
    scene_open(&s);
    for (int i = 0; i < 3; i++)
        ask(&s, "secret");
    weir_engine_end(s.rig.engine);
    assert_int_equal(s.directory->callers[0].waited, 0);
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", NULL);
    assert_int_equal(s.rig.done_count, 0);
    scene_close(&s);
}

TEST("a decision that is only looked up is the front ends again")
{
    struct scene s;
    scene_open(&s);
    s.rig.holds = true;
    struct weir_decision *good = take(&s, "secret", NULL, NULL);
    struct weir_decision *bad = take(&s, "secret", NULL, "many");
    struct weir_decision *gone = take(&s, "secret", NULL, NULL);
    weir_engine_look(s.rig.engine, good);
    weir_engine_look(s.rig.engine, bad);
    weir_engine_look(s.rig.engine, gone);
    weir_engine_cancel(s.rig.engine, gone);
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", "pro");
    assert_int_equal(s.rig.done_count, 2);
    assert_ptr_equal(s.rig.done[0], good);
    assert_null(weir_engine_refusal(good));
    assert_non_null(weir_engine_refusal(bad));
    weir_engine_release(s.rig.engine, bad);
    weir_engine_queue(s.rig.engine, good);
    run(&s);
    assert_int_equal(s.rig.done_count, 3);
    assert_int_equal(good->verdict, WEIR_ALLOWED);
    scene_close(&s);
}

TEST("where no more may wait the directory is hurried")
{
    struct scene s;
    scene_open(&s);
    for (int i = 0; i < 128; i++) { /* half of the rig's pool */
        struct weir_decision *d = ask(&s, "secret");
        assert_true(weir_engine_looks(d));
    }
    struct weir_decision *d = ask(&s, "secret");
    assert_false(weir_engine_looks(d));
    assert_int_equal(s.directory->hurried, 1);
    run(&s);
    assert_int_equal(s.rig.done_count, 1);
    rig_expect_key(d, 0, "user=ip:192.0.2.1");
    scene_close(&s);
}

TEST("without memory or with too much to copy too")
{
    struct scene s;
    scene_open(&s);
    size_t size = 65537;
    char *large = test_malloc(size + 1);
    memset(large, 'x', size);
    large[size] = '\0';
    struct weir_decision *d = take(&s, "secret", NULL, large);
    assert_false(weir_engine_looks(d));
    large[size - 16] = '\0';
    d = take(&s, "secret", NULL, large);
    assert_true(weir_engine_looks(d));
    test_free(large);

    struct weir_request request;
    struct weir_reason reason = {""};
    int key = weir_rules_field(s.rules, "x-key", 5).attribute;
    weir_request_clear(&request, weir_rules_attribute_count(s.rules));
    request.values[key] = (struct weir_bytes){"other", 5};
    d = rig_take(&s.rig, 0);
    no_memory = true;
    assert_int_equal(weir_engine_apply_rules(s.rig.engine, d, &request, &reason), 0);
    no_memory = false;
    assert_false(weir_engine_looks(d));
    assert_int_equal(s.directory->hurried, 2);
    scene_close(&s);
}

TEST("who is asked for again and again is not waited for for ever")
{
    struct scene s;
    scene_open(&s);
    s.directory->stubborn = true;
    struct weir_decision *d = ask(&s, "secret");
    int rounds = 0;
    for (; weir_engine_looks(d); rounds++)
        fake_directory_answer(s.directory, 0, FAKE_KNOWN, "alice", NULL);
    assert_int_equal(rounds, WEIR_LOOKUP_ROUNDS);
    assert_int_equal(s.directory->hurried, 1);
    run(&s);
    assert_int_equal(s.rig.done_count, 1);
    rig_expect_key(d, 0, "user=ip:192.0.2.1");
    scene_close(&s);
}

/* A warning tells of the caller once the store has answered. */
TEST("who is warned outlives what the directory knew")
{
    static const char text[] = "version: 1\n"
                               "identities: redis://127.0.0.1:6379\n"
                               "identify: [header.x-key]\n"
                               "limits:\n"
                               "- {name: api, key: [user], rate: 5/h, algorithm: fixed_window,\n"
                               "   warn_at: 80%}\n";
    struct scene s;
    char user[] = "alice", plan[] = "pro";
    scene_open_with(&s, text);
    struct weir_decision *late = ask(&s, "secret");
    fake_directory_answer(s.directory, 0, FAKE_KNOWN, user, plan);
    struct weir_decision *at_once = ask(&s, "secret");
    memset(user, '#', strlen(user)); /* as where a refresh says something else */
    memset(plan, '#', strlen(plan));
    const struct weir_decision *both[] = {late, at_once};
    for (int i = 0; i < 2; i++) {
        const struct weir_identity *identity = &weir_entry_of(both[i])->identity;
        assert_int_equal(identity->user.size, 5);
        assert_memory_equal(identity->user.data, "alice", 5);
        assert_int_equal(identity->plan.size, 3);
        assert_memory_equal(identity->plan.data, "pro", 3);
        assert_null(identity->org.data);
    }
    run(&s);
    rig_expect_key(late, 0, "user=alice");
    scene_close(&s);
}

RUN_TESTS()
