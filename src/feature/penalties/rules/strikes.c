/* SPDX-License-Identifier: Apache-2.0 */
/* see strikes.h */
#include "feature/penalties/rules/strikes.h"

#include <string.h>

#include "rules/match/evaluate.h"
#include "rules/match/key.h"

/* Keeps a value in scratch, once for all penalties of one kind. False: no room. */
static bool keep_value(struct rules_evaluation *evaluation, const struct weir_strikes *strikes,
                       const struct rules_penalty *penalty, struct weir_bytes value,
                       struct weir_bytes *kept)
{
    struct weir_scratch *scratch = evaluation->query->scratch;
    for (uint32_t i = 0; i < strikes->count; i++) {
        const struct weir_strike *other = &strikes->strikes[i];
        if (evaluation->rules->penalties[other->penalty].penalty.kind == penalty->penalty.kind) {
            *kept = other->value;
            return true;
        }
    }
    if (value.size > sizeof scratch->bytes - scratch->used)
        return false;
    *kept = (struct weir_bytes){scratch->bytes + scratch->used, value.size};
    memcpy(scratch->bytes + scratch->used, value.data, value.size);
    scratch->used += (uint32_t)value.size;
    return true;
}

/* Whom a strike would be held against. Returns 1; 0: the request has no such value. Errors:
 * WEIR_ERR_TOO_LARGE (scratch is full). */
static int find_value(struct rules_evaluation *evaluation, const struct weir_strikes *strikes,
                      const struct rules_penalty *penalty, struct weir_strike *strike)
{
    const struct weir_rules *rules = evaluation->rules;
    const struct weir_standing_kind *kind = &rules->settings.standing->kinds[penalty->penalty.kind];
    const struct rules_key_part *part = penalty->strikes.key;
    struct weir_bytes value;
    if (!rules_key_present(evaluation, &penalty->strikes, part, &value))
        return 0;
    strike->value = (struct weir_bytes){NULL, 0};
    strike->hidden = false;
    if (kind->address) {
        const struct weir_address *client = evaluation->client;
        strike->network.address = *client;
        strike->network.bits = client->family == 4 ? kind->bits4 : kind->bits6;
        weir_address_mask(&strike->network.address, strike->network.bits);
        return 1;
    }
    if ((part->attribute == WEIR_ATTR_USER && evaluation->user_is_address) || value.size == 0 ||
        value.size > WEIR_STRIKE_VALUE_MAX)
        return 0;
    strike->id[0] = strike->id[1] = 0;
    if (evaluation->query->map)
        weir_standing_id(evaluation->query->map, kind->name, value, strike->id);
    return keep_value(evaluation, strikes, penalty, value, &strike->value) ? 1 : WEIR_ERR_TOO_LARGE;
}

int rules_strikes_find(struct rules_evaluation *evaluation, bool refused,
                       struct weir_strikes *strikes)
{
    const struct weir_rules *rules = evaluation->rules;
    strikes->count = 0;
    if (evaluation->standing == WEIR_STANDING_TRUSTED)
        return 0;
    for (uint32_t i = 0; i < rules->penalty_count; i++) {
        const struct rules_penalty *penalty = &rules->penalties[i];
        struct weir_strike *strike = &strikes->strikes[strikes->count];
        if (refused && !penalty->penalty.while_suspended)
            continue;
        int err = find_value(evaluation, strikes, penalty, strike);
        if (err < 0)
            return err;
        if (err == 0)
            continue;
        strike->penalty = (uint8_t)i;
        strike->check = (struct weir_check){.limit = penalty->strikes.rates.limits, .cost = 1};
        err = rules_key_build(evaluation, &penalty->strikes, &strike->check);
        if (err != 0) /* it has found the value: the key is there */
            return err;
        strike->check.rule = UINT32_MAX;
        strike->check.on_store_error = WEIR_FAIL_OPEN; /* then it is no strike */
        strikes->count++;
    }
    return 0;
}

struct weir_bytes weir_strike_key_text(const struct weir_rules *rules,
                                       const struct weir_strike *strike,
                                       char room[WEIR_KEY_TEXT_MAX])
{
    const struct weir_check *check = &strike->check;
    if (!check->key_is_tuple)
        return check->key;
    return rules_key_text(rules, &rules->penalties[strike->penalty].strikes, check, room);
}
