/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to script calls: whatever a server says is read as outcomes that can be reported, or
 * refused. The first byte says what was asked, the rest is the reply. */
#include "fuzz.h"

#include <string.h>

#include "store/redis/script/script.h"

#define SECOND UINT64_C(1000000000)
#define ASKED 10
#define CHECKS 2
#define NODES 16

static const struct weir_limit_spec specs[ASKED] = {
    {.algorithm = WEIR_FIXED_WINDOW, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 5, .window_ns = SECOND, .segments = 5},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 5, .window_ns = SECOND, .segments = 5, .strict = 1},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = SECOND},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = 0, .window_ns = SECOND},
    {.algorithm = WEIR_LEAKY_QUEUE, .rate = 7, .window_ns = SECOND},
    {.algorithm = WEIR_CONCURRENCY, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = WEIR_WINDOW_MAX_NS},
};

/* Quotas, which an own range of first bytes asks for. */
#define QUOTAS_FROM 240
static const uint64_t bounds[] = {SECOND, 5 * SECOND, 7 * SECOND, 20 * SECOND};
static const struct weir_limit_spec quotas[2] = {
    {.algorithm = WEIR_QUOTA, .rate = 5, .window_ns = SECOND, .bounds = bounds, .bound_count = 4},
    {.algorithm = WEIR_QUOTA,
     .rate = 5,
     .rollover = 3,
     .window_ns = SECOND,
     .bounds = bounds,
     .bound_count = 4},
};

/* Units that were given. */
#define PREPAID_AT 239
static const struct weir_limit_spec prepaid = {.algorithm = WEIR_PREPAID, .window_ns = 60 * SECOND};

static const struct weir_limit_spec *asked_for(uint8_t first)
{
    if (first == PREPAID_AT)
        return &prepaid;
    return first >= QUOTAS_FROM ? &quotas[first % 2] : &specs[first % ASKED];
}

static void check_outcome(const struct weir_decision *decision, uint16_t i)
{
    const struct weir_limit *limit = decision->checks[i].limit;
    const struct weir_outcome *outcome = &decision->outcomes[i];
    struct weir_report report;

    REQUIRE(outcome->verdict == WEIR_ALLOWED || outcome->verdict == WEIR_DENIED);
    if (!outcome->reported)
        REQUIRE(weir_cell_valid(limit, &outcome->cell));
    weir_decision_report(decision, i, &report);
    REQUIRE(report.remaining <= limit->capacity);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_check checks[CHECKS];
    struct weir_outcome outcomes[CHECKS];
    struct weir_decision decision = {.checks = checks, .outcomes = outcomes};
    static const uint16_t indexes[CHECKS] = {0, 1};
    struct redis_batch batch = {.decision = &decision, .checks = indexes};
    struct weir_resp_node nodes[NODES];
    struct weir_resp_reader reader = {0};
    struct weir_limit limit;
    struct weir_reason reason;
    uint32_t count;
    uint64_t now_ns;
    bool repeated;

    if (size == 0)
        return 0;
    REQUIRE(weir_limit_init(&limit, asked_for(data[0]), NULL) == 0);
    for (int i = 0; i < CHECKS; i++)
        checks[i] = (struct weir_check){.limit = &limit, .cost = (uint64_t)i + 1};
    decision.count = batch.count = data[0] / ASKED % CHECKS + 1;
    decision.op = data[0] / (ASKED * CHECKS) % (WEIR_OP_LOOK + 1);

    char *reply = fuzz_copy(data + 1, size - 1);
    long taken = weir_resp_reply_parse(&reader, reply, size - 1, nodes, NODES, &count);

    if (taken > 0 && count <= NODES) {
        int verdict =
            redis_script_read(&batch, &decision, nodes, count, &now_ns, &repeated, &reason);

        REQUIRE(verdict == WEIR_ALLOWED || verdict == WEIR_DENIED || verdict == WEIR_ERR_STORE ||
                verdict == WEIR_ERR_SYNTAX);
        decision.now_ns = now_ns;
        for (uint16_t i = 0; verdict > 0 && i < batch.count && decision.op < WEIR_OP_RELEASE; i++)
            check_outcome(&decision, i);
    }
    free(reply);
    return 0;
}
