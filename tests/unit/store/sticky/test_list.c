/* SPDX-License-Identifier: Apache-2.0 */
/* Another list of nodes while decisions are at the peers of the one before. Peers are players on
 * the test's loop, which answer at once or when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "feature/sticky/store/sticky.h"
#include "redis_player.h"
#include "table/table.h"

#define START UINT64_C(1700000000123456789)
#define PATIENCE_NS UINT64_C(60000000000)
#define NODES 3
#define RATE 100

struct fixture;

struct node {
    struct redis_player player; /* first */
    struct fixture *fixture;
    struct redis_url url;
    struct sticky_peer_stats stats;
    bool holds;              /* its answers */
    struct redis_peer *held; /* who waits for the last of them */
    char answer[STICKY_ANSWER_MAX];
    long size;
    int asked, ups, gone;
};

struct one {
    struct weir_check check;
    struct weir_outcome outcome;
    struct weir_decision decision;
    int done, error;
};

struct fixture {
    uv_loop_t loop;
    uv_timer_t guard;
    struct weir_table *table, *remote; /* this node's; that of all others */
    struct weir_store *embedded, *far, *store;
    struct weir_limit limit, far_limit;
    struct node nodes[NODES];
    uint32_t home; /* of all tags */
};

static void on_guard(uv_timer_t *timer)
{
    (void)timer;
}

static void until(struct fixture *f, const int *value, int wanted)
{
    uint64_t deadline = uv_hrtime() + PATIENCE_NS;
    while (*value != wanted) {
        assert_true(uv_hrtime() < deadline);
        uv_run(&f->loop, UV_RUN_ONCE);
    }
}

/* --- Peers ------------------------------------------------------------------------------------ */

static int find(void *context, struct sticky_check *read, const struct weir_limit **limit,
                struct weir_reason *reason)
{
    struct fixture *f = context;
    (void)reason;
    assert_true(weir_bytes_are(read->name, "api"));
    *limit = &f->far_limit;
    return 0;
}

static void say_answer(struct node *node, struct redis_peer *peer)
{
    char head[32];
    snprintf(head, sizeof head, "$%ld\r\n", node->size);
    redis_player_say_text(peer, head);
    redis_player_say(peer, node->answer, (size_t)node->size);
    redis_player_say_text(peer, "\r\n");
}

static bool answer(struct redis_player *player, struct redis_peer *peer,
                   const struct weir_resp_request *request)
{
    struct node *node = (struct node *)(void *)player;
    struct fixture *f = node->fixture;
    struct weir_reason reason = {{0}};
    if (!weir_resp_is(request->args[0], "WEIR.DECIDE"))
        return false;
    node->size = sticky_decide(f->far, weir_table_secret(f->remote), request->args[1], START, find,
                               f, node->answer, &reason);
    assert_true(node->size > 0);
    node->asked++;
    node->held = peer;
    if (!node->holds)
        say_answer(node, peer);
    return true;
}

static void open_nodes(struct fixture *f)
{
    for (int i = 0; i < NODES; i++) {
        struct node *node = &f->nodes[i];
        struct weir_reason reason = {{0}};
        redis_player_open(&node->player, &f->loop);
        node->player.answer = answer;
        node->fixture = f;
        assert_int_equal(redis_url_parse(&node->url, node->player.url, &reason), 0);
    }
}

/* --- The store -------------------------------------------------------------------------------- */

static uint32_t home(void *context, uint64_t tag)
{
    const struct fixture *f = context;
    (void)tag;
    return f->home;
}

static void on_event(void *context, void *owner, bool up, const char *text)
{
    struct node *node = owner;
    assert_ptr_equal(context, node->fixture);
    assert_true(up && text);
    node->ups++;
}

static void on_gone(void *context, void *owner)
{
    struct node *node = owner;
    assert_ptr_equal(context, node->fixture);
    node->gone++;
}

static void on_done(void *context, struct weir_decision *decision, int error)
{
    struct one *one = decision->owner;
    (void)context;
    one->done++;
    one->error = error;
}

static struct sticky_peer peer_of(struct node *node, uint32_t from)
{
    return (struct sticky_peer){
        .url = &node->url, .stats = &node->stats, .owner = node, .from = from};
}

static const struct sticky_peer self = {.from = STICKY_NEW};

static void make_limit(struct weir_store *store, struct weir_limit *limit)
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_FIXED_WINDOW, .rate = RATE, .window_ns = UINT64_C(86400000000000)};
    assert_int_equal(weir_limit_init(limit, &spec, NULL), 0);
    limit->name = "api";
    assert_int_equal(weir_store_prepare(store, NULL, limit, &(struct weir_reason){{0}}), 0);
}

/* This node and the first peer, which is reached. */
static int set_up(void **state)
{
    static struct fixture f;
    const struct weir_table_options table = {.bytes = WEIR_TABLE_BYTES_MIN, .wall_ns = START};
    struct weir_reason reason;
    memset(&f, 0, sizeof f);
    assert_int_equal(uv_loop_init(&f.loop), 0);
    uv_timer_init(&f.loop, &f.guard);
    uv_timer_start(&f.guard, on_guard, 100, 100);
    assert_int_equal(weir_table_open(&f.table, &table, NULL), 0);
    assert_int_equal(weir_table_open(&f.remote, &table, NULL), 0);
    assert_int_equal(weir_store_embedded_open(&f.embedded, f.table), 0);
    assert_int_equal(weir_store_embedded_open(&f.far, f.remote), 0);
    open_nodes(&f);
    const struct sticky_peer peers[] = {self, peer_of(&f.nodes[0], STICKY_NEW)};
    const struct sticky_options options = {
        .loop = &f.loop,
        .table = f.embedded,
        .table_secret = weir_table_secret(f.table),
        .peers = peers,
        .peer_count = 2,
        .home = home,
        .event = on_event,
        .gone = on_gone,
        .context = &f,
    };
    assert_int_equal(weir_store_sticky_open(&f.store, &options, &reason), 0);
    f.store->done = on_done;
    f.home = 1;
    make_limit(f.embedded, &f.limit);
    make_limit(f.far, &f.far_limit);
    until(&f, &f.nodes[0].ups, 1);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    f->store->ops->close(f->store);
    for (int i = 0; i < NODES; i++)
        redis_player_close(&f->nodes[i].player);
    uv_close((uv_handle_t *)&f->guard, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    f->embedded->ops->close(f->embedded);
    f->far->ops->close(f->far);
    weir_table_close(f->table);
    weir_table_close(f->remote);
    return 0;
}

static void submit(struct fixture *f, struct one *one)
{
    struct weir_decision *batch[1] = {&one->decision};
    *one = (struct one){.check = {.limit = &f->limit,
                                  .hash = {3, 4},
                                  .cost = 1,
                                  .key = weir_bytes_of("user=x"),
                                  .tag = 7}};
    one->decision = (struct weir_decision){.checks = &one->check,
                                           .outcomes = &one->outcome,
                                           .count = 1,
                                           .owner = one,
                                           .deadline_ns = START + PATIENCE_NS};
    assert_int_equal(f->store->ops->submit(f->store, START, batch, 1), 1);
}

/* Decides one at the peer, which is asked once more. */
static void decide(struct fixture *f, struct node *node)
{
    struct one one;
    int asked = node->asked;
    submit(f, &one);
    f->store->ops->flush(f->store);
    until(f, &one.done, 1);
    assert_int_equal(one.error, 0);
    assert_int_equal(one.decision.verdict, WEIR_ALLOWED);
    assert_int_equal(node->asked, asked + 1);
}

static int set_peers(struct fixture *f, const struct sticky_peer *peers, uint32_t count)
{
    struct weir_reason reason = {{0}};
    return weir_store_sticky_set_peers(f->store, peers, count, NULL, &reason);
}

/* A decision that the first peer holds. */
static void begin_held(struct fixture *f, struct one *one)
{
    f->nodes[0].holds = true;
    submit(f, one);
    f->store->ops->flush(f->store);
    until(f, &f->nodes[0].asked, 1);
}

static uint64_t used(const struct fixture *f, const struct one *one)
{
    struct weir_report report;
    (void)f;
    weir_decision_report(&one->decision, 0, &report);
    return RATE - report.remaining;
}

/* --- Cases ------------------------------------------------------------------------------------ */

static void a_decision_at_a_peer_that_leaves_is_answered_by_it(void **state)
{
    struct fixture *f = *state;
    struct node *old = &f->nodes[0], *next = &f->nodes[1];
    struct one held;
    begin_held(f, &held);
    const struct sticky_peer peers[] = {self, peer_of(next, STICKY_NEW)};
    assert_int_equal(set_peers(f, peers, 2), 0);
    assert_int_equal(old->stats.up, 0);
    until(f, &next->ups, 1);
    decide(f, next);
    assert_int_equal(held.done, 0);
    assert_int_equal(old->gone, 0);
    say_answer(old, old->held);
    until(f, &held.done, 1);
    assert_int_equal(held.error, 0);
    assert_int_equal(used(f, &held), 1); /* it was charged first, and once */
    until(f, &old->gone, 1);
    while (old->player.peers)
        uv_run(&f->loop, UV_RUN_ONCE);
    assert_int_equal(old->asked, 1);
    assert_int_equal(old->player.connections, 1);
    assert_int_equal(old->stats.calls, 1);
    assert_int_equal(old->stats.answered, 1);
    assert_int_equal(next->stats.calls, 1);
}

static void a_decision_that_waits_for_the_flush_is_sent_to_the_peer_that_leaves(void **state)
{
    struct fixture *f = *state;
    struct one one;
    submit(f, &one);
    assert_int_equal(set_peers(f, &self, 1), 0);
    until(f, &one.done, 1);
    assert_int_equal(one.error, 0);
    assert_int_equal(f->nodes[0].asked, 1);
    until(f, &f->nodes[0].gone, 1);
}

static void a_peer_that_stays_keeps_its_connection_under_another_number(void **state)
{
    struct fixture *f = *state;
    struct node *stays = &f->nodes[0], *joins = &f->nodes[1];
    struct one held;
    begin_held(f, &held);
    const struct sticky_peer peers[] = {peer_of(joins, STICKY_NEW), peer_of(stays, 1), self};
    assert_int_equal(set_peers(f, peers, 3), 0);
    assert_int_equal(stays->stats.up, 1);
    until(f, &joins->ups, 1);
    f->home = 0;
    decide(f, joins);
    say_answer(stays, stays->held);
    until(f, &held.done, 1);
    stays->holds = false;
    f->home = 1;
    decide(f, stays);
    f->home = 2; /* this node */
    struct one own;
    struct weir_decision *batch[1] = {&own.decision};
    own = held;
    assert_int_equal(f->store->ops->submit(f->store, START, batch, 1), 0);
    assert_int_equal(own.decision.verdict, WEIR_ALLOWED);
    assert_int_equal(stays->player.connections, 1);
    assert_int_equal(stays->gone, 0);
    assert_int_equal(stays->stats.calls, 2);
}

static void a_decision_that_is_given_up_ends_the_connection_of_a_peer_that_left(void **state)
{
    struct fixture *f = *state;
    struct node *old = &f->nodes[0];
    struct one held;
    begin_held(f, &held);
    assert_int_equal(set_peers(f, &self, 1), 0);
    f->store->ops->cancel(f->store, &held.decision);
    until(f, &old->gone, 1);
    assert_int_equal(held.done, 0);
}

static void a_peer_that_leaves_and_comes_back_counts_for_the_same_stats(void **state)
{
    struct fixture *f = *state;
    struct node *node = &f->nodes[0];
    struct one held;
    begin_held(f, &held);
    const struct sticky_peer peers[] = {self, peer_of(node, STICKY_NEW)}; /* another connection */
    struct redis_peer *first = node->held;
    assert_int_equal(set_peers(f, peers, 2), 0);
    assert_int_equal(node->stats.up, 0);
    until(f, &node->ups, 2);
    assert_int_equal(node->stats.up, 1);
    node->holds = false;
    say_answer(node, first);
    until(f, &held.done, 1);
    until(f, &node->gone, 1);
    assert_int_equal(node->stats.up, 1);
    decide(f, node);
    assert_int_equal(node->stats.calls, 2);
    assert_int_equal(node->player.connections, 2);
}

static void a_list_that_cannot_be_taken_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct node *node = &f->nodes[0];
    struct redis_url bad = f->nodes[1].url;
    bad.tls = true;
    bad.ca_file = "/nonexistent/ca.pem";
    struct sticky_peer peers[] = {self, peer_of(node, STICKY_NEW),
                                  peer_of(&f->nodes[1], STICKY_NEW),
                                  peer_of(&f->nodes[2], STICKY_NEW)};
    peers[2].url = &bad;
    assert_int_equal(set_peers(f, peers, 4), WEIR_ERR_IO);
    assert_int_equal(node->stats.up, 1);
    decide(f, node);
    assert_int_equal(node->ups, 1);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(f->nodes[i].gone, 0);
}

static void the_store_may_be_closed_while_a_peer_leaves(void **state)
{
    struct fixture *f = *state;
    struct one held;
    begin_held(f, &held);
    const struct sticky_peer peers[] = {self, peer_of(&f->nodes[1], STICKY_NEW)};
    assert_int_equal(set_peers(f, peers, 2), 0);
    until(f, &f->nodes[1].ups, 1);
}

static int tear_down_all_gone(void **state)
{
    struct fixture *f = *state;
    int err = tear_down(state);
    return err < 0 || f->nodes[0].gone != 1 || f->nodes[1].gone != 1 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_decision_at_a_peer_that_leaves_is_answered_by_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_decision_that_waits_for_the_flush_is_sent_to_the_peer_that_leaves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_stays_keeps_its_connection_under_another_number,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_decision_that_is_given_up_ends_the_connection_of_a_peer_that_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_leaves_and_comes_back_counts_for_the_same_stats,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_that_cannot_be_taken_changes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_store_may_be_closed_while_a_peer_leaves, set_up,
                                        tear_down_all_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
