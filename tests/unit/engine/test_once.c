/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotency keys under the rules, and what becomes of them where the store fails. */
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "rig.h"
#include "rules/charge/idempotency.h"
#include "test.h"

static const char rules_text[] = "version: 1\n"
                                 "idempotency: {life: 1min}\n"
                                 "limits:\n"
                                 "- {name: rate, key: [path], algorithm: gcra, rate: 10/h}\n"
                                 "- {name: slots, match: {path: /slot}, key: [path],\n"
                                 "   algorithm: concurrency, limit: 2, life: 30s}\n"
                                 "- {name: all, match: {path: /free}, key: [], rate: unlimited}\n";

static struct weir_answer answer;
static char lease[WEIR_LEASE_TOKEN_MAX];

static struct weir_decision *apply(struct rig *rig, const char *path, uint64_t cost,
                                   const char *key)
{
    struct weir_request request;
    struct weir_reason reason = {""};
    struct weir_decision *d = rig_take(rig, 0);
    weir_request_clear(&request, weir_rules_attribute_count(weir_engine_rules(rig->engine)));
    request.values[WEIR_ATTR_PATH] = weir_bytes_of(path);
    request.cost = cost;
    assert_int_equal(weir_engine_apply_rules(rig->engine, d, &request, &reason), 0);
    int err = weir_engine_apply_idempotency(rig->engine, d, weir_bytes_of(key), &reason);
    assert_int_equal(err, 0);
    return d;
}

/* Asks, and fills `answer`. */
static struct weir_decision *ask(struct rig *rig, const char *path, uint64_t cost, const char *key,
                                 uint64_t now_ns)
{
    struct weir_decision *d = apply(rig, path, cost, key);
    weir_engine_queue(rig->engine, d);
    weir_engine_run(rig->engine, now_ns);
    weir_engine_answer(d, &answer, lease);
    return d;
}

TEST("a repeat charges nothing and no answer tells of the record")
{
    struct rig rig;
    rig_open_text(&rig, rules_text);
    for (int i = 0; i < 4; i++) {
        ask(&rig, "/a", 3, "k1", START);
        assert_true(answer.allowed);
        assert_int_equal(answer.repeated, i > 0);
        assert_int_equal(answer.count, 1);
        assert_string_equal(answer.limits[0].name.data, "rate");
        assert_int_equal(answer.limits[0].report.remaining, 7);
        assert_int_equal(answer.denied_by, -1);
    }
    ask(&rig, "/a", 3, "k1", START + 60 * SECOND);
    assert_false(answer.repeated);
    rig_close(&rig);
}

TEST("another key cost or caller is another request")
{
    struct rig rig;
    rig_open_text(&rig, rules_text);
    const struct {
        const char *path;
        uint64_t cost;
        const char *key;
    } requests[] = {{"/a", 1, "k1"}, {"/a", 2, "k1"}, {"/b", 1, "k1"},
                    {"/a", 1, "k"},  {"/a", 1, "k2"}, {"/slot", 1, "k1"}};
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
            ask(&rig, requests[i].path, requests[i].cost, requests[i].key, START);
            assert_true(answer.allowed);
            assert_int_equal(answer.repeated, round);
        }
    rig_close(&rig);
}

TEST("a repeat gets the same lease and dropping one keeps it")
{
    struct rig rig;
    char first[WEIR_LEASE_TOKEN_MAX];
    rig_open_text(&rig, rules_text);
    struct weir_decision *d = ask(&rig, "/slot", 1, "k1", START);
    assert_non_null(answer.lease.data);
    size_t size = answer.lease.size;
    memcpy(first, answer.lease.data, size);
    weir_engine_cancel(rig.engine, d); /* the answer was lost; its asker will repeat it */
    weir_engine_run(rig.engine, START);
    ask(&rig, "/slot", 1, "k1", START + 1);
    assert_true(answer.repeated);
    assert_int_equal(answer.lease.size, size);
    assert_memory_equal(answer.lease.data, first, size);
    assert_int_equal(release_lease(rig.engine, START, (struct weir_bytes){first, size}), 0);
    assert_int_equal(rig.store->releases, 1);
    ask(&rig, "/slot", 1, "k2", START);
    assert_false(answer.lease.size == size && memcmp(answer.lease.data, first, size) == 0);
    rig_close(&rig);
}

TEST("a request without a state needs no record")
{
    struct rig rig;
    rig_open_text(&rig, "version: 1\nlimits:\n- {name: all, key: [], rate: unlimited}\n");
    assert_int_equal(apply(&rig, "/free", 1, "k1")->count, 1);
    rig_close(&rig);
}

TEST("beside 32 limits there is no room for a record")
{
    struct rig rig;
    char text[8192] = "version: 1\nlimits:\n";
    struct weir_reason reason = {""};
    for (int i = 0; i < WEIR_CHECKS_MAX; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "- {name: l%d, key: [], rate: 1/s}\n", i);
    }
    struct weir_rules *rules = rig_rules(text);
    rig_open_rules(&rig, rules);
    struct weir_request request;
    struct weir_decision *d = rig_take(&rig, 0);
    weir_request_clear(&request, weir_rules_attribute_count(rules));
    assert_int_equal(weir_engine_apply_rules(rig.engine, d, &request, &reason), 0);
    assert_int_equal(
        weir_engine_apply_idempotency(rig.engine, d, (struct weir_bytes){"k", 1}, &reason),
        WEIR_ERR_TOO_LARGE);
    assert_int_not_equal(reason.text[0], 0);
    assert_int_equal(d->count, WEIR_CHECKS_MAX);
    rig_close(&rig);
    weir_rules_unref(rules);
}

/* Two nodes on one store: secrets differ, and the name of the record does not. */
TEST("nodes that share a store name a record alike")
{
    static const uint64_t secrets[2][2] = {{1, 2}, {3, 4}};
    static struct weir_scratch scratch[2];
    struct weir_rules *rules =
        rig_rules("version: 1\n"
                  "store: {redis: {url: \"redis://127.0.0.1\"}, nodes: 2}\n"
                  "limits:\n"
                  "- {name: rate, key: [path], algorithm: gcra, rate: 10/h}\n");
    struct weir_check checks[2], once[2];
    uint64_t ids[2];
    for (int node = 0; node < 2; node++) {
        struct weir_request request;
        struct weir_reason reason;
        weir_request_clear(&request, weir_rules_attribute_count(rules));
        request.values[WEIR_ATTR_PATH] = (struct weir_bytes){"/a", 2};
        scratch[node].used = 0;
        const struct weir_rules_query query = {.rules = rules,
                                               .request = &request,
                                               .secret = secrets[node],
                                               .scratch = &scratch[node],
                                               .reason = &reason};
        assert_int_equal(weir_rules_checks(&query, &checks[node]), 1);
        assert_int_equal(weir_rules_idempotency(rules, &checks[node], 1,
                                                (struct weir_bytes){"k1", 2}, secrets[node],
                                                &scratch[node], &once[node], &ids[node]),
                         0);
    }
    assert_true(checks[0].hash[0] != checks[1].hash[0]);
    assert_true(once[0].hash[0] != once[1].hash[0]);
    assert_true(ids[0] == ids[1] && ids[0] != 0);
    assert_int_equal(once[0].key.size, 32);
    assert_memory_equal(once[0].key.data, once[1].key.data, 32);
    assert_true(once[0].tag == weir_check_tag(&checks[0]) && once[0].tag == once[1].tag);
    weir_rules_unref(rules);
}

/* --- Where the store fails -------------------------------------------------------------------- */

TEST("where the store fails this node charges once by itself")
{
    struct rig rig;
    struct weir_rules *rules = rig_rules(rules_text);
    rig_open_elsewhere(&rig, rules);
    rig.store->later_every = 1;
    for (int i = 0; i < 3; i++) {
        struct weir_decision *d = apply(&rig, "/a", 3, "k1");
        weir_engine_queue(rig.engine, d);
        weir_engine_run(rig.engine, START);
        fake_store_fail(rig.store, 0, WEIR_ERR_STORE);
        weir_engine_answer(d, &answer, lease);
        assert_int_equal(answer.source, WEIR_SOURCE_LOCAL);
        assert_true(answer.allowed);
        assert_int_equal(answer.repeated, i > 0);
        assert_int_equal(answer.count, 1);
        assert_int_equal(answer.limits[0].report.remaining, 7);
    }
    rig_close(&rig);
    weir_rules_unref(rules);
}

TEST("open and closed checks leave no record")
{
    struct rig rig;
    struct weir_rules *rules = rig_rules(rules_text);
    rig_open_elsewhere(&rig, rules);
    rig.store->later_every = 1;
    for (int i = 0; i < 4; i++) {
        struct weir_decision *d = apply(&rig, "/a", 3, "k1");
        d->checks[0].on_store_error = i < 2 ? WEIR_FAIL_OPEN : WEIR_FAIL_CLOSED;
        weir_engine_queue(rig.engine, d);
        weir_engine_run(rig.engine, START);
        fake_store_fail(rig.store, 0, WEIR_ERR_STORE);
        assert_int_equal(d->verdict, i < 2 ? WEIR_ALLOWED : WEIR_DENIED);
        assert_int_equal(d->source, i < 2 ? WEIR_SOURCE_OPEN : WEIR_SOURCE_CLOSED);
        assert_int_equal(d->denied_by, i < 2 ? UINT16_MAX : 0);
        assert_false(d->repeated);
    }
    assert_int_equal(rig.local->submits, 0);
    rig_close(&rig);
    weir_rules_unref(rules);
}

RUN_TESTS()
