/* SPDX-License-Identifier: Apache-2.0 */
/* see match.h */
#include "feature/standing/rules/match.h"

#include <string.h>

#include "core/bytes.h"
#include "core/text/credential.h"
#include "rules/match/evaluate.h"
#include "rules/match/key.h"

_Static_assert(WEIR_STANDING_KINDS_MAX <= 16, "kinds fit into the sets of an evaluation");

/* Fills the id of a kind's value, at the first call; false: the request has none. */
static bool find_id(struct rules_evaluation *evaluation, uint32_t number)
{
    const struct weir_standing_kind *kind = &evaluation->rules->settings.standing->kinds[number];
    const struct rules_rule *rule = &evaluation->rules->standing.kinds[number];
    uint16_t bit = (uint16_t)(1U << number);
    struct weir_bytes value;
    if (evaluation->standing_sought & bit)
        return evaluation->standing_there & bit;
    evaluation->standing_sought |= bit;
    if (!rules_key_present(evaluation, rule, rule->key, &value))
        return false;
    if (rule->key->attribute == WEIR_ATTR_USER && evaluation->user_is_address)
        return false;
    weir_standing_id(evaluation->query->map, kind->name, value, evaluation->standing_ids[number]);
    evaluation->standing_there |= bit;
    return true;
}

/* By the address that keys count by, and by the client's own where that is another: an operator may
 * hold something against the IPv6 form, or its network. A penalty of that network is of clients
 * that count by it, which are others (rules/counted.h). */
static bool find_address(struct rules_evaluation *evaluation, struct weir_standing_entry *entry)
{
    const struct weir_rules_query *query = evaluation->query;
    const struct weir_address *own = &evaluation->request->client;
    struct weir_standing_entry other;
    bool found = weir_standing_find_address(query->map, evaluation->client, query->now_ns, entry);
    if (own->family == evaluation->client->family ||
        !weir_standing_find_named(query->map, own, query->now_ns, &other))
        return found;
    if (!found || weir_standing_before(&other, entry))
        *entry = other;
    return true;
}

/* By what comes behind the scheme of a credential alone, which an operator may have named. */
static bool find_token(struct rules_evaluation *evaluation, uint32_t number,
                       struct weir_standing_entry *entry)
{
    const struct weir_rules_query *query = evaluation->query;
    const struct weir_standing_kind *kind = &evaluation->rules->settings.standing->kinds[number];
    const struct rules_rule *rule = &evaluation->rules->standing.kinds[number];
    struct weir_credential credential;
    struct weir_bytes value;
    uint64_t id[2];
    if (!rules_key_present(evaluation, rule, rule->key, &value))
        return false;
    weir_credential_read(&credential, value);
    if (credential.scheme.size == 0)
        return false;
    weir_standing_id(query->map, kind->name, credential.token, id);
    return weir_standing_find(query->map, id, query->now_ns, entry);
}

/* A credential: by its one form, and by its token. */
static bool find_credential(struct rules_evaluation *evaluation, uint32_t number,
                            struct weir_standing_entry *entry)
{
    const struct weir_rules_query *query = evaluation->query;
    struct weir_standing_entry other;
    bool found =
        weir_standing_find(query->map, evaluation->standing_ids[number], query->now_ns, entry);
    if (!find_token(evaluation, number, &other))
        return found;
    if (!found || weir_standing_before(&other, entry))
        *entry = other;
    return true;
}

/* One kind of value; false: the request has none, or nothing is in force for it. */
static bool find_kind(struct rules_evaluation *evaluation, uint32_t number,
                      struct weir_standing_entry *entry)
{
    const struct weir_rules_query *query = evaluation->query;
    const struct weir_standing_kind *kind = &evaluation->rules->settings.standing->kinds[number];
    if (kind->address)
        return find_address(evaluation, entry);
    if (kind->credential)
        return find_id(evaluation, number) && find_credential(evaluation, number, entry);
    return find_id(evaluation, number) &&
           weir_standing_find(query->map, evaluation->standing_ids[number], query->now_ns, entry);
}

void rules_standing_prefetch(struct rules_evaluation *evaluation)
{
    const struct weir_rules *rules = evaluation->rules;
    const struct weir_standing *map = evaluation->query->map;
    uint32_t count = (uint32_t)rules->settings.standing->kinds_count;
    if (!weir_standing_any(map))
        return;
    for (uint32_t i = 0; i < count; i++)
        if (rules->settings.standing->kinds[i].address)
            weir_standing_prefetch_address(map, evaluation->client);
        else if (rules_at_hand(rules, rules->standing.kinds[i].key) && find_id(evaluation, i))
            weir_standing_prefetch(map, evaluation->standing_ids[i]);
}

void rules_standing_name(struct rules_evaluation *evaluation)
{
    struct weir_caller_standing *standing = evaluation->query->standing;
    struct weir_check check = {.flags = 0};
    standing->by = (struct weir_bytes){NULL, 0};
    if (rules_key_build(evaluation, &evaluation->rules->standing.kinds[standing->kind], &check) !=
        0)
        return;
    standing->by = check.key;
    standing->hash[0] = check.hash[0];
    standing->hash[1] = check.hash[1];
}

bool rules_standing_find(struct rules_evaluation *evaluation)
{
    const struct weir_rules_query *query = evaluation->query;
    struct weir_caller_standing *standing = query->standing;
    struct weir_standing_entry found;
    uint32_t count = (uint32_t)evaluation->rules->settings.standing->kinds_count;
    bool any = false;
    standing->entry.level = WEIR_STANDING_GOOD;
    standing->refused = standing->missing = standing->unknown = false;
    if (!weir_standing_any(query->map))
        return false;
    for (uint32_t i = 0; i < count && standing->entry.level != WEIR_STANDING_REVOKED; i++) {
        if (!find_kind(evaluation, i, &found))
            continue;
        if (!any || weir_standing_before(&found, &standing->entry)) {
            standing->entry = found;
            standing->kind = (uint8_t)i;
        }
        any = true;
    }
    evaluation->standing = standing->entry.level;
    evaluation->standing_kind = any ? standing->kind : 0;
    standing->by = (struct weir_bytes){NULL, 0};
    standing->refused = query->refuses && weir_standing_refuses(evaluation->standing);
    if (standing->refused)
        rules_standing_name(evaluation);
    return standing->refused;
}

bool rules_standing_missing(struct rules_evaluation *evaluation)
{
    static const char reason[] = "standing is not known now";
    struct weir_caller_standing *standing = evaluation->query->standing;
    const struct weir_settings *settings = &evaluation->rules->settings;
    bool closed =
        settings->standing->failure_given
            ? settings->standing->closed
            : settings->on_store_error_given && settings->on_store_error == WEIR_FAIL_CLOSED;
    standing->unknown = false;
    standing->missing = standing->refused = closed && evaluation->query->refuses;
    standing->entry.level = WEIR_STANDING_GOOD;
    if (!standing->refused)
        return false;
    standing->entry = (struct weir_standing_entry){.level = WEIR_STANDING_SUSPENDED,
                                                   .origin = WEIR_STANDING_BY_LIST,
                                                   .reason_size = sizeof reason - 1};
    memcpy(standing->entry.reason, reason, sizeof reason - 1);
    standing->by = (struct weir_bytes){NULL, 0};
    return true;
}

struct weir_bytes rules_standing_text(uint8_t level)
{
    const char *name = weir_standing_level_name(level);
    return weir_bytes_of(name);
}

struct weir_standing_answer weir_rules_standing_answer(const struct weir_rules *rules,
                                                       uint8_t level)
{
    const struct rules_refusal *refusal =
        level == WEIR_STANDING_REVOKED ? &rules->standing.revoked : &rules->standing.suspended;
    return (struct weir_standing_answer){refusal->status, refusal->body, refusal->content_type};
}

bool weir_rules_denies_unknown(const struct weir_rules *rules)
{
    return rules->denies_unknown;
}

const uint8_t *weir_rules_by_standing(const struct weir_rules *rules, uint32_t rule)
{
    return rules->rules[rule].by_standing;
}
