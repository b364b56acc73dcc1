/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions for clients that have a score: what answers show and what is counted, and that each
 * request is a part of its client's behaviour once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/counters.h"
#include "fake_directory.h"
#include "feature/score/rules/score.h"
#include "feature/standing/rules/match.h"
#include "rig.h"
#include "test.h"

#define SIGNALS                                                                                    \
    "  signals:\n"                                                                                 \
    "  - {name: tool, when: {header.user-agent: 'curl/*'}, add: 40}\n"                             \
    "  - {name: none, when: {header.user-agent: absent}, add: 30}\n"                               \
    "  - {name: same, same_route: 3, add: 25}\n"

static const char rules_text[] =
    "standing: {by: [user]}\n"
    "score:\n"
    "  key: client.ip\n" SIGNALS "  debug: true\n"
    "limits:\n"
    "- {name: rate, key: [client.ip], algorithm: gcra, rate: 10/h, by_class: {malicious: 10%}}\n";

static struct weir_answer answer;
static char lease[WEIR_LEASE_TOKEN_MAX];

static struct weir_decision *take(struct rig *rig, enum weir_op op, const char *const *pairs)
{
    struct weir_request request;
    struct weir_reason reason = {""};
    struct weir_decision *d = rig_take(rig, 0);
    rig_request(&request, weir_engine_rules(rig->engine), pairs);
    request.fields = WEIR_FIELDS_ALL;
    d->op = (uint8_t)op;
    assert_int_equal(weir_engine_apply_rules(rig->engine, d, &request, &reason), 0);
    return d;
}

static void finish(struct rig *rig, struct weir_decision *d)
{
    weir_engine_queue(rig->engine, d);
    weir_engine_run(rig->engine, START);
    weir_engine_answer(d, &answer, lease);
}

static void ask(struct rig *rig, enum weir_op op, const char *const *pairs)
{
    struct weir_decision *d = take(rig, op, pairs);
    finish(rig, d);
    weir_engine_release(rig->engine, d);
}
#define ASK(rig, op, ...) ask(rig, op, (const char *const[]){__VA_ARGS__, NULL})

static void assert_reported(const char *class, unsigned score, uint32_t held)
{
    assert_int_equal(answer.score.class.size, strlen(class));
    assert_memory_equal(answer.score.class.data, class, strlen(class));
    assert_int_equal(answer.score.score, score);
    assert_int_equal(answer.score.held, held);
}

static void assert_counted(const struct rig *rig, unsigned legitimate, unsigned suspicious,
                           unsigned malicious)
{
    const struct weir_score_counters *counters = weir_engine_scores(rig->engine);
    assert_int_equal(counters->requests[WEIR_CLASS_LEGITIMATE], legitimate);
    assert_int_equal(counters->requests[WEIR_CLASS_SUSPICIOUS], suspicious);
    assert_int_equal(counters->requests[WEIR_CLASS_MALICIOUS], malicious);
}

TEST("an answer says the score and its signals")
{
    struct rig rig;
    rig_open_text(&rig, rules_text);
    rig.keep = true;
    ASK(&rig, WEIR_OP_DECIDE, "client.ip", "192.0.2.1", "header.user-agent", "curl/8");
    assert_reported("suspicious", 40, 1);
    assert_int_equal(answer.limits[0].scale, 0);
    assert_non_null(answer.score.signals);
    assert_memory_equal(answer.score.signals[0].name.data, "tool", 4);
    assert_int_equal(answer.score.signals[0].add, 40);
    for (int i = 0; i < 3; i++)
        ASK(&rig, WEIR_OP_DECIDE, "client.ip", "192.0.2.1", "header.user-agent", "curl/8", "path",
            "/a");
    assert_reported("malicious", 65, 1 | 4);
    assert_int_equal(answer.limits[0].scale, 10);
    ASK(&rig, WEIR_OP_DECIDE, "client.ip", "192.0.2.2", "header.user-agent", "x");
    assert_reported("legitimate", 0, 0);
    assert_counted(&rig, 1, 3, 1);
    rig_close(&rig);
}

TEST("without debug signals are not reported")
{
    struct rig rig;
    rig_open_text(&rig, "score:\n  key: client.ip\n" SIGNALS "limits: []\n");
    rig.keep = true;
    ASK(&rig, WEIR_OP_DECIDE, "client.ip", "192.0.2.1", "header.user-agent", "curl/8");
    assert_reported("suspicious", 40, 1);
    assert_null(answer.score.signals);
    rig_close(&rig);
}

TEST("without the section nothing is reported")
{
    struct rig rig;
    rig_open_text(&rig, "limits: [{name: a, key: [], rate: 1/s}]\n");
    rig.keep = true;
    struct weir_decision *d = take(&rig, WEIR_OP_DECIDE, (const char *const[]){NULL});
    finish(&rig, d);
    assert_null(answer.score.class.data);
    assert_null(weir_decision_score(d));
    weir_engine_release(rig.engine, d);
    rig_close(&rig);
}

TEST("peeks are judged but neither kept nor counted")
{
    struct rig rig;
    rig_open_text(&rig, rules_text);
    rig.keep = true;
    for (int i = 0; i < 2; i++)
        ASK(&rig, WEIR_OP_DECIDE, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
    for (int i = 0; i < 3; i++) {
        ASK(&rig, WEIR_OP_PEEK, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
        assert_reported("legitimate", 25, 4);
    }
    ASK(&rig, WEIR_OP_PEEK, "client.ip", "::1", "header.user-agent", "x", "path", "/b");
    assert_reported("legitimate", 0, 0);
    struct weir_decision *d = /* what the client has done, whatever it asks for now */
        take(&rig, WEIR_OP_LOOK, (const char *const[]){"client.ip", "::1", NULL});
    assert_int_equal(weir_decision_score(d)->habit.same_route, 2);
    weir_engine_release(rig.engine, d);
    assert_counted(&rig, 2, 0, 0);
    ASK(&rig, WEIR_OP_DECIDE, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
    assert_reported("legitimate", 25, 4);
    rig_close(&rig);
}

TEST("who is refused for its standing has no score")
{
    const struct weir_standing_options options = {.entries_max = 100, .secret = {3, 4}};
    const struct weir_standing_entry entry = {.until_ns = WEIR_NEVER,
                                              .level = WEIR_STANDING_REVOKED,
                                              .origin = WEIR_STANDING_BY_OPERATOR};
    struct weir_standing *map;
    struct weir_reason reason;
    struct rig rig;
    uint64_t id[2];
    assert_int_equal(weir_standing_create(&map, &options, &reason), 0);
    weir_standing_id(map, (struct weir_bytes){"user", 4}, (struct weir_bytes){"eve", 3}, id);
    assert_int_equal(weir_standing_set(map, id, &entry), 0);
    rig_open_text(&rig, rules_text);
    rig.keep = true;
    weir_engine_set_standing(rig.engine, map);
    ASK(&rig, WEIR_OP_DECIDE, "client.ip", "::1", "user", "eve", "path", "/a");
    assert_true(answer.standing.refused);
    assert_null(answer.score.class.data);
    assert_counted(&rig, 0, 0, 0);
    ASK(&rig, WEIR_OP_DECIDE, "client.ip", "::1", "user", "bob", "path", "/a");
    assert_reported("suspicious", 30, 2);
    rig_close(&rig);
    weir_standing_close(map);
}

/* The behaviour of this client so far. */
static unsigned routes_of(struct rig *rig, const char *key)
{
    struct weir_decision *d = take(
        rig, WEIR_OP_LOOK, (const char *const[]){"client.ip", "::1", "header.x-key", key, NULL});
    unsigned run = weir_decision_score(d)->habit.same_route;
    weir_engine_release(rig->engine, d);
    return run;
}

/* Before it is known who is calling, the rules are asked, and again when it is. `key`: of the
 * score; by the address it is known at once, by the user only then. */
static void check_lookup(const char *key)
{
    char text[1024];
    struct fake_directory *directory = malloc(sizeof *directory);
    struct rig rig;
    snprintf(text, sizeof text,
             "identities: redis://127.0.0.1:6379\nidentify: [header.x-key]\n"
             "score:\n  key: %s\n" SIGNALS "limits:\n- {name: api, key: [user], rate: 100/h}\n"
             "- {name: sure, match: {header.x-class: absent}, key: [], rate: 100/h}\n",
             key);
    fake_directory_init(directory);
    struct weir_rules *rules = rig_rules(text);
    rig_open_directory(&rig, rules, &directory->base);
    rig.keep = true;
    const char *const pairs[] = {"client.ip", "::1", "header.x-key", "k", "path", "/a", NULL};
    struct weir_decision *d = take(&rig, WEIR_OP_DECIDE, pairs);
    assert_true(weir_engine_looks(d));
    weir_engine_queue(rig.engine, d);
    fake_directory_answer(directory, 0, FAKE_KNOWN, "alice", NULL);
    weir_engine_run(rig.engine, START);
    assert_int_equal(d->count, 2); /* that fields are known outlives the wait */
    assert_int_equal(weir_decision_score(d)->habit.same_route, 1);
    weir_engine_release(rig.engine, d);
    assert_int_equal(routes_of(&rig, "k"), 1);
    ask(&rig, WEIR_OP_DECIDE, pairs);
    assert_int_equal(routes_of(&rig, "k"), 2);
    assert_counted(&rig, 0, 2, 0);
    rig_close(&rig);
    weir_rules_unref(rules);
    free(directory);
}

TEST("a request that waits for its caller is kept once")
{
    check_lookup("client.ip");
    check_lookup("user");
}

TEST("a reload keeps the behaviour")
{
    struct rig rig;
    rig_open_text(&rig, rules_text);
    rig.keep = true;
    ASK(&rig, WEIR_OP_DECIDE, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
    struct weir_rules *again = rig_rules(rules_text);
    weir_rules_inherit(again, weir_engine_rules(rig.engine));
    assert_int_equal(weir_engine_set_rules(rig.engine, again), 0);
    weir_rules_unref(again);
    for (int i = 0; i < 2; i++)
        ASK(&rig, WEIR_OP_DECIDE, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
    assert_reported("legitimate", 25, 4);
    rig_close(&rig);
}

RUN_TESTS()
