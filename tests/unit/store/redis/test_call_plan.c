/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions over several slots: plans against servers that are simulated by the core, decision for
 * decision like one store that holds everything; with replies in any order, failures and
 * cancelling at any moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "draw.h"
#include "fake_store.h"
#include "store/redis/call_plan.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define START (UINT64_C(1700000000) * SECOND)
#define CHECKS 6
#define KEYS 12
#define TAGS 4
#define IN_FLIGHT 64

/* What a server keeps of a reservation: the states before it. */
struct reservation {
    uint64_t id;
    uint16_t count;
    bool rolled_back;
    struct {
        uint64_t hash[2];
        uint64_t *memory;
        size_t bytes;
    } before[CHECKS + 1];
};

struct sim {
    struct fake_store *servers, *whole; /* keys are different everywhere: one holds all slots */
    struct reservation reservations[CHECKS + 1];
    uint32_t reserved;
    uint64_t once[64][2];
    uint32_t once_count;
    struct weir_limit limits[KEYS];
    struct weir_check checks[CHECKS + 1], whole_checks[CHECKS + 1];
    struct weir_outcome outcomes[CHECKS + 1], whole_outcomes[CHECKS + 1];
    struct weir_decision decision, expected;
    struct call_plan plan;
    struct redis_step sent[IN_FLIGHT];
    uint32_t in_flight, most_in_flight, calls;
    uint64_t random, now_ns;
};

static int set_up(void **state)
{
    static const enum weir_algorithm algorithms[] = {WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW,
                                                     WEIR_SLIDING_LOG,  WEIR_GCRA,
                                                     WEIR_LEAKY_QUEUE,  WEIR_CONCURRENCY};
    struct sim *sim = calloc(1, sizeof *sim);

    assert_non_null(sim);
    sim->servers = fake_store_open();
    sim->whole = fake_store_open();
    sim->random = 4711;
    sim->now_ns = START;
    for (int i = 0; i < KEYS; i++) {
        const struct weir_limit_spec spec = {
            .algorithm = algorithms[i % 6], .rate = 3, .window_ns = 10 * SECOND};

        assert_int_equal(weir_limit_init(&sim->limits[i], &spec, NULL), 0);
    }
    *state = sim;
    return 0;
}

static void forget_reservations(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->reserved; i++)
        for (uint16_t j = 0; j < sim->reservations[i].count; j++)
            free(sim->reservations[i].before[j].memory);
    sim->reserved = 0;
}

static int tear_down(void **state)
{
    struct sim *sim = *state;

    forget_reservations(sim);
    fake_store_close(sim->servers);
    fake_store_close(sim->whole);
    free(sim);
    return 0;
}

/* --- Servers ---------------------------------------------------------------------------------- */

static struct fake_state *state_of(struct fake_store *store, const uint64_t hash[2])
{
    for (uint32_t i = 0; i < store->state_count; i++)
        if (memcmp(store->states[i].hash, hash, sizeof store->states[i].hash) == 0)
            return &store->states[i];
    return NULL;
}

static size_t bytes_of(const struct weir_limit *limit)
{
    return limit->span_words > 0 ? limit->span_words * sizeof(uint64_t) : sizeof(struct weir_cell);
}

static struct reservation *find_reservation(struct sim *sim, uint64_t id)
{
    for (uint32_t i = 0; i < sim->reserved; i++)
        if (sim->reservations[i].id == id)
            return &sim->reservations[i];

    struct reservation *new = &sim->reservations[sim->reserved++];

    assert_true(sim->reserved <= CHECKS + 1);
    *new = (struct reservation){.id = id};
    return new;
}

static void save(struct sim *sim, struct reservation *reservation, const struct weir_check *check)
{
    const struct fake_state *state = state_of(sim->servers, check->hash);
    uint16_t i = reservation->count++;

    memcpy(reservation->before[i].hash, check->hash, sizeof check->hash);
    reservation->before[i].bytes = bytes_of(check->limit);
    reservation->before[i].memory = calloc(1, bytes_of(check->limit));
    if (state != NULL)
        memcpy(reservation->before[i].memory, state->memory, reservation->before[i].bytes);
}

static void roll_back(struct sim *sim, uint64_t id)
{
    struct reservation *reservation = find_reservation(sim, id);

    for (uint16_t i = 0; !reservation->rolled_back && i < reservation->count; i++) {
        struct fake_state *state = state_of(sim->servers, reservation->before[i].hash);

        memcpy(state->memory, reservation->before[i].memory, reservation->before[i].bytes);
    }
    reservation->rolled_back = true;
}

static uint32_t find_once(const struct sim *sim, const struct weir_check *check)
{
    uint32_t i = 0;

    while (i < sim->once_count && memcmp(sim->once[i], check->hash, sizeof check->hash) != 0)
        i++;
    return i;
}

/* Executes a call. Returns a verdict, or an error where the reservation is refused. */
static int serve(struct sim *sim, const struct redis_batch *batch, bool *repeated)
{
    struct weir_check checks[CHECKS + 1];
    struct weir_outcome outcomes[CHECKS + 1];
    struct weir_decision part = *batch->decision;
    uint16_t places[CHECKS + 1];
    uint32_t once = UINT32_MAX;

    assert_true(batch->count > 0);
    if (batch->action == REDIS_ROLL_BACK) {
        roll_back(sim, batch->id);
        return WEIR_ALLOWED;
    }
    part.checks = checks;
    part.outcomes = outcomes;
    part.count = 0;
    for (uint16_t i = 0; i < batch->count; i++) {
        const struct weir_check *check = &batch->decision->checks[batch->checks[i]];

        if (check->flags & WEIR_CHECK_IDEMPOTENCY &&
            i + 1 == batch->count) { /* others are charged */
            once = find_once(sim, check);
            memcpy(sim->once[once], check->hash, sizeof check->hash);
            sim->outcomes[batch->checks[i]] = (struct weir_outcome){.verdict = WEIR_ALLOWED};
            continue;
        }
        places[part.count] = batch->checks[i];
        checks[part.count] = *check;
        checks[part.count++].flags &= (uint8_t)~WEIR_CHECK_IDEMPOTENCY;
    }
    *repeated = once < sim->once_count;
    if (batch->action == REDIS_PEEK || *repeated)
        part.op = WEIR_OP_PEEK;
    if (batch->action == REDIS_RESERVE) {
        struct reservation *reservation = find_reservation(sim, batch->id);

        if (reservation->rolled_back)
            return WEIR_ERR_STORE;
        for (uint16_t i = 0; i < part.count; i++)
            save(sim, reservation, &checks[i]);
    }
    fake_store_decide(sim->servers, sim->now_ns, &part);
    for (uint16_t i = 0; i < part.count; i++)
        sim->outcomes[places[i]] = outcomes[i];
    if (once == sim->once_count && part.verdict == WEIR_ALLOWED &&
        (part.op == WEIR_OP_DECIDE || part.op == WEIR_OP_DEBIT))
        sim->once_count++;
    return *repeated ? WEIR_ALLOWED : part.verdict;
}

/* --- Decisions -------------------------------------------------------------------------------- */

static void add_check(struct sim *sim, uint64_t key, uint64_t tag, uint8_t flags, uint64_t cost)
{
    sim->checks[sim->decision.count++] = (struct weir_check){
        .limit = &sim->limits[key], .hash = {key + 1, 1}, .cost = cost, .tag = tag, .flags = flags};
}

static void begin(struct sim *sim, uint8_t op, uint8_t policy)
{
    sim->decision = (struct weir_decision){
        .checks = sim->checks, .outcomes = sim->outcomes, .op = op, .policy = policy};
    sim->decision.lease.id = 1 + sim->random;
    sim->decision.charged_at_ns = sim->now_ns;
    memset(sim->outcomes, 0xee, sizeof sim->outcomes);
}

/* Different keys, each always in the same slot. */
static void draw_decision(struct sim *sim, uint8_t op, uint8_t policy)
{
    uint64_t key = draw_below(&sim->random, KEYS), count = 1 + draw_below(&sim->random, CHECKS);

    begin(sim, op, policy);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t flags = 0;

        key = (key + 1 + draw_below(&sim->random, 2)) % KEYS;
        if (draw_below(&sim->random, 5) == 0)
            flags |= WEIR_CHECK_SHADOW;
        if (draw_below(&sim->random, 5) == 0)
            flags |= WEIR_CHECK_CHARGE_ON_DENY;
        if (draw_below(&sim->random, 12) == 0)
            flags |=
                draw_below(&sim->random, 3) == 0 ? WEIR_CHECK_ALWAYS_DENY : WEIR_CHECK_UNLIMITED;
        add_check(sim, key, 1 + key % TAGS, flags, draw_below(&sim->random, 3));
    }
}

static void expect(struct sim *sim)
{
    memcpy(sim->whole_checks, sim->checks, sizeof sim->checks);
    sim->expected = sim->decision;
    sim->expected.checks = sim->whole_checks;
    sim->expected.outcomes = sim->whole_outcomes;
    fake_store_decide(sim->whole, sim->now_ns, &sim->expected);
}

static void same_states(struct sim *sim)
{
    for (uint32_t key = 0; key < KEYS; key++) {
        const uint64_t hash[2] = {key + 1, 1};
        const struct fake_state *one = state_of(sim->servers, hash);
        const struct fake_state *other = state_of(sim->whole, hash);
        size_t bytes = bytes_of(&sim->limits[key]);
        uint64_t *zeros = calloc(1, bytes);

        assert_memory_equal(one != NULL ? one->memory : zeros,
                            other != NULL ? other->memory : zeros, bytes);
        free(zeros);
    }
}

/* The other store becomes what the servers are now. */
static void copy_states(struct sim *sim)
{
    fake_store_close(sim->whole);
    sim->whole = fake_store_open();
    for (uint32_t i = 0; i < sim->servers->state_count; i++) {
        const struct fake_state *from = &sim->servers->states[i];
        struct fake_state *to = &sim->whole->states[sim->whole->state_count++];

        *to = *from;
        to->memory = malloc(bytes_of(from->limit));
        assert_non_null(to->memory);
        memcpy(to->memory, from->memory, bytes_of(from->limit));
    }
}

static bool is_stateful(const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i]))
            return true;
    return false;
}

static void same_outcomes(struct sim *sim)
{
    const struct weir_decision *got = &sim->decision, *expected = &sim->expected;

    assert_int_equal(got->verdict, expected->verdict);
    assert_int_equal(got->delay_ns, expected->delay_ns);
    for (uint16_t i = 0; i < got->count; i++) {
        struct weir_report report, expected_report;

        assert_int_equal(got->outcomes[i].verdict, expected->outcomes[i].verdict);
        assert_int_equal(got->outcomes[i].charged, expected->outcomes[i].charged);
        weir_decision_report(got, i, &report);
        weir_decision_report(expected, i, &expected_report);
        assert_memory_equal(&report, &expected_report, sizeof report);
    }
}

/* --- Driving a plan --------------------------------------------------------------------------- */

static const struct call_plan_context context = {.prefix = "weir:"};

static int deliver(struct sim *sim, struct redis_step step, bool *repeated,
                   struct redis_batch *batch, uint16_t checks[WEIR_CHECKS_MAX],
                   struct weir_decision *as)
{
    call_plan_batch(&sim->plan, &sim->decision, step, &context, as, checks, batch);
    for (uint16_t i = 1; i < batch->count; i++)
        assert_int_equal(sim->checks[checks[i]].tag, sim->checks[checks[0]].tag);
    return serve(sim, batch, repeated);
}

/* Takes what is to be sent; roll-backs arrive at once. */
static void send_all(struct sim *sim)
{
    struct redis_step step;

    while (call_plan_next(&sim->plan, &step)) {
        uint16_t checks[WEIR_CHECKS_MAX];
        struct weir_decision as;
        struct redis_batch batch;
        bool repeated;

        sim->calls++;
        if (step.kind == REDIS_STEP_ROLL_BACK)
            (void)deliver(sim, step, &repeated, &batch, checks, &as);
        else
            sim->sent[sim->in_flight++] = step;
    }
    if (sim->in_flight > sim->most_in_flight)
        sim->most_in_flight = sim->in_flight;
}

static struct redis_step take(struct sim *sim, uint32_t i)
{
    struct redis_step step = sim->sent[i];

    sim->sent[i] = sim->sent[--sim->in_flight];
    return step;
}

static void answer(struct sim *sim, uint32_t i)
{
    uint16_t checks[WEIR_CHECKS_MAX];
    struct weir_decision as;
    struct redis_batch batch;
    bool repeated = false;
    struct redis_step step = take(sim, i);
    int verdict = deliver(sim, step, &repeated, &batch, checks, &as);

    assert_true(verdict > 0);
    call_plan_settle(&sim->decision, &batch, sim->now_ns);
    call_plan_answered(&sim->plan, &sim->decision, step, (uint8_t)verdict, repeated);
}

static void make(struct sim *sim)
{
    forget_reservations(sim);
    sim->in_flight = sim->most_in_flight = sim->calls = 0;
    sim->decision.now_ns = 0;
    call_plan_make(&sim->plan, &sim->decision, false, weir_random(&sim->random) | 1);
}

static void run(struct sim *sim)
{
    make(sim);
    for (;;) {
        send_all(sim);
        if (sim->plan.state != CALL_PLAN_RUNNING)
            break;
        assert_true(sim->in_flight > 0);
        answer(sim, (uint32_t)draw_below(&sim->random, sim->in_flight));
    }
    assert_int_equal(sim->plan.state, CALL_PLAN_DECIDED);
    assert_int_equal(sim->in_flight, 0);
    call_plan_finish(&sim->plan, &sim->decision);
}

/* --- Tests ------------------------------------------------------------------------------------ */

TEST_WITH(set_up, tear_down, "random decisions are those of one store")
{
    static const uint8_t ops[] = {WEIR_OP_DECIDE, WEIR_OP_DECIDE, WEIR_OP_DECIDE,
                                  WEIR_OP_PEEK,   WEIR_OP_DEBIT,  WEIR_OP_REFUND};
    struct sim *sim = *state;
    uint32_t several = 0, denied = 0;

    for (int i = 0; i < 20000; i++) {
        sim->now_ns += draw_below(&sim->random, 2 * SECOND);
        draw_decision(sim, ops[draw_below(&sim->random, 6)], (uint8_t)draw_below(&sim->random, 3));
        if (!is_stateful(&sim->decision))
            continue;
        expect(sim);
        run(sim);
        same_outcomes(sim);
        same_states(sim);
        assert_int_equal(sim->decision.now_ns, sim->now_ns);
        several += sim->plan.count > 1;
        denied += sim->decision.verdict == WEIR_DENIED;
    }
    assert_true(several > 10000);
    assert_true(denied > 3000);
}

/* Whatever fails, and whenever: a request that was not decided has charged nothing. */
TEST_WITH(set_up, tear_down, "a failed decision leaves nothing behind")
{
    struct sim *sim = *state;
    uint32_t failed = 0;

    for (int i = 0; i < 20000; i++) {
        sim->now_ns += draw_below(&sim->random, 2 * SECOND);
        draw_decision(sim, WEIR_OP_DECIDE, WEIR_POLICY_ALL);
        if (!is_stateful(&sim->decision))
            continue;
        make(sim);
        if (sim->plan.count < 2)
            continue;
        copy_states(sim);
        for (send_all(sim); sim->plan.state == CALL_PLAN_RUNNING; send_all(sim)) {
            uint32_t at = (uint32_t)draw_below(&sim->random, sim->in_flight);

            if (draw_below(&sim->random, 4) != 0) {
                answer(sim, at);
                continue;
            }
            struct redis_step step = take(sim, at);
            uint16_t checks[WEIR_CHECKS_MAX];
            struct weir_decision as;
            struct redis_batch batch;
            bool repeated, executed = draw_below(&sim->random, 2) == 0,
                           arrives = executed && draw_below(&sim->random, 2) == 0;

            if (arrives)
                (void)deliver(sim, step, &repeated, &batch, checks, &as);
            call_plan_failed(&sim->plan, &sim->decision, step, executed);
        }
        if (sim->plan.state == CALL_PLAN_DECIDED) {
            call_plan_finish(&sim->plan, &sim->decision);
            continue;
        }
        while (sim->in_flight > 0)
            call_plan_failed(&sim->plan, &sim->decision, take(sim, 0), false);
        send_all(sim);
        assert_int_equal(sim->in_flight, 0);
        same_states(sim);
        failed++;
    }
    assert_true(failed > 1000);
}

TEST_WITH(set_up, tear_down, "slots are reserved one after the other")
{
    struct sim *sim = *state;

    begin(sim, WEIR_OP_DECIDE, WEIR_POLICY_ALL);
    add_check(sim, 0, 1, 0, 1);
    add_check(sim, 1, 2, 0, 1);
    add_check(sim, 2, 1, 0, 1);
    add_check(sim, 3, 3, 0, 1);
    run(sim);
    assert_int_equal(sim->decision.verdict, WEIR_ALLOWED);
    assert_int_equal(sim->most_in_flight, 1);
    assert_int_equal(sim->calls, 3);
}

TEST_WITH(set_up, tear_down, "other policies ask all slots at once")
{
    struct sim *sim = *state;

    for (int i = 0; i < 3; i++) {
        begin(sim, i == 2 ? WEIR_OP_PEEK : WEIR_OP_DECIDE,
              i == 0   ? WEIR_POLICY_EACH
              : i == 1 ? WEIR_POLICY_QUOTA
                       : WEIR_POLICY_ALL);
        add_check(sim, 0, 1, 0, 1);
        add_check(sim, 1, 2, 0, 1);
        add_check(sim, 3, 3, 0, 1);
        run(sim);
        assert_int_equal(sim->most_in_flight, 3);
        assert_int_equal(sim->calls, 3);
    }
}

TEST_WITH(set_up, tear_down, "a denial takes back what was reserved")
{
    struct sim *sim = *state;

    begin(sim, WEIR_OP_DECIDE, WEIR_POLICY_ALL);
    add_check(sim, 0, 1, 0, 2);
    add_check(sim, 1, 2, 0, 4); /* more than the capacity */
    add_check(sim, 3, 3, 0, 2);
    expect(sim);
    run(sim);
    assert_int_equal(sim->decision.verdict, WEIR_DENIED);
    assert_int_equal(sim->calls, 5); /* reserve, reserve; roll back, peek, peek */
    same_outcomes(sim);
    same_states(sim);
    assert_int_equal(sim->outcomes[0].report.remaining, 3);
}

/* Cancelled at any moment, the bytes of any call having arrived or not. */
TEST_WITH(set_up, tear_down, "a cancelled decision is rolled back")
{
    struct sim *sim = *state;
    uint32_t cancelled = 0;

    for (int i = 0; i < 5000; i++) {
        uint64_t until = draw_below(&sim->random, 4);

        begin(sim, WEIR_OP_DECIDE, WEIR_POLICY_ALL);
        for (uint64_t key = 0; key < 5; key++)
            add_check(sim, key, 1 + key % TAGS, 0, 1);
        make(sim);
        send_all(sim);
        while (until-- > 0 && sim->plan.state == CALL_PLAN_RUNNING) {
            answer(sim, 0);
            send_all(sim);
        }
        if (sim->plan.state != CALL_PLAN_RUNNING)
            continue;
        while (sim->in_flight > 0) {
            uint16_t checks[WEIR_CHECKS_MAX];
            struct weir_decision as;
            struct redis_batch batch;
            bool repeated, executed = draw_below(&sim->random, 2) == 0;
            struct redis_step step = take(sim, 0);

            if (executed && draw_below(&sim->random, 2) == 0)
                (void)deliver(sim, step, &repeated, &batch, checks, &as);
            call_plan_failed(&sim->plan, &sim->decision, step, executed);
        }
        call_plan_cancel(&sim->plan);
        send_all(sim);
        assert_int_equal(sim->in_flight, 0);
        same_states(sim); /* of which nothing was ever asked */
        cancelled++;
    }
    assert_true(cancelled > 3000);
}

TEST_WITH(set_up, tear_down, "a server that is silent after the denial does not undo it")
{
    struct sim *sim = *state;

    begin(sim, WEIR_OP_DECIDE, WEIR_POLICY_ALL);
    add_check(sim, 0, 1, 0, 1);
    add_check(sim, 1, 2, 0, 4);
    make(sim);
    send_all(sim);
    answer(sim, 0);
    send_all(sim);
    answer(sim, 0);
    send_all(sim);
    assert_int_equal(sim->in_flight, 1);
    call_plan_failed(&sim->plan, &sim->decision, take(sim, 0), true);
    assert_int_equal(sim->plan.state, CALL_PLAN_DECIDED);
    call_plan_finish(&sim->plan, &sim->decision);
    assert_int_equal(sim->decision.verdict, WEIR_DENIED);
    assert_int_equal(sim->outcomes[0].verdict, WEIR_ALLOWED);
    assert_int_equal(sim->outcomes[0].report.remaining, 3);
}

TEST_WITH(set_up, tear_down, "a repeat is recognised before anything is charged")
{
    struct sim *sim = *state;

    for (int i = 0; i < 2; i++) {
        begin(sim, WEIR_OP_DECIDE, i == 0 ? WEIR_POLICY_ALL : WEIR_POLICY_EACH);
        add_check(sim, 0, 1, 0, 3);
        add_check(sim, 1, 2, 0, 3);
        add_check(sim, 7, 1, WEIR_CHECK_IDEMPOTENCY, 1);
        if (i == 0)
            expect(sim);
        run(sim);
        assert_int_equal(sim->decision.verdict, WEIR_ALLOWED);
        assert_int_equal(sim->decision.repeated, i == 1);
        assert_int_equal(sim->outcomes[1].verdict, WEIR_ALLOWED);
        if (i == 1) {
            struct weir_report report;

            assert_false(sim->outcomes[0].charged);
            assert_false(sim->outcomes[1].charged);
            weir_decision_report(&sim->decision, 1, &report);
            assert_int_equal(report.retry_after_ns, 0);
        }
    }
}

/* A debit of three slots: of keys 0, 6 and 1, with a record for each of the later slots, one of
 * what is asked (its key is `what`) and the one of the whole. */
static void begin_debit(struct sim *sim, uint64_t what)
{
    begin(sim, WEIR_OP_DEBIT, WEIR_POLICY_ALL);
    add_check(sim, 0, 1, 0, 1);
    add_check(sim, 6, 2, 0, 1);
    add_check(sim, 1, 3, 0, 1);
    add_check(sim, 7, 2, WEIR_CHECK_IDEMPOTENCY, 1);
    add_check(sim, 10, 3, WEIR_CHECK_IDEMPOTENCY, 1);
    add_check(sim, what, 1, WEIR_CHECK_IDEMPOTENCY, 3);
    add_check(sim, 3, 1, WEIR_CHECK_IDEMPOTENCY, 1);
}

static void expect_used(struct sim *sim, const uint64_t used[3])
{
    begin(sim, WEIR_OP_PEEK, WEIR_POLICY_EACH);
    for (uint64_t i = 0; i < 3; i++)
        add_check(sim, (const uint64_t[]){0, 6, 1}[i], 1 + i, 0, 0);
    run(sim);
    for (uint16_t i = 0; i < 3; i++) {
        struct weir_report report;

        weir_decision_report(&sim->decision, i, &report);
        assert_int_equal(report.limit - report.remaining, used[i]);
    }
}

/* Loses the call of one of the later slots, before or after it was executed. */
static void lose_a_call(struct sim *sim, uint32_t which, bool executed)
{
    uint16_t checks[WEIR_CHECKS_MAX];
    struct weir_decision as;
    struct redis_batch batch;
    bool repeated;

    begin_debit(sim, 9);
    make(sim);
    send_all(sim);
    assert_int_equal(sim->in_flight, 1); /* that of the record of the whole */
    answer(sim, 0);
    send_all(sim);
    assert_int_equal(sim->in_flight, 2);

    struct redis_step step = take(sim, which);

    if (executed)
        assert_true(deliver(sim, step, &repeated, &batch, checks, &as) > 0);
    call_plan_failed(&sim->plan, &sim->decision, step, true);
    answer(sim, 0);
    assert_int_equal(sim->plan.state, CALL_PLAN_FAILED);
}

TEST_WITH(set_up, tear_down, "a repeat of a debit charges what was lost and nothing twice")
{
    for (uint32_t lost = 0; lost < 4; lost++) {
        const uint64_t partly[3] = {1, lost != 0, lost != 2}, all[3] = {1, 1, 1};
        void *own;

        assert_int_equal(set_up(&own), 0);
        lose_a_call(own, lost / 2, lost % 2 == 1);
        expect_used(own, partly);
        begin_debit(own, 4); /* another true cost: it was settled before */
        run(own);
        assert_true(((struct sim *)own)->decision.repeated);
        for (uint16_t i = 3; i < 5; i++) /* records of later slots, which were not asked for */
            assert_memory_equal(&((struct sim *)own)->outcomes[i],
                                &(struct weir_outcome){.verdict = WEIR_ALLOWED},
                                offsetof(struct weir_outcome, overflow));
        expect_used(own, partly);
        for (int i = 0; i < 2; i++) {
            begin_debit(own, 9);
            run(own);
            assert_true(((struct sim *)own)->decision.repeated);
            expect_used(own, all);
        }
        assert_int_equal(tear_down(&own), 0);
    }
}

TEST_WITH(set_up, tear_down, "only several slots need a plan")
{
    struct sim *sim = *state;
    uint8_t action;

    begin(sim, WEIR_OP_DECIDE, WEIR_POLICY_ALL);
    add_check(sim, 0, 1, 0, 1);
    assert_true(call_plan_is_one_call(&sim->decision, false, &action));
    assert_int_equal(action, REDIS_DECIDE);
    add_check(sim, 1, 1, 0, 1);
    assert_true(call_plan_is_one_call(&sim->decision, false, &action));
    add_check(sim, 2, 2, 0, 1);
    assert_false(call_plan_is_one_call(&sim->decision, false, &action));
    assert_true(call_plan_is_one_call(&sim->decision, true, &action));
    add_check(sim, 3, 2, WEIR_CHECK_ALWAYS_DENY, 1);
    assert_true(call_plan_is_one_call(&sim->decision, true, &action));
    assert_int_equal(action, REDIS_PEEK);
    sim->checks[3].flags |= WEIR_CHECK_SHADOW;
    assert_true(call_plan_is_one_call(&sim->decision, true, &action));
    assert_int_equal(action, REDIS_DECIDE);
    sim->checks[3].flags = WEIR_CHECK_ALWAYS_DENY;
    sim->checks[0].flags = WEIR_CHECK_CHARGE_ON_DENY; /* charged, the others looked at */
    assert_false(call_plan_is_one_call(&sim->decision, true, &action));
}

RUN_TESTS()
