/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a match that ask for more than one of several values: `absent`, `not`, `at_least`.
 *
 *   absent      the request has no value. A header field counts as absent only where the front end
 *               supplies header fields (weir_request.fields), and so does what is made from
 *               fields: `challenge`, and the claims of a token.
 *   not         the request has a value, and it is none of these. So `not: absent` is "any value".
 *   at_least    client.score
 *
 * Threads: reads only, as evaluate.h. Allocates nothing.
 */
#ifndef WEIR_RULES_MATCH_SPECIAL_H
#define WEIR_RULES_MATCH_SPECIAL_H

#include "rules/match/evaluate.h"

/* Whether a part of the kind SPECIAL holds. */
bool rules_special_holds(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                         const struct rules_part *part);

#endif
