/* SPDX-License-Identifier: Apache-2.0 */
/* see solution.h */
#include "feature/challenge/rules/solution.h"

#include "core/text/hex.h"
#include "core/text/siphash.h"
#include "rules/compiled.h"

#define NS_PER_S UINT64_C(1000000000)

int rules_make_solved(struct weir_rules *rules)
{
    /* Clocks of several nodes may differ: a puzzle expires later for one than for another. */
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA,
        .rate = 1,
        .window_ns = (WEIR_CHALLENGE_PUZZLE_LIFE_S + WEIR_CHALLENGE_SKEW_S) * NS_PER_S,
        .burst = 1};
    int err = weir_limit_init(&rules->solved, &spec, NULL);
    rules->solved.name = "challenge~"; /* no rule's has a '~' */
    return err;
}

void weir_rules_solution(const struct weir_rules *rules,
                         const unsigned char nonce[WEIR_CHALLENGE_NONCE], const uint64_t secret[2],
                         struct weir_scratch *scratch, struct weir_check *check)
{
    static const uint64_t no_secret[2] = {0, 0};
    uint64_t everywhere[2];
    (void)weir_hex_write(scratch->bytes, nonce, WEIR_CHALLENGE_NONCE);
    scratch->used = 2 * WEIR_CHALLENGE_NONCE;
    *check = (struct weir_check){
        .limit = &rules->solved,
        .cost = 1,
        .key = {scratch->bytes, 2 * WEIR_CHALLENGE_NONCE},
        .rule = UINT32_MAX,
        .on_store_error = WEIR_FAIL_LOCAL,
    };
    /* Which slot of a cluster it is in is the same for all nodes. */
    weir_siphash128(no_secret, nonce, WEIR_CHALLENGE_NONCE, everywhere);
    check->tag = everywhere[0] | 1;
    weir_siphash128(secret, nonce, WEIR_CHALLENGE_NONCE, check->hash);
}
