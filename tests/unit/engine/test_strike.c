/* SPDX-License-Identifier: Apache-2.0 */
/* Strikes over the table: which requests are strikes, and which of them moves the ladder, at which
 * time. */
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "engine/open.h"
#include "feature/penalties/engine/strike.h"
#include "feature/reserve/engine/reservation.h"
#include "feature/standing/ladder.h"
#include "feature/standing/rules/match.h"
#include "feature/standing/settings.h"
#include "table_rig.h"
#include "test.h"

#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static struct {
    struct weir_table *table;
    struct weir_store *store;
    struct fake_store *fake; /* the store, where it is a remote one; else NULL */
    struct weir_engine *engine;
    struct weir_standing *map;
    uint32_t strikes, moves;
    struct weir_ladder_state ladder; /* as the daemon would move it */
    uint64_t moved_ns;
    char value[128];                /* of the last strike, with its kind */
    bool hidden;                    /* likewise */
    enum weir_strike_answer answer; /* to what moves */
    uint64_t hash[2];               /* of the last that moved, and its key */
    char key[512];
    size_t key_size;
} world;

static const uint64_t secret[2] = {5, 6};

static void done(void *context, struct weir_decision *decision)
{
    (void)context;
    (void)decision;
}

static enum weir_strike_answer strike(void *context, const struct weir_struck *struck)
{
    (void)context;
    world.strikes++;
    world.moves += struck->moves;
    snprintf(world.value, sizeof world.value, "%.*s=%.*s", (int)struck->kind->name.size,
             struck->kind->name.data, (int)struck->strike->value.size, struck->strike->value.data);
    world.hidden = struck->strike->hidden;
    if (!struck->moves) {
        weir_ladder_strike(&struck->penalty->ladder, &world.ladder, struck->now_ns);
        return WEIR_STRIKE_REFUSED; /* of no account */
    }
    world.hash[0] = struck->strike->check.hash[0];
    world.hash[1] = struck->strike->check.hash[1];
    world.key_size = struck->strike->check.key.size;
    memcpy(world.key, struck->strike->check.key.data, world.key_size);
    world.moved_ns = struck->now_ns;
    if (world.answer == WEIR_STRIKE_DONE)
        weir_ladder_move(&struck->penalty->ladder, &world.ladder, struck->now_ns);
    return world.answer;
}

static void open_sized(const char *text, bool elsewhere, size_t bytes)
{
    const struct weir_standing_options standing = {.entries_max = 100, .secret = {3, 4}};
    struct weir_rules *rules = rig_rules(text);
    struct weir_reason reason;
    memset(&world, 0, sizeof world);
    world.table = rig_table_spans(bytes, weir_rules_span_percent(rules));
    world.fake = elsewhere ? fake_store_open_named() : NULL;
    world.store = elsewhere ? &world.fake->base : rig_embedded(world.table);
    assert_int_equal(weir_standing_create(&world.map, &standing, &reason), 0);
    if (!elsewhere)
        rig_prepare(rules, world.store);
    const struct weir_engine_options options = {.store = world.store,
                                                .rules = rules,
                                                .secret = secret,
                                                .decisions = 64,
                                                .done = done,
                                                .standing = world.map,
                                                .strike = strike};
    assert_int_equal(weir_engine_open(&world.engine, &options), 0);
    weir_rules_unref(rules);
    weir_engine_run(world.engine, START);
}

static void open_at(const char *text, bool elsewhere)
{
    open_sized(text, elsewhere, 1 << 20);
}

static void open_world(const char *text)
{
    open_at(text, false);
}

static void close_world(void)
{
    weir_engine_close(world.engine);
    if (world.fake != NULL)
        fake_store_close(world.fake);
    else
        world.store->ops->close(world.store);
    weir_table_close(world.table);
    weir_standing_close(world.map);
}

static struct weir_decision *take(enum weir_op op, const char *user)
{
    static struct weir_request request;
    struct weir_reason reason;
    struct weir_decision *decision = weir_engine_take(world.engine);
    assert_non_null(decision);
    decision->op = (uint8_t)op;
    rig_request(&request, weir_engine_rules(world.engine),
                (const char *const[]){"user", user, NULL});
    assert_int_equal(weir_engine_apply_rules(world.engine, decision, &request, &reason), 0);
    return decision;
}

/* Returns whether it was allowed. */
static bool ask(enum weir_op op, const char *user, uint64_t now_ns)
{
    struct weir_decision *decision = take(op, user);
    weir_engine_queue(world.engine, decision);
    weir_engine_run(world.engine, now_ns);
    bool allowed = decision->verdict == WEIR_ALLOWED;
    weir_engine_release(world.engine, decision);
    return allowed;
}

static void expect(uint32_t strikes, uint32_t moves, uint8_t step)
{
    assert_int_equal(world.strikes, strikes);
    assert_int_equal(world.moves, moves);
    assert_int_equal(world.ladder.step, step);
}

#define LIMIT "- {name: login, key: [user], algorithm: fixed_window, rate: 1/d}\n"
#define PENALTY(strikes, more)                                                                     \
    "penalties: [{name: p, key: user, strikes: " strikes ", ladder: [warn 1h, throttle 1h, "       \
    "suspend 10min]" more "}]\n"
#define RULES(strikes, more)                                                                       \
    "standing: {file: s.db, by: [user, client.ip]}\nlimits:\n" LIMIT PENALTY(strikes, more)

TEST("the strike after the last free one moves the ladder")
{
    open_world(RULES("2/h", ""));
    assert_true(ask(WEIR_OP_DECIDE, "ann", START));
    expect(0, 0, 0);
    for (uint32_t i = 1; i <= 2; i++) {
        assert_false(ask(WEIR_OP_DECIDE, "ann", START + i));
        expect(i, 0, 0);
    }
    assert_string_equal(world.value, "user=ann");
    assert_false(ask(WEIR_OP_DECIDE, "ann", START + 3));
    expect(3, 1, 1);
    assert_int_equal(world.moved_ns, START + 3);
    assert_int_equal(world.ladder.until_ns, START + 3 + HOUR);
    close_world();
}

TEST("the count begins anew after a move")
{
    open_world(RULES("2/h", ""));
    ask(WEIR_OP_DECIDE, "ann", START);
    for (uint32_t i = 1; i <= 9; i++) {
        ask(WEIR_OP_DECIDE, "ann", START + i);
        expect(i, i / 3, (uint8_t)(i / 3));
        if (i % 3 == 0)
            assert_int_equal(world.moved_ns, START + i);
    }
    assert_int_equal(world.ladder.until_ns, START + 9 + 10 * MINUTE);
    close_world();
}

TEST("only strikes within the window count")
{
    open_world(RULES("2/h", ""));
    ask(WEIR_OP_DECIDE, "ann", START);
    ask(WEIR_OP_DECIDE, "ann", START + 1);
    ask(WEIR_OP_DECIDE, "ann", START + 2);
    ask(WEIR_OP_DECIDE, "ann", START + 1 + HOUR); /* the first has just gone */
    expect(3, 0, 0);
    ask(WEIR_OP_DECIDE, "ann", START + 1 + HOUR); /* the second has not */
    expect(4, 1, 1);
    close_world();
}

/* Ends the count of the last strike that moved. */
static bool end_count(const char *penalty, bool moved)
{
    return weir_engine_strike_end(
        world.engine,
        &(struct weir_strike_count){.penalty = weir_bytes_of(penalty),
                                    .hash = {world.hash[0], world.hash[1]},
                                    .key = {world.key, world.key_size},
                                    .now_ns = world.moved_ns},
        moved);
}

/* A move that nobody has room for costs the caller's strikes nothing: the next one moves. */
TEST("a move that is refused is made by the next strike")
{
    open_world(RULES("2/h", ""));
    world.answer = WEIR_STRIKE_REFUSED;
    ask(WEIR_OP_DECIDE, "ann", START);
    for (uint32_t i = 1; i <= 7; i++) {
        ask(WEIR_OP_DECIDE, "ann", START + i);
        expect(i, i < 3 ? 0 : i - 2, 0);
    }
    world.answer = WEIR_STRIKE_DONE;
    ask(WEIR_OP_DECIDE, "ann", START + 8);
    expect(8, 6, 1);
    ask(WEIR_OP_DECIDE, "ann", START + 9);
    expect(9, 6, 1);
    close_world();
}

TEST("a count begins anew once its move is in force")
{
    open_world(RULES("2/h", ""));
    world.answer = WEIR_STRIKE_LATER;
    for (uint32_t i = 0; i <= 3; i++)
        ask(WEIR_OP_DECIDE, "ann", START + i);
    expect(3, 1, 0);
    for (uint32_t i = 4; i <= 9; i++)
        ask(WEIR_OP_DECIDE, "ann", START + i); /* the count is full */
    expect(3, 1, 0);
    assert_true(end_count("p", true));
    for (uint32_t i = 10; i <= 11; i++)
        ask(WEIR_OP_DECIDE, "ann", START + i);
    expect(5, 1, 0);
    ask(WEIR_OP_DECIDE, "ann", START + 12);
    expect(6, 2, 0);
    close_world();
}

TEST("a move that failed later is made by the next strike")
{
    open_world(RULES("2/h", ""));
    world.answer = WEIR_STRIKE_LATER;
    for (uint32_t i = 0; i <= 3; i++)
        ask(WEIR_OP_DECIDE, "ann", START + i);
    expect(3, 1, 0);
    assert_true(end_count("p", false));
    ask(WEIR_OP_DECIDE, "ann", START + 4);
    expect(4, 2, 0);
    assert_true(end_count("gone", true)); /* of rules from long ago */
    ask(WEIR_OP_DECIDE, "ann", START + 5);
    expect(4, 2, 0);
    close_world();
}

/* Many callers, of whose moves one in two finds no room: every one of them moves. */
TEST("no move of a flood is lost")
{
    enum { CALLERS = 200 };
    static uint32_t moved[CALLERS];
    uint32_t all = 0;
    open_world(RULES("2/h", ""));
    memset(moved, 0, sizeof moved);
    for (uint32_t round = 0; round < 6; round++)
        for (uint32_t i = 0; i < CALLERS; i++) {
            uint32_t before = world.moves;
            char user[16];
            snprintf(user, sizeof user, "u%u", i);
            world.answer = (i + round) % 2 ? WEIR_STRIKE_REFUSED : WEIR_STRIKE_DONE;
            ask(WEIR_OP_DECIDE, user, START + round);
            moved[i] += world.moves > before && world.answer == WEIR_STRIKE_DONE;
        }
    for (uint32_t i = 0; i < CALLERS; i++)
        all += moved[i] == 1;
    assert_int_equal(all, CALLERS);
    close_world();
}

/* Where no limit needs spans, 2 % of a state were for them: some 1,700 of these callers. */
TEST("strikes of many callers do not evict each other")
{
    enum { CALLERS = 8000 };
    struct weir_table_stats stats;
    open_sized(RULES("2/h", ""), false, 4 << 20);
    for (uint32_t round = 0; round < 4; round++)
        for (uint32_t i = 0; i < CALLERS; i++) {
            char user[16];
            snprintf(user, sizeof user, "u%u", i);
            ask(WEIR_OP_DECIDE, user, START + round);
        }
    assert_int_equal(world.strikes, 3 * CALLERS);
    assert_int_equal(world.moves, CALLERS);
    weir_table_stats(world.table, START, &stats);
    assert_int_equal(stats.evictions + stats.overflows, 0);
    close_world();
}

/* Sixty requests of one turn: ten strikes a move, and no move more than that. */
TEST("a burst of one turn moves step by step")
{
    struct weir_decision *decisions[60];
    open_world(RULES("9/h", ""));
    for (int i = 0; i < 60; i++) {
        decisions[i] = take(WEIR_OP_DECIDE, "ann");
        weir_engine_queue(world.engine, decisions[i]);
    }
    weir_engine_run(world.engine, START);
    expect(59, 5, 3);
    for (int i = 0; i < 60; i++)
        weir_engine_release(world.engine, decisions[i]);
    close_world();
}

TEST("each value has a count of its own")
{
    open_world(RULES("2/h", ""));
    for (int i = 0; i < 3; i++) {
        ask(WEIR_OP_DECIDE, "ann", START);
        ask(WEIR_OP_DECIDE, "bob", START);
    }
    expect(4, 0, 0);
    ask(WEIR_OP_DECIDE, "bob", START);
    expect(5, 1, 1);
    assert_string_equal(world.value, "user=bob");
    close_world();
}

TEST("dry runs and repeats are no strikes")
{
    struct weir_reason reason;
    open_world(RULES("2/h", ""));
    struct weir_decision *once = take(WEIR_OP_DECIDE, "ann");
    assert_int_equal(
        weir_engine_apply_idempotency(world.engine, once, (struct weir_bytes){"key", 3}, &reason),
        0);
    weir_engine_queue(world.engine, once);
    weir_engine_run(world.engine, START);
    weir_engine_release(world.engine, once);
    for (int i = 0; i < 5; i++)
        assert_false(ask(WEIR_OP_PEEK, "ann", START));
    expect(0, 0, 0);
    assert_false(ask(WEIR_OP_DECIDE, "ann", START));
    expect(1, 0, 0);
    close_world();
}

TEST("only the limits of for give strikes")
{
    open_world("standing: {file: s.db, by: user}\nlimits:\n" LIMIT
               "- {name: dark, key: [user], algorithm: fixed_window, rate: 1/d, shadow: true}\n"
               "- {name: other, key: [user], algorithm: fixed_window, rate: 3/d}\n"
               "penalties:\n"
               "- {name: p, key: user, strikes: 1/h, ladder: [warn 1h], for: other}\n");
    for (int i = 0; i < 9; i++)
        ask(WEIR_OP_DECIDE, "ann", START);
    expect(0, 0, 0); /* `login` denies, so `other` is not charged */
    close_world();
}

TEST("a request that two limits deny is one strike")
{
    open_world(
        "standing: {file: s.db, by: user}\nlimits:\n" LIMIT
        "- {name: other, key: [user], algorithm: fixed_window, rate: 1/d}\n" PENALTY("5/h", ""));
    for (int i = 0; i < 4; i++)
        ask(WEIR_OP_DECIDE, "ann", START);
    expect(3, 0, 0);
    close_world();
}

static void stand(const char *user, uint8_t level)
{
    const struct weir_standing_entry entry = {.since_ns = START,
                                              .until_ns = START + HOUR,
                                              .level = level,
                                              .origin = WEIR_STANDING_BY_PENALTY};
    uint64_t id[2];
    weir_standing_id(world.map, (struct weir_bytes){"user", 4}, weir_bytes_of(user), id);
    assert_int_equal(weir_standing_set(world.map, id, &entry), 0);
}

static void suspend(const char *user)
{
    stand(user, WEIR_STANDING_SUSPENDED);
}

TEST("a refusal by standing is a strike where the penalty says so")
{
    open_world(RULES("2/h", ""));
    suspend("ann");
    for (int i = 0; i < 5; i++)
        assert_false(ask(WEIR_OP_DECIDE, "ann", START));
    expect(0, 0, 0);
    close_world();
    open_world(RULES("2/h", ", strikes_while_suspended: true"));
    suspend("ann");
    for (int i = 0; i < 5; i++)
        assert_false(ask(WEIR_OP_DECIDE, "ann", START));
    expect(5, 1, 1);
    close_world();
}

/* The strike that fills the log and those behind it are at the store at the same time. */
TEST("strikes before the reset move nothing more")
{
    struct weir_decision *decisions[8];
    open_at(RULES("2/h", ""), true);
    ask(WEIR_OP_DECIDE, "ann", START);
    for (int i = 0; i < 8; i++) {
        decisions[i] = take(WEIR_OP_DECIDE, "ann");
        weir_engine_queue(world.engine, decisions[i]);
    }
    weir_engine_run(world.engine, START);
    expect(3, 1, 1); /* five are denied: the log was full until the reset */
    for (int i = 0; i < 8; i++)
        weir_engine_release(world.engine, decisions[i]);
    ask(WEIR_OP_DECIDE, "ann", START + 1);
    weir_engine_run(world.engine, START + 1);
    expect(4, 1, 1);
    close_world();
}

TEST("a late answer of the store moves at its time")
{
    open_at(RULES("1/h", ""), true);
    ask(WEIR_OP_DECIDE, "ann", START);
    ask(WEIR_OP_DECIDE, "ann", START);
    expect(1, 0, 0);
    world.fake->later_every = 1;
    struct weir_decision *decision = take(WEIR_OP_DECIDE, "ann");
    weir_engine_queue(world.engine, decision);
    weir_engine_run(world.engine, START + 1);
    fake_store_answer(world.fake, 0); /* the denial */
    assert_int_equal(decision->verdict, WEIR_DENIED);
    weir_engine_release(world.engine, decision);
    weir_engine_run(world.engine, START + 2);
    expect(1, 0, 0);
    fake_store_answer(world.fake, 0); /* the strike */
    expect(2, 1, 1);
    assert_int_equal(world.moved_ns, START + 2);
    weir_engine_run(world.engine, START + 3);
    assert_int_equal(world.fake->pending_count, 1);
    assert_int_equal(world.fake->pending[0]->op, WEIR_OP_RESET);
    fake_store_answer(world.fake, 0);
    world.fake->later_every = 0;
    ask(WEIR_OP_DECIDE, "ann", START + 4);
    expect(3, 1, 1);
    close_world();
}

TEST("what a store that fails denies is no strike")
{
    open_at("standing: {file: s.db, by: user}\nlimits:\n"
            "- {name: login, key: [user], rate: 9/d, on_store_error: closed}\n" PENALTY("1/h", ""),
            true);
    world.fake->later_every = 1;
    struct weir_decision *decision = take(WEIR_OP_DECIDE, "ann");
    weir_engine_queue(world.engine, decision);
    weir_engine_run(world.engine, START);
    world.fake->later_every = 0; /* it is back at once, and would count a strike */
    fake_store_fail(world.fake, 0, WEIR_ERR_STORE);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    weir_engine_release(world.engine, decision);
    weir_engine_run(world.engine, START + 1);
    expect(0, 0, 0);
    assert_int_equal(world.fake->state_count, 0); /* nothing was counted, either */
    close_world();
}

TEST("a strike that the store loses is none")
{
    open_at(RULES("1/h", ""), true);
    ask(WEIR_OP_DECIDE, "ann", START);
    world.fake->later_every = 1;
    struct weir_decision *decision = take(WEIR_OP_DECIDE, "ann");
    weir_engine_queue(world.engine, decision);
    weir_engine_run(world.engine, START);
    fake_store_answer(world.fake, 0);
    weir_engine_release(world.engine, decision);
    weir_engine_run(world.engine, START);
    assert_int_equal(world.fake->pending_count, 1);
    fake_store_fail(world.fake, 0, WEIR_ERR_STORE);
    expect(0, 0, 0);
    close_world();
}

static uint32_t report(const char *user, unsigned status)
{
    struct weir_decision *decision = take(WEIR_OP_PEEK, user);
    uint32_t counted = weir_engine_strike_outcome(world.engine, decision, status);
    weir_engine_release(world.engine, decision);
    return counted;
}

TEST("reported outcomes count with denials")
{
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        open_at(RULES("2/h", ", outcomes: [401, 403]"), elsewhere);
        assert_int_equal(report("ann", 200), 0);
        assert_int_equal(report("ann", 401), 1);
        assert_int_equal(report("bob", 403), 1);
        weir_engine_run(world.engine, START);
        expect(2, 0, 0);
        ask(WEIR_OP_DECIDE, "ann", START);
        ask(WEIR_OP_DECIDE, "ann", START); /* denied */
        expect(3, 0, 0);
        assert_int_equal(report("ann", 403), 1);
        weir_engine_run(world.engine, START);
        expect(4, 1, 1);
        assert_string_equal(world.value, "user=ann");
        close_world();
    }
}

struct token {
    char text[WEIR_RESERVATION_TEXT_MAX];
    size_t size;
};

static void reserve(struct token *token, const char *user)
{
    struct weir_decision *decision = take(WEIR_OP_DECIDE, user);
    struct weir_reason reason;
    uint64_t life_ns, id;
    assert_int_equal(weir_engine_apply_reservation(world.engine, decision, 1, MINUTE, &reason), 0);
    weir_engine_queue(world.engine, decision);
    weir_engine_run(world.engine, START);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    token->size =
        weir_engine_reservation(world.engine, decision, START, &life_ns, &id, token->text);
    weir_engine_release(world.engine, decision);
}

static void settle_by(const struct token *token, struct weir_settle settle,
                      struct weir_settled *settled)
{
    struct weir_decision *decision = weir_engine_take(world.engine);
    const struct weir_bytes text = {token->text, token->size};
    assert_int_equal(weir_engine_apply_settle(world.engine, decision, text, &settle, START), 0);
    weir_engine_queue(world.engine, decision);
    for (int i = 0; i < 3; i++) /* a remote store counts strikes in the next run */
        weir_engine_run(world.engine, START);
    weir_engine_settled(decision, settled);
    weir_engine_release(world.engine, decision);
}

static bool settle(const struct token *token, uint32_t status)
{
    struct weir_settled settled;
    settle_by(token, (struct weir_settle){.how = WEIR_SETTLE_STATUS, .status = status}, &settled);
    assert_false(settled.failed);
    return !settled.repeated;
}

/* Logins that weir admits, and that the application then refuses. */
#define LOGINS                                                                                     \
    "standing: {file: s.db, by: [user, client.ip, header.x-api-key]}\nlimits:\n"                   \
    "- {name: login, key: [user], rate: 100/d}\n"

TEST("settlements by a token count as reports do")
{
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        struct token tokens[4];
        open_at(LOGINS PENALTY("2/h", ", outcomes: [401, 403]"), elsewhere);
        for (int i = 0; i < 4; i++)
            reserve(&tokens[i], "ann");
        assert_true(settle(&tokens[0], 200));
        expect(0, 0, 0);
        assert_false(settle(&tokens[0], 401)); /* too late: it is settled */
        expect(0, 0, 0);
        assert_true(settle(&tokens[1], 401));
        expect(1, 0, 0);
        assert_false(settle(&tokens[1], 401));
        expect(1, 0, 0);
        assert_int_equal(report("ann", 401), 1);
        weir_engine_run(world.engine, START);
        expect(2, 0, 0);
        assert_true(settle(&tokens[2], 403));
        expect(3, 1, 1);
        assert_string_equal(world.value, "user=ann");
        assert_true(settle(&tokens[3], 401)); /* the count began anew */
        expect(4, 1, 1);
        close_world();
    }
}

TEST("a settlement by cost or a release is no strike")
{
    struct weir_settled settled;
    struct token tokens[3];
    open_world(LOGINS PENALTY("2/h", ", outcomes: [401]"));
    for (int i = 0; i < 3; i++)
        reserve(&tokens[i], "ann");
    settle_by(&tokens[0], (struct weir_settle){.how = WEIR_SETTLE_COST, .cost = 401}, &settled);
    settle_by(&tokens[1], (struct weir_settle){.how = WEIR_SETTLE_RELEASE, .status = 401},
              &settled);
    expect(0, 0, 0);
    settle_by(&tokens[2],
              (struct weir_settle){.how = WEIR_SETTLE_STATUS, .status = 401, .no_strikes = true},
              &settled);
    expect(0, 0, 0);
    close_world();
}

/* No limit applies, or the limit is given back: the settlement is noticed anyway. */
TEST("a settlement is one strike whatever it gives back")
{
    static const char *const limits[] = {
        "- {name: other, match: {path: /x}, key: [user], rate: 9/d}\n",
        "- {name: login, key: [user], rate: 100/d, refund_on: [401]}\n",
        "- {name: login, key: [user], rate: 100/d, refund_on: [401], refund_cap: 1%}\n",
    };
    for (int i = 0; i < 6; i++) {
        struct token tokens[2];
        char text[1024];
        snprintf(text, sizeof text, "standing: {file: s.db, by: user}\nlimits:\n%s%s",
                 limits[i / 2], PENALTY("9/h", ", outcomes: [401]"));
        open_at(text, i % 2 == 1);
        for (int k = 0; k < 2; k++)
            reserve(&tokens[k], "ann");
        for (uint32_t k = 0; k < 2; k++) {
            assert_true(settle(&tokens[k], 401));
            expect(k + 1, 0, 0);
            assert_false(settle(&tokens[k], 401));
            expect(k + 1, 0, 0);
        }
        close_world();
    }
}

static void swap_rules(const char *text)
{
    struct weir_rules *rules = rig_rules(text);
    rig_prepare(rules, world.store);
    assert_int_equal(weir_engine_set_rules(world.engine, rules), 0);
    weir_rules_unref(rules);
}

TEST("a token finds its penalty after a reload")
{
    struct token tokens[3];
    open_world(LOGINS PENALTY("2/h", ", outcomes: [401]"));
    for (int i = 0; i < 3; i++)
        reserve(&tokens[i], "ann");
    swap_rules(LOGINS
               "penalties:\n"
               "- {name: first, key: user, strikes: 5/h, outcomes: [401], ladder: [warn 1h]}\n"
               "- {name: p, key: user, strikes: 5/h, outcomes: [401], ladder: [warn 1h]}\n");
    assert_true(settle(&tokens[0], 401));
    expect(1, 0, 0); /* of `p` alone: the token knows no other */
    swap_rules(LOGINS "penalties: [{name: p, key: client.ip, strikes: 2/h, outcomes: [401], "
                      "ladder: [warn 1h]}]\n");
    assert_true(settle(&tokens[1], 401)); /* of another kind of value: another penalty */
    swap_rules(LOGINS);
    assert_true(settle(&tokens[2], 401));
    expect(1, 0, 0);
    close_world();
}

/* Fourteen penalties on a user of 1,000 bytes do not fit: the first does. */
TEST("strikes without room in the token are left out")
{
    char text[4096], user[1001];
    struct token token;
    size_t used = (size_t)snprintf(text, sizeof text, LOGINS "penalties:\n");
    memset(user, 'a', 1000);
    user[1000] = '\0';
    for (int i = 0; i < 14; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "- {name: p%d, key: user, strikes: 2/h, outcomes: [401], "
                                 "ladder: [warn 1h]}\n",
                                 i);
    open_world(text);
    reserve(&token, user);
    assert_true(settle(&token, 401));
    expect(1, 0, 0);
    close_world();
}

TEST("a token holds no secret")
{
    static struct weir_request request;
    struct weir_settled settled;
    struct weir_reason reason;
    struct token token;
    unsigned char bytes[WEIR_RESERVATION_BYTES_MAX];
    uint64_t life_ns, id;
    open_world(LOGINS "penalties: [{name: p, key: header.x-api-key, strikes: 2/h, "
                      "outcomes: [401], ladder: [warn 1h]}]\n");
    struct weir_decision *decision = weir_engine_take(world.engine);
    rig_request(&request, weir_engine_rules(world.engine),
                (const char *const[]){"user", "ann", "header.x-api-key", "abracadabra", NULL});
    assert_int_equal(weir_engine_apply_rules(world.engine, decision, &request, &reason), 0);
    assert_int_equal(weir_engine_apply_reservation(world.engine, decision, 1, MINUTE, &reason), 0);
    weir_engine_queue(world.engine, decision);
    weir_engine_run(world.engine, START);
    token.size = weir_engine_reservation(world.engine, decision, START, &life_ns, &id, token.text);
    weir_engine_release(world.engine, decision);
    long size = weir_base64url_read((struct weir_bytes){token.text, token.size}, bytes);
    assert_null(memmem(bytes, (size_t)size, "abracadabra", 11));
    assert_non_null(memmem(bytes, (size_t)size, "sha256:", 7));
    settle_by(&token, (struct weir_settle){.how = WEIR_SETTLE_STATUS, .status = 401}, &settled);
    expect(1, 0, 0);
    assert_non_null(strstr(world.value, "header.x-api-key=sha256:"));
    assert_true(world.hidden);
    close_world();
}

/* It may meet limits of its own, match: { standing: trusted }. */
TEST("a trusted caller gets no strikes")
{
    struct token token;
    open_world("standing: {file: s.db, by: user}\nlimits:\n"
               "- {name: login, key: [user], match: {standing: trusted}, rate: 1/d, "
               "algorithm: fixed_window}\n" PENALTY("1/h", ", outcomes: [401]"));
    stand("ann", WEIR_STANDING_TRUSTED);
    reserve(&token, "ann");
    assert_false(ask(WEIR_OP_DECIDE, "ann", START));
    assert_int_equal(report("ann", 401), 0);
    assert_true(settle(&token, 401));
    assert_false(ask(WEIR_OP_DECIDE, "ann", START));
    expect(0, 0, 0);
    stand("ann", WEIR_STANDING_WARNED); /* none of the above has counted */
    assert_int_equal(report("ann", 401), 1);
    expect(1, 0, 0);
    close_world();
}

RUN_TESTS()
