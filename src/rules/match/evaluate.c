/* SPDX-License-Identifier: Apache-2.0 */
/* see evaluate.h */
#include "rules/match/evaluate.h"

#include <stdio.h>
#include <string.h>

#include "core/text/credential.h"
#include "feature/challenge/cookie.h"
#include "feature/challenge/rules/attribute.h"
#include "feature/identity/rules/identify.h"
#include "feature/standing/rules/match.h"
#include "rules/counted.h"
#include "rules/match/host.h"
#include "rules/match/path.h"
#include "rules/match/pattern.h"
#include "rules/match/query.h"
#include "rules/match/special.h"

static int too_large(struct rules_evaluation *evaluation, const char *what)
{
    if (evaluation->reason)
        snprintf(evaluation->reason->text, sizeof(evaluation->reason->text), "%s", what);
    return WEIR_ERR_TOO_LARGE;
}

int rules_too_many(struct rules_evaluation *evaluation)
{
    return too_large(evaluation, "more than 32 limits apply to this request");
}

static void clear(struct rules_evaluation *evaluation, const struct weir_rules *rules)
{
    memset(&evaluation->scales, 0,
           offsetof(struct rules_evaluation, identity) - offsetof(struct rules_evaluation, scales));
    memset(&evaluation->identity, 0,
           offsetof(struct rules_evaluation, known) - offsetof(struct rules_evaluation, identity));
    for (uint32_t i = 0; i * 64 < rules->attribute_count; i++)
        evaluation->known[i] = evaluation->looked[i] = 0;
}

int rules_begin(struct rules_evaluation *evaluation, const struct weir_rules_query *query)
{
    const struct weir_rules *rules = query->rules;
    const struct weir_request *request = query->request;
    struct weir_scratch *scratch = query->scratch;
    clear(evaluation, rules);
    evaluation->query = query;
    evaluation->rules = rules;
    evaluation->request = request;
    evaluation->secret = query->secret;
    evaluation->scratch = scratch;
    evaluation->reason = query->reason;
    scratch->used = 0;
    evaluation->client = weir_rules_counted_by(rules, &request->client, &evaluation->client_inside);
    if (request->count > WEIR_ATTR_PATH && request->values[WEIR_ATTR_PATH].data) {
        int err = weir_path_normalise(&evaluation->path, request->values[WEIR_ATTR_PATH],
                                      rules->path_options, scratch->bytes, WEIR_PATH_MAX,
                                      evaluation->reason);
        if (err < 0)
            return err;
        if (evaluation->path.data == scratch->bytes)
            scratch->used += (uint32_t)evaluation->path.size;
    }
    if (request->count > WEIR_ATTR_HOST && request->values[WEIR_ATTR_HOST].data) {
        char *room = scratch->bytes + scratch->used;
        int err = weir_host_normalise(&evaluation->host, request->values[WEIR_ATTR_HOST], room,
                                      evaluation->reason);
        if (err < 0)
            return err;
        if (evaluation->host.data == room)
            scratch->used += (uint32_t)evaluation->host.size;
    }
    return 0;
}

/* A parameter of the query, or a cookie, as it is written there. */
static bool find_within(const struct weir_rules *rules, const struct weir_request *request,
                        uint16_t attribute, struct weir_bytes *value)
{
    bool query = rules->rows[attribute]->within == RULES_WITHIN_QUERY;
    uint16_t place = query ? WEIR_ATTR_PATH : rules->cookies;
    const char *name = rules->attribute_names[attribute];
    name += query ? sizeof(RULES_QUERY) - 1 : sizeof(RULES_COOKIE) - 1;
    struct weir_bytes wanted = {name, strlen(name)};
    struct weir_bytes text =
        place < request->count ? request->values[place] : (struct weir_bytes){NULL, 0};
    if (!text.data)
        return false;
    if (query && rules->repeated[attribute] == RULES_REPEATED_LAST)
        return weir_query_find_last(text, wanted, value);
    return query ? weir_query_find(text, wanted, value) : weir_cookie_next(&text, wanted, value);
}

static bool is_within(const struct weir_rules *rules, const struct weir_request *request,
                      uint16_t attribute)
{
    bool given = attribute < request->count && request->values[attribute].data;
    return !given && rules->rows[attribute]->within != RULES_WITHIN_NONE;
}

static struct weir_bytes given_value(const struct weir_request *request, uint16_t attribute)
{
    struct weir_bytes none = {NULL, 0};
    return attribute < request->count ? request->values[attribute] : none;
}

/* Looked for once; a value that has to be decoded is kept in scratch. */
static struct weir_bytes value_within(struct rules_evaluation *evaluation, uint16_t attribute)
{
    uint64_t bit = UINT64_C(1) << attribute % 64;
    struct weir_bytes *found = &evaluation->found[attribute], value;
    struct weir_scratch *scratch = evaluation->scratch;
    if (evaluation->looked[attribute / 64] & bit)
        return *found;
    evaluation->looked[attribute / 64] |= bit;
    *found = (struct weir_bytes){NULL, 0};
    if (!find_within(evaluation->rules, evaluation->request, attribute, &value))
        return *found;
    if (evaluation->rules->rows[attribute]->within == RULES_WITHIN_COOKIES)
        return *found = value;
    long used = weir_query_decode(value, &value, scratch->bytes + scratch->used,
                                  sizeof(scratch->bytes) - scratch->used);
    if (used < 0)
        return *found;
    scratch->used += (uint32_t)used;
    return *found = value;
}

struct weir_bytes rules_supplied(struct rules_evaluation *evaluation, uint16_t attribute)
{
    if (__builtin_expect(is_within(evaluation->rules, evaluation->request, attribute), 0))
        return value_within(evaluation, attribute);
    return given_value(evaluation->request, attribute);
}

struct weir_bytes rules_supplied_plain(const struct weir_rules *rules,
                                       const struct weir_request *request, uint16_t attribute)
{
    struct weir_bytes value = {NULL, 0};
    if (!is_within(rules, request, attribute))
        return given_value(request, attribute);
    if (!find_within(rules, request, attribute, &value) ||
        weir_query_decode(value, &value, NULL, 0) != 0)
        return (struct weir_bytes){NULL, 0};
    return value;
}

struct weir_bytes rules_path_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    return evaluation->path;
}

struct weir_bytes rules_host_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    return evaluation->host;
}

struct weir_bytes rules_user_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    rules_identify(evaluation);
    return evaluation->identity.user;
}

struct weir_bytes rules_org_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    rules_identify(evaluation);
    return evaluation->identity.org;
}

struct weir_bytes rules_plan_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    rules_identify(evaluation);
    return evaluation->identity.plan;
}

struct weir_bytes rules_standing_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    return rules_standing_text(evaluation->standing);
}

struct weir_bytes rules_challenge_text(struct rules_evaluation *evaluation, uint16_t attribute)
{
    return rules_challenge_value(evaluation);
}

/* One credential is one value however it is spelled (core/text/credential.h). */
struct weir_bytes rules_credential_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    uint64_t bit = UINT64_C(1) << attribute % 64;
    struct weir_bytes value = given_value(evaluation->request, attribute);
    struct weir_bytes *found = &evaluation->found[attribute];
    struct weir_scratch *scratch = evaluation->scratch;
    if (evaluation->looked[attribute / 64] & bit)
        return *found;
    evaluation->looked[attribute / 64] |= bit;
    *found = value;
    if (!value.data || value.size > sizeof(scratch->bytes) - scratch->used)
        return *found;
    *found = weir_credential_form(value, scratch->bytes + scratch->used);
    if (found->data != value.data)
        scratch->used += (uint32_t)found->size;
    return *found;
}

/* `User-Agent:` without a value says no more than no such field. */
struct weir_bytes rules_agent_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    struct weir_bytes value = given_value(evaluation->request, attribute);
    return value.size > 0 ? value : (struct weir_bytes){NULL, 0};
}

struct weir_bytes rules_claim_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    return rules_claim(evaluation, evaluation->rules->jwt->claim_of[attribute] - 1);
}

uint32_t rules_atom(struct rules_evaluation *evaluation, uint16_t attribute)
{
    uint64_t bit = UINT64_C(1) << attribute % 64;
    if ((evaluation->known[attribute / 64] & bit) == 0) {
        struct weir_bytes value = rules_value(evaluation, attribute);
        evaluation->known[attribute / 64] |= bit;
        evaluation->atoms[attribute] =
            !value.data ? RULES_NONE
                        : rules_string_map_find(&evaluation->rules->literals, attribute,
                                                rules_text_hash(value.data, value.size), value.data,
                                                value.size);
    }
    return evaluation->atoms[attribute];
}

void rules_path_atoms(struct rules_evaluation *evaluation)
{
    if (evaluation->paths_known)
        return;
    const struct rules_path_trie *paths = &evaluation->rules->paths;
    evaluation->paths_known = true;
    rules_path_trie_cut(paths, evaluation->path, &evaluation->segments);
    evaluation->path_count = rules_path_trie_find(paths, &evaluation->segments,
                                                  evaluation->path_atoms, RULES_PATH_ATOMS_MAX);
}

void rules_address_atoms(struct rules_evaluation *evaluation)
{
    if (!evaluation->addresses_known) {
        evaluation->addresses_known = true;
        evaluation->address_count = rules_address_trie_find(
            &evaluation->rules->addresses, &evaluation->request->client, evaluation->address_atoms);
    }
}

/* The first place of an atom in a path's part; UINT32_MAX: nowhere. */
static uint32_t place_of(const struct rules_part *part, uint32_t atom)
{
    uint32_t low = 0, high = part->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (part->places[middle].atom < atom)
            low = middle + 1;
        else
            high = middle;
    }
    return low < part->count && part->places[low].atom == atom ? part->places[low].at : UINT32_MAX;
}

bool rules_part_has_place(const struct rules_part *part, uint32_t atom)
{
    return place_of(part, atom) != UINT32_MAX;
}

int rules_pattern_of(struct rules_evaluation *evaluation, const struct rules_rule *rule)
{
    const struct rules_part *part = rule->path_part;
    if (!part)
        return -1;
    rules_path_atoms(evaluation);
    uint32_t first = UINT32_MAX;
    for (uint32_t a = 0; a < evaluation->path_count && a < RULES_PATH_ATOMS_MAX; a++) {
        uint32_t place = place_of(part, evaluation->path_atoms[a]);
        first = place < first ? place : first;
    }
    return first == UINT32_MAX ? -1 : (int)first;
}

/* The loader keeps the atoms of parts without globs in ascending order. */
static bool has_atom(const struct rules_part *part, uint32_t atom)
{
    uint32_t low = 0, high = part->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (part->atoms[middle] == atom)
            return true;
        if (part->atoms[middle] < atom)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool glob_holds(const struct rules_part *part, struct weir_bytes glob,
                       struct weir_bytes value)
{
    return part->fold ? weir_glob_match_folded(glob, value) : weir_glob_match(glob, value);
}

static bool values_hold(struct rules_evaluation *evaluation, const struct rules_part *part)
{
    uint32_t atom = rules_atom(evaluation, part->attribute);
    if (!part->globs)
        return atom != RULES_NONE && has_atom(part, atom);
    struct weir_bytes value = rules_value(evaluation, part->attribute);
    for (uint32_t i = 0; value.data && i < part->count; i++) {
        bool holds = part->atoms[i] == RULES_NONE ? glob_holds(part, part->values[i], value)
                                                  : part->atoms[i] == atom;
        if (holds)
            return true;
    }
    return false;
}

static bool capture_holds(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                          const struct rules_part *part)
{
    int pattern = rules_pattern_of(evaluation, rule);
    if (pattern < 0 || part->segments[pattern] < 0)
        return false;
    struct weir_bytes value = evaluation->segments.text[part->segments[pattern]];
    for (uint32_t i = 0; i < part->count; i++)
        if (glob_holds(part, part->values[i], value))
            return true;
    return false;
}

bool rules_part_holds(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                      const struct rules_part *part)
{
    switch (part->kind) {
    case RULES_PART_PATH:
        return rules_pattern_of(evaluation, rule) >= 0;
    case RULES_PART_ADDRESS:
        rules_address_atoms(evaluation);
        for (uint32_t i = 0; i < evaluation->address_count; i++)
            if (has_atom(part, evaluation->address_atoms[i]))
                return true;
        return false;
    case RULES_PART_CAPTURE:
        return capture_holds(evaluation, rule, part);
    case RULES_PART_SPECIAL:
        return rules_special_holds(evaluation, rule, part);
    default:
        return values_hold(evaluation, part);
    }
}

bool rules_key_present(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                       const struct rules_key_part *part, struct weir_bytes *value)
{
    struct weir_bytes found = {NULL, 0};
    if (part->source == RULES_FROM_ADDRESS)
        return evaluation->request->client.family != 0;
    if (part->source == RULES_FROM_CAPTURE) {
        int pattern = rules_pattern_of(evaluation, rule);
        if (pattern >= 0 && part->segments[pattern] >= 0)
            found = evaluation->segments.text[part->segments[pattern]];
    } else if (part->source == RULES_FROM_LITERAL) {
        found = part->literal;
    } else {
        found = rules_value(evaluation, part->attribute);
    }
    if (value)
        *value = found;
    return found.data;
}

/* Whether an attribute of the key is there, or another one that takes its place. */
static bool has_value(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                      const struct rules_key_part *part)
{
    bool there = rules_key_present(evaluation, rule, part, NULL);
    for (uint8_t i = 0; !there && i < rule->instead_count; i++)
        there = rules_key_present(evaluation, rule, &rule->instead[i], NULL);
    return there;
}

const struct rules_key_part *rules_key_missing(struct rules_evaluation *evaluation,
                                               const struct rules_rule *rule)
{
    for (uint32_t i = 0; rule->missing == RULES_SKIP && i < rule->key_count; i++)
        if (!has_value(evaluation, rule, &rule->key[i]))
            return &rule->key[i];
    return NULL;
}

/* Callers that are trusted meet only limits that say so in their match. */
static bool is_for_caller(const struct rules_evaluation *evaluation, const struct rules_rule *rule)
{
    return evaluation->standing != WEIR_STANDING_TRUSTED || rule->for_trusted;
}

struct search {
    struct rules_evaluation *evaluation;
    uint32_t *matched;
    uint32_t count;
    bool all_there; /* the key of each of `matched`: there is no room for another limit */
    bool full;
};

/* There is no more room: those whose key is missing do not apply. */
static __attribute__((noinline)) void drop_missing(struct search *search)
{
    struct rules_evaluation *evaluation = search->evaluation;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < search->count; i++)
        if (!rules_key_missing(evaluation, &evaluation->rules->rules[search->matched[i]]))
            search->matched[kept++] = search->matched[i];
    search->count = kept;
    search->all_there = kept == RULES_MATCHED_MAX;
}

/* Verifies one limit and puts it in its place; a limit found twice counts once. Whether its key is
 * there is found when it is built. */
static void consider(struct search *search, const struct rules_posting *posting)
{
    const uint32_t number = posting->rule;
    if (__builtin_expect(search->count == RULES_MATCHED_MAX, 0) && !search->all_there)
        drop_missing(search);
    uint32_t at = search->count;
    while (at > 0 && search->matched[at - 1] >= number)
        if (search->matched[--at] == number)
            return;
    const struct rules_rule *rule = &search->evaluation->rules->rules[number];
    if ((rule->when & search->evaluation->query->resting) != 0 ||
        !is_for_caller(search->evaluation, rule))
        return;
    for (uint32_t left = posting->unproven; left != 0; left &= left - 1)
        if (!rules_part_holds(search->evaluation, rule, &rule->parts[__builtin_ctz(left)]))
            return;
    if (__builtin_expect(search->count == RULES_MATCHED_MAX, 0)) {
        search->full |= !rules_key_missing(search->evaluation, rule);
        return;
    }
    for (uint32_t i = search->count; i > at; i--)
        search->matched[i] = search->matched[i - 1];
    search->matched[at] = number;
    search->count++;
}

static void visit(struct search *search, uint32_t number);

static void follow(struct search *search, uint32_t node, const uint32_t *atoms, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t child = rules_pairs_find(&search->evaluation->rules->index.edges, node, atoms[i]);
        if (child != RULES_NONE)
            visit(search, child);
    }
}

/* At most RULES_PARTS_MAX deep: each edge is another part of a match. */
static void visit(struct search *search, uint32_t number)
{
    struct rules_evaluation *evaluation = search->evaluation;
    const struct rules_index *index = &evaluation->rules->index;
    const struct rules_index_node *node = &index->nodes[number];
    for (uint32_t i = 0; i < node->posting_count; i++)
        consider(search, &index->postings[node->posting + i]);
    for (uint32_t i = 0; i < node->dimension_count; i++) {
        uint16_t attribute = index->dimensions[node->dimension + i];
        if (attribute == WEIR_ATTR_PATH) {
            rules_path_atoms(evaluation);
            follow(search, number, evaluation->path_atoms, evaluation->path_count);
        } else if (attribute == WEIR_ATTR_CLIENT_IP) {
            rules_address_atoms(evaluation);
            follow(search, number, evaluation->address_atoms, evaluation->address_count);
        } else {
            uint32_t atom = rules_atom(evaluation, attribute);
            follow(search, number, &atom, atom != RULES_NONE);
        }
    }
}

int rules_find(struct rules_evaluation *evaluation, uint32_t matched[RULES_MATCHED_MAX])
{
    struct search search = {evaluation, matched, 0, false, false};
    if (evaluation->rules->paths.count > 0) {
        rules_path_atoms(evaluation);
        if (evaluation->path_count > RULES_PATH_ATOMS_MAX)
            return too_large(evaluation, "path: in more than 1024 patterns");
    }
    visit(&search, 0);
    return search.full ? rules_too_many(evaluation) : (int)search.count;
}
