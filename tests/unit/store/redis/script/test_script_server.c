/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts and a real server: expiry, operations on states, reservations, and what goes wrong.
 */
#include "script_rig.h"
#include "test.h"

#include "store/redis/script/key.h"

/* A command on the key of a check. */
static const struct weir_resp_node *ask_key(struct script_rig *rig, const char *command,
                                            const struct weir_check *check, const char *value)
{
    char key[128] = "";
    const char *const words[] = {command, key, value};

    redis_key_write(key, "weir:", check);
    return redis_link_ask(&rig->link, words, NULL, value == NULL ? 2 : 3);
}

static const struct weir_limit_spec all[] = {
    {.algorithm = WEIR_FIXED_WINDOW, .rate = 4, .window_ns = 700 * MS},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 4, .window_ns = 700 * MS},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 4, .window_ns = 700 * MS, .segments = 7},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 4, .window_ns = 700 * MS},
    {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = 700 * MS},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = 999983, .window_ns = DAY},
    {.algorithm = WEIR_LEAKY_QUEUE, .rate = 3, .window_ns = 700 * MS},
    {.algorithm = WEIR_CONCURRENCY, .rate = 4, .window_ns = 700 * MS},
    {.algorithm = WEIR_FIXED_WINDOW, .rate = 4, .window_ns = 366 * DAY},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = 1, .window_ns = 366 * DAY, .burst = 145},
};
#define ALL (sizeof all / sizeof all[0])

TEST("a key expires when its state is fresh")
{
    struct script_rig *rig = *state;

    for (unsigned i = 0; i < ALL; i++) {
        struct weir_limit limit = limit_of(all[i]);
        struct weir_report report;
        struct one one;

        begin_one(&one);
        add_check(&one, &limit, i, i % 3 + 1);
        one.decision.lease.id = i + 1;
        assert_int_equal(rig_decide(rig, &one, 0), WEIR_ALLOWED);
        weir_decision_report(&one.decision, 0, &report);

        uint64_t fresh_ns = one.decision.now_ns + report.reset_after_ns;
        const struct weir_resp_node *expiry = ask_key(rig, "PEXPIRETIME", one.checks, NULL);

        assert_int_equal(expiry->integer, (fresh_ns + MS - 1) / MS);
    }
}

/* The count of a sliding window that was given back leaves the one before, for one window only;
 * what is charged then has to outlive that. */
TEST("a charge after a refund outlives the window before")
{
    struct script_rig *rig = *state;
    const uint64_t year = 366 * DAY; /* so that none ends meanwhile */
    struct weir_limit limit = limit_of(
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = year});
    struct one one;

    begin_one(&one);
    add_check(&one, &limit, 78, 1);
    assert_int_equal(rig_decide(rig, &one, 0), WEIR_ALLOWED);

    /* kind, the window's start, its count, that of the window before, W, now */
    const struct weir_resp_node *reply = ask_key(rig, "GET", one.checks, NULL);
    int64_t expiry = (int64_t)(one.decision.now_ns / year * (year / MS) + 2 * (year / MS));
    const double counts[2] = {0, 1};
    char bytes[41], key[128];

    assert_int_equal(reply->text.size, sizeof bytes);
    memcpy(bytes, reply->text.data, sizeof bytes);
    memcpy(bytes + 9, counts, sizeof counts);
    *redis_key_write(key, "weir:", one.checks) = '\0';

    const char *const words[] = {"SET", key, bytes, "PX", "1000000"};
    const size_t sizes[] = {3, strlen(key), sizeof bytes, 2, 7};

    redis_link_ask(&rig->link, words, sizes, 5);
    assert_int_equal(rig_decide(rig, &one, 0), WEIR_ALLOWED);
    assert_int_equal(ask_key(rig, "PEXPIRETIME", one.checks, NULL)->integer, expiry);
    assert_int_equal(rig_decide(rig, &one, 0), WEIR_ALLOWED);
    assert_int_equal(ask_key(rig, "PEXPIRETIME", one.checks, NULL)->integer, expiry);
}

/* Charges 4 of 10 without use, and then 6 more, after the bucket has regained 2; gives the 4 back.
 */
static bool give_back_unused(struct script_rig *rig, const struct weir_limit *limit, unsigned key)
{
    struct one one;

    begin_one(&one);
    add_check(&one, limit, key, 4);
    assert_int_equal(rig_decide(rig, &one, START), WEIR_ALLOWED);
    one.checks[0].cost = 6;
    assert_int_equal(rig_decide(rig, &one, START + 200 * MS), WEIR_ALLOWED);
    one.checks[0].cost = 4;
    one.decision.op = WEIR_OP_REFUND;
    one.decision.charged_at_ns = START;
    one.decision.unused = true;
    assert_int_equal(rig_decide(rig, &one, START + 200 * MS), WEIR_ALLOWED);
    return one.outcomes[0].charged;
}

static uint64_t left_of(struct script_rig *rig, const struct weir_limit *limit, unsigned key)
{
    struct weir_report report;
    struct one one;

    begin_one(&one);
    add_check(&one, limit, key, 1);
    one.decision.op = WEIR_OP_PEEK;
    (void)rig_decide(rig, &one, START + 200 * MS);
    weir_decision_report(&one.decision, 0, &report);
    return report.remaining;
}

/* Without the first charge the bucket would have stayed full until the second. */
TEST("a bucket takes back no more than it would have")
{
    struct script_rig *rig = *state;
    const struct weir_limit bucket = limit_of(
        (struct weir_limit_spec){.algorithm = WEIR_TOKEN_BUCKET, .rate = 10, .window_ns = SECOND});
    const struct weir_limit window = limit_of((struct weir_limit_spec){
        .algorithm = WEIR_FIXED_WINDOW, .rate = 10, .window_ns = 366 * DAY});

    assert_true(give_back_unused(rig, &bucket, 81));
    assert_int_equal(left_of(rig, &bucket, 81), 4);
    assert_true(give_back_unused(rig, &window, 82));
    assert_int_equal(left_of(rig, &window, 82), 4);
}

TEST("a bucket takes nothing back while shares are out")
{
    struct script_rig *rig = *state;
    const struct weir_limit bucket = limit_of(
        (struct weir_limit_spec){.algorithm = WEIR_TOKEN_BUCKET, .rate = 10, .window_ns = SECOND});
    char key[128];
    struct one one;

    begin_one(&one);
    add_check(&one, &bucket, 83, 1);
    char *end = redis_key_write(key, "weir:", one.checks), *brace = memchr(key, '}', 127);
    assert_non_null(brace);
    memmove(brace + 2, brace + 1, (size_t)(end - brace - 1));
    brace[1] = '^';

    const char *const words[] = {"HSET", key, "holder", "share"};
    const size_t sizes[] = {4, (size_t)(end - key) + 1, 6, 5};

    redis_link_ask(&rig->link, words, sizes, 4);
    assert_false(give_back_unused(rig, &bucket, 83));
    assert_int_equal(left_of(rig, &bucket, 83), 2);

    const char *const away[] = {"DEL", key};
    const size_t away_sizes[] = {3, sizes[1]};

    redis_link_ask(&rig->link, away, away_sizes, 2);
}

TEST("a short window is gone after it")
{
    struct script_rig *rig = *state;
    struct weir_limit limit = limit_of(
        (struct weir_limit_spec){.algorithm = WEIR_FIXED_WINDOW, .rate = 1, .window_ns = 5 * MS});
    struct one one;

    begin_one(&one);
    add_check(&one, &limit, 77, 1);
    for (uint32_t round = 0; round < 5; round++) {
        uint64_t window;

        while (rig_decide(rig, &one, 0) != WEIR_ALLOWED) /* until the next window */
            continue;
        window = one.decision.now_ns / limit.spec.window_ns;
        while (ask_key(rig, "EXISTS", one.checks, NULL)->integer == 1)
            continue;
        assert_true(redis_link_say(&rig->link, "TIME")->count == 2);
        uint64_t now_us = strtoull(rig->link.nodes[1].text.data, NULL, 10) * 1000000 +
                          strtoull(rig->link.nodes[2].text.data, NULL, 10);

        assert_true(now_us * US / limit.spec.window_ns > window);
    }
}

TEST("every key has an expiry whatever is done")
{
    struct script_rig *rig = *state;
    struct weir_limit limits[ALL];
    uint64_t random = 42;

    for (unsigned i = 0; i < ALL; i++)
        limits[i] = limit_of(all[i]);
    for (uint32_t round = 0; round < 2000; round++) {
        uint32_t count = 1 + (uint32_t)(draw_next(&random) % 3);
        struct weir_reason reason;
        struct one one;

        begin_one(&one);
        for (uint32_t i = 0; i < count; i++) {
            unsigned key = (unsigned)(draw_next(&random) % 30);

            add_check(&one, &limits[key % ALL], key * 3 + i, draw_next(&random) % 4)->flags =
                draw_next(&random) % 4;
        }
        one.decision.op = draw_next(&random) % 4;
        one.decision.policy = draw_next(&random) % 3;
        one.decision.lease.id = round + 1;
        one.decision.charged_at_ns = START;
        assert_true(rig_call(rig, &one, draw_next(&random) % 3, 1 + round % 500, 0, &reason) != 0);
    }
    assert_true(redis_link_say(&rig->link, "KEYS *")->count > 20);

    uint32_t keys = rig->link.nodes[0].count;
    char(*names)[160] = calloc(keys, sizeof *names);

    for (uint32_t i = 0; i < keys; i++)
        memcpy(names[i], rig->link.nodes[1 + i].text.data, rig->link.nodes[1 + i].text.size);
    for (uint32_t i = 0; i < keys; i++) {
        const char *const words[] = {"PEXPIRETIME", names[i]};
        int64_t expiry = redis_link_ask(&rig->link, words, NULL, 2)->integer;

        assert_int_not_equal(expiry, -1); /* -2: it went in the meantime */
    }
    free(names);
}

TEST("leases end and states are looked at and forgotten")
{
    struct script_rig *rig = *state;
    struct weir_limit jobs = limit_of(
        (struct weir_limit_spec){.algorithm = WEIR_CONCURRENCY, .rate = 1, .window_ns = HOUR});
    unsigned char digest[REDIS_DIGEST];
    struct one one, end;

    begin_one(&one);
    add_check(&one, &jobs, 5, 1);
    one.decision.lease = (struct weir_lease){7, 3};
    assert_int_equal(rig_decide(rig, &one, START), WEIR_ALLOWED);
    one.decision.lease.id = 8;
    assert_int_equal(rig_decide(rig, &one, START), WEIR_DENIED);

    /* As from a token: tag and digest, no limit. */
    redis_key_digest(&one.checks[0], digest);
    begin_one(&end);
    end.decision.op = WEIR_OP_RELEASE;
    end.decision.count = 1;
    end.checks[0] = (struct weir_check){.tag = redis_key_tag(&one.checks[0]),
                                        .key = {(const char *)digest, sizeof digest}};
    end.decision.lease.id = 8;
    assert_int_equal(rig_decide(rig, &end, START), WEIR_DENIED); /* no such lease */
    end.decision.lease.id = 7;
    assert_int_equal(rig_decide(rig, &end, START), WEIR_ALLOWED);
    assert_int_equal(rig_decide(rig, &end, START), WEIR_DENIED);
    assert_int_equal(rig_decide(rig, &one, START), WEIR_ALLOWED);

    struct weir_limit bucket =
        limit_of((struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 7, .window_ns = SECOND});
    struct one look;
    struct weir_report report;

    bucket.name = "api";
    begin_one(&look);
    add_check(&look, &bucket, 1, 1);
    look.decision.op = WEIR_OP_LOOK;
    assert_int_equal(rig_decide(rig, &look, START), WEIR_DENIED);
    look.decision.op = WEIR_OP_DECIDE;
    assert_int_equal(rig_decide(rig, &look, START), WEIR_ALLOWED);
    look.decision.op = WEIR_OP_LOOK;
    assert_int_equal(rig_decide(rig, &look, START), WEIR_ALLOWED);
    weir_decision_report(&look.decision, 0, &report);
    assert_int_equal(report.reset_after_ns, 142857143);
    look.decision.op = WEIR_OP_RESET;
    assert_int_equal(rig_decide(rig, &look, START), WEIR_ALLOWED);
    assert_int_equal(rig_decide(rig, &look, START), WEIR_DENIED);
}

/* Every kind of state tells the same time of being fresh as its report. */
TEST("a look says what the report said")
{
    struct script_rig *rig = *state;

    for (unsigned i = 0; i < ALL; i++) {
        struct weir_limit limit = limit_of(all[i]);
        struct weir_report before, looked;
        struct one one;

        begin_one(&one);
        add_check(&one, &limit, 200 + i, 2);
        one.decision.lease.id = 1;
        assert_int_equal(rig_decide(rig, &one, START), WEIR_ALLOWED);
        weir_decision_report(&one.decision, 0, &before);
        one.decision.op = WEIR_OP_LOOK;
        assert_int_equal(rig_decide(rig, &one, START + 3 * US), WEIR_ALLOWED);
        weir_decision_report(&one.decision, 0, &looked);
        assert_int_equal(looked.reset_after_ns, before.reset_after_ns - 3 * US);
    }
}

static uint64_t remaining(struct script_rig *rig, const struct weir_limit *limit, unsigned key)
{
    struct weir_report report;
    struct one one;

    begin_one(&one);
    add_check(&one, limit, key, 1);
    one.decision.op = WEIR_OP_PEEK;
    assert_true(rig_decide(rig, &one, START) > 0);
    weir_decision_report(&one.decision, 0, &report);
    return report.remaining;
}

TEST("a reservation is given back once")
{
    struct script_rig *rig = *state;
    struct weir_reason reason;

    for (unsigned i = 0; i < ALL; i++) {
        struct weir_limit limit = limit_of(all[i]);
        struct one one, other;

        begin_one(&one);
        add_check(&one, &limit, 300 + i, 2);
        other = one;
        other.decision.checks = other.checks;
        other.decision.outcomes = other.outcomes;
        one.decision.lease.id = 1;
        other.decision.lease.id = 2;

        uint64_t whole = remaining(rig, &limit, 300 + i);

        assert_int_equal(rig_decide(rig, &other, START), WEIR_ALLOWED);
        uint64_t less = remaining(rig, &limit, 300 + i);
        assert_int_equal(whole - less, 2);
        if (less < 2)
            continue; /* the queue of three and one */
        assert_int_equal(rig_call(rig, &one, REDIS_RESERVE, 1000 + i, START, &reason),
                         WEIR_ALLOWED);
        assert_int_equal(remaining(rig, &limit, 300 + i), less - 2);
        assert_int_equal(rig_call(rig, &one, REDIS_ROLL_BACK, 1000 + i, START + US, &reason),
                         WEIR_ALLOWED);
        assert_int_equal(remaining(rig, &limit, 300 + i), less);
        assert_int_equal(rig_call(rig, &one, REDIS_ROLL_BACK, 1000 + i, START + US, &reason),
                         WEIR_ALLOWED);
        assert_int_equal(remaining(rig, &limit, 300 + i), less);
    }
}

/* In a packed check the flag's bit says that there is a floor of debt. */
TEST("a debit of a network without a floor is charged")
{
    struct script_rig *rig = *state;

    for (unsigned i = 0; i < ALL; i++) {
        struct weir_limit limit = limit_of(all[i]);
        struct one one;

        begin_one(&one);
        add_check(&one, &limit, 350 + i, 2)->flags = WEIR_CHECK_NETWORK;
        one.decision.op = WEIR_OP_DEBIT;
        one.decision.lease.id = 1;

        uint64_t whole = remaining(rig, &limit, 350 + i);

        assert_int_equal(rig_decide(rig, &one, START), WEIR_ALLOWED);
        assert_int_equal(whole - remaining(rig, &limit, 350 + i), 2);
    }
}

TEST("a reservation that comes late is refused")
{
    struct script_rig *rig = *state;
    struct weir_limit limit =
        limit_of((struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 7, .window_ns = HOUR});
    struct weir_reason reason;
    struct one one;

    begin_one(&one);
    add_check(&one, &limit, 400, 1);
    assert_int_equal(rig_call(rig, &one, REDIS_ROLL_BACK, 99, START, &reason), WEIR_ALLOWED);
    assert_int_equal(rig_call(rig, &one, REDIS_RESERVE, 99, START, &reason), WEIR_ERR_STORE);
    assert_string_equal(reason.text, "the reservation was rolled back before");
    assert_int_equal(remaining(rig, &limit, 400), 7);
    /* Twice with one id would charge twice. */
    assert_int_equal(rig_call(rig, &one, REDIS_RESERVE, 98, START, &reason), WEIR_ALLOWED);
    assert_int_equal(rig_call(rig, &one, REDIS_RESERVE, 98, START, &reason), WEIR_ERR_STORE);
    assert_int_equal(remaining(rig, &limit, 400), 6);
}

/* A decision on two good keys and a foreign one between them. */
TEST("a foreign key is an error and charges nothing")
{
    struct script_rig *rig = *state;
    struct weir_limit limit =
        limit_of((struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 7, .window_ns = HOUR});

    for (uint32_t kind = 0; kind < 4; kind++) {
        static const char *const values[] = {
            NULL, "hello", "\xe4", "a text that is longer than any state of a bucket or window"};
        struct weir_reason reason = {""};
        struct one one;

        begin_one(&one);
        add_check(&one, &limit, 500, 1);
        add_check(&one, &limit, 501 + kind, 1);
        add_check(&one, &limit, 510, 1);
        if (kind == 0)
            ask_key(rig, "LPUSH", &one.checks[1], "x");
        else
            ask_key(rig, "SET", &one.checks[1], values[kind]);
        assert_int_equal(rig_call(rig, &one, REDIS_DECIDE, 0, START, &reason), WEIR_ERR_STORE);
        assert_non_null(
            strstr(reason.text,
                   kind == 0 ? "WRONGTYPE" : "holds a value that is not the state of a limit"));
        one.checks[0] = one.checks[1];
        one.decision.count = 1;
        assert_int_equal(rig_call(rig, &one, REDIS_DECIDE, 0, START, &reason), WEIR_ERR_STORE);
        assert_int_equal(remaining(rig, &limit, 500), 7);
        assert_int_equal(remaining(rig, &limit, 510), 7);
    }
}

TEST("two limits on one key are an error")
{
    struct script_rig *rig = *state;
    struct weir_limit limit =
        limit_of((struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 7, .window_ns = HOUR});
    struct weir_limit other =
        limit_of((struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 8, .window_ns = HOUR});
    struct weir_reason reason = {""};
    struct one one;

    begin_one(&one);
    add_check(&one, &limit, 600, 1);
    add_check(&one, &other, 600, 1);
    assert_int_equal(rig_call(rig, &one, REDIS_DECIDE, 0, START, &reason), WEIR_ERR_STORE);
    assert_non_null(strstr(reason.text, "two limits on the key"));
    assert_int_equal(remaining(rig, &limit, 600), 7);
}

TEST("out of memory charges nothing")
{
    struct script_rig *rig = *state;
    struct weir_limit limit =
        limit_of((struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 7, .window_ns = HOUR});
    struct weir_reason reason = {""};
    struct one one, single;

    begin_one(&one);
    add_check(&one, &limit, 700, 1);
    add_check(&one, &limit, 701, 1);
    begin_one(&single);
    add_check(&single, &limit, 700, 1);
    assert_int_equal(rig_decide(rig, &one, START), WEIR_ALLOWED);
    redis_link_say(&rig->link, "CONFIG SET maxmemory 1");
    assert_int_equal(rig_call(rig, &one, REDIS_DECIDE, 0, START, &reason), WEIR_ERR_STORE);
    assert_non_null(strstr(reason.text, "OOM"));
    assert_int_equal(rig_call(rig, &single, REDIS_DECIDE, 0, START, &reason), WEIR_ERR_STORE);
    redis_link_say(&rig->link, "CONFIG SET maxmemory 0");
    assert_int_equal(remaining(rig, &limit, 700), 6);
    assert_int_equal(remaining(rig, &limit, 701), 6);
}

TEST("flushed scripts are reported as such and charge nothing")
{
    struct script_rig *rig = *state;
    struct weir_limit limit =
        limit_of((struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 7, .window_ns = HOUR});
    struct weir_reason reason = {""};
    struct one one;

    begin_one(&one);
    add_check(&one, &limit, 800, 1);
    redis_link_say(&rig->link, "SCRIPT FLUSH");
    assert_int_equal(rig_call(rig, &one, REDIS_DECIDE, 0, START, &reason), WEIR_ERR_STORE);
    assert_memory_equal(reason.text, "NOSCRIPT", 8);
    rig_load_scripts(rig);
    assert_int_equal(rig_decide(rig, &one, START), WEIR_ALLOWED);
    assert_int_equal(remaining(rig, &limit, 800), 6);
}

TEST("a plain check reads once and writes once")
{
    struct script_rig *rig = *state;
    struct weir_limit limit =
        limit_of((struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 7, .window_ns = HOUR});
    struct one one;

    assert_int_equal(redis_link_say(&rig->link, "CONFIG RESETSTAT")->type, WEIR_RESP_SIMPLE);
    begin_one(&one);
    add_check(&one, &limit, 900, 1);
    assert_int_equal(rig_decide(rig, &one, START), WEIR_ALLOWED);
    redis_link_say(&rig->link, "INFO commandstats");

    char *text = strndup(rig->link.nodes[0].text.data, rig->link.nodes[0].text.size);

    assert_non_null(strstr(text, "cmdstat_set:calls=1,"));
    assert_non_null(strstr(text, "cmdstat_get:calls=1,"));
    assert_null(strstr(text, "expire"));
    free(text);
}

RUN_TESTS_WITH(rig_set_up, rig_tear_down)
