/* SPDX-License-Identifier: Apache-2.0 */
/* see score.h */
#include "feature/score/rules/score.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/siphash.h"
#include "feature/challenge/rules/attribute.h"
#include "rules/match/evaluate.h"
#include "rules/match/key.h"

static const char *const class_names[WEIR_CLASSES] = {"legitimate", "suspicious", "malicious"};

/* --- Behaviour -------------------------------------------------------------------------------- */

/* The client, as a hash of the key; false: the request lacks a part of it. */
static bool find_client(struct rules_evaluation *evaluation, uint64_t client[2])
{
    const struct rules_rule *rule = evaluation->rules->score->key;
    return rules_key_hash(evaluation, rule, client) == 0;
}

/* The route: the first pattern of `routes` that the path is in, else the path. */
static void find_route(struct rules_evaluation *evaluation, struct weir_event *event)
{
    const struct rules_score *score = evaluation->rules->score;
    uint64_t hash[2];
    event->routed = evaluation->path.data;
    if (!event->routed)
        return;
    if (score->route_count > 0)
        rules_path_atoms(evaluation);
    for (uint32_t i = 0; i < score->route_count; i++) {
        for (uint32_t a = 0; a < evaluation->path_count && a < RULES_PATH_ATOMS_MAX; a++) {
            if (evaluation->path_atoms[a] == score->routes[i]) {
                weir_siphash128(evaluation->secret, &i, sizeof(i), hash);
                event->route = (uint32_t)hash[0];
                return;
            }
        }
    }
    weir_siphash128(evaluation->secret, evaluation->path.data, evaluation->path.size, hash);
    event->route = (uint32_t)hash[0];
}

/* Whether the request is the first of its connection: the attribute is 1, as nginx counts. */
static uint8_t find_connection(struct rules_evaluation *evaluation)
{
    struct weir_bytes number = rules_value(evaluation, evaluation->rules->score->connection);
    if (!number.data || number.size == 0)
        return WEIR_CONNECTION_UNKNOWN;
    return weir_bytes_are(number, "1") ? WEIR_CONNECTION_NEW : WEIR_CONNECTION_USED;
}

static void find_habit(struct rules_evaluation *evaluation, struct weir_caller_score *found)
{
    const struct weir_rules_query *query = evaluation->query;
    const struct rules_score *score = evaluation->rules->score;
    struct weir_event event = {
        .now_ns = query->now_ns, .within_ms = score->within_ms, .spread = score->spread};
    event.client[0] = found->client[0];
    event.client[1] = found->client[1];
    if (query->behaves == RULES_BEHAVES_RECALL) {
        weir_behaviour_recall(score->behaviour, event.client, &found->habit);
        return;
    }
    find_route(evaluation, &event);
    if (score->connection > 0)
        event.connection = find_connection(evaluation);
    found->counted = query->behaves == RULES_BEHAVES_COUNT;
    if (found->counted)
        weir_behaviour_add(score->behaviour, &event, &found->habit);
    else
        weir_behaviour_look(score->behaviour, &event, &found->habit);
}

/* --- Signals ---------------------------------------------------------------------------------- */

static bool signal_holds(struct rules_evaluation *evaluation, const struct rules_signal *signal)
{
    const struct weir_habit *habit = &evaluation->score.habit;
    if (habit->steady < signal->over || habit->same_route < signal->same_route ||
        habit->fresh < signal->fresh)
        return false;
    for (uint32_t i = 0; signal->when && i < signal->when->part_count; i++)
        if (!rules_part_holds(evaluation, signal->when, &signal->when->parts[i]))
            return false;
    return true;
}

static uint8_t class_of(const struct rules_score *score, uint16_t sum)
{
    return sum >= score->info.from[WEIR_CLASS_MALICIOUS]    ? WEIR_CLASS_MALICIOUS
           : sum >= score->info.from[WEIR_CLASS_SUSPICIOUS] ? WEIR_CLASS_SUSPICIOUS
                                                            : WEIR_CLASS_LEGITIMATE;
}

/* Whether `kept`, of an earlier look at the same request, has its behaviour already. */
static bool is_counted(const struct weir_caller_score *kept)
{
    return kept && kept->counted;
}

void rules_score_prefetch(struct rules_evaluation *evaluation)
{
    const struct rules_score *score = evaluation->rules->score;
    int error = evaluation->error;
    if (!score->behaviour || is_counted(evaluation->query->score))
        return;
    for (uint32_t i = 0; i < score->key->key_count; i++)
        if (!rules_at_hand(evaluation->rules, &score->key->key[i]))
            return;
    evaluation->score_client_known = find_client(evaluation, evaluation->score_client);
    if (evaluation->score_client_known)
        weir_behaviour_prefetch(score->behaviour, evaluation->score_client);
    evaluation->error = error; /* what is wrong with the key is found once it is needed */
}

void rules_score_find(struct rules_evaluation *evaluation)
{
    const struct rules_score *score = evaluation->rules->score;
    struct weir_caller_score *kept = evaluation->query->score, *found = &evaluation->score;
    *found = (struct weir_caller_score){.held = 0};
    if (is_counted(kept)) { /* asked again, now that the caller is known */
        *found = *kept;
        found->held = found->score = 0;
    } else {
        found->keyed = evaluation->score_client_known || find_client(evaluation, found->client);
        if (evaluation->score_client_known)
            memcpy(found->client, evaluation->score_client, sizeof found->client);
        if (evaluation->error < 0)
            found->keyed = false;
        else if (found->keyed && score->behaviour)
            find_habit(evaluation, found);
    }
    for (uint8_t i = 0; i < score->info.signal_count; i++) {
        if (!signal_holds(evaluation, &score->signals[i]))
            continue;
        found->held |= UINT32_C(1) << i;
        found->score = (uint16_t)(found->score + score->shown[i].add);
    }
    found->class = class_of(score, found->score);
    found->found = true;
    rules_challenge_judge(evaluation);
    if (kept)
        *kept = *found;
}

/* --- Values ----------------------------------------------------------------------------------- */

struct weir_bytes rules_score_text(struct rules_evaluation *evaluation, uint16_t attribute)
{
    const char *text = class_names[evaluation->score.class];
    if (attribute == WEIR_ATTR_CLASS)
        return weir_bytes_of(text);
    int size = snprintf(evaluation->score_text, sizeof(evaluation->score_text), "%u",
                        (unsigned)evaluation->score.score);
    return (struct weir_bytes){evaluation->score_text, (size_t)size};
}

bool rules_score_read(struct weir_caller_score *score, uint16_t attribute, struct weir_bytes value)
{
    uint32_t number = 0;
    int class = weir_class_of(value);
    if (attribute == WEIR_ATTR_CLASS) {
        score->class = class < 0 ? WEIR_CLASS_LEGITIMATE : (uint8_t) class;
        return class >= 0;
    }
    bool good = value.size > 0 && value.size < 5 && (value.size == 1 || value.data[0] != '0');
    for (size_t i = 0; good && i < value.size; i++) {
        good = value.data[i] >= '0' && value.data[i] <= '9';
        number = number * 10 + (uint32_t)(value.data[i] - '0');
    }
    score->score = good && number <= RULES_SCORE_MAX ? (uint16_t)number : 0;
    return good && number <= RULES_SCORE_MAX;
}

const char *weir_class_name(uint8_t class)
{
    return class_names[class];
}

int weir_class_of(struct weir_bytes name)
{
    for (int i = 0; i < WEIR_CLASSES; i++)
        if (weir_bytes_are(name, class_names[i]))
            return i;
    return -1;
}

/* --- Rules ------------------------------------------------------------------------------------ */

const struct weir_score_info *weir_rules_score(const struct weir_rules *rules)
{
    return rules->score ? &rules->score->info : NULL;
}

uint8_t weir_rules_by_class(const struct weir_rules *rules, uint32_t rule, uint8_t class)
{
    const uint8_t *by_class = rules->rules[rule].by_class;
    return by_class ? by_class[class] : 100;
}

static bool same_key(const struct rules_rule *a, const struct rules_rule *b)
{
    bool same = a->key_count == b->key_count;
    for (uint32_t i = 0; same && i < a->key_count; i++)
        same = strcmp(a->key_names[i], b->key_names[i]) == 0;
    return same;
}

void rules_score_inherit(struct weir_rules *rules, const struct weir_rules *before)
{
    struct rules_score *score = rules->score;
    const struct rules_score *old = before->score;
    if (!score || !old || !score->behaviour || !old->behaviour || score->clients != old->clients ||
        !same_key(score->key, old->key))
        return;
    weir_behaviour_unref(score->behaviour);
    score->behaviour = weir_behaviour_ref(old->behaviour);
    score->info.behaviour = score->behaviour;
}

void rules_score_free(struct rules_score *score)
{
    if (score)
        weir_behaviour_unref(score->behaviour);
}
