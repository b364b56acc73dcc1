/* SPDX-License-Identifier: Apache-2.0 */
#include "feature/sticky/store/peer_message.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct weir_limit bucket, log_limit;
static struct weir_check checks[WEIR_CHECKS_MAX];
static struct weir_outcome outcomes[WEIR_CHECKS_MAX];

/* Two checks with states and one without. */
static struct weir_decision make(void)
{
    const struct weir_limit_spec a = {
        .algorithm = WEIR_GCRA, .rate = 10, .window_ns = UINT64_C(60000000000), .burst = 7};
    const struct weir_limit_spec b = {
        .algorithm = WEIR_SLIDING_LOG, .rate = 100, .window_ns = UINT64_C(3600000000000)};
    assert_int_equal(weir_limit_init(&bucket, &a, NULL), 0);
    assert_int_equal(weir_limit_init(&log_limit, &b, NULL), 0);
    bucket.name = "bucket#1";
    log_limit.name = NULL;
    memset(checks, 0, sizeof checks);
    memset(outcomes, 0, sizeof outcomes);
    checks[0] = (struct weir_check){.limit = &bucket, .cost = 3, .flags = WEIR_CHECK_SHADOW};
    checks[1] = (struct weir_check){.flags = WEIR_CHECK_UNLIMITED, .cost = 1};
    checks[2] = (struct weir_check){
        .limit = &log_limit, .cost = UINT64_MAX, .scale = 80, .scale_kind = 1, .floor = 1001};
    return (struct weir_decision){.checks = checks,
                                  .outcomes = outcomes,
                                  .count = 3,
                                  .op = WEIR_OP_DEBIT,
                                  .network = 0xDEADBEEF,
                                  .charged_at_ns = UINT64_C(1) << 60};
}

static size_t write_message(const struct weir_decision *decision, char *out)
{
    unsigned char digests[WEIR_CHECKS_MAX][STICKY_DIGEST];
    for (int i = 0; i < WEIR_CHECKS_MAX; i++)
        memset(digests[i], 'a' + i, STICKY_DIGEST);
    return sticky_message_write(out, decision, (const unsigned char(*)[STICKY_DIGEST])digests);
}

/* What was read. */
static struct weir_check read_checks[WEIR_CHECKS_MAX];
static struct sticky_check read_limits[WEIR_CHECKS_MAX];

static int read_message(const char *bytes, size_t size, struct weir_decision *decision)
{
    *decision = (struct weir_decision){.checks = read_checks};
    return sticky_message_read((struct weir_bytes){bytes, size}, decision, read_limits);
}

TEST("a message is read as it was written")
{
    char message[STICKY_MESSAGE_MAX];
    struct weir_decision decision = make(), read;
    size_t size = write_message(&decision, message);
    assert_true(sticky_message_fits(&decision));
    assert_int_equal(read_message(message, size, &read), 0);
    assert_int_equal(read.count, 3);
    assert_int_equal(read.op, WEIR_OP_DEBIT);
    assert_int_equal(read.network, 0xDEADBEEF);
    assert_true(read.charged_at_ns == UINT64_C(1) << 60);
    assert_int_equal(read_checks[0].cost, 3);
    assert_int_equal(read_checks[0].flags, WEIR_CHECK_SHADOW);
    assert_int_equal(read_limits[0].spec.burst, 7);
    assert_int_equal(read_limits[0].spec.algorithm, WEIR_GCRA);
    assert_int_equal(read_limits[0].name.size, 8);
    assert_memory_equal(read_limits[0].name.data, "bucket#1", 8);
    assert_int_equal(read_checks[1].flags, WEIR_CHECK_UNLIMITED);
    assert_true(read_checks[2].cost == UINT64_MAX);
    assert_int_equal(read_checks[2].scale, 80);
    assert_int_equal(read_checks[2].scale_kind, 1);
    assert_int_equal(read_checks[2].floor, 1001);
    assert_int_equal(read_limits[2].name.size, 0);
    assert_memory_equal(read_limits[2].digest, "cccccccccccccccc", STICKY_DIGEST);
}

TEST("a message that is cut or longer is none")
{
    char message[STICKY_MESSAGE_MAX + 1] = {0};
    struct weir_decision decision = make(), read;
    size_t size = write_message(&decision, message);
    for (size_t cut = 0; cut < size; cut++) {
        char *copy = test_malloc(cut + 1); /* its end is the end of the memory */
        memcpy(copy, message, cut);
        assert_int_equal(read_message(copy, cut, &read), WEIR_ERR_SYNTAX);
        test_free(copy);
    }
    assert_int_equal(read_message(message, size + 1, &read), WEIR_ERR_SYNTAX);
}

TEST("a byte out of range is refused")
{
    /* version, operation, policy, count; of the first check: scale, its kind, floor, algorithm,
     * strict */
    static const struct {
        size_t at;
        unsigned char value;
    } cases[] = {{0, 2},
                 {1, WEIR_OP_RELEASE},
                 {1, WEIR_OP_EDIT},
                 {1, 200},
                 {2, 3},
                 {3, 33},
                 {3, 4},
                 {16, WEIR_CHECK_COUNTER},
                 {17, 100},
                 {18, 1},
                 {18, 2},
                 {20, 4},
                 {21, WEIR_CONCURRENCY},
                 {21, WEIR_COUNTER},
                 {22, 2},
                 {16, WEIR_CHECK_IDEMPOTENCY}};
    char message[STICKY_MESSAGE_MAX];
    struct weir_decision decision = make(), read;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size = write_message(&decision, message);
        message[cases[i].at] = (char)cases[i].value;
        assert_int_equal(read_message(message, size, &read), WEIR_ERR_SYNTAX);
    }
}

TEST("leases and checks without a limit are not sent")
{
    struct weir_decision decision = make();
    decision.op = WEIR_OP_RELEASE;
    assert_false(sticky_message_fits(&decision));
    decision.op = WEIR_OP_EDIT;
    assert_false(sticky_message_fits(&decision));
    decision = make();
    bucket.spec.algorithm = WEIR_CONCURRENCY;
    assert_false(sticky_message_fits(&decision));
    decision = make();
    checks[0].limit = NULL;
    assert_false(sticky_message_fits(&decision));
}

/* An answer: the first of its cell, the last as a report. */
static size_t write_answer(struct weir_decision *decision, char *out)
{
    struct weir_cell cell = {0, 0};
    weir_cell_charge(&bucket, &cell, 1000, 3);
    outcomes[0] = (struct weir_outcome){.cell = cell, .verdict = WEIR_ALLOWED, .charged = true};
    outcomes[1] = (struct weir_outcome){.verdict = WEIR_ALLOWED};
    outcomes[2] = (struct weir_outcome){.report = {100, 99, 5, WEIR_NEVER},
                                        .next_ns = 77,
                                        .delay_ns = 4,
                                        .verdict = WEIR_ALLOWED,
                                        .reported = true,
                                        .overflow = true};
    decision->now_ns = 1000;
    decision->verdict = WEIR_ALLOWED;
    decision->repeated = true;
    return sticky_answer_write(out, decision);
}

TEST("an answer gives the outcomes and the cost of a debit")
{
    char answer[STICKY_ANSWER_MAX];
    struct weir_decision decision = make();
    checks[2].cost = 40;
    size_t size = write_answer(&decision, answer);
    struct weir_cell cell = outcomes[0].cell;
    decision = make();
    assert_int_equal(sticky_answer_read((struct weir_bytes){answer, size}, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_ALLOWED);
    assert_true(decision.repeated);
    assert_int_equal(decision.now_ns, 1000);
    assert_int_equal(decision.delay_ns, 4);
    assert_int_equal(checks[2].cost, 40);
    assert_memory_equal(&outcomes[0].cell, &cell, sizeof cell);
    assert_true(outcomes[0].charged && !outcomes[0].reported && outcomes[2].overflow);
    assert_true(outcomes[2].report.reset_after_ns == WEIR_NEVER && outcomes[2].next_ns == 77);
}

TEST("an answer that is cut or of another decision is none")
{
    char answer[STICKY_ANSWER_MAX + 1] = {0}, bad[STICKY_ANSWER_MAX];
    struct weir_decision decision = make();
    size_t size = write_answer(&decision, answer);
    for (size_t cut = 0; cut <= size + 1; cut++) {
        int err = sticky_answer_read((struct weir_bytes){answer, cut}, &decision);
        assert_int_equal(err, cut == size ? 0 : WEIR_ERR_SYNTAX);
    }
    /* version, verdict, repeated, count; of the first outcome its verdict and its bits */
    static const struct {
        size_t at;
        unsigned char value;
    } cases[] = {{0, 2}, {1, 0}, {1, 3}, {1, WEIR_DENIED}, {2, 2}, {3, 2}, {11, 0x80},
                 {12, 0}, {12, 9}, {13, 8}, {37, 1} /* a cost above what was asked for */};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memcpy(bad, answer, size);
        bad[cases[i].at] = (char)cases[i].value;
        decision = make();
        assert_int_equal(sticky_answer_read((struct weir_bytes){bad, size}, &decision),
                         WEIR_ERR_SYNTAX);
        assert_int_equal(decision.verdict, WEIR_PENDING);
    }
    memcpy(bad, answer, size); /* a state that the bucket cannot have */
    memset(bad + 12 + 2 + 24, 0xff, 16);
    decision = make();
    assert_int_equal(sticky_answer_read((struct weir_bytes){bad, size}, &decision),
                     WEIR_ERR_SYNTAX);
}

TEST("an answer that is refused changes nothing")
{
    char answer[STICKY_ANSWER_MAX];
    struct weir_decision decision = make(), before;
    struct weir_check checks_before[3];
    struct weir_outcome outcomes_before[3];
    checks[2].cost = 40;
    size_t size = write_answer(&decision, answer);
    answer[1] = WEIR_DENIED; /* the outcomes say allowed */
    decision = make();
    before = decision;
    memcpy(checks_before, checks, sizeof checks_before);
    memcpy(outcomes_before, outcomes, sizeof outcomes_before);
    assert_int_equal(sticky_answer_read((struct weir_bytes){answer, size}, &decision),
                     WEIR_ERR_SYNTAX);
    assert_memory_equal(&decision, &before, sizeof before);
    assert_memory_equal(checks, checks_before, sizeof checks_before);
    assert_memory_equal(outcomes, outcomes_before, sizeof outcomes_before);
}

RUN_TESTS()
