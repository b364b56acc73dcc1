/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to the script of shares: whatever a server says is read as a portion that can be held, or
 * refused. The first byte says of which limit it was asked, the rest is the reply. */
#include "fuzz.h"

#include "store/redis/share/script.h"

#define SECOND UINT64_C(1000000000)
#define ASKED 7
#define NODES 16
#define NOW (UINT64_C(1) << 60)

static const struct weir_limit_spec specs[ASKED] = {
    {.algorithm = WEIR_FIXED_WINDOW, .rate = 100, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 100, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 100, .window_ns = SECOND, .segments = 5},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 100, .window_ns = SECOND},
    {.algorithm = WEIR_GCRA, .rate = 70, .window_ns = SECOND},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = WEIR_BUCKET_MAX, .window_ns = 8 * SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = WEIR_WINDOW_MAX_NS},
};

/* Nothing is spent that was not given, or after a second. */
static void hold(const struct weir_limit *limit, struct share *share,
                 const struct share_terms *terms, const struct share_call *ask,
                 const struct share_reply *reply)
{
    uint64_t left;

    REQUIRE(reply->amount <= ask->want && reply->life_ns <= SHARE_LIFE_MAX_NS);
    REQUIRE(reply->remaining <= limit->capacity);
    REQUIRE(share_answered(share, terms, reply, NOW));
    left = share_left(share, NOW);
    REQUIRE(left <= reply->amount);
    REQUIRE(share_left(share, NOW + SHARE_LIFE_MAX_NS) == 0);
    if (left > 0)
        share_spend(share, left, NOW);
    REQUIRE(share_left(share, NOW) == 0);
    (void)share_look(share, terms, 1, NOW);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_limit limit;
    struct weir_check check = {.limit = &limit, .cost = 1};
    struct weir_resp_node nodes[NODES];
    struct weir_resp_reader reader = {0};
    struct weir_reason reason;
    struct share share;
    struct share_terms terms;
    struct share_call ask;
    struct share_reply reply;
    uint32_t count;

    if (size == 0)
        return 0;
    REQUIRE(weir_limit_init(&limit, &specs[data[0] % ASKED], NULL) == 0);
    REQUIRE(share_terms_init(&terms, &limit, 0));
    share_init(&share, NOW);
    share_ask(&share, &terms, 5, 1, NOW, &ask);

    char *bytes = fuzz_copy(data + 1, size - 1);
    long taken = weir_resp_reply_parse(&reader, bytes, size - 1, nodes, NODES, &count);

    if (taken > 0 && count <= NODES) {
        int err = share_script_read(&check, &ask, nodes, count, &reply, &reason);

        REQUIRE(err == 0 || err == WEIR_ERR_STORE || err == WEIR_ERR_SYNTAX);
        if (err == 0)
            hold(&limit, &share, &terms, &ask, &reply);
    }
    free(bytes);
    return 0;
}
