/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions for callers whose standing is not good: refusals, what is charged, what is
 * reported and counted. */
#include <string.h>

#include "core/bytes.h"
#include "core/text/shown.h"
#include "engine/counters.h"
#include "feature/reserve/engine/reservation.h"
#include "feature/standing/rules/match.h"
#include "feature/use/engine/top_denied.h"
#include "rig.h"
#include "test.h"

static const char rules_text[] =
    "idempotency: {life: 1min}\n"
    "standing: {by: [client.ip/64, user], answer: {revoked: {status: 451, body: gone}}}\n"
    "limits:\n"
    "- {name: rate, key: [user], algorithm: gcra, rate: 10/h}\n"
    "- {name: few, match: {standing: throttled}, key: [user], algorithm: gcra, rate: 2/h}\n";

static struct weir_standing *map;
static struct weir_answer answer;
static char lease[WEIR_LEASE_TOKEN_MAX];

static void open_rig(struct rig *rig, const char *text)
{
    const struct weir_standing_options options = {.entries_max = 100, .secret = {3, 4}};
    struct weir_reason reason;
    assert_int_equal(weir_standing_create(&map, &options, &reason), 0);
    rig_open_text(rig, text);
    weir_engine_set_standing(rig->engine, map);
    rig->keep = true;
    weir_engine_run(rig->engine, START); /* from now on it has a time */
}

static void close_rig(struct rig *rig)
{
    rig_close(rig);
    weir_standing_close(map);
}

static void hold(const char *user, uint8_t level, uint64_t until_ns)
{
    const struct weir_standing_entry entry = {.since_ns = START,
                                              .until_ns = until_ns,
                                              .level = level,
                                              .origin = WEIR_STANDING_BY_OPERATOR,
                                              .reason_size = 5,
                                              .reason = "abuse"};
    uint64_t id[2];
    weir_standing_id(map, weir_bytes_of("user"), weir_bytes_of(user), id);
    assert_int_equal(weir_standing_set(map, id, &entry), 0);
}

static struct weir_decision *take(struct rig *rig, enum weir_op op, const char *user)
{
    struct weir_request request;
    struct weir_reason reason = {""};
    struct weir_decision *d = rig_take(rig, 0);
    weir_request_clear(&request, weir_rules_attribute_count(weir_engine_rules(rig->engine)));
    request.values[WEIR_ATTR_USER] = weir_bytes_of(user);
    d->op = (uint8_t)op;
    assert_int_equal(weir_engine_apply_rules(rig->engine, d, &request, &reason), 0);
    return d;
}

/* Decides, fills `answer`, and gives the decision back. */
static void finish(struct rig *rig, struct weir_decision *d, uint64_t now_ns)
{
    weir_engine_queue(rig->engine, d);
    weir_engine_run(rig->engine, now_ns);
    weir_engine_answer(d, &answer, lease);
}

static void ask(struct rig *rig, enum weir_op op, const char *user, uint64_t now_ns)
{
    struct weir_decision *d = take(rig, op, user);
    finish(rig, d, now_ns);
    weir_engine_release(rig->engine, d);
}

static void assert_reported(struct weir_bytes result, const char *text)
{
    assert_int_equal(result.size, strlen(text));
    assert_memory_equal(result.data, text, result.size);
}

static void assert_refused(const char *level, uint64_t ends_ns)
{
    assert_false(answer.allowed);
    assert_true(answer.standing.refused);
    assert_reported(answer.standing.level, level);
    assert_int_equal(answer.standing.ends_ns, ends_ns);
    assert_int_equal(answer.denied_by, -1);
    assert_int_equal(answer.count, 0);
    assert_null(answer.lease.data);
}

TEST("a suspended caller is reported the exact end")
{
    struct rig rig;
    open_rig(&rig, rules_text);
    hold("eve", WEIR_STANDING_SUSPENDED, START + 600 * SECOND + 1);
    ask(&rig, WEIR_OP_DECIDE, "eve", START + SECOND);
    assert_refused("suspended", 599 * SECOND + 1);
    assert_int_equal(answer.retry_after_ns, 599 * SECOND + 1);
    assert_int_equal(answer.now_ns, START + SECOND);
    assert_reported(answer.standing.reason, "abuse");
    assert_int_equal(answer.standing.status, 403);
    assert_null(answer.standing.body.data);
    ask(&rig, WEIR_OP_DECIDE, "eve", START + 600 * SECOND);
    assert_int_equal(answer.retry_after_ns, 1);
    ask(&rig, WEIR_OP_DECIDE, "eve", START + 600 * SECOND + 1); /* found by the time before */
    assert_int_equal(answer.retry_after_ns, 1);
    ask(&rig, WEIR_OP_DECIDE, "eve", START + 600 * SECOND + 1);
    assert_true(answer.allowed);
    assert_null(answer.standing.level.data);
    assert_int_equal(answer.limits[0].report.remaining, 9); /* refusals have charged nothing */
    close_rig(&rig);
}

TEST("a revoked caller never comes back")
{
    struct rig rig;
    open_rig(&rig, rules_text);
    hold("eve", WEIR_STANDING_REVOKED, WEIR_NEVER);
    hold("mal", WEIR_STANDING_REVOKED, START + 10 * SECOND);
    hold("sus", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    ask(&rig, WEIR_OP_DECIDE, "eve", START);
    assert_refused("revoked", WEIR_NEVER);
    assert_int_equal(answer.retry_after_ns, WEIR_NEVER);
    assert_int_equal(answer.standing.status, 451);
    assert_reported(answer.standing.body, "gone");
    assert_reported(answer.standing.content_type, "text/plain; charset=utf-8");
    ask(&rig, WEIR_OP_DECIDE, "mal", START); /* by its name, whatever its end */
    assert_refused("revoked", 10 * SECOND);
    assert_int_equal(answer.retry_after_ns, WEIR_NEVER);
    ask(&rig, WEIR_OP_DECIDE, "sus", START);
    assert_refused("suspended", WEIR_NEVER);
    assert_int_equal(answer.retry_after_ns, WEIR_NEVER);
    close_rig(&rig);
}

TEST("other levels are reported and allowed")
{
    struct rig rig;
    open_rig(&rig, rules_text);
    hold("eve", WEIR_STANDING_THROTTLED, START + 60 * SECOND);
    hold("vip", WEIR_STANDING_TRUSTED, WEIR_NEVER);
    ask(&rig, WEIR_OP_DECIDE, "eve", START);
    assert_true(answer.allowed);
    assert_reported(answer.standing.level, "throttled");
    assert_int_equal(answer.standing.ends_ns, 60 * SECOND);
    assert_false(answer.standing.refused);
    assert_int_equal(answer.count, 2);
    ask(&rig, WEIR_OP_DECIDE, "eve", START);
    ask(&rig, WEIR_OP_DECIDE, "eve", START);
    assert_false(answer.allowed); /* by the limit for such callers */
    assert_false(answer.standing.refused);
    assert_int_equal(answer.denied_by, 1);
    ask(&rig, WEIR_OP_DECIDE, "vip", START);
    assert_true(answer.allowed);
    assert_int_equal(answer.count, 0);
    ask(&rig, WEIR_OP_DECIDE, "bob", START);
    assert_null(answer.standing.level.data);
    close_rig(&rig);
}

TEST("refusals are counted and peeks are not")
{
    struct weir_heavy_entry list[8];
    struct rig rig;
    open_rig(&rig, rules_text);
    hold("sus", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    hold("rev", WEIR_STANDING_REVOKED, WEIR_NEVER);
    ask(&rig, WEIR_OP_DECIDE, "sus", START);
    ask(&rig, WEIR_OP_DECIDE, "sus", START);
    ask(&rig, WEIR_OP_DECIDE, "rev", START);
    ask(&rig, WEIR_OP_PEEK, "rev", START);
    assert_refused("revoked", WEIR_NEVER);
    const struct weir_standing_refusals *counted = weir_engine_standing_refusals(rig.engine);
    assert_int_equal(counted->suspended, 2);
    assert_int_equal(counted->revoked, 1);
    const struct weir_engine_counters *limit = weir_engine_counters(rig.engine, 0);
    assert_int_equal(limit->counts.allowed + limit->counts.denied, 0);
    size_t count = weir_top_denied_collect(weir_engine_top_denied(rig.engine),
                                           weir_bytes_of("standing"), list, 0, 8);
    weir_top_denied_sort(list, count);
    assert_int_equal(count, 2);
    assert_int_equal(list[0].count, 2);
    char shown[WEIR_SHOWN_TEXT_MAX];
    size_t size = weir_shown_text((struct weir_bytes){list[0].text, list[0].text_size}, shown);
    assert_reported((struct weir_bytes){shown, size}, "user=sus");
    close_rig(&rig);
}

/* What a suspended caller was charged may be given back, and its states forgotten. */
TEST("operations on states are not refused")
{
    struct rig rig;
    open_rig(&rig, rules_text);
    ask(&rig, WEIR_OP_DECIDE, "eve", START);
    hold("eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    struct weir_decision *d = take(&rig, WEIR_OP_RESET, "eve");
    assert_int_equal(d->count, 1);
    finish(&rig, d, START);
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    weir_engine_release(rig.engine, d);
    d = take(&rig, WEIR_OP_REFUND, "eve");
    assert_int_equal(d->count, 1);
    weir_engine_release(rig.engine, d);
    close_rig(&rig);
}

TEST("an idempotency key changes nothing")
{
    struct rig rig;
    open_rig(&rig, rules_text);
    hold("eve", WEIR_STANDING_SUSPENDED, START + 60 * SECOND);
    for (int i = 0; i < 2; i++) {
        struct weir_reason reason;
        struct weir_decision *d = take(&rig, WEIR_OP_DECIDE, "eve");
        assert_int_equal(weir_engine_apply_idempotency(rig.engine, d, weir_bytes_of("k"), &reason),
                         0);
        finish(&rig, d, START);
        assert_refused("suspended", 60 * SECOND);
        assert_false(answer.repeated);
        weir_engine_release(rig.engine, d);
    }
    close_rig(&rig);
}

TEST("a refused reservation reserves nothing")
{
    struct rig rig;
    struct weir_reason reason;
    open_rig(&rig, rules_text);
    hold("eve", WEIR_STANDING_SUSPENDED, START + 60 * SECOND);
    struct weir_decision *d = take(&rig, WEIR_OP_DECIDE, "eve");
    assert_int_equal(weir_engine_apply_reservation(rig.engine, d, 5, 60 * SECOND, &reason), 0);
    finish(&rig, d, START);
    assert_refused("suspended", 60 * SECOND);
    assert_false(weir_engine_reserved(d));
    weir_engine_release(rig.engine, d);
    close_rig(&rig);
}

/* A decision of the pool that was refused leaves nothing to the next one, of whatever kind. */
TEST("the next decision has a standing of its own")
{
    struct weir_limit limit = rig_limit(WEIR_GCRA, 5, SECOND);
    struct rig rig;
    open_rig(&rig, rules_text);
    hold("eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    ask(&rig, WEIR_OP_DECIDE, "eve", START);
    assert_false(answer.allowed);
    ask(&rig, WEIR_OP_DECIDE, "bob", START);
    assert_true(answer.allowed);
    ask(&rig, WEIR_OP_DECIDE, "eve", START);
    struct weir_decision *d = rig_take(&rig, 0);
    rig_check(d, &limit, "k", 1);
    finish(&rig, d, START);
    assert_true(answer.allowed);
    assert_null(answer.standing.level.data);
    weir_engine_release(rig.engine, d);
    weir_engine_set_standing(rig.engine, NULL);
    ask(&rig, WEIR_OP_DECIDE, "eve", START);
    assert_true(answer.allowed);
    close_rig(&rig);
}

TEST("rules without the section look nobody up")
{
    struct rig rig;
    open_rig(&rig, "limits: [{name: rate, key: [user], rate: 10/h}]\n");
    hold("eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    ask(&rig, WEIR_OP_DECIDE, "eve", START);
    assert_true(answer.allowed);
    assert_null(answer.standing.level.data);
    close_rig(&rig);
}

RUN_TESTS()
