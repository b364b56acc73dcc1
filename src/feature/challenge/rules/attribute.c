/* SPDX-License-Identifier: Apache-2.0 */
/* see attribute.h */
#include "feature/challenge/rules/attribute.h"

#include "feature/challenge/cookie.h"
#include "feature/challenge/token.h"
#include "rules/match/evaluate.h"

#define NS_PER_S UINT64_C(1000000000)

/* The difficulty of the puzzle of a token that holds; 0: it does not. */
static int worth(struct rules_evaluation *evaluation, struct weir_bytes token)
{
    const struct weir_challenge_settings *settings = &evaluation->rules->settings.challenge;
    uint8_t difficulty;
    enum weir_challenge_verdict verdict = weir_challenge_token_check(
        settings->keys, evaluation->client, evaluation->query->now_ns / NS_PER_S,
        settings->life_ns / NS_PER_S, token, &difficulty);
    return verdict == WEIR_CHALLENGE_GOOD ? difficulty : 0;
}

static int most(int one, int other)
{
    return one > other ? one : other;
}

/* The greatest that a request's tokens are worth; 0: none holds. */
static int find_worth(struct rules_evaluation *evaluation)
{
    const struct weir_rules *rules = evaluation->rules;
    const struct weir_challenge_settings *settings = &rules->settings.challenge;
    if (!settings->keys || evaluation->request->client.family == 0)
        return 0;
    struct weir_bytes cookies = rules_value(evaluation, rules->challenge_sources[0]);
    struct weir_bytes field = rules_value(evaluation, rules->challenge_sources[1]), value;
    int best = field.data ? worth(evaluation, field) : 0;
    if (best > 0 && !settings->by_class)
        return best;
    for (int i = 0; i < RULES_CHALLENGE_COOKIES_MAX && cookies.data; i++) {
        if (!weir_cookie_next(&cookies, settings->cookie, &value))
            break;
        best = most(best, worth(evaluation, value));
        if (best > 0 && !settings->by_class)
            break;
    }
    return best;
}

/* What a token has to be worth for this client. */
static int find_price(const struct rules_evaluation *evaluation)
{
    const struct weir_challenge_settings *settings = &evaluation->rules->settings.challenge;
    return settings->by_class && evaluation->score.found
               ? settings->difficulty[evaluation->score.class]
               : 1;
}

struct weir_bytes rules_challenge_value(struct rules_evaluation *evaluation)
{
    static const char text[] = "passed";
    if (evaluation->challenge == RULES_CHALLENGE_UNREAD)
        evaluation->challenge = (uint8_t)(RULES_CHALLENGE_ABSENT + find_worth(evaluation));
    return evaluation->challenge >= RULES_CHALLENGE_ABSENT + find_price(evaluation)
               ? (struct weir_bytes){text, sizeof(text) - 1}
               : (struct weir_bytes){NULL, 0};
}

void rules_challenge_judge(struct rules_evaluation *evaluation)
{
    evaluation->known[WEIR_ATTR_CHALLENGE / 64] &= ~(UINT64_C(1) << WEIR_ATTR_CHALLENGE % 64);
}
