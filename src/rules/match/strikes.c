/* SPDX-License-Identifier: Apache-2.0 */
/* see strikes.h */
#include "rules/match/strikes.h"

#include "rules/match/evaluate.h"
#include "rules/match/key.h"

/* Whom a strike would be held against; false: the request has no such value. */
static bool find_value(struct rules_evaluation *evaluation, const struct rules_penalty *penalty,
                       struct weir_strike *strike)
{
    const struct weir_rules *rules = evaluation->rules;
    const struct weir_standing_kind *kind = &rules->settings.standing.kinds[penalty->penalty.kind];
    const struct rules_key_part *part = penalty->strikes.key;
    struct weir_bytes value;
    if (!rules_key_present(evaluation, &penalty->strikes, part, &value))
        return false;
    if (kind->address) {
        const struct weir_address *client = &evaluation->request->client;
        strike->network.address = *client;
        strike->network.bits = client->family == 4 ? kind->bits4 : kind->bits6;
        weir_address_mask(&strike->network.address, strike->network.bits);
        return true;
    }
    if (part->attribute == WEIR_ATTR_USER && evaluation->user_is_address)
        return false;
    weir_standing_id(evaluation->query->map, kind->name, value, strike->id);
    return true;
}

int rules_strikes_find(struct rules_evaluation *evaluation, bool refused,
                       struct weir_strikes *strikes)
{
    const struct weir_rules *rules = evaluation->rules;
    strikes->count = 0;
    for (uint32_t i = 0; i < rules->penalty_count; i++) {
        const struct rules_penalty *penalty = &rules->penalties[i];
        struct weir_strike *strike = &strikes->strikes[strikes->count];
        if ((refused && !penalty->penalty.while_suspended) ||
            !find_value(evaluation, penalty, strike))
            continue;
        strike->penalty = (uint8_t)i;
        strike->check = (struct weir_check){.limit = penalty->strikes.rates.limits, .cost = 1};
        int err = rules_key_build(evaluation, &penalty->strikes, &strike->check);
        if (err < 0)
            return err;
        strike->check.rule = UINT32_MAX;
        strike->check.on_store_error = WEIR_FAIL_OPEN; /* then it is no strike */
        strikes->count++;
    }
    return 0;
}
