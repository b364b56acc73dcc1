/* SPDX-License-Identifier: Apache-2.0 */
/* lua/share.lua through a real redis-server beside share_server.c, call for call: random calls of
 * three holders, repeated and overtaken ones, among exact decisions on the same state. And what no
 * random trace says: that every key expires, and that no reply of another caller's is taken for
 * ours. */
#include "script_rig.h"
#include "test.h"

#include "share_server.h"
#include "store/redis/script/key.h"
#include "store/redis/share/script.h"

#define HOLDERS 3

struct holder {
    uint64_t last_id;
    struct share_settlement portions[SHARE_PORTIONS]; /* used: units given */
};

struct pair {
    struct script_rig *rig;
    struct share_server model;
    struct weir_limit limit;
    struct one one; /* the key */
    struct holder holders[HOLDERS];
    uint64_t random, now_ns;
    uint64_t given, refused, too_short, forfeited, repeated, exact;
};

static int call_server(struct pair *pair, const struct share_call *call, uint64_t now_ns,
                       struct share_reply *reply, struct weir_reason *reason)
{
    const struct weir_check *check = &pair->one.checks[0];
    size_t room = share_script_size("weir:", check);
    char *bytes = malloc(room);
    const struct redis_script *script = NULL;
    uint16_t slot;
    size_t size = share_script_write("weir:", check, call, now_ns / 1000, bytes, &script, &slot);

    assert_true(size <= room);
    assert_int_equal(slot, redis_key_cluster_slot(redis_key_tag(check)));
    redis_link_exchange(&pair->rig->link, bytes, size);
    free(bytes);
    return share_script_read(check, call, pair->rig->link.nodes, pair->rig->link.count, reply,
                             reason);
}

static void exchange(struct pair *pair, const struct share_call *call, struct share_reply *reply)
{
    struct share_reply expected;
    struct weir_reason reason = {""};

    share_server_execute(&pair->model, &pair->limit, call, pair->now_ns, &expected);
    if (call_server(pair, call, pair->now_ns, reply, &reason) != 0)
        fail_msg("%s", reason.text);
    assert_int_equal(reply->id, expected.id);
    assert_int_equal(reply->amount, expected.amount);
    assert_int_equal(reply->life_ns, expected.life_ns);
    assert_int_equal(reply->renewable, expected.renewable);
    assert_int_equal(reply->too_short, expected.too_short);
    assert_int_equal(reply->remaining, expected.remaining);
    assert_int_equal(reply->retry_ns, expected.retry_ns);
    assert_int_equal(reply->reset_ns, expected.reset_ns);
    assert_int_equal(reply->forfeited, expected.forfeited);
}

static void settle_some(struct pair *pair, struct holder *holder, struct share_call *call)
{
    for (int i = 0; i < SHARE_PORTIONS; i++) {
        struct share_settlement *portion = &holder->portions[i];

        if (portion->id == 0 || (i != call->place && draw_below(&pair->random, 3) > 0))
            continue;
        call->settled[i].id = portion->id + (draw_below(&pair->random, 20) == 0);
        call->settled[i].used = draw_below(&pair->random, 3) == 0
                                    ? portion->used
                                    : draw_below(&pair->random, portion->used + 1);
        portion->id = 0;
    }
}

static void one_call(struct pair *pair)
{
    uint64_t i = draw_below(&pair->random, HOLDERS), capacity = pair->limit.capacity;
    struct holder *holder = &pair->holders[i];
    struct share_terms terms;
    struct share_call call = {.holder = i + 1, .place = (uint8_t)draw_below(&pair->random, 2)};
    struct share_reply reply;

    assert_true(share_terms_init(&terms, &pair->limit, 0));
    call.id = draw_below(&pair->random, 20) == 0
                  ? holder->last_id
                  : holder->last_id + 1 + draw_below(&pair->random, 3);
    call.id += call.id == 0;
    call.need = 1 + draw_below(&pair->random,
                               draw_below(&pair->random, 10) == 0 ? capacity : capacity / 20);
    call.want =
        draw_below(&pair->random, 5) == 0 ? 0 : call.need + draw_below(&pair->random, capacity / 4);
    call.demand = 1 + draw_below(&pair->random, 100000);
    call.life_ns = terms.life_ns;
    call.life_long_ns = terms.life_long_ns;
    call.life_min_ns = terms.life_min_ns;
    settle_some(pair, holder, &call);
    exchange(pair, &call, &reply);
    if (call.id <= holder->last_id) {
        pair->repeated += reply.amount == 0; /* unless the holder was forgotten meanwhile */
        return;
    }
    holder->last_id = call.id;
    if (reply.amount > 0)
        holder->portions[call.place] = (struct share_settlement){call.id, reply.amount};
    pair->given += reply.amount > 0;
    pair->refused += call.want > 0 && reply.amount == 0 && !reply.too_short;
    pair->too_short += reply.too_short;
    pair->forfeited += reply.forfeited;
}

static void one_decision(struct pair *pair)
{
    uint64_t cost = 1 + draw_below(&pair->random, pair->limit.capacity / 8);
    bool admits = share_server_decide(&pair->model, &pair->limit, cost, pair->now_ns);

    pair->one.checks[0].cost = cost;
    assert_int_equal(rig_decide(pair->rig, &pair->one, pair->now_ns),
                     admits ? WEIR_ALLOWED : WEIR_DENIED);
    pair->exact++;
}

/* Mostly small steps, now and then to another segment or far away. */
static void pass_time(struct pair *pair)
{
    uint64_t window_ns = pair->limit.spec.window_ns;

    switch (draw_below(&pair->random, 8)) {
    case 0:
        pair->now_ns += draw_below(&pair->random, 2 * window_ns) / US * US;
        break;
    case 1:
    case 2:
        break;
    default:
        pair->now_ns += draw_below(&pair->random, window_ns / 40) / US * US;
        break;
    }
}

static const struct weir_limit_spec specs[] = {
    {.algorithm = WEIR_FIXED_WINDOW, .rate = 100, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .window_ns = MINUTE, .strict = true},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 700, .window_ns = SECOND, .segments = 10},
    {.algorithm = WEIR_SLIDING_WINDOW,
     .rate = 5000,
     .window_ns = MINUTE,
     .segments = 60,
     .strict = true},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 200, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 1000, .window_ns = 10 * SECOND},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = 1000, .window_ns = SECOND, .burst = 200},
    {.algorithm = WEIR_GCRA, .rate = 777, .window_ns = SECOND, .burst = 333},
    {.algorithm = WEIR_LEAKY_BUCKET, .rate = 9973, .window_ns = MINUTE, .burst = 997},
    {.algorithm = WEIR_GCRA, .rate = (UINT64_C(1) << 39) - 7, .window_ns = SECOND + US},
};

TEST("the script gives and takes back as its model does")
{
    static struct pair pair;

    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        memset(&pair, 0, sizeof pair);
        pair.rig = *state;
        pair.random = 12345 + i;
        pair.now_ns = START;
        pair.limit = limit_of(specs[i]);
        begin_one(&pair.one);
        add_check(&pair.one, &pair.limit, 1000 + (unsigned)i, 1);
        for (int step = 0; step < 1500; step++) {
            if (draw_below(&pair.random, 5) == 0)
                one_decision(&pair);
            else
                one_call(&pair);
            pass_time(&pair);
        }
        print_message("%s %lu: %lu given, %lu refused, %lu too short, %lu units forfeited, "
                      "%lu repeated, %lu exact\n",
                      weir_algorithm_name(specs[i].algorithm), specs[i].rate, pair.given,
                      pair.refused, pair.too_short, pair.forfeited, pair.repeated, pair.exact);
        assert_true(pair.given > 100 && pair.refused > 20 && pair.repeated > 20);
    }
}

static void ask(struct pair *pair, struct share_call *call, uint64_t need,
                struct share_reply *reply)
{
    struct weir_reason reason = {""};

    *call = (struct share_call){.id = 1, .holder = 7, .need = need, .want = need, .demand = 1};
    call->life_ns = call->life_long_ns = 100 * MS;
    if (call_server(pair, call, 0, reply, &reason) != 0)
        fail_msg("%s", reason.text);
}

static void open_pair(struct pair *pair, struct script_rig *rig, unsigned key)
{
    memset(pair, 0, sizeof *pair);
    pair->rig = rig;
    pair->limit = limit_of(
        (struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 100, .window_ns = SECOND});
    begin_one(&pair->one);
    add_check(&pair->one, &pair->limit, key, 1);
}

TEST("every key of a share expires")
{
    static struct pair pair;
    struct share_call call;
    struct share_reply reply;
    const struct weir_resp_node *keys;
    uint32_t shares = 0;

    open_pair(&pair, *state, 2000);
    redis_link_say(&pair.rig->link, "FLUSHALL");
    ask(&pair, &call, 10, &reply);
    assert_int_equal(reply.amount, 10);
    keys = redis_link_say(&pair.rig->link, "KEYS *");
    assert_int_equal(keys->count, 2);

    char names[2][128];

    for (uint32_t i = 0; i < 2; i++) {
        const struct weir_bytes name = pair.rig->link.nodes[1 + i].text;

        snprintf(names[i], sizeof names[i], "PTTL %.*s", (int)name.size, name.data);
        shares += memchr(name.data, '^', name.size) != NULL;
    }
    assert_int_equal(shares, 1);
    for (uint32_t i = 0; i < 2; i++)
        assert_in_range(redis_link_say(&pair.rig->link, names[i])->integer, 1, 3200);
}

static enum weir_verdict decide(struct pair *pair, enum weir_op op, uint64_t cost)
{
    pair->one.decision.op = (uint8_t)op;
    pair->one.checks[0].cost = cost;
    return (enum weir_verdict)rig_decide(pair->rig, &pair->one, pair->now_ns);
}

/* Otherwise what is used after the reset would be given back with it. */
TEST("a portion from before a reset gives nothing back")
{
    static struct pair pair;
    struct share_call call = {.id = 1, .holder = 7, .need = 1, .want = 60, .demand = 1};
    struct share_reply reply;
    struct weir_reason reason = {""};

    open_pair(&pair, *state, 5000);
    call.life_ns = call.life_long_ns = 100 * MS;
    pair.now_ns = START;
    assert_int_equal(call_server(&pair, &call, pair.now_ns, &reply, &reason), 0);
    assert_int_equal(reply.amount, 60);
    assert_int_equal(decide(&pair, WEIR_OP_RESET, 0), WEIR_ALLOWED);
    assert_int_equal(decide(&pair, WEIR_OP_DECIDE, pair.limit.capacity), WEIR_ALLOWED);
    call = (struct share_call){.id = 2, .holder = 7, .settled = {{1, 0}}};
    call.life_ns = call.life_long_ns = 100 * MS;
    assert_int_equal(call_server(&pair, &call, pair.now_ns, &reply, &reason), 0);
    assert_int_equal(decide(&pair, WEIR_OP_PEEK, 1), WEIR_DENIED);
}

TEST("a key of somebody else is an error and stays")
{
    static struct pair pair;
    struct share_call call = {.id = 1, .holder = 7, .need = 1, .want = 1, .demand = 1};
    struct share_reply reply;
    struct weir_reason reason = {""};

    open_pair(&pair, *state, 3000);
    call.life_ns = call.life_long_ns = 100 * MS;
    redis_link_say(&pair.rig->link, "FLUSHALL");
    assert_int_equal(call_server(&pair, &call, 0, &reply, &reason), 0);

    char word[160];
    const struct weir_resp_node *keys = redis_link_say(&pair.rig->link, "KEYS *^*");

    assert_int_equal(keys->count, 1);
    snprintf(word, sizeof word, "SET %.*s x", (int)pair.rig->link.nodes[1].text.size,
             pair.rig->link.nodes[1].text.data);
    redis_link_say(&pair.rig->link, word);
    call.id = 2;
    assert_int_equal(call_server(&pair, &call, 0, &reply, &reason), WEIR_ERR_STORE);
    assert_non_null(strstr(reason.text, "WRONGTYPE"));
}

/* Puts the record of another holder, of so many equal bytes, beside those of a key. */
static void put_record(struct pair *pair, unsigned byte, unsigned count)
{
    char word[320], name[128];
    struct weir_bytes key;

    assert_int_equal(redis_link_say(&pair->rig->link, "KEYS *^*")->count, 1);
    key = pair->rig->link.nodes[1].text;
    snprintf(name, sizeof name, "%.*s", (int)key.size, key.data);
    snprintf(word, sizeof word,
             "EVAL redis.call([[HSET]],KEYS[1],8,string.rep(string.char(%u),%u))return(1) 1 %s",
             byte, count, name);
    assert_int_equal(redis_link_say(&pair->rig->link, word)->type, WEIR_RESP_INTEGER);
}

/* Of a newer weir, beside this one during a rollout: no portions, and nothing is changed. */
TEST("shares of another form are refused and stay")
{
    static struct pair pair;
    struct share_call call = {.id = 1, .holder = 7, .need = 1, .want = 9, .demand = 1};
    struct share_reply reply;
    struct weir_reason reason = {""};

    open_pair(&pair, *state, 6000);
    call.life_ns = call.life_long_ns = 100 * MS;
    redis_link_say(&pair.rig->link, "FLUSHALL");
    pair.now_ns = START;
    assert_int_equal(call_server(&pair, &call, START, &reply, &reason), 0);
    assert_int_equal(reply.amount, 9);
    put_record(&pair, 'x', 97);
    call.id = 2;
    assert_int_equal(call_server(&pair, &call, START, &reply, &reason), WEIR_ERR_STORE);
    assert_non_null(strstr(reason.text, "holds shares of form 120, and this weir knows form 1"));
    assert_int_equal(decide(&pair, WEIR_OP_DECIDE, 81), WEIR_ALLOWED); /* exact mode continues */
    assert_int_equal(decide(&pair, WEIR_OP_PEEK, 10), WEIR_DENIED);
    put_record(&pair, 0, 88); /* from before there were forms */
    assert_int_equal(call_server(&pair, &call, START, &reply, &reason), 0);
}

static int read_as(const struct weir_resp_node *nodes, uint32_t count)
{
    static struct pair pair;
    struct share_call call = {.id = 5,
                              .holder = 7,
                              .need = 1,
                              .want = 4,
                              .demand = 1,
                              .life_ns = 1000 * MS,
                              .life_long_ns = 1000 * MS};
    struct share_reply reply;
    struct weir_reason reason = {""};

    open_pair(&pair, NULL, 4000);
    return share_script_read(&pair.one.checks[0], &call, nodes, count, &reply, &reason);
}

/* id, amount, life in us, flags, retry, forfeited */
static struct weir_bytes header(char *out, double id, double amount, double life)
{
    const double numbers[6] = {id, amount, life, 0, 0, 0};

    memcpy(out, numbers, sizeof numbers);
    return (struct weir_bytes){out, sizeof numbers};
}

TEST("only replies of ours are taken")
{
    char head[48], part[25] = {0};
    const double since = 1e12;
    struct weir_resp_node nodes[3];

    memset(nodes, 0, sizeof nodes);
    memcpy(part + 1, &since, 8);
    memcpy(part + 17, &since, 8);
    nodes[0].type = WEIR_RESP_ARRAY;
    nodes[0].count = 2;
    nodes[1].type = nodes[2].type = WEIR_RESP_BULK;
    nodes[2].text = (struct weir_bytes){part, sizeof part};
    nodes[1].text = header(head, 5, 4, 1000);
    assert_int_equal(read_as(nodes, 3), 0);
    nodes[1].text = header(head, 5, 5, 1000); /* more than was asked for */
    assert_int_equal(read_as(nodes, 3), WEIR_ERR_SYNTAX);
    nodes[1].text = header(head, 6, 4, 1000); /* to another call */
    assert_int_equal(read_as(nodes, 3), WEIR_ERR_SYNTAX);
    nodes[1].text = header(head, 5, 4, 2e6); /* for longer than any portion */
    assert_int_equal(read_as(nodes, 3), WEIR_ERR_SYNTAX);
    nodes[1].text = header(head, 5, -1, 1000);
    assert_int_equal(read_as(nodes, 3), WEIR_ERR_SYNTAX);
    nodes[1].text = header(head, 5, 4, 1000);
    nodes[1].text.size--;
    assert_int_equal(read_as(nodes, 3), WEIR_ERR_SYNTAX);
    nodes[1].text.size++;
    nodes[2].text.size--;
    assert_int_equal(read_as(nodes, 3), WEIR_ERR_SYNTAX);
    nodes[2].text.size++;
    assert_int_equal(read_as(nodes, 2), WEIR_ERR_SYNTAX);
    assert_int_equal(read_as(&nodes[2], 1), WEIR_ERR_SYNTAX);
    assert_int_equal(read_as(nodes, 0), WEIR_ERR_SYNTAX);
}

RUN_TESTS_WITH(rig_set_up, rig_tear_down)
