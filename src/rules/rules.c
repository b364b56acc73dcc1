/* SPDX-License-Identifier: Apache-2.0 */
/* see rules.h */
#include "rules/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/version.h>

#include "base/file.h"
#include "core/text/siphash.h"
#include "feature/identity/rules/jwt.h"
#include "feature/score/rules/score.h"
#include "rules/charge/top_up.h"
#include "rules/compiled.h"
#include "rules/load/document.h"
#include "rules/load/load.h"
#include "rules/problems.h"
#include "rules/unknown_names.h"

/* --- Loading ---------------------------------------------------------------------------------- */

/* A text that is too long for that is not kept. */
static int keep_text(struct weir_rules *rules, const char *text, size_t size)
{
    if (size == 0 || size > WEIR_RULES_TEXT_KEPT)
        return 0;
    rules->text = malloc(size);
    if (!rules->text)
        return WEIR_ERR_MEMORY;
    memcpy(rules->text, text, size);
    rules->text_size = size;
    return 0;
}

int weir_rules_parse(struct weir_rules **out, const char *name, const char *folder,
                     const char *text, size_t size, struct weir_problems *problems)
{
    *out = NULL;
    struct weir_rules *rules = calloc(1, sizeof(*rules));
    if (!rules)
        return WEIR_ERR_MEMORY;
    atomic_init(&rules->references, 1);
    atomic_init(&rules->holders, 1);
    rules->default_plan = RULES_NONE;
    uint32_t deprecated = problems->deprecated;
    int err = rules_load_text(rules, name, folder, text, size, problems);
    rules->deprecated = problems->deprecated - deprecated;
    if (err == 0)
        err = keep_text(rules, text, size);
    if (err < 0) {
        weir_rules_unref(rules);
        return err;
    }
    *out = rules;
    return 0;
}

struct weir_bytes weir_rules_text(const struct weir_rules *rules)
{
    return (struct weir_bytes){rules->text, rules->text_size};
}

#define CANNOT_READ "cannot read the file: "

static int cannot_read(struct weir_problems *problems, const char *path, const char *why)
{
    char message[sizeof(CANNOT_READ) + sizeof(((struct weir_reason *)NULL)->text)];
    snprintf(message, sizeof(message), CANNOT_READ "%s", why);
    return rules_problem_add(problems, path, 0, 0, message) ? WEIR_ERR_RULES : WEIR_ERR_MEMORY;
}

/* Reads a whole file, one byte more than is allowed at most: the document says that it is too
 * large. *text is the caller's to free. */
static int read_file(const char *path, char **text, size_t *size, struct weir_problems *problems)
{
    struct weir_reason reason = {{0}};
    int err = weir_file_read_whole(path, RULES_FILE_MAX, text, size, &reason);
    return err == 0 || err == WEIR_ERR_MEMORY ? err : cannot_read(problems, path, reason.text);
}

int weir_rules_load(struct weir_rules **rules, const char *path, struct weir_problems *problems)
{
    char *text = NULL;
    size_t size = 0;
    *rules = NULL;
    int err = read_file(path, &text, &size, problems);
    if (err < 0) {
        free(text);
        return err;
    }
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
    err = folder ? weir_rules_parse(rules, path, folder, text, size, problems) : WEIR_ERR_MEMORY;
    free(folder);
    free(text);
    return err;
}

uint32_t weir_rules_deprecated(const struct weir_rules *rules)
{
    return rules->deprecated;
}

/* --- References ------------------------------------------------------------------------------- */

struct weir_rules *weir_rules_ref(struct weir_rules *rules)
{
    atomic_fetch_add_explicit(&rules->references, 1, memory_order_relaxed);
    return rules;
}

bool weir_rules_unshared(const struct weir_rules *rules)
{
    return atomic_load_explicit(&rules->references, memory_order_relaxed) == 1;
}

struct weir_rules *weir_rules_ref_settings(struct weir_rules *rules)
{
    atomic_fetch_add_explicit(&rules->holders, 1, memory_order_relaxed);
    return rules;
}

void weir_rules_unref(struct weir_rules *rules)
{
    if (rules && atomic_fetch_sub_explicit(&rules->references, 1, memory_order_acq_rel) == 1)
        weir_rules_unref_settings(rules);
}

void weir_rules_unref_settings(struct weir_rules *rules)
{
    /* Release what this holder did, acquire what all others did, before anything is freed. */
    if (!rules || atomic_fetch_sub_explicit(&rules->holders, 1, memory_order_acq_rel) != 1)
        return;
    free(rules->text);
    rules_string_map_free(&rules->rule_names);
    rules_string_map_free(&rules->attributes);
    rules_string_map_free(&rules->declared);
    rules_string_map_free(&rules->plans);
    rules_string_map_free(&rules->literals);
    rules_keys_free(&rules->keys);
    rules_path_trie_free(&rules->paths);
    rules_routes_free(&rules->routes);
    rules_address_trie_free(&rules->addresses);
    rules_index_free(&rules->index);
    rules_jwt_free(rules->jwt);
    rules_score_free(rules->score);
    rules_arena_free(&rules->arena);
    free(rules->follows);
    free(rules);
}

/* --- Limits and the store --------------------------------------------------------------------- */

static int prepare_rates(struct rules_rates *rates, const char *name, weir_rules_prepare_fn prepare,
                         void *context)
{
    int err = 0;
    for (uint8_t i = 0; err == 0 && i < rates->count; i++)
        err = prepare(context, &rates->limits[i], name);
    for (uint8_t i = 0; err == 0 && rates->abroad && i < rates->count; i++)
        err = prepare(context, &rates->abroad[i], name);
    return err;
}

static int prepare_caps(const struct weir_rules *rules, const struct rules_rule *rule,
                        weir_rules_prepare_fn prepare, void *context)
{
    struct rules_refund *refund = rule->refund;
    int err = prepare_rates(&refund->caps, rule->name, prepare, context);
    for (uint32_t p = 0; err == 0 && refund->plans && p < rules->plan_count; p++)
        err = prepare_rates(&refund->plans[p], rule->name, prepare, context);
    return err;
}

static int prepare_lender(const struct weir_rules *rules, const struct rules_rule *lender,
                          weir_rules_prepare_fn prepare, void *context)
{
    struct rules_rates rates = lender->rates;
    int err = prepare_rates(&rates, lender->name, prepare, context);
    for (uint32_t p = 0; err == 0 && lender->plans && p < rules->plan_count; p++)
        err = prepare_rates(&lender->plans[p], lender->name, prepare, context);
    return err;
}

static int prepare_overrides(const struct weir_rules *rules, weir_rules_prepare_fn prepare,
                             void *context)
{
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < rules->keys.override_count; i++) {
        struct weir_override *override = rules->keys.overrides[i];
        struct rules_rates rates = {.limits = override->limits, .count = (uint8_t) override->count};
        err = prepare_rates(&rates, rules->rules[override->rule].name, prepare, context);
    }
    return err;
}

int weir_rules_prepare(struct weir_rules *rules, weir_rules_prepare_fn prepare, void *context)
{
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        struct rules_rule *rule = &rules->rules[i];
        int err = prepare_rates(&rule->rates, rule->name, prepare, context);
        for (uint32_t p = 0; err == 0 && rule->plans && p < rules->plan_count; p++)
            err = prepare_rates(&rule->plans[p], rule->name, prepare, context);
        if (err == 0 && rule->refund)
            err = prepare_caps(rules, rule, prepare, context);
        if (err == 0)
            err = prepare_rates(&rule->candidate, rule->name, prepare, context);
        if (err == 0 && rules->top_ups && rules->top_ups[i])
            err = prepare(context, rules->top_ups[i], rule->name);
        if (err == 0 && rule->lends)
            err = prepare_lender(rules, &rule->lends->lender, prepare, context);
        if (err < 0)
            return err;
    }
    int err = prepare_overrides(rules, prepare, context);
    if (err < 0)
        return err;
    err = prepare(context, &rules->idempotency, "idempotency");
    for (int i = 0; i < WEIR_SETTLED_CLASSES && err == 0; i++)
        err = prepare(context, &rules->settled[i], "reservations");
    if (err == 0 && rules->settings.challenge.keys)
        err = prepare(context, &rules->solved, "challenge");
    for (int i = 0; i < RULES_WARNED && rules->warns && err == 0; i++)
        err = prepare(context, &rules->warned[i], "warn_at");
    for (uint32_t i = 0; i < rules->penalty_count && err == 0; i++)
        err = prepare_rates(&rules->penalties[i].strikes.rates, "penalties", prepare, context);
    return err;
}

struct distinct {
    uint64_t (*hashes)[2]; /* of the numbers; of these and the name */
    uint32_t count, room;
};

static uint64_t hash_of(const void *data, size_t size)
{
    static const uint64_t no_secret[2] = {0, 0};
    uint64_t hash[2];
    weir_siphash128(no_secret, data, size, hash);
    return hash[0];
}

static int add(void *context, struct weir_limit *limit, const char *name)
{
    struct distinct *distinct = context;
    const struct weir_limit *own = limit->local ? limit->local : limit;
    const struct weir_limit_spec *spec = &own->spec;
    const uint64_t words[] = {spec->algorithm, spec->rate,   spec->window_ns, spec->burst,
                              spec->segments,  spec->strict, spec->rollover,  spec->calendar};
    (void)name;
    if (distinct->count == distinct->room) {
        uint32_t room = distinct->room == 0 ? 64 : distinct->room * 2;
        uint64_t(*hashes)[2] = realloc(distinct->hashes, room * sizeof(*hashes));
        if (!hashes)
            return WEIR_ERR_MEMORY;
        distinct->hashes = hashes;
        distinct->room = room;
    }
    uint64_t *hashes = distinct->hashes[distinct->count++];
    hashes[0] = hash_of(words, sizeof(words));
    hashes[1] = hashes[0] ^ (own->name ? hash_of(own->name, strlen(own->name)) : 0);
    return 0;
}

static int compare_specs(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static int compare_limits(const void *a, const void *b)
{
    return compare_specs((const uint64_t *)a + 1, (const uint64_t *)b + 1);
}

static uint32_t count(struct distinct *distinct, int (*compare)(const void *, const void *))
{
    uint32_t different = distinct->count > 0;
    if (distinct->count > 0)
        qsort(distinct->hashes, distinct->count, sizeof(*distinct->hashes), compare);
    for (uint32_t i = 1; i < distinct->count; i++)
        different += compare(distinct->hashes[i], distinct->hashes[i - 1]) != 0;
    return different;
}

int weir_rules_distinct(struct weir_rules *rules, uint32_t *limits, uint32_t *specs)
{
    struct distinct distinct = {0};
    int err = weir_rules_prepare(rules, add, &distinct);
    *limits = *specs = 0;
    if (err == 0) {
        *limits = count(&distinct, compare_limits);
        *specs = count(&distinct, compare_specs);
    }
    free(distinct.hashes);
    return err;
}

/* --- Questions -------------------------------------------------------------------------------- */

const char *weir_rules_reset_warning(const struct weir_rules *rules)
{
    if (rules->settings.headers_given || !weir_still_takes(WEIR_REFUSED_FROM))
        return NULL;
    return "X-RateLimit-Reset is a Unix time now, and was seconds before; write `headers: [draft, "
           "x-epoch]` into the rules file to keep that, or `[draft, x-delta]` for seconds";
}

const struct weir_settings *weir_rules_settings(const struct weir_rules *rules)
{
    return &rules->settings;
}

unsigned weir_rules_path_options(const struct weir_rules *rules)
{
    return rules->path_options;
}

const char *weir_rules_attribute_name(const struct weir_rules *rules, uint16_t attribute)
{
    return rules->attribute_names[attribute];
}

bool weir_rules_refunds(const struct weir_rules *rules)
{
    for (uint32_t i = 0; i < rules->rule_count; i++)
        if (rules->rules[i].refund)
            return true;
    return false;
}

uint32_t weir_rules_adaptive_count(const struct weir_rules *rules)
{
    return rules->adaptive_limit_count;
}

uint16_t weir_rules_attribute_count(const struct weir_rules *rules)
{
    return rules->attribute_count;
}

uint32_t weir_rules_count(const struct weir_rules *rules)
{
    return rules->rule_count;
}

const char *weir_rules_name(const struct weir_rules *rules, uint32_t index)
{
    return rules->rules[index].name;
}

void weir_rules_info(const struct weir_rules *rules, uint32_t index, struct weir_rule_info *info)
{
    const struct rules_rule *rule = &rules->rules[index];
    info->name = rule->name;
    info->limit = rule->rates.limits;
    info->limit_count = rule->rates.count;
    info->key = rule->key_names;
    info->key_count = rule->key_count;
    info->algorithm = (enum weir_algorithm)rule->algorithm;
    info->shadow = (rule->flags & WEIR_CHECK_SHADOW) != 0;
    info->by_plan = rule->plans;
    info->leased = (rule->flags & WEIR_CHECK_LEASED) != 0;
    info->on_store_error = rule->on_store_error;
    info->tag = rule->tag_names;
    info->tag_count = rule->tag_count;
    info->enforce = rule->enforce;
    info->candidate = rule->candidate.limits;
    info->candidate_count = rule->candidate.count;
    info->pool = rule->loan ? rules->rules[rule->loan->pool].name : NULL;
    info->lends = rule->lends;
    info->top_up_ns =
        weir_rules_takes_top_up(rules, index) ? weir_rules_top_up_life(rules, index) : 0;
    info->overrides = rule->own_count;
    info->when = rule->when != 0 ? rules->schedules[__builtin_ctzll(rule->when)].text : NULL;
    info->unlimited = !rule->rates.limits && !rule->plans;
}

bool weir_rules_rates(const struct weir_rules *rules, uint32_t index, uint32_t set,
                      const struct weir_limit **limits, uint32_t *count)
{
    const struct rules_rule *rule = &rules->rules[index];
    if (set >= (rule->plans ? rules->plan_count : 1))
        return false;
    const struct rules_rates *rates = rule->plans ? &rule->plans[set] : &rule->rates;
    *limits = rates->limits;
    *count = rates->limits ? rates->count : 0;
    return true;
}

#define SPAN_PERCENT_ALL 50

/* Few keys buy units above their limit; more room than one in ten would need is not kept. */
#define KEYS_OF_ONE_TOP_UP 10

/* Counts states, and those of them that need a span. */
static void count_states(const struct rules_rates *rates, uint64_t *states, uint64_t *spans)
{
    for (uint32_t i = 0; rates->limits && i < rates->count; i++) {
        ++*states;
        *spans += rates->limits[i].span_words > 0 || !rates->limits[i].packs;
    }
}

uint32_t weir_rules_span_percent(const struct weir_rules *rules)
{
    uint64_t states = 0, spans = 0;
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        const struct rules_rule *rule = &rules->rules[i];
        count_states(&rule->rates, &states, &spans);
        count_states(&rule->candidate, &states, &spans);
        if (weir_rules_takes_top_up(rules, i)) {
            states += KEYS_OF_ONE_TOP_UP;
            spans++;
        }
        for (uint32_t plan = 0; rule->plans && plan < rules->plan_count; plan++)
            count_states(&rule->plans[plan], &states, &spans);
    }
    for (uint32_t i = 0; i < rules->penalty_count; i++)
        count_states(&rules->penalties[i].strikes.rates, &states, &spans);
    return WEIR_RULES_SPAN_PERCENT_MIN +
           (states > 0
                ? (uint32_t)(spans * (SPAN_PERCENT_ALL - WEIR_RULES_SPAN_PERCENT_MIN) / states)
                : 0);
}

bool weir_rules_timed(const struct weir_rules *rules)
{
    return rules->schedule_count > 0 || rules->jwt || rules->settings.standing->kinds_count > 0 ||
           rules->settings.challenge.keys || rules->score;
}

void weir_rules_moment(const struct weir_rules *rules, uint64_t now_ns, struct weir_moment *moment)
{
    *moment = (struct weir_moment){0, UINT64_MAX, 0};
    for (uint32_t i = 0; i < rules->schedule_count; i++) {
        uint64_t from_ns, until_ns;
        bool on = rules_schedule_at(&rules->schedules[i].schedule, now_ns, &from_ns, &until_ns);
        moment->resting |= (uint64_t)!on << i;
        moment->from_ns = from_ns > moment->from_ns ? from_ns : moment->from_ns;
        moment->until_ns = until_ns < moment->until_ns ? until_ns : moment->until_ns;
    }
}

const struct weir_limit *weir_rules_only_limit(const struct weir_rules *rules, uint32_t rule)
{
    const struct rules_rates *rates = &rules->rules[rule].rates;
    return rates->count == 1 ? rates->limits : NULL;
}

int weir_rules_find(const struct weir_rules *rules, const char *name, size_t size)
{
    return rules_rule_find(rules, (struct weir_bytes){name, size});
}

bool weir_rules_has_plan(const struct weir_rules *rules, struct weir_bytes name)
{
    return rules->plan_count == 0 || rules_plan_find(rules, name) != RULES_NONE;
}

bool weir_rules_reads_tokens(const struct weir_rules *rules)
{
    return rules->jwt;
}

void weir_rules_inherit(struct weir_rules *rules, const struct weir_rules *before)
{
    if (!before)
        return;
    rules_unknown_inherit(rules, before);
    rules_score_inherit(rules, before);
}
