/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of ladders on the main thread: their steps and times, a full queue, a store in which others
 * are faster, one that fails, and strikes of many threads. */
#include <pthread.h>
#include <unistd.h>

#include "core/bytes.h"
#include "failing_memory.h"
#include "feature/penalties/server/known.h"
#include "feature/penalties/server/penalties.h"
#include "feature/penalties/server/queue.h"
#include "feature/standing/rules/match.h"
#include "rules_test.h"
#include "temporary.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define START (UINT64_C(1700000000) * S)
#define HOUR (3600 * S)

#define RULES(penalties)                                                                           \
    "standing: {file: s.db, by: [user, client.ip/64, header.x-api-key]}\n"                         \
    "limits: [{name: all, key: [user], rate: 1/s}]\npenalties: [" penalties "]\n"
#define BRUTE                                                                                      \
    "{name: brute, key: user, strikes: 1/h, ladder: [warn 1h, throttle 1h, suspend 10min]}"

/* A store in memory, which answers when the test lets it. */
struct fake {
    struct weir_ladder_store base;
    struct weir_ladder_call *calls[4096];
    bool swaps[4096];
    unsigned count;
    struct {
        char name[64]; /* "penalty user" */
        struct weir_ladder_state state;
    } ladders[64];
    unsigned ladder_count;
    unsigned others; /* swaps before which another node changes the ladder */
    int err;         /* of every call */
    int full;        /* of every begin */
};

static struct {
    struct weir_rules *rules;
    struct weir_standing_service *standing;
    struct weir_webhook *webhook;
    struct weir_penalties *penalties;
    struct weir_log log;
    struct fake fake;
    uv_loop_t loop;
    char folder[TEMPORARY_MAX];
    /* Counts of moves that were ended, and given back; how many of these calls find no room. */
    unsigned ended, given_back, crowded;
} world;

/* Rules whose history is in the folder. */
static struct weir_rules *load(const char *text)
{
    char rules[4096];
    const char *rest = strstr(text, "s.db");

    snprintf(rules, sizeof rules, "%.*s%s/%s", (int)(rest - text), text, world.folder, rest);
    return test_load(rules);
}

static struct weir_ladder_state *ladder_at(const char *penalty, const char *user, bool make)
{
    struct fake *fake = &world.fake;
    char name[64];

    snprintf(name, sizeof name, "%.30s %.30s", penalty, user);
    for (unsigned i = 0; i < fake->ladder_count; i++)
        if (strcmp(fake->ladders[i].name, name) == 0)
            return &fake->ladders[i].state;
    if (!make)
        return NULL;
    assert_true(fake->ladder_count < 64);
    strcpy(fake->ladders[fake->ladder_count].name, name);
    return &fake->ladders[fake->ladder_count++].state;
}

static void fake_find(struct weir_ladder_call *call)
{
    struct fake *fake = &world.fake;

    memset(&call->found, 0, sizeof call->found);
    for (unsigned i = 0; i < fake->ladder_count; i++) {
        const char *space = strchr(fake->ladders[i].name, ' ');
        struct weir_keeper_ladder *found = &call->found.ladders[call->found.count];

        if (strcmp(space + 1, call->value->shown) != 0)
            continue;
        snprintf(found->penalty, sizeof found->penalty, "%.*s",
                 (int)(space - fake->ladders[i].name), fake->ladders[i].name);
        found->state = fake->ladders[i].state;
        call->found.count++;
    }
}

static void fake_swap_now(struct weir_ladder_call *call)
{
    struct fake *fake = &world.fake;
    char penalty[64];
    struct weir_ladder_state *state;

    snprintf(penalty, sizeof penalty, "%.*s", (int)call->swap.penalty.size,
             call->swap.penalty.data);
    state = ladder_at(penalty, call->value->shown, true);
    if (fake->others > 0) {
        fake->others--;
        state->clean_ns++;
    }
    call->swapped = state->step == call->swap.expected.step &&
                    state->until_ns == call->swap.expected.until_ns &&
                    state->clean_ns == call->swap.expected.clean_ns;
    if (call->swapped)
        *state = call->swap.next;
}

static int fake_begin(struct weir_ladder_call *call, bool swaps)
{
    struct fake *fake = &world.fake;

    if (fake->full < 0)
        return fake->full;
    assert_true(fake->count < 4096);
    fake->swaps[fake->count] = swaps;
    fake->calls[fake->count++] = call;
    return 0;
}

static int fake_read(struct weir_ladder_store *store, struct weir_ladder_call *call)
{
    return fake_begin(call, false);
}

static int fake_swap(struct weir_ladder_store *store, struct weir_ladder_call *call)
{
    return fake_begin(call, true);
}

/* Answers what has begun, and what that begins. Returns how many calls. */
static unsigned answer_all(void)
{
    struct fake *fake = &world.fake;
    unsigned answered = 0;

    uv_run(&world.loop, UV_RUN_NOWAIT);
    while (answered < fake->count) {
        struct weir_ladder_call *call = fake->calls[answered];

        call->err = fake->err;
        strcpy(call->reason.text, "the disk is full");
        if (fake->err == 0 && fake->swaps[answered])
            fake_swap_now(call);
        else if (fake->err == 0)
            fake_find(call);
        answered++;
        call->done(call);
    }
    fake->count = 0;
    return answered;
}

static bool end_count(void *context, const struct weir_strike_count *count, bool moved)
{
    assert_ptr_equal(context, &world);
    assert_true(count->penalty.size > 0 && count->now_ns >= START);
    if (world.crowded > 0) {
        world.crowded--;
        return false;
    }
    world.ended += moved;
    world.given_back += !moved;
    return true;
}

static void open_on(const char *text, struct weir_ladder_store *store)
{
    struct weir_reason reason = {""};

    memset(&world, 0, sizeof world);
    world.fake.base = (struct weir_ladder_store){.read = fake_read, .swap = fake_swap};
    weir_log_init(&world.log, -1, WEIR_LOG_TEXT);
    uv_loop_init(&world.loop);
    temporary_folder(world.folder);
    world.rules = load(text);
    assert_int_equal(
        weir_standing_service_open(&world.standing, world.rules, &world.log, NULL, START, &reason),
        0);
    assert_int_equal(weir_webhook_open(&world.webhook, &world.log), 0);
    assert_int_equal(weir_penalties_open(&world.penalties, world.standing, world.webhook,
                                         world.rules, START, &reason),
                     0);
    weir_penalties_end_by(world.penalties, end_count, &world);
    assert_int_equal(weir_penalties_join(world.penalties, &world.loop, store), 0);
}

static void open_world(const char *text)
{
    open_on(text, &world.fake.base);
}

static void close_handle(uv_handle_t *handle, void *context)
{
    uv_close(handle, NULL);
}

static void close_world(void)
{
    weir_penalties_stop(world.penalties);
    uv_walk(&world.loop, close_handle, NULL);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    uv_loop_close(&world.loop);
    weir_penalties_close(world.penalties);
    weir_standing_service_close(world.standing);
    weir_webhook_close(world.webhook);
    weir_rules_unref(world.rules);
    temporary_remove(world.folder);
}

/* As a worker's engine reports it. */
static enum weir_strike_answer strike(const char *penalty, const char *user, uint64_t now_ns,
                                      bool moves)
{
    int number = weir_rules_penalty_find(world.rules, weir_bytes_of(penalty));
    const struct weir_penalty *of = weir_rules_penalty(world.rules, (uint32_t)number);
    struct weir_strike strike = {.value = {user, strlen(user)}, .penalty = (uint8_t)number};
    const struct weir_standing_kind *kind =
        &weir_rules_settings(world.rules)->standing->kinds[of->kind];

    assert_true(number >= 0);
    weir_standing_id(world.standing->map, kind->name, strike.value, strike.id);
    return weir_penalties_struck(
        world.penalties,
        &(struct weir_struck){
            .penalty = of, .kind = kind, .strike = &strike, .now_ns = now_ns, .moves = moves});
}

static const struct weir_penalty_count *count_of(const char *penalty)
{
    return weir_penalties_count(world.penalties, weir_bytes_of(penalty));
}

/* What is in force: the level, or -1. */
static int level_of(const char *user, uint64_t now_ns, uint64_t *until_ns)
{
    struct weir_standing_entry entry;
    uint64_t id[2];

    weir_standing_id(world.standing->map, (struct weir_bytes){"user", 4}, weir_bytes_of(user), id);
    if (!weir_standing_find(world.standing->map, id, now_ns, &entry))
        return -1;
    if (until_ns)
        *until_ns = entry.until_ns;
    return entry.level;
}

TEST("each move is the next step at the time of its strike")
{
    static const uint8_t levels[] = {WEIR_STANDING_WARNED, WEIR_STANDING_THROTTLED,
                                     WEIR_STANDING_SUSPENDED, WEIR_STANDING_SUSPENDED};
    uint64_t until_ns = 0, now_ns = START;

    open_world(RULES(BRUTE));
    for (int i = 0; i < 4; i++) {
        uint64_t term_ns = i < 2 ? HOUR : 600 * S;

        strike("brute", "ann", now_ns, true);
        answer_all();
        assert_int_equal(level_of("ann", now_ns, &until_ns), levels[i]);
        assert_int_equal(until_ns, now_ns + term_ns);
        assert_int_equal(ladder_at("brute", "ann", false)->step, i < 3 ? i + 1 : 3);
        now_ns = until_ns + 5;
    }
    assert_int_equal(level_of("bob", START, NULL), -1);
    assert_int_equal(count_of("brute")->moves[WEIR_STANDING_SUSPENDED], 2);
    close_world();
}

TEST("steps are forgiven at the next move")
{
    uint64_t until_ns = 0;

    open_world(RULES(BRUTE));
    strike("brute", "ann", START, true);
    strike("brute", "ann", START + 1, true);
    answer_all();
    assert_int_equal(level_of("ann", START + 1, &until_ns), WEIR_STANDING_THROTTLED);
    strike("brute", "ann", until_ns + 24 * HOUR - 1, true);
    answer_all();
    assert_int_equal(ladder_at("brute", "ann", false)->step, 3);
    strike("brute", "bob", START, true);
    strike("brute", "bob", START + 1, true);
    strike("brute", "bob", until_ns + 24 * HOUR, true); /* one is forgiven: 2 - 1 + 1 */
    answer_all();
    assert_int_equal(ladder_at("brute", "bob", false)->step, 2);
    close_world();
}

TEST("a strike puts forgiveness off once a second")
{
    struct weir_ladder_state *ladder;

    open_world(RULES(BRUTE));
    strike("brute", "ann", START, false); /* without a step: it does not leave the worker */
    weir_penalties_tick(world.penalties, START);
    assert_int_equal(answer_all(), 0);
    strike("brute", "ann", START, true);
    answer_all();
    ladder = ladder_at("brute", "ann", false);
    for (uint64_t i = 1; i <= 100; i++)
        strike("brute", "ann", START + 2 * HOUR + i, false);
    assert_int_equal(answer_all(), 0); /* gathered */
    weir_penalties_tick(world.penalties, START + 2 * HOUR + S);
    assert_int_equal(answer_all(), 2); /* one look, one change */
    assert_int_equal(ladder->clean_ns, START + 2 * HOUR + 100);
    assert_int_equal(ladder->step, 1);
    /* A move knows those gathered before it: without them a step would be forgiven here. */
    strike("brute", "ann", START + 20 * HOUR, false);
    strike("brute", "ann", START + 40 * HOUR, true);
    answer_all();
    assert_int_equal(ladder->step, 2);
    assert_int_equal(count_of("brute")->strikes, 104);
    close_world();
}

TEST("a burst does not go beyond a suspension")
{
    uint64_t until_ns = 0;

    open_world(RULES("{name: brute, key: user, strikes: 1/h, ladder: [warn 1h, suspend 10min, "
                     "suspend 1d]}"));
    for (uint64_t i = 0; i < 50; i++)
        strike("brute", "ann", START + i, true);
    answer_all();
    assert_int_equal(level_of("ann", START + 50, &until_ns), WEIR_STANDING_SUSPENDED);
    assert_int_equal(until_ns, START + 1 + 600 * S);
    assert_int_equal(weir_penalties_stats(world.penalties)->lost, 0);
    close_world();
}

TEST("with strikes while suspended it does")
{
    uint64_t until_ns = 0;

    open_world(RULES("{name: brute, key: user, strikes: 1/h, ladder: [suspend 10min, suspend 1d], "
                     "strikes_while_suspended: true}"));
    strike("brute", "ann", START, true);
    strike("brute", "ann", START + 1, true);
    answer_all();
    assert_int_equal(level_of("ann", START + 1, &until_ns), WEIR_STANDING_SUSPENDED);
    assert_int_equal(until_ns, START + 1 + 24 * HOUR);
    close_world();
}

TEST("who comes second computes anew")
{
    open_world(RULES(BRUTE));
    world.fake.others = 3;
    strike("brute", "ann", START, true);
    assert_int_equal(answer_all(), 8); /* four looks, four changes */
    assert_int_equal(ladder_at("brute", "ann", false)->step, 1);
    assert_int_equal(level_of("ann", START, NULL), WEIR_STANDING_WARNED);
    world.fake.others = WEIR_PENALTIES_TRIES;
    strike("brute", "bob", START, true);
    answer_all();
    assert_int_equal(level_of("bob", START, NULL), -1);
    assert_int_equal(weir_penalties_stats(world.penalties)->lost, 1);
    close_world();
}

TEST("what the store cannot keep is still in force")
{
    open_world(RULES(BRUTE));
    strike("brute", "ann", START, true);
    uv_run(&world.loop, UV_RUN_NOWAIT);
    assert_int_equal(world.fake.count, 1);
    fake_find(world.fake.calls[0]); /* read; the change fails */
    world.fake.count = 0;
    world.fake.calls[0]->done(world.fake.calls[0]);
    world.fake.err = WEIR_ERR_IO;
    answer_all();
    assert_int_equal(level_of("ann", START, NULL), WEIR_STANDING_WARNED);
    assert_int_equal(weir_penalties_stats(world.penalties)->unkept, 1);
    assert_int_equal(world.ended, 1);
    strike("brute", "bob", START, true); /* the look fails */
    answer_all();
    assert_int_equal(level_of("bob", START, NULL), -1);
    assert_int_equal(weir_penalties_stats(world.penalties)->retried, 1);
    assert_int_equal(world.ended + world.given_back, 1); /* it waits for the move */
    world.fake.err = 0;
    world.fake.full = WEIR_ERR_FULL;
    weir_penalties_tick(world.penalties, START + S);
    answer_all();
    assert_int_equal(level_of("bob", START, NULL), -1);
    world.fake.full = 0;
    weir_penalties_tick(world.penalties, START + 2 * S);
    answer_all();
    assert_int_equal(level_of("bob", START, NULL), WEIR_STANDING_WARNED);
    assert_int_equal(world.ended, 2);
    assert_int_equal(weir_penalties_stats(world.penalties)->lost, 0);
    close_world();
}

/* Until the store has refused it TRIES times: then the next strike moves. */
TEST("a move that is given up gives its strike back")
{
    open_world(RULES(BRUTE));
    world.fake.err = WEIR_ERR_STORE;
    world.crowded = 1; /* the engine's room for it comes late, too */
    strike("brute", "ann", START, true);
    for (uint64_t i = 0; i < WEIR_PENALTIES_TRIES + 4; i++) {
        answer_all();
        weir_penalties_tick(world.penalties, START + i * S);
    }
    assert_int_equal(world.given_back, 1);
    assert_int_equal(world.ended, 0);
    assert_int_equal(weir_penalties_stats(world.penalties)->lost, 1);
    assert_int_equal(weir_penalties_stats(world.penalties)->retried, 1);
    world.fake.err = 0;
    strike("brute", "ann", START + 30 * S, true);
    answer_all();
    assert_int_equal(world.ended, 1);
    assert_int_equal(level_of("ann", START + 30 * S, NULL), WEIR_STANDING_WARNED);
    close_world();
}

/* They stay in the queue until there is memory to work on them. */
TEST("moves wait for memory")
{
    open_world(RULES(BRUTE));
    strike("brute", "ann", START, true);
    strike("brute", "bob", START, true);
    failing_memory_after(0);
    uv_run(&world.loop, UV_RUN_NOWAIT);
    assert_int_equal(failing_memory_stop(), 1);
    assert_int_equal(answer_all(), 0);
    assert_int_equal(level_of("ann", START, NULL), -1);
    assert_int_equal(world.ended + world.given_back, 0);
    weir_penalties_tick(world.penalties, START + S);
    answer_all();
    assert_int_equal(level_of("ann", START + S, NULL), WEIR_STANDING_WARNED);
    assert_int_equal(level_of("bob", START + S, NULL), WEIR_STANDING_WARNED);
    assert_int_equal(world.ended, 2);
    assert_int_equal(weir_penalties_stats(world.penalties)->lost, 0);
    close_world();
}

TEST("moves that a stop leaves are counted as lost")
{
    open_world(RULES(BRUTE));
    world.fake.err = WEIR_ERR_STORE;
    strike("brute", "ann", START, true);
    answer_all();
    strike("brute", "ann", START + S, true); /* it waits for the first */
    strike("brute", "bob", START + S, true);
    weir_penalties_stop(world.penalties);
    assert_int_equal(weir_penalties_stats(world.penalties)->lost, 3);
    close_world();
}

TEST("a full queue drops strikes and leaves room for moves")
{
    const struct weir_penalties_stats *stats;
    unsigned strikes = 0, moves = 0;
    char user[16];

    open_world(RULES(BRUTE));
    stats = weir_penalties_stats(world.penalties);
    strike("brute", "ann", START, true);
    answer_all();
    while (strike("brute", "ann", START + HOUR, false) != WEIR_STRIKE_REFUSED)
        strikes++;
    assert_true(strikes > 5000);
    assert_int_equal(stats->queue_full, 1);
    for (int i = 0; i < 10; moves++) {
        snprintf(user, sizeof user, "u%u", moves % 40);
        i += strike("brute", user, START + HOUR, true) == WEIR_STRIKE_REFUSED;
    }
    assert_true(moves > 5000);
    assert_int_equal(stats->queue_full, 1);
    assert_int_equal(stats->deferred, 10);
    assert_int_equal(count_of("brute")->strikes, 1 + strikes + 1 + moves - 10);
    while (world.ended < 1 + moves - 10) {
        assert_true(answer_all() > 0);
        weir_penalties_tick(world.penalties, START + HOUR + S);
    }
    assert_int_equal(level_of("u39", START + HOUR, NULL), WEIR_STANDING_SUSPENDED);
    assert_int_equal(stats->lost, 0);
    close_world();
}

#define FLOOD 40000
#define NETWORKS                                                                                   \
    "{name: all, key: client.ip/64, strikes: 1/h, ladder: [suspend 1h]}, "                         \
    "{name: long, key: client.ip/64, strikes: 1/h, ladder: [warn 5h]}"

static struct weir_cidr network_at(uint32_t number)
{
    struct weir_cidr network = {{6, {0x20, 1, 0x0d, 0xb8}}, 64};

    network.address.bytes[4] = (uint8_t)(number >> 24);
    network.address.bytes[5] = (uint8_t)(number >> 16);
    network.address.bytes[6] = (uint8_t)(number >> 8);
    network.address.bytes[7] = (uint8_t)number;
    return network;
}

static enum weir_strike_answer strike_network(uint32_t penalty, uint32_t number)
{
    const struct weir_penalty *of = weir_rules_penalty(world.rules, penalty);
    struct weir_strike strike = {.network = network_at(number), .penalty = (uint8_t)penalty};

    return weir_penalties_struck(
        world.penalties,
        &(struct weir_struck){.penalty = of,
                              .kind = &weir_rules_settings(world.rules)->standing->kinds[of->kind],
                              .strike = &strike,
                              .now_ns = START,
                              .moves = true});
}

/* A store for a flood: the steps of each network at its number, and answers in the next turn. */
static struct {
    struct weir_ladder_store base;
    struct weir_ladder_call *calls[2 * WEIR_PENALTIES_AT_WORK];
    bool swaps[2 * WEIR_PENALTIES_AT_WORK];
    unsigned count;
    struct weir_ladder_state states[2][FLOOD];
} flat;

static int flat_begin(struct weir_ladder_call *call, bool swaps)
{
    assert_true(flat.count < 2 * WEIR_PENALTIES_AT_WORK);
    flat.swaps[flat.count] = swaps;
    flat.calls[flat.count++] = call;
    return 0;
}

static int flat_read(struct weir_ladder_store *store, struct weir_ladder_call *call)
{
    return flat_begin(call, false);
}

static int flat_swap(struct weir_ladder_store *store, struct weir_ladder_call *call)
{
    return flat_begin(call, true);
}

static void flat_do(struct weir_ladder_call *call, bool swaps)
{
    const uint8_t *bytes = call->value->network.address.bytes;
    uint32_t number =
        (uint32_t)bytes[4] << 24 | (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];

    call->err = 0;
    call->found.count = 0;
    for (int i = 0; i < 2 && !swaps; i++)
        if (flat.states[i][number].step > 0) {
            struct weir_keeper_ladder *ladder = &call->found.ladders[call->found.count++];

            strcpy(ladder->penalty, i == 0 ? "all" : "long");
            ladder->state = flat.states[i][number];
        }
    call->swapped = swaps;
    if (swaps)
        flat.states[weir_bytes_are(call->swap.penalty, "all") ? 0 : 1][number] = call->swap.next;
}

/* A turn of the loop, and the answers to what it has begun. */
static void turn(void)
{
    unsigned count;

    uv_run(&world.loop, UV_RUN_NOWAIT);
    for (count = flat.count; count > 0; count = flat.count) {
        struct weir_ladder_call *call = flat.calls[count - 1];

        flat.count--;
        flat_do(call, flat.swaps[count - 1]);
        call->done(call);
    }
}

static void open_flood(void)
{
    memset(&flat, 0, sizeof flat);
    flat.base = (struct weir_ladder_store){.read = flat_read, .swap = flat_swap};
    open_on(RULES(NETWORKS), &flat.base);
}

/* How many of the flood have a level at a time. */
static uint32_t flooded(uint8_t level, uint64_t now_ns)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < FLOOD; i++) {
        struct weir_standing_entry entry;
        struct weir_cidr network = network_at(i);

        count += weir_standing_find_network(world.standing->map, &network, now_ns, &entry) &&
                 entry.level == level;
    }
    return count;
}

/* 40,000 networks come over the threshold faster than the loop runs: what finds no room comes again
 * with their next strike, and each of them is penalised once. */
TEST("every network of a flood is penalised")
{
    static bool taken[FLOOD];
    const struct weir_penalties_stats *stats;
    uint32_t left = FLOOD;

    open_flood();
    stats = weir_penalties_stats(world.penalties);
    memset(taken, 0, sizeof taken);
    for (unsigned rounds = 0; left > 0; rounds++) {
        assert_true(rounds < 10);
        for (uint32_t i = 0; i < FLOOD; i++)
            if (!taken[i] && strike_network(0, i) != WEIR_STRIKE_REFUSED) {
                taken[i] = true;
                left--;
            }
        while (world.ended < FLOOD - left)
            turn();
    }
    assert_true(stats->deferred > 0);
    assert_int_equal(stats->lost + stats->unplaced + stats->queue_full, 0);
    assert_int_equal(count_of("all")->moves[WEIR_STANDING_SUSPENDED], FLOOD);
    assert_int_equal(flooded(WEIR_STANDING_SUSPENDED, START + 1), FLOOD);
    close_world();
}

/* As many terms that stricter ones hide: each is back when they end. */
TEST("every term of a flood that was hidden is back")
{
    open_flood();
    for (uint32_t penalty = 2; penalty-- > 0;)
        for (uint32_t i = 0; i < FLOOD; i++) {
            unsigned before = world.ended;

            assert_int_equal(strike_network(penalty, i), WEIR_STRIKE_LATER);
            while (i % 1000 == 999 && world.ended < before + 1000)
                turn();
        }
    assert_int_equal(flooded(WEIR_STANDING_SUSPENDED, START + 1), FLOOD);
    weir_penalties_tick(world.penalties, START + HOUR + S);
    for (unsigned turns = 0; flooded(WEIR_STANDING_WARNED, START + HOUR + 1) < FLOOD; turns++) {
        assert_true(turns < 1000);
        turn();
    }
    assert_int_equal(weir_penalties_stats(world.penalties)->lost, 0);
    close_world();
}

/* Sets what one origin says of a network. */
static void set_network(const struct weir_standing_value *value, uint8_t level, uint8_t origin,
                        uint64_t until_ns)
{
    const struct weir_standing_entry entry = {
        .since_ns = START, .until_ns = until_ns, .level = level, .origin = origin};

    assert_int_equal(
        weir_standing_service_set(world.standing, value, &entry, (struct weir_bytes){"ada", 3}), 0);
}

TEST("a penalty does not lift the ban of an operator below weir")
{
    const struct weir_standing_settings *settings;
    struct weir_standing_value value, inside;
    struct weir_standing_entry found;
    struct weir_reason reason = {""};
    struct weir_ban ban;

    open_world(RULES(BRUTE));
    settings = weir_rules_settings(world.rules)->standing;
    assert_int_equal(weir_bans_protect(world.standing->bans, NULL, 0), 0);
    assert_int_equal(
        weir_standing_value_read(world.standing, settings, (struct weir_bytes){"client.ip", 9},
                                 (struct weir_bytes){"2001:db8::/64", 13}, &value, &reason),
        0);
    assert_int_equal(
        weir_standing_value_read(world.standing, settings, (struct weir_bytes){"client.ip", 9},
                                 (struct weir_bytes){"2001:db8::/128", 14}, &inside, &reason),
        0);
    set_network(&value, WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_OPERATOR, START + HOUR);
    set_network(&value, WEIR_STANDING_WARNED, WEIR_STANDING_BY_PENALTY, START + S);
    for (int i = 0; i < 2; i++) {
        assert_true(weir_bans_take(world.standing->bans, &ban));
        assert_int_equal(ban.until_ns, START + HOUR);
    }
    set_network(&inside, WEIR_STANDING_REVOKED, WEIR_STANDING_BY_OPERATOR, WEIR_NEVER);
    assert_true(weir_standing_service_clear(world.standing, &value, (struct weir_bytes){"ada", 3},
                                            (struct weir_bytes){"", 0}));
    assert_true(weir_bans_take(world.standing->bans, &ban));
    assert_int_equal(ban.network.bits, 128);
    assert_true(weir_bans_take(world.standing->bans, &ban));
    assert_int_equal(ban.network.bits, 64); /* what is within it is another value */
    assert_int_equal(ban.until_ns, 0);
    assert_false(weir_standing_service_find(world.standing, &value, START, &found));
    assert_true(weir_standing_service_find(world.standing, &inside, START, &found));
    close_world();
}

#define TWO                                                                                        \
    "{name: mild, key: user, strikes: 1/h, ladder: [throttle 1h]}, "                               \
    "{name: harsh, key: user, strikes: 1/h, ladder: [suspend 10s]}"

TEST("the strictest term is in force and then the other")
{
    uint64_t until_ns = 0;

    for (int first = 0; first < 2; first++) {
        open_world(RULES(TWO));
        strike(first == 0 ? "mild" : "harsh", "ann", START, true);
        strike(first == 0 ? "harsh" : "mild", "ann", START, true);
        answer_all();
        if (first == 0) {
            assert_int_equal(level_of("ann", START, NULL), WEIR_STANDING_SUSPENDED);
            weir_penalties_tick(world.penalties, START + 10 * S - 1);
            assert_int_equal(answer_all(), 0);
            weir_penalties_tick(world.penalties, START + 10 * S);
            answer_all();
            assert_int_equal(level_of("ann", START + 10 * S, &until_ns), WEIR_STANDING_THROTTLED);
            assert_int_equal(until_ns, START + HOUR);
        } else { /* a suspended caller gives no strikes of another penalty either */
            assert_int_equal(level_of("ann", START, NULL), WEIR_STANDING_SUSPENDED);
            assert_null(ladder_at("mild", "ann", false));
        }
        close_world();
    }
}

TEST("a penalty that the newest rules lack moves nothing")
{
    struct weir_rules *old;

    open_world(RULES(BRUTE));
    old = world.rules;
    strike("brute", "ann", START, true);
    world.rules = load(RULES("{name: brute, key: client.ip/64, strikes: 1/h, "
                             "ladder: [warn 1h]}"));
    weir_penalties_set_rules(world.penalties, world.rules);
    answer_all();
    assert_int_equal(level_of("ann", START, NULL), -1);
    weir_rules_unref(old);
    close_world();
}

TEST("a filter knows what was added and little else")
{
    struct weir_known *known = calloc(1, sizeof *known);
    const struct weir_bytes name = {"brute", 5}, other = {"other", 5};
    unsigned wrong = 0;

    for (uint64_t i = 0; i < 20000; i++)
        weir_known_add(known, weir_known_hash(name, NULL, (uint64_t[2]){i, 7}));
    for (uint64_t i = 0; i < 20000; i++) {
        assert_true(weir_known_has(known, weir_known_hash(name, NULL, (uint64_t[2]){i, 7})));
        wrong += weir_known_has(known, weir_known_hash(other, NULL, (uint64_t[2]){i, 7}));
    }
    assert_in_range(wrong, 0, 200); /* 95 are expected */
    free(known);
}

#define THREADS 4
#define EACH 120 /* all moves have room in the queue */

static void *strike_often(void *context)
{
    const char *user = context;

    for (uint64_t i = 0; i < EACH; i++) {
        strike("brute", user, START + i, i % 2 == 0);
        strike("brute", "all", START + i, i % 2 == 0);
    }
    return NULL;
}

TEST("strikes of many threads move each value in order")
{
    static const char *const users[THREADS] = {"a", "b", "c", "d"};
    const struct weir_penalty_count *count;
    pthread_t threads[THREADS];

    open_world(RULES(BRUTE));
    count = count_of("brute");
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, strike_often, (void *)(uintptr_t)users[i]);
    while (atomic_load(&count->strikes) < 2 * THREADS * EACH)
        answer_all();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    answer_all();
    weir_penalties_tick(world.penalties, START + S);
    answer_all();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(ladder_at("brute", users[i], false)->step, 3);
    assert_int_equal(ladder_at("brute", "all", false)->step, 3);
    assert_int_equal(count->moves[WEIR_STANDING_WARNED], THREADS + 1);
    assert_int_equal(count->moves[WEIR_STANDING_THROTTLED], THREADS + 1);
    assert_int_equal(count->moves[WEIR_STANDING_SUSPENDED], THREADS + 1);
    close_world();
}

/* Reads the ladder of a move and fails its change, as a Redis that falls silent. `made`: it was
 * made. */
static void fail_change(bool made)
{
    struct fake *fake = &world.fake;
    struct weir_ladder_call *call;

    uv_run(&world.loop, UV_RUN_NOWAIT);
    assert_int_equal(fake->count, 1);
    call = fake->calls[0];
    fake_find(call);
    fake->count = 0;
    call->err = 0;
    call->done(call);
    assert_int_equal(fake->count, 1);
    assert_true(fake->swaps[0]);
    if (made)
        fake_swap_now(call);
    fake->count = 0;
    call->err = WEIR_ERR_IO;
    call->done(call);
    assert_int_equal(fake->count, 0);
}

static void expect_moves(unsigned moves, unsigned step, unsigned lost)
{
    assert_int_equal(count_of("brute")->moves[WEIR_STANDING_WARNED], moves);
    assert_int_equal(ladder_at("brute", "ann", false)->step, step);
    assert_int_equal(weir_penalties_stats(world.penalties)->lost, lost);
}

/* Over Redis, which has the entry in force on all nodes once it makes the change. */
TEST("a change without an answer is settled by a look")
{
    for (int made = 0; made < 2; made++) {
        open_world(RULES(BRUTE));
        world.standing->sharing = (void *)&world; /* never looked at */
        strike("brute", "ann", START, true);
        fail_change(made);
        strike("brute", "ann", START + 1, true); /* waits behind it */
        assert_int_equal(answer_all(), 0);
        assert_int_equal(weir_penalties_stats(world.penalties)->lost, 0);
        world.fake.err = WEIR_ERR_STORE; /* Redis is still away */
        weir_penalties_tick(world.penalties, START + S);
        assert_int_equal(answer_all(), 1);
        world.fake.err = 0;
        weir_penalties_tick(world.penalties, START + 2 * S);
        answer_all();
        expect_moves(1, 2, 0);
        world.standing->sharing = NULL;
        close_world();
    }
}

TEST("a change that never gets an answer is given up")
{
    open_world(RULES(BRUTE));
    world.standing->sharing = (void *)&world;
    strike("brute", "ann", START, true);
    fail_change(true);
    world.fake.err = WEIR_ERR_STORE;
    for (uint64_t i = 0; i < WEIR_PENALTIES_TRIES + 4; i++) {
        weir_penalties_tick(world.penalties, START + i * S);
        answer_all();
    }
    expect_moves(0, 1, 1);
    world.fake.err = 0;
    strike("brute", "ann", START + 1, true);
    answer_all();
    expect_moves(0, 2, 1);
    world.standing->sharing = NULL;
    close_world();
}

TEST("a change that others came after is not made twice")
{
    open_world(RULES(BRUTE));
    world.standing->sharing = (void *)&world;
    strike("brute", "ann", START, true);
    fail_change(true);
    ladder_at("brute", "ann", false)->step = 2; /* by another node */
    weir_penalties_tick(world.penalties, START + S);
    answer_all();
    expect_moves(0, 2, 1);
    world.standing->sharing = NULL;
    close_world();
}

/* A worker that still has the rules of before a reload. */
TEST("a strike by old rules counts for the penalty of its name")
{
    struct weir_rules *old;

    open_world(RULES(BRUTE));
    old = world.rules;
    strike("brute", "ann", START, true);
    world.rules = load(RULES("{name: first, key: user, strikes: 1/h, ladder: [warn 1h]}, " BRUTE));
    weir_penalties_set_rules(world.penalties, world.rules);
    weir_rules_unref(world.rules);
    world.rules = old;
    strike("brute", "ann", START, true); /* which is number 0 in these */
    assert_int_equal(count_of("first")->strikes, 0);
    assert_int_equal(count_of("brute")->strikes, 2);
    answer_all();
    assert_int_equal(count_of("first")->moves[WEIR_STANDING_WARNED], 0);
    assert_int_equal(count_of("brute")->moves[WEIR_STANDING_WARNED], 1);
    close_world();
}

static void reload(const char *penalties)
{
    char text[4096];

    snprintf(text, sizeof text,
             "standing: {file: s.db, by: [user]}\nlimits: [{name: all, key: [user], rate: 1/s}]\n"
             "penalties: [%s]\n",
             penalties);
    weir_rules_unref(world.rules);
    world.rules = load(text);
    weir_penalties_set_rules(world.penalties, world.rules);
}

/* Sixteen new names with every reload: those of the newest rules always have their own counters. */
TEST("renamed penalties begin at nothing")
{
    char text[2048], name[16];

    open_world(RULES(BRUTE));
    for (int round = 0; round < 6; round++) {
        size_t used = 0;

        for (int i = 0; i < WEIR_PENALTIES_MAX; i++)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "%s{name: p%d, key: user, strikes: 1/h, ladder: [warn 1h]}",
                                     i > 0 ? ", " : "", 100 * round + i);
        reload(text);
        for (int i = 0; i < WEIR_PENALTIES_MAX; i++) {
            snprintf(name, sizeof name, "p%d", 100 * round + i);
            assert_int_equal(count_of(name)->strikes, 0);
            strike(name, "ann", START, false);
            assert_int_equal(count_of(name)->strikes, 1);
        }
    }
    close_world();
}

RUN_TESTS()
