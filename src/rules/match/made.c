/* SPDX-License-Identifier: Apache-2.0 */
/* see made.h */
#include "rules/match/made.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/challenge/rules/attribute.h"
#include "rules/match/evaluate.h"

/* --- What attributes have in a key ------------------------------------------------------------ */

const char *rules_given_path(struct rules_evaluation *evaluation, uint16_t attribute,
                             struct weir_bytes value)
{
    evaluation->path = value;
    return NULL;
}

const char *rules_given_host(struct rules_evaluation *evaluation, uint16_t attribute,
                             struct weir_bytes value)
{
    evaluation->host = value;
    return NULL;
}

const char *rules_given_user(struct rules_evaluation *evaluation, uint16_t attribute,
                             struct weir_bytes value)
{
    struct weir_cidr cidr;
    evaluation->identity.user = value;
    if (value.size > 3 && memcmp(value.data, "ip:", 3) == 0 &&
        weir_cidr_parse(&cidr, value.data + 3, value.size - 3) == 0) {
        evaluation->user_is_address = true;
        evaluation->user_address = cidr.address;
        evaluation->user_bits = cidr.bits;
    }
    return NULL;
}

const char *rules_given_org(struct rules_evaluation *evaluation, uint16_t attribute,
                            struct weir_bytes value)
{
    evaluation->identity.org = value;
    return NULL;
}

const char *rules_given_plan(struct rules_evaluation *evaluation, uint16_t attribute,
                             struct weir_bytes value)
{
    evaluation->identity.plan = value;
    return NULL;
}

const char *rules_given_standing(struct rules_evaluation *evaluation, uint16_t attribute,
                                 struct weir_bytes value)
{
    int level = weir_standing_level_of(value);
    if (level < 0)
        return "not a level of standing: ";
    evaluation->standing = (uint8_t)level;
    return NULL;
}

const char *rules_given_challenge(struct rules_evaluation *evaluation, uint16_t attribute,
                                  struct weir_bytes value)
{
    if (!weir_bytes_are(value, "passed"))
        return "only ever passed: ";
    evaluation->challenge = RULES_CHALLENGE_PASSED;
    return NULL;
}

const char *rules_given_score(struct rules_evaluation *evaluation, uint16_t attribute,
                              struct weir_bytes value)
{
    return rules_score_read(&evaluation->score, attribute, value) ? NULL : "no client has this: ";
}

const char *rules_given_claim(struct rules_evaluation *evaluation, uint16_t attribute,
                              struct weir_bytes value)
{
    const struct rules_jwt *jwt = evaluation->rules->jwt; /* else there is no such attribute */
    evaluation->claims.values[jwt->claim_of[attribute] - 1] = value;
    return NULL;
}
