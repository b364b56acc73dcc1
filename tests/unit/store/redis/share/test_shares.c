/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's table of portions, against a model of the server that answers when a test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"
#include "share_server.h"
#include "store/redis/share/roundtrip.h"
#include "store/redis/share/shares.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define START (UINT64_C(1700000000) * SECOND)
#define KEYS 24
#define CALLS 64

struct request {
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_decision decision;
    struct redis_shares_wait wait;
};

struct rig {
    struct redis_shares *shares;
    struct weir_limit limit, other;
    struct share_server servers[KEYS]; /* by key */
    struct redis_shares_call calls[CALLS];
    uint32_t call_count;
    uint64_t now_ns;
};

static void open_rig(struct rig *rig, uint32_t keys_max)
{
    struct redis_shares_options options = {.holder = 77, .keys_max = keys_max};
    struct weir_limit_spec spec = {
        .algorithm = WEIR_FIXED_WINDOW, .rate = 1000, .window_ns = 10 * SECOND};

    memset(rig, 0, sizeof *rig);
    assert_int_equal(redis_shares_open(&rig->shares, &options), 0);
    assert_int_equal(weir_limit_init(&rig->limit, &spec, NULL), 0);
    rig->limit.name = "api";
    spec.rate = 2000;
    assert_int_equal(weir_limit_init(&rig->other, &spec, NULL), 0);
    rig->now_ns = START;
}

static struct rig *new_rig(void)
{
    static struct rig rig;

    open_rig(&rig, 64);
    return &rig;
}

static struct weir_check *add(struct request *request, const struct weir_limit *limit, uint64_t key,
                              uint64_t cost)
{
    static const char names[] = "abcdefghijklmnopqrstuvwxyz";
    struct weir_check *check = &request->checks[request->decision.count++];

    *check = (struct weir_check){.limit = limit, .hash = {key, key}, .cost = cost};
    check->flags = WEIR_CHECK_LEASED;
    check->key = (struct weir_bytes){names + key, 1};
    request->decision.checks = request->checks;
    request->decision.outcomes = request->outcomes;
    return check;
}

static struct request *begin(struct request *request)
{
    memset(request, 0, sizeof *request);
    return request;
}

static enum redis_shares_answer try(struct rig *rig, struct request *request)
{
    return redis_shares_try(rig->shares, &request->decision, &request->wait, rig->now_ns);
}

static enum redis_shares_answer try_key(struct rig *rig, struct request *request, uint64_t key,
                                        uint64_t cost)
{
    add(begin(request), &rig->limit, key, cost);
    return try(rig, request);
}

/* Takes what is to be sent. */
static uint32_t collect(struct rig *rig)
{
    rig->call_count = 0;
    while (redis_shares_next(rig->shares, rig->now_ns, &rig->calls[rig->call_count])) {
        rig->call_count++;
        assert_in_range(rig->call_count, 1, CALLS - 1);
    }
    return rig->call_count;
}

static struct redis_shares_wait *answer(struct rig *rig, uint32_t i)
{
    const struct redis_shares_call *call = &rig->calls[i];
    struct share_server *server = &rig->servers[call->check->hash[0]];
    struct share_reply reply;

    share_server_execute(server, call->check->limit, &call->ask, rig->now_ns, &reply);
    return redis_shares_answered(rig->shares, call->place, &reply, rig->now_ns);
}

/* Makes a key hot: it holds a portion then. Returns how many decisions were exact before. */
static uint32_t warm(struct rig *rig, uint64_t key)
{
    struct request request;
    uint32_t exact = 0;

    while (try_key(rig, &request, key, 1) == REDIS_SHARES_EXACT)
        assert_in_range(++exact, 1, 100);
    assert_int_equal(collect(rig), 1);
    assert_ptr_equal(answer(rig, 0), &request.wait);
    assert_int_equal(try(rig, &request), REDIS_SHARES_DECIDED);
    assert_int_equal(request.decision.verdict, WEIR_ALLOWED);
    return exact;
}

TEST("a cold key is decided exactly and a hot one from its portion")
{
    struct rig *rig = new_rig();
    struct request request;

    assert_int_equal(warm(rig, 0), 3 * 4 - 1); /* four in each of three lives of a portion */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_DECIDED);
        assert_int_equal(request.decision.verdict, WEIR_ALLOWED);
        assert_true(request.outcomes[0].charged && request.outcomes[0].reported);
        assert_int_equal(request.outcomes[0].report.limit, 1000);
        assert_int_equal(request.outcomes[0].report.remaining, 1000 - 2 - (uint64_t)i);
        assert_int_equal(request.decision.now_ns, rig->now_ns);
    }
    assert_int_equal(collect(rig), 0);
    assert_int_equal(redis_shares_counters(rig->shares)->decisions, 21);
    assert_int_equal(redis_shares_counters(rig->shares)->held, 1);
    redis_shares_close(rig->shares);
}

TEST("half a portion asks for the next in the background")
{
    struct rig *rig = new_rig();
    struct request request;
    uint32_t decided = 1, amount;

    warm(rig, 0);
    amount = (uint32_t)rig->servers[0].charged;
    while (collect(rig) == 0) {
        assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_DECIDED);
        assert_in_range(++decided, 1, amount);
    }
    assert_int_equal(decided, amount - amount / 2);
    assert_int_equal(collect(rig), 0);
    redis_shares_close(rig->shares);
}

TEST("a key that comes now and then stays cold")
{
    struct rig *rig = new_rig();
    struct request request;

    for (int i = 0; i < 100; i++) {
        assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_EXACT);
        rig->now_ns += SECOND;
    }
    assert_int_equal(redis_shares_counters(rig->shares)->held, 0);
    redis_shares_close(rig->shares);
}

TEST("several checks are spent all or none")
{
    struct rig *rig = new_rig();
    struct request request;
    uint64_t left;

    warm(rig, 0);
    warm(rig, 1);
    add(begin(&request), &rig->limit, 0, 2);
    add(&request, &rig->limit, 1, 2);
    assert_int_equal(try(rig, &request), REDIS_SHARES_DECIDED);
    assert_int_equal(request.decision.verdict, WEIR_ALLOWED);
    left = request.outcomes[0].report.remaining;

    /* The second budget is used up by another node: nothing of the first is spent. */
    assert_true(share_server_decide(&rig->servers[1], &rig->limit, 900, rig->now_ns));
    add(begin(&request), &rig->limit, 0, 2);
    add(&request, &rig->limit, 1, 700);
    assert_int_equal(try(rig, &request), REDIS_SHARES_WAIT);
    assert_int_equal(collect(rig), 1);
    assert_ptr_equal(answer(rig, 0), &request.wait);
    assert_int_equal(try(rig, &request), REDIS_SHARES_DECIDED);
    assert_int_equal(request.decision.verdict, WEIR_DENIED);
    assert_int_equal(request.outcomes[0].verdict, WEIR_ALLOWED);
    assert_int_equal(request.outcomes[1].verdict, WEIR_DENIED);
    assert_false(request.outcomes[0].charged || request.outcomes[1].charged);
    assert_int_equal(request.outcomes[0].report.remaining, left);

    /* Each on its own: the first is. */
    request.decision.policy = WEIR_POLICY_EACH;
    assert_int_equal(try(rig, &request), REDIS_SHARES_DECIDED);
    assert_int_equal(request.decision.verdict, WEIR_DENIED);
    assert_true(request.outcomes[0].charged && !request.outcomes[1].charged);

    /* In shadow it denies nobody. */
    request.decision.policy = WEIR_POLICY_ALL;
    request.checks[1].flags |= WEIR_CHECK_SHADOW;
    assert_int_equal(try(rig, &request), REDIS_SHARES_DECIDED);
    assert_int_equal(request.decision.verdict, WEIR_ALLOWED);
    assert_true(request.outcomes[0].charged && !request.outcomes[1].charged);
    redis_shares_close(rig->shares);
}

TEST("what cannot be leased is decided exactly")
{
    struct rig *rig = new_rig();
    struct request request;
    struct weir_check *check;

    warm(rig, 0);
    add(begin(&request), &rig->limit, 0, 1)->flags = 0;
    assert_int_equal(try(rig, &request), REDIS_SHARES_EXACT);
    add(begin(&request), &rig->limit, 0, 1)->flags |= WEIR_CHECK_CHARGE_ON_DENY;
    assert_int_equal(try(rig, &request), REDIS_SHARES_EXACT);
    add(begin(&request), &rig->limit, 0, 0);
    assert_int_equal(try(rig, &request), REDIS_SHARES_EXACT);
    add(begin(&request), &rig->limit, 0, 1001);
    assert_int_equal(try(rig, &request), REDIS_SHARES_EXACT);
    add(begin(&request), &rig->limit, 0, 1);
    request.decision.op = WEIR_OP_PEEK;
    assert_int_equal(try(rig, &request), REDIS_SHARES_EXACT);
    add(begin(&request), &rig->limit, 0, 1);
    add(&request, &rig->limit, 0, 1); /* one key twice */
    assert_int_equal(try(rig, &request), REDIS_SHARES_EXACT);
    add(begin(&request), &rig->limit, 0, 1);
    check = add(&request, NULL, 1, 1);
    check->flags = WEIR_CHECK_ALWAYS_DENY;
    assert_int_equal(try(rig, &request), REDIS_SHARES_DECIDED);
    assert_int_equal(request.decision.verdict, WEIR_DENIED);
    check->flags = WEIR_CHECK_UNLIMITED;
    assert_int_equal(try(rig, &request), REDIS_SHARES_DECIDED);
    assert_int_equal(request.decision.verdict, WEIR_ALLOWED);
    redis_shares_close(rig->shares);
}

TEST("limits too small or of another kind have no terms")
{
    const struct weir_limit_spec none[] = {
        {.algorithm = WEIR_CONCURRENCY, .rate = 1000, .window_ns = SECOND},
        {.algorithm = WEIR_LEAKY_QUEUE, .rate = 1000, .window_ns = SECOND},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 0, .window_ns = SECOND},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = SHARE_CAPACITY_MIN - 1, .window_ns = SECOND},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 1000, .window_ns = SHARE_SPAN_MIN_NS - 1000},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .window_ns = SECOND, .segments = 50},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 1000, .window_ns = 100 * MS},
        {.algorithm = WEIR_GCRA, .rate = 10000, .window_ns = SECOND, .burst = 100},
    };
    const struct weir_limit_spec some[] = {
        {.algorithm = WEIR_FIXED_WINDOW, .rate = SHARE_CAPACITY_MIN, .window_ns = SECOND},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 1000, .window_ns = SHARE_SPAN_MIN_NS},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .window_ns = SECOND, .segments = 20},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 1000, .window_ns = SECOND},
        {.algorithm = WEIR_GCRA, .rate = 1000, .window_ns = SECOND, .burst = 100},
        {.algorithm = WEIR_GCRA, .rate = WEIR_BUCKET_MAX, .window_ns = WEIR_WINDOW_MAX_NS},
    };
    struct weir_limit limit;
    struct share_terms terms;

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_int_equal(weir_limit_init(&limit, &none[i], NULL), 0);
        assert_false(share_terms_init(&terms, &limit, 0));
    }
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        assert_int_equal(weir_limit_init(&limit, &some[i], NULL), 0);
        assert_true(share_terms_init(&terms, &limit, 0));
        assert_in_range(terms.life_ns, SHARE_LIFE_MIN_NS, SHARE_LIFE_MAX_NS);
        assert_in_range(terms.chunk, 1, terms.capacity);
        assert_in_range(terms.batch, terms.chunk, terms.capacity);
    }
}

TEST("a denial is remembered until it may change")
{
    struct rig *rig = new_rig();
    struct request request;

    assert_true(share_server_decide(&rig->servers[0], &rig->limit, 1000, rig->now_ns));
    while (try_key(rig, &request, 0, 1) == REDIS_SHARES_EXACT)
        ;
    assert_int_equal(collect(rig), 1);
    assert_ptr_equal(answer(rig, 0), &request.wait);
    assert_int_equal(try(rig, &request), REDIS_SHARES_DECIDED);
    assert_int_equal(request.decision.verdict, WEIR_DENIED);
    assert_int_equal(request.outcomes[0].report.retry_after_ns, 10 * SECOND);
    assert_int_equal(request.outcomes[0].report.remaining, 0);
    assert_int_equal(request.outcomes[0].next_ns, 10 * SECOND);
    rig->now_ns += SHARE_DRY_MAX_NS - 1;
    assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_DECIDED);
    assert_int_equal(request.outcomes[0].report.retry_after_ns, 10 * SECOND - SHARE_DRY_MAX_NS + 1);
    assert_int_equal(collect(rig), 0);
    rig->now_ns++;
    assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_WAIT);
    assert_int_equal(redis_shares_counters(rig->shares)->denied, 2);
    redis_shares_leave(rig->shares, &request.wait);
    redis_shares_close(rig->shares);
}

TEST("who waits comes back in order and who leaves does not")
{
    struct rig *rig = new_rig();
    struct request requests[4];

    while (try_key(rig, &requests[0], 0, 1) == REDIS_SHARES_EXACT)
        ;
    for (int i = 1; i < 4; i++)
        assert_int_equal(try_key(rig, &requests[i], 0, 1), REDIS_SHARES_WAIT);
    assert_int_equal(collect(rig), 1);
    redis_shares_leave(rig->shares, &requests[1].wait);
    redis_shares_leave(rig->shares, &requests[1].wait);

    struct redis_shares_wait *woken = answer(rig, 0);

    assert_ptr_equal(woken, &requests[0].wait);
    assert_ptr_equal(woken->next, &requests[2].wait);
    assert_ptr_equal(woken->next->next, &requests[3].wait);
    assert_null(woken->next->next->next);
    assert_ptr_equal(woken->decision, &requests[0].decision);
    redis_shares_close(rig->shares);
}

TEST("a failed call hands back who waited and its portion is settled later")
{
    struct rig *rig = new_rig();
    struct request request;
    struct share_reply late;

    while (try_key(rig, &request, 0, 1) == REDIS_SHARES_EXACT)
        ;
    assert_int_equal(collect(rig), 1);
    /* It was executed; nobody hears of it. */
    share_server_execute(&rig->servers[0], &rig->limit, &rig->calls[0].ask, rig->now_ns, &late);
    assert_true(late.amount > 0);
    assert_ptr_equal(redis_shares_failed(rig->shares, rig->calls[0].place, true), &request.wait);
    assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_WAIT);
    assert_int_equal(collect(rig), 1);
    assert_int_equal(rig->calls[0].ask.settled[rig->calls[0].ask.place == 0 ? 0 : 1].used +
                         rig->calls[0].ask.settled[rig->calls[0].ask.place == 0 ? 1 : 0].used,
                     0);
    assert_ptr_equal(answer(rig, 0), &request.wait);
    assert_int_equal(rig->servers[0].returned, late.amount);
    assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_DECIDED);
    redis_shares_close(rig->shares);
}

TEST("a key whose call is refused is decided exactly for a second")
{
    struct rig *rig = new_rig();
    struct request request;
    uint64_t refused_ns;

    while (try_key(rig, &request, 0, 1) == REDIS_SHARES_EXACT)
        ;
    assert_int_equal(collect(rig), 1);
    refused_ns = rig->now_ns;
    redis_shares_refused(rig->calls[0].place, refused_ns);
    assert_ptr_equal(redis_shares_failed(rig->shares, rig->calls[0].place, true), &request.wait);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_EXACT);
        assert_int_equal(collect(rig), 0);
        rig->now_ns = refused_ns + (uint64_t)i * SECOND / 10;
    }
    rig->now_ns = refused_ns + SECOND;
    for (int i = 0; i < 1000; i++)
        if (try_key(rig, &request, 0, 1) == REDIS_SHARES_WAIT)
            break;
    assert_int_equal(collect(rig), 1);
    assert_ptr_equal(answer(rig, 0), &request.wait);
    assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_DECIDED);
    redis_shares_close(rig->shares);
}

TEST("nothing is asked for where nobody would answer")
{
    struct rig *rig = new_rig();
    struct request request;

    warm(rig, 0);
    for (int i = 0; i < 2000; i++) {
        add(begin(&request), &rig->limit, 0, 1);
        if (redis_shares_try(rig->shares, &request.decision, NULL, rig->now_ns) ==
            REDIS_SHARES_EXACT)
            break;
        assert_int_equal(request.decision.verdict, WEIR_ALLOWED);
    }
    assert_int_equal(redis_shares_try(rig->shares, &request.decision, NULL, rig->now_ns),
                     REDIS_SHARES_EXACT);
    assert_int_equal(collect(rig), 0);
    redis_shares_close(rig->shares);
}

TEST("idle portions go back and the key is cold again")
{
    struct rig *rig = new_rig();
    struct request request;
    uint64_t due_ns;

    warm(rig, 0);
    due_ns = redis_shares_tick(rig->shares, rig->now_ns);
    assert_in_range(due_ns, rig->now_ns + 1, rig->now_ns + SECOND / 3);
    assert_int_equal(collect(rig), 0);
    rig->now_ns = due_ns;
    (void)redis_shares_tick(rig->shares, rig->now_ns);
    assert_int_equal(collect(rig), 1);
    assert_int_equal(rig->calls[0].ask.want, 0);
    assert_null(answer(rig, 0));
    assert_int_equal(rig->servers[0].charged - rig->servers[0].returned, 1);
    assert_int_equal(redis_shares_counters(rig->shares)->held, 0);
    assert_int_equal(redis_shares_counters(rig->shares)->returns, 1);
    assert_int_equal(redis_shares_busy(rig->shares), 0);
    assert_int_equal(redis_shares_tick(rig->shares, rig->now_ns), WEIR_NEVER);
    assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_EXACT);
    redis_shares_close(rig->shares);
}

TEST("another limit begins with no portion")
{
    struct rig *rig = new_rig();
    struct request request;

    warm(rig, 0);
    add(begin(&request), &rig->other, 0, 1);
    assert_int_equal(try(rig, &request), REDIS_SHARES_EXACT);
    assert_int_equal(collect(rig), 1);
    assert_int_equal(rig->calls[0].ask.want, 0);
    assert_int_equal(rig->calls[0].check->limit->spec.rate, 1000);
    assert_string_equal(rig->calls[0].check->limit->name, "api");
    assert_null(answer(rig, 0));
    assert_int_equal(rig->servers[0].charged - rig->servers[0].returned, 1);
    redis_shares_close(rig->shares);
}

/* As a reload with another hash_tag does: the state has another name then. */
TEST("another tag begins with no portion")
{
    struct rig *rig = new_rig();
    struct request request;

    warm(rig, 0);
    add(begin(&request), &rig->limit, 0, 1)->tag = 7;
    assert_int_equal(try(rig, &request), REDIS_SHARES_EXACT);
    assert_int_equal(collect(rig), 1);
    assert_int_equal(rig->calls[0].ask.want, 0);
    assert_int_equal(rig->calls[0].check->tag, 0);
    assert_ptr_equal(answer(rig, 0), NULL);
    assert_int_equal(rig->servers[0].charged - rig->servers[0].returned, 1);
    redis_shares_close(rig->shares);
}

TEST("a full table gives back for the key that makes room")
{
    static struct rig rig;
    struct request request;

    open_rig(&rig, 8); /* one set */
    for (uint64_t key = 0; key < 8; key++) {
        rig.now_ns += MS;
        warm(&rig, key);
    }
    for (int i = 0; i < 100 && redis_shares_busy(rig.shares) == 0; i++)
        assert_int_equal(try_key(&rig, &request, 8, 1), REDIS_SHARES_EXACT);
    assert_int_equal(collect(&rig), 1);
    assert_int_equal(rig.calls[0].check->hash[0], 0); /* idle longest */
    assert_int_equal(rig.calls[0].ask.want, 0);
    assert_null(answer(&rig, 0));
    assert_int_equal(redis_shares_counters(rig.shares)->held, 7);
    redis_shares_close(rig.shares);
}

TEST("at the end everything goes back")
{
    struct rig *rig = new_rig();
    struct request request;

    for (uint64_t key = 0; key < 5; key++)
        warm(rig, key);
    redis_shares_end(rig->shares);
    assert_int_equal(try_key(rig, &request, 0, 1), REDIS_SHARES_EXACT);
    assert_int_equal(redis_shares_busy(rig->shares), 5);
    assert_int_equal(collect(rig), 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_null(answer(rig, i));
    assert_int_equal(redis_shares_busy(rig->shares), 0);
    for (uint64_t key = 0; key < 5; key++)
        assert_int_equal(rig->servers[key].charged - rig->servers[key].returned, 1);
    redis_shares_close(rig->shares);
}

TEST("options out of range are refused")
{
    struct redis_shares *shares;
    struct redis_shares_options options = {.holder = 0};

    assert_int_equal(redis_shares_open(&shares, &options), WEIR_ERR_RANGE);
    options.holder = UINT64_C(1) << 53;
    assert_int_equal(redis_shares_open(&shares, &options), WEIR_ERR_RANGE);
    options.holder = 1;
    options.keys_max = (UINT32_C(1) << 24) + 1;
    assert_int_equal(redis_shares_open(&shares, &options), WEIR_ERR_RANGE);
}

/* --- Random ---------------------------------------------------------------------------------- */

#define REQUESTS 200

/* Answers a call, or lets it fail. */
static void end_call(struct rig *rig, uint32_t call, uint64_t *random)
{
    const struct redis_shares_wait *woken;

    if (draw_below(random, 10) > 0)
        woken = answer(rig, call);
    else
        woken =
            redis_shares_failed(rig->shares, rig->calls[call].place, draw_below(random, 2) == 0);
    for (; woken != NULL; woken = woken->next)
        assert_null(woken->place);
}

/* Two keys a decision, calls that fail or are answered late, limits that change, requests that
 * leave: no key ever admits more than its portions were, and nothing stays behind. */
TEST("random use never spends what it has not")
{
    static struct rig rig;
    static struct request requests[REQUESTS];
    static uint64_t spent[KEYS];
    uint64_t random = 42, decided = 0;
    bool waits[REQUESTS] = {false};

    open_rig(&rig, 8);
    memset(spent, 0, sizeof spent);
    for (int step = 0; step < 60000; step++) {
        uint32_t i = (uint32_t)draw_below(&random, REQUESTS);
        struct request *request = &requests[i];

        rig.now_ns += draw_below(&random, 100) * 1000;
        if (draw_below(&random, 2000) == 0)
            rig.now_ns += draw_below(&random, 3 * SECOND);
        (void)redis_shares_tick(rig.shares, rig.now_ns);
        if (waits[i] && request->wait.place != NULL) {
            if (draw_below(&random, 10) == 0) {
                redis_shares_leave(rig.shares, &request->wait);
                waits[i] = false;
            }
        } else {
            const struct weir_limit *limit =
                draw_below(&random, 300) == 0 ? &rig.other : &rig.limit;

            begin(request);
            add(request, limit, draw_below(&random, 5), 1 + draw_below(&random, 3));
            if (draw_below(&random, 3) == 0)
                add(request, limit, 5 + draw_below(&random, KEYS - 5), 1);
            waits[i] = false;
            switch (try(&rig, request)) {
            case REDIS_SHARES_DECIDED:
                decided++;
                for (uint16_t j = 0; j < request->decision.count; j++)
                    if (request->outcomes[j].charged)
                        spent[request->checks[j].hash[0]] += request->checks[j].cost;
                break;
            case REDIS_SHARES_WAIT:
                waits[i] = true;
                break;
            default:
                break;
            }
        }
        if (draw_below(&random, 3) == 0) {
            collect(&rig);
            for (uint32_t call = 0; call < rig.call_count; call++)
                end_call(&rig, call, &random);
        }
        for (uint32_t key = 0; key < KEYS; key++)
            assert_true(spent[key] <= rig.servers[key].charged - rig.servers[key].returned);
    }
    assert_true(decided > 3000);
    redis_shares_end(rig.shares);
    while (redis_shares_busy(rig.shares) > 0) {
        collect(&rig);
        for (uint32_t call = 0; call < rig.call_count; call++)
            (void)answer(&rig, call);
    }
    assert_int_equal(redis_shares_counters(rig.shares)->held, 0);
    redis_shares_close(rig.shares);
}

/* --- Lending ---------------------------------------------------------------------------------- */

static struct rig *lending_rig(void)
{
    struct rig *rig = new_rig();
    const struct redis_shares_options options = {.holder = 78, .keys_max = 64, .lends = true};

    redis_shares_close(rig->shares);
    assert_int_equal(redis_shares_open(&rig->shares, &options), 0);
    return rig;
}

struct lending {
    struct weir_outcome outcome;
    struct weir_lent lent;
    struct weir_check check;
};

static bool lend(struct rig *rig, enum weir_lend how, bool asks, uint64_t cost,
                 struct lending *lending)
{
    lending->check =
        (struct weir_check){.limit = &rig->limit, .hash = {3, 3}, .cost = cost, .key = {"d", 1}};
    return redis_shares_lend(rig->shares, how, asks, &lending->check, rig->now_ns,
                             &lending->outcome, &lending->lent);
}

/* Sends the one call that is due; its answer comes so much later. */
static void answer_call(struct rig *rig, uint64_t after_ns)
{
    struct redis_shares_call call;
    struct share_reply reply;

    assert_true(redis_shares_next(rig->shares, rig->now_ns, &call));
    share_server_execute(&rig->servers[3], call.check->limit, &call.ask, rig->now_ns, &reply);
    rig->now_ns += after_ns;
    assert_null(redis_shares_answered(rig->shares, call.place, &reply, rig->now_ns));
    assert_false(redis_shares_next(rig->shares, rig->now_ns, &call));
}

TEST("a key is lent after it was asked for ahead")
{
    struct rig *rig = lending_rig();
    struct lending lending;

    /* a key that comes once costs no call and has no entry; a look is of no effect */
    assert_false(lend(rig, WEIR_LEND_AHEAD, true, 1, &lending));
    assert_false(lend(rig, WEIR_LEND_LOOK, true, 1, &lending));
    assert_int_equal(redis_shares_busy(rig->shares), 0);
    assert_int_equal(redis_shares_counters(rig->shares)->held, 0);
    assert_false(lend(rig, WEIR_LEND_AHEAD, true, 1, &lending));
    assert_int_equal(redis_shares_busy(rig->shares), 1);
    answer_call(rig, 200 * MS);
    assert_int_equal(redis_shares_counters(rig->shares)->roundtrip_ns, 200 * MS);
    assert_true(lend(rig, WEIR_LEND_LOOK, true, 1, &lending));
    assert_int_equal(lending.lent.units[0] + lending.lent.units[1], 0);
    assert_true(lend(rig, WEIR_LEND_TAKE, true, 2, &lending));
    assert_int_equal(lending.lent.units[0] + lending.lent.units[1], 2);
    assert_true(lending.outcome.reported);
    assert_int_equal(lending.outcome.report.limit, rig->limit.capacity);
    /* a check that was sent has its tag, one whose denial was remembered has none */
    lending.check.tag = weir_check_tag(&lending.check);
    assert_true(redis_shares_lend(rig->shares, WEIR_LEND_TAKE, true, &lending.check, rig->now_ns,
                                  &lending.outcome, &lending.lent));
    assert_int_equal(redis_shares_counters(rig->shares)->held, 1);
    redis_shares_close(rig->shares);
}

TEST("a denial asks once and waits a round trip")
{
    struct rig *rig = lending_rig();
    struct lending lending;

    for (int i = 0; i < 5; i++) {
        assert_false(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
        assert_int_equal(lending.outcome.verdict, WEIR_DENIED);
        assert_in_range(lending.outcome.report.retry_after_ns, 1, SECOND);
    }
    assert_int_equal(redis_shares_busy(rig->shares), 1);
    answer_call(rig, 10 * MS);
    assert_true(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
    redis_shares_close(rig->shares);
}

TEST("no question goes to a region that is gone")
{
    struct rig *rig = lending_rig();
    struct lending lending;

    assert_false(lend(rig, WEIR_LEND_TAKE, false, 1, &lending));
    assert_false(lend(rig, WEIR_LEND_AHEAD, false, 1, &lending));
    assert_false(lend(rig, WEIR_LEND_LOOK, true, 1, &lending));
    assert_int_equal(redis_shares_busy(rig->shares), 0);
    redis_shares_close(rig->shares);
}

/* A denial says the floor's wait then, rather than a round trip after which nothing has come. */
TEST("the wait is not known where nothing is on its way")
{
    struct rig *rig = lending_rig();
    struct lending lending;

    assert_false(lend(rig, WEIR_LEND_TAKE, false, 1, &lending));
    assert_int_equal(lending.outcome.report.retry_after_ns, WEIR_NEVER);
    assert_false(lend(rig, WEIR_LEND_LOOK, true, 1, &lending));
    assert_int_equal(lending.outcome.report.retry_after_ns, WEIR_NEVER);
    assert_false(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
    assert_in_range(lending.outcome.report.retry_after_ns, 1, SECOND);
    assert_false(lend(rig, WEIR_LEND_LOOK, true, 1, &lending));
    assert_in_range(lending.outcome.report.retry_after_ns, 1, SECOND);
    assert_false(lend(rig, WEIR_LEND_TAKE, false, 1, &lending));
    assert_int_equal(lending.outcome.report.retry_after_ns, WEIR_NEVER);
    answer_call(rig, 10 * MS);
    redis_shares_close(rig->shares);
}

/* Calls that take so long make portions of a short window worthless, until that was long ago. */
TEST("a slow answer does not end lending for good")
{
    struct rig *rig = lending_rig();
    struct lending lending;

    assert_false(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
    answer_call(rig, 30 * SECOND);
    assert_false(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
    assert_int_equal(lending.outcome.report.retry_after_ns, WEIR_NEVER);
    assert_int_equal(redis_shares_busy(rig->shares), 0);
    rig->now_ns += 20 * SHARE_ROUNDTRIP_OLD_NS;
    assert_false(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
    assert_int_equal(redis_shares_busy(rig->shares), 1);
    answer_call(rig, 10 * MS);
    assert_true(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
    redis_shares_close(rig->shares);
}

TEST("lent units end with their portion")
{
    struct rig *rig = lending_rig();
    struct lending lending;

    assert_false(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
    answer_call(rig, 10 * MS);
    assert_true(lend(rig, WEIR_LEND_LOOK, false, 1, &lending));
    rig->now_ns += SHARE_LENT_LIFE_MAX_NS;
    assert_false(lend(rig, WEIR_LEND_LOOK, false, 1, &lending));
    redis_shares_close(rig->shares);
}

TEST("units come back and then to the home")
{
    struct rig *rig = lending_rig();
    struct lending lending;
    struct redis_shares_call call;

    assert_false(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
    answer_call(rig, 10 * MS);
    assert_true(lend(rig, WEIR_LEND_TAKE, false, 1, &lending));
    redis_shares_put_back(rig->shares, &lending.check, &lending.lent);
    /* a key without a state, and units of portions that are gone */
    lending.check.hash[0] = 5;
    redis_shares_put_back(rig->shares, &lending.check, &lending.lent);
    lending.check.hash[0] = 3;
    rig->now_ns += SHARE_LENT_LIFE_MAX_NS / 2;
    (void)redis_shares_tick(rig->shares, rig->now_ns);
    assert_true(redis_shares_next(rig->shares, rig->now_ns, &call));
    assert_int_equal(call.ask.want, 0);
    assert_int_equal(call.ask.settled[0].used + call.ask.settled[1].used, 0);
    assert_null(redis_shares_failed(rig->shares, call.place, false));
    redis_shares_close(rig->shares);
}

TEST("what cannot be lent is denied")
{
    struct rig *rig = lending_rig();
    struct lending lending;

    assert_false(lend(rig, WEIR_LEND_TAKE, true, 0, &lending));
    assert_false(lend(rig, WEIR_LEND_TAKE, true, 5000, &lending)); /* more than the limit */
    assert_int_equal(lending.outcome.report.retry_after_ns, WEIR_NEVER);
    assert_int_equal(redis_shares_busy(rig->shares), 0);
    redis_shares_end(rig->shares);
    assert_false(lend(rig, WEIR_LEND_TAKE, true, 1, &lending));
    redis_shares_close(rig->shares);
}

RUN_TESTS()
