/* SPDX-License-Identifier: Apache-2.0 */
/* The attribute `challenge`: "passed" where the request carries a token that holds for its client
 * (challenge/token.h), else absent.
 *
 * The token is the value of the cookie that the rules name, or the header field X-Weir-Challenge.
 * Of several cookies with that name, one that holds suffices; at most
 * RULES_CHALLENGE_COOKIES_MAX are verified, so a request costs at most as many signatures and one.
 * A request whose client is unknown has none.
 *
 * Threads: as evaluate.h. Allocates nothing.
 */
#ifndef WEIR_RULES_CHALLENGE_ATTRIBUTE_H
#define WEIR_RULES_CHALLENGE_ATTRIBUTE_H

#include <weir/bytes.h>

#define RULES_CHALLENGE_COOKIES_MAX 4

struct rules_evaluation;

/* What is known of the attribute in one evaluation. */
enum rules_challenge_state {
    RULES_CHALLENGE_UNREAD,
    RULES_CHALLENGE_ABSENT,
    RULES_CHALLENGE_PASSED
};

/* Its value, found once; data == NULL: absent. */
struct weir_bytes rules_challenge_value(struct rules_evaluation *evaluation);

#endif
