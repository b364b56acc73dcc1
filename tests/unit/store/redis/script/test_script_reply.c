/* SPDX-License-Identifier: Apache-2.0 */
/* Calls as bytes and replies as outcomes, without a server: what is sent, what is taken, and that
 * nothing else is. */
#include "script_rig.h"

#include <math.h>

#include "store/redis/script/pack.h"

#define NOW_US (START / US)
#define PART_MAX 256

/* A part of a reply while it is made. */
struct part_bytes {
    char data[PART_MAX];
    size_t size;
};

static void part_number(struct part_bytes *part, double number)
{
    memcpy(part->data + part->size, &number, sizeof number);
    part->size += sizeof number;
}

static struct part_bytes part_of(int mark, size_t count, const double *numbers)
{
    struct part_bytes part = {{(char)mark}, 1};

    for (size_t i = 0; i < count; i++)
        part_number(&part, numbers[i]);
    return part;
}

static struct weir_resp_node node_of(enum weir_resp_type type, const struct part_bytes *part)
{
    return (struct weir_resp_node){.type = (uint8_t)type, .text = {part->data, part->size}};
}

static int read_nodes(struct one *one, const struct weir_resp_node *nodes, uint32_t count,
                      struct weir_reason *reason)
{
    struct redis_batch batch = batch_of(one, REDIS_DECIDE, 0, 0);

    return redis_script_read(&batch, &one->decision, nodes, count, &one->decision.now_ns,
                             &one->decision.repeated, reason);
}

static int read_part(struct one *one, const struct part_bytes *part)
{
    struct weir_resp_node node = node_of(WEIR_RESP_BULK, part);
    struct weir_reason reason;

    return read_nodes(one, &node, 1, &reason);
}

/* Good replies, one for each shape. */
static const struct {
    struct weir_limit_spec spec;
    int mark;
    size_t count;
    double numbers[12];
    int verdict;
} good[] = {
    {{.algorithm = WEIR_FIXED_WINDOW, .rate = 5, .window_ns = SECOND},
     0xe0,
     4,
     {1700000000000000, 3, 1000000, NOW_US},
     WEIR_ALLOWED},
    {{.algorithm = WEIR_FIXED_WINDOW, .rate = 5, .window_ns = SECOND},
     0,
     3,
     {1700000000000000, 5, NOW_US},
     WEIR_DENIED},
    {{.algorithm = WEIR_SLIDING_WINDOW, .rate = 5, .window_ns = SECOND},
     0xe1,
     5,
     {1700000000000000, 3, 1, 1000000, NOW_US},
     WEIR_ALLOWED},
    {{.algorithm = WEIR_SLIDING_WINDOW, .rate = 5, .window_ns = SECOND, .segments = 5},
     12,
     12,
     {NOW_US, 1700000000000000, 5, 2, 76544, 1700000001200000, 1700000000200000, 1, 2,
      1700000000200000, 1, 2},
     WEIR_DENIED},
    {{.algorithm = WEIR_SLIDING_LOG, .rate = 5, .window_ns = SECOND},
     12,
     5,
     {NOW_US, 5, NOW_US + 900000, NOW_US + 100, NOW_US + 100},
     WEIR_DENIED},
    {{.algorithm = WEIR_GCRA, .rate = 7, .window_ns = SECOND},
     0xe4,
     5,
     {NOW_US - (double)REDIS_EPOCH_US + 142857, 1000, 7000, 1000000000,
      NOW_US - (double)REDIS_EPOCH_US},
     WEIR_ALLOWED},
    {{.algorithm = WEIR_LEAKY_QUEUE, .rate = 7, .window_ns = SECOND},
     3,
     5,
     {NOW_US - (double)REDIS_EPOCH_US + 285714, 2000, NOW_US - (double)REDIS_EPOCH_US, 142857,
      1000},
     WEIR_ALLOWED},
    {{.algorithm = WEIR_CONCURRENCY, .rate = 5, .window_ns = SECOND},
     3,
     3,
     {NOW_US, 2, NOW_US + 1000000},
     WEIR_ALLOWED},
};
#define GOOD (sizeof good / sizeof good[0])

static struct weir_limit begin_good(struct one *one, size_t i)
{
    begin_one(one);
    return limit_of(good[i].spec);
}

static void good_replies_are_read(void **unused)
{
    for (size_t i = 0; i < GOOD; i++) {
        struct part_bytes part = part_of(good[i].mark, good[i].count, good[i].numbers);
        struct one one;
        struct weir_limit limit = begin_good(&one, i);

        add_check(&one, &limit, 1, 1);
        assert_int_equal(read_part(&one, &part), good[i].verdict);
        assert_int_equal(one.decision.now_ns, START);
        assert_int_equal(one.outcomes[0].verdict, good[i].verdict);
    }
}

static void figures_are_those_of_the_core(void **unused)
{
    struct part_bytes part = part_of(good[6].mark, good[6].count, good[6].numbers);
    struct weir_report report;
    struct one one;
    struct weir_limit limit = begin_good(&one, 6);

    add_check(&one, &limit, 1, 1);
    assert_int_equal(read_part(&one, &part), WEIR_ALLOWED);
    assert_int_equal(one.outcomes[0].delay_ns, 142857143);
    weir_decision_report(&one.decision, 0, &report);
    assert_int_equal(report.limit, 8);
    assert_int_equal(report.remaining, 6);
    assert_int_equal(report.reset_after_ns, 285714286);
}

static void every_truncation_is_refused(void **unused)
{
    for (size_t i = 0; i < GOOD; i++)
        for (size_t size = 0; size < 1 + 8 * good[i].count; size++) {
            struct part_bytes part = part_of(good[i].mark, good[i].count, good[i].numbers);
            struct one one;
            struct weir_limit limit = begin_good(&one, i);

            add_check(&one, &limit, 1, 1);
            part.size = size;
            assert_int_equal(read_part(&one, &part), WEIR_ERR_SYNTAX);
        }
}

static void what_is_too_long_is_refused(void **unused)
{
    for (size_t i = 0; i < GOOD; i++) {
        struct part_bytes part = part_of(good[i].mark, good[i].count, good[i].numbers);
        struct one one;
        struct weir_limit limit = begin_good(&one, i);

        add_check(&one, &limit, 1, 1);
        part.size++;
        assert_int_equal(read_part(&one, &part), WEIR_ERR_SYNTAX);
        part.size--;
        part_number(&part, 0);
        part_number(&part, 0);
        assert_int_equal(read_part(&one, &part), WEIR_ERR_SYNTAX);
    }
}

static void any_other_type_is_refused(void **unused)
{
    static const enum weir_resp_type types[] = {
        WEIR_RESP_SIMPLE, WEIR_RESP_INTEGER,    WEIR_RESP_NULL,     WEIR_RESP_DOUBLE,
        WEIR_RESP_ARRAY,  WEIR_RESP_BIG_NUMBER, WEIR_RESP_VERBATIM, WEIR_RESP_MAP};

    for (size_t i = 0; i < GOOD; i++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            struct part_bytes part = part_of(good[i].mark, good[i].count, good[i].numbers);
            struct weir_resp_node node = node_of(types[t], &part);
            struct weir_reason reason;
            struct one one;
            struct weir_limit limit = begin_good(&one, i);

            add_check(&one, &limit, 1, 1);
            assert_int_equal(read_nodes(&one, &node, 1, &reason), WEIR_ERR_SYNTAX);
            assert_true(reason.text[0] != '\0');
        }
}

/* Each number of each reply replaced by what no state has. */
static void numbers_that_cannot_be_are_refused(void **unused)
{
    const double bad[] = {NAN, INFINITY, -INFINITY, -1, 0.5, 1e300, 9007199254740993.0 * 2};

    for (size_t i = 0; i < GOOD; i++)
        for (size_t n = 0; n < good[i].count; n++)
            for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
                struct part_bytes part = part_of(good[i].mark, good[i].count, good[i].numbers);
                struct one one;
                struct weir_limit limit = begin_good(&one, i);
                int verdict;

                add_check(&one, &limit, 1, 1);
                memcpy(part.data + 1 + 8 * n, &bad[b], 8);
                verdict = read_part(&one, &part);
                /* What a state says of its limit is the caller's to know, and skipped. */
                if (good[i].mark >= REDIS_KIND_FIRST && n + 1 < good[i].count &&
                    verdict == good[i].verdict)
                    continue;
                assert_int_equal(verdict, WEIR_ERR_SYNTAX);
            }
}

static void several_parts_need_a_status_and_their_number(void **unused)
{
    const double numbers[] = {1700000000000000, 3, NOW_US};
    struct part_bytes part = part_of(3, 3, numbers), denied = part_of(0, 3, numbers);
    struct weir_resp_node nodes[4] = {{.type = WEIR_RESP_ARRAY, .count = 3},
                                      {.type = WEIR_RESP_INTEGER, .integer = 0}};
    struct weir_reason reason;
    struct one one;
    struct weir_limit limit = begin_good(&one, 0);

    add_check(&one, &limit, 1, 1);
    add_check(&one, &limit, 2, 1);
    nodes[2] = node_of(WEIR_RESP_BULK, &part);
    nodes[3] = node_of(WEIR_RESP_BULK, &denied);
    assert_int_equal(read_nodes(&one, nodes, 4, &reason), WEIR_DENIED);
    one.decision.policy = WEIR_POLICY_QUOTA;
    assert_int_equal(read_nodes(&one, nodes, 4, &reason), WEIR_ALLOWED);
    one.checks[1].flags = WEIR_CHECK_SHADOW;
    one.decision.policy = WEIR_POLICY_ALL;
    assert_int_equal(read_nodes(&one, nodes, 4, &reason), WEIR_ALLOWED);
    assert_false(one.decision.repeated);
    nodes[1].integer = 1;
    assert_int_equal(read_nodes(&one, nodes, 4, &reason), WEIR_ALLOWED);
    assert_true(one.decision.repeated);
    nodes[1].type = WEIR_RESP_BULK;
    assert_int_equal(read_nodes(&one, nodes, 4, &reason), WEIR_ERR_SYNTAX);
    nodes[1].type = WEIR_RESP_INTEGER;
    for (uint32_t count = 0; count < 4; count++)
        assert_int_equal(read_nodes(&one, nodes, count, &reason), WEIR_ERR_SYNTAX);
    nodes[0].count = 2;
    assert_int_equal(read_nodes(&one, nodes, 3, &reason), WEIR_ERR_SYNTAX);
}

static void an_error_is_passed_on_as_one_line(void **unused)
{
    static const char text[] = "WRONGTYPE Operation\r\nagainst\0a key";
    struct weir_resp_node node = {.type = WEIR_RESP_ERROR, .text = {text, sizeof text - 1}};
    struct weir_reason reason;
    struct one one;
    struct weir_limit limit = begin_good(&one, 0);
    char long_text[1000];

    add_check(&one, &limit, 1, 1);
    assert_int_equal(read_nodes(&one, &node, 1, &reason), WEIR_ERR_STORE);
    assert_string_equal(reason.text, "WRONGTYPE Operation  against a key");
    memset(long_text, 'x', sizeof long_text);
    node.text = (struct weir_bytes){long_text, sizeof long_text};
    assert_int_equal(read_nodes(&one, &node, 1, &reason), WEIR_ERR_STORE);
    assert_int_equal(strlen(reason.text), WEIR_REASON_MAX - 1);
}

/* The words of a call, as the server's own parser would find them. */
static uint32_t parse_call(const char *bytes, size_t size, struct weir_resp_node *nodes)
{
    struct weir_resp_reader reader = {0};
    uint32_t count;

    assert_int_equal(weir_resp_reply_parse(&reader, bytes, size, nodes, 80, &count), size);
    assert_int_equal(nodes[0].type, WEIR_RESP_ARRAY);
    return count - 1;
}

static void a_plain_check_is_five_words(void **unused)
{
    struct weir_limit limit =
        limit_of((struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 7, .window_ns = SECOND});
    const struct redis_script *script;
    struct weir_resp_node nodes[80];
    char bytes[1024];
    uint16_t slot;
    struct one one;

    limit.name = "api";
    begin_one(&one);
    add_check(&one, &limit, 1, 2)->tag = 0x1234;

    struct redis_batch batch = batch_of(&one, REDIS_DECIDE, 0, 0);
    size_t size = redis_script_write(&batch, bytes, &script, &slot);
    static const char key[] = "weir:{0000000000001234}api:key=1";
    /* unit, period, 2 T in microseconds and units, depth likewise */
    const double numbers[] = {7000, 1000000000, 285714, 2000, 1000000, 0};
    struct part_bytes packed = {{(char)0xe4, 0}, 2};

    for (int i = 0; i < 6; i++)
        part_number(&packed, numbers[i]);
    assert_int_equal(parse_call(bytes, size, nodes), 5);
    assert_memory_equal(nodes[1].text.data, "EVALSHA", 7);
    assert_memory_equal(nodes[2].text.data, script->sha, REDIS_SHA_HEX);
    assert_memory_equal(nodes[3].text.data, "1", 1);
    assert_int_equal(nodes[4].text.size, strlen(key));
    assert_memory_equal(nodes[4].text.data, key, strlen(key));
    assert_int_equal(nodes[5].text.size, packed.size);
    assert_memory_equal(nodes[5].text.data, packed.data, packed.size);
    assert_int_equal(slot, redis_cluster_slot(key, strlen(key)));
    assert_string_equal(script->name, "bucket");
}

static void no_call_is_longer_than_it_says(void **unused)
{
    uint64_t random = 5;
    struct weir_limit limits[GOOD];

    for (size_t i = 0; i < GOOD; i++)
        limits[i] = limit_of(good[i].spec);
    for (uint32_t round = 0; round < 2000; round++) {
        uint32_t count = 1 + (uint32_t)(draw_next(&random) % WEIR_CHECKS_MAX);
        struct weir_resp_node nodes[80];
        const struct redis_script *script;
        uint16_t slot;
        struct one one;

        begin_one(&one);
        for (uint32_t i = 0; i < count; i++)
            add_check(&one, &limits[draw_next(&random) % GOOD], (unsigned)i,
                      draw_next(&random) >> draw_next(&random) % 64);
        one.decision.op = draw_next(&random) % (WEIR_OP_LOOK + 1);

        struct redis_batch batch =
            batch_of(&one, draw_next(&random) % 4, draw_next(&random), round % 2 ? START : 0);
        size_t room = redis_script_size(&batch);
        char *bytes = malloc(room); /* so that a sanitizer sees any byte behind it */
        size_t size = redis_script_write(&batch, bytes, &script, &slot);

        assert_true(size <= room);
        assert_true(parse_call(bytes, size, nodes) >= 3 + 2 * count);
        free(bytes);
    }
}

static void limits_that_scripts_cannot_hold_are_refused(void **unused)
{
    static const struct weir_limit_spec refused[] = {
        {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = SECOND + 1},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 7, .window_ns = SECOND + 999},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 7, .window_ns = 1001 * US, .segments = 7 * 8},
        {.algorithm = WEIR_LEAKY_QUEUE, .rate = 1, .window_ns = 366 * DAY, .burst = 145},
    };
    struct weir_limit limit;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct weir_reason reason = {""};

        assert_int_equal(weir_limit_init(&limit, &refused[i], &reason), 0);
        assert_int_equal(redis_script_accepts(&limit, &reason), WEIR_ERR_RANGE);
        assert_true(reason.text[0] != '\0');
        assert_int_equal(redis_script_accepts(&limit, NULL), WEIR_ERR_RANGE);
    }
}

static void each_script_is_called_by_the_sum_of_its_text(void **unused)
{
    assert_true(redis_script_count >= 8);
    for (unsigned i = 0; i < redis_script_count; i++) {
        assert_int_equal(strlen(redis_scripts[i]->sha), REDIS_SHA_HEX);
        assert_int_equal(strlen(redis_scripts[i]->text), redis_scripts[i]->size);
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(redis_scripts[i]->sha, redis_scripts[j]->sha);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_replies_are_read),
        cmocka_unit_test(figures_are_those_of_the_core),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(any_other_type_is_refused),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(several_parts_need_a_status_and_their_number),
        cmocka_unit_test(an_error_is_passed_on_as_one_line),
        cmocka_unit_test(a_plain_check_is_five_words),
        cmocka_unit_test(no_call_is_longer_than_it_says),
        cmocka_unit_test(limits_that_scripts_cannot_hold_are_refused),
        cmocka_unit_test(each_script_is_called_by_the_sum_of_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
