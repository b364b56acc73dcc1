/* SPDX-License-Identifier: Apache-2.0 */
/* The attribute `challenge`: "passed" where the request carries a token that holds for its client
 * (feature/challenge/token.h), else absent.
 *
 * The token is the value of the cookie that the rules name, or the header field X-Weir-Challenge.
 * Of several cookies with that name, one that holds suffices; at most
 * RULES_CHALLENGE_COOKIES_MAX are verified, so a request costs at most as many signatures and one.
 * A request whose client is unknown has none.
 *
 * Where the rules have a difficulty for each class, a token passes a client only as long as its
 * puzzle was as difficult as that of the client's class: a client that solved an easy puzzle, and
 * then shows another class, solves one of that class. What the score itself is made of sees any
 * token that holds: the class is not known yet.
 *
 * Threads: as evaluate.h. Allocates nothing.
 */
#ifndef WEIR_FEATURE_CHALLENGE_RULES_ATTRIBUTE_H
#define WEIR_FEATURE_CHALLENGE_RULES_ATTRIBUTE_H

#include <weir/bytes.h>

#define RULES_CHALLENGE_COOKIES_MAX 4

struct rules_evaluation;

/* What is known of the attribute in one evaluation: one of these, or ABSENT and the greatest
 * difficulty of a puzzle whose token holds. */
enum rules_challenge_state {
    RULES_CHALLENGE_UNREAD,
    RULES_CHALLENGE_ABSENT,
    RULES_CHALLENGE_PASSED = 255 /* whatever the class */
};

/* Its value; data == NULL: absent. Tokens are verified once. */
struct weir_bytes rules_challenge_value(struct rules_evaluation *evaluation);

/* The class of the client has been found. */
void rules_challenge_judge(struct rules_evaluation *evaluation);

#endif
