/* SPDX-License-Identifier: Apache-2.0 */
/* see attribute.h */
#include "rules/challenge/attribute.h"

#include "challenge/cookie.h"
#include "challenge/token.h"
#include "rules/match/evaluate.h"

#define NS_PER_S UINT64_C(1000000000)

static bool holds(struct rules_evaluation *evaluation, struct weir_bytes token)
{
    const struct weir_challenge_settings *settings = &evaluation->rules->settings.challenge;
    uint8_t difficulty;
    return weir_challenge_token_check(
               settings->keys, &evaluation->request->client, evaluation->query->now_ns / NS_PER_S,
               settings->life_ns / NS_PER_S, token, &difficulty) == WEIR_CHALLENGE_GOOD;
}

static bool passed(struct rules_evaluation *evaluation)
{
    const struct weir_rules *rules = evaluation->rules;
    const struct weir_challenge_settings *settings = &rules->settings.challenge;
    if (!settings->keys || evaluation->request->client.family == 0)
        return false;
    struct weir_bytes cookies = rules_value(evaluation, rules->challenge_sources[0]);
    struct weir_bytes field = rules_value(evaluation, rules->challenge_sources[1]), value;
    if (field.data && holds(evaluation, field))
        return true;
    for (int i = 0; i < RULES_CHALLENGE_COOKIES_MAX && cookies.data; i++) {
        if (!weir_cookie_next(&cookies, settings->cookie, &value))
            return false;
        if (holds(evaluation, value))
            return true;
    }
    return false;
}

struct weir_bytes rules_challenge_value(struct rules_evaluation *evaluation)
{
    static const char text[] = "passed";
    if (evaluation->challenge == RULES_CHALLENGE_UNREAD) {
        evaluation->challenge =
            passed(evaluation) ? RULES_CHALLENGE_PASSED : RULES_CHALLENGE_ABSENT;
    }
    return evaluation->challenge == RULES_CHALLENGE_PASSED
               ? (struct weir_bytes){text, sizeof(text) - 1}
               : (struct weir_bytes){NULL, 0};
}
