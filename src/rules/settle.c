/* see settle.h */
#include "rules/settle.h"

#include <string.h>

#include "core/siphash.h"
#include "rules/compiled.h"

static uint64_t hash_of(const void *data, size_t size)
{
    static const uint64_t public[2] = {0, 0};
    uint64_t hash[2];
    weir_siphash128(public, data, size, hash);
    return hash[0];
}

static uint64_t hash_name(const struct weir_limit *limit)
{
    return hash_of(limit->name, strlen(limit->name));
}

static uint32_t hash_exact(const struct weir_limit_spec *spec)
{
    const uint64_t numbers[] = {
        (uint64_t)spec->algorithm, spec->rate,     spec->window_ns, spec->burst, spec->segments,
        (uint64_t)spec->strict,    spec->rollover, spec->calendar};
    return (uint32_t)hash_of(numbers, sizeof(numbers));
}

/* As weir_limit_converts: buckets of another rate convert. */
static uint32_t hash_kind(const struct weir_limit_spec *spec)
{
    bool bucket = spec->algorithm >= WEIR_TOKEN_BUCKET && spec->algorithm <= WEIR_LEAKY_QUEUE;
    const uint64_t numbers[] = {(uint64_t)spec->algorithm, bucket ? 0 : spec->window_ns,
                                spec->segments, (uint64_t)spec->strict, spec->calendar};
    return (uint32_t)hash_of(numbers, sizeof(numbers));
}

const struct weir_limit *weir_rules_settled_limit(const struct weir_rules *rules)
{
    return &rules->settled;
}

void weir_rules_mark(const struct weir_check *check, struct weir_limit_mark *mark)
{
    mark->name = hash_name(check->limit);
    mark->exact = hash_exact(&check->limit->spec);
    mark->kind = hash_kind(&check->limit->spec);
}

/* How well a limit fits a mark: 2 with all its numbers, 1 if its states keep their meaning. */
static int fits(const struct weir_limit *limit, const struct weir_limit_mark *mark)
{
    if (hash_exact(&limit->spec) == mark->exact) {
        return 2;
    }
    return hash_kind(&limit->spec) == mark->kind ? 1 : 0;
}

/* Tries all rates of a rule, or of one of its plans; `caps` may be NULL. Returns how well the best
 * fits. */
static int try_rates(const struct rules_rates *rates, const struct rules_rates *caps,
                     const struct weir_limit_mark *mark, bool local, int best,
                     struct weir_settling *settling)
{
    for (uint8_t i = 0; i < rates->count; i++) {
        const struct weir_limit *limit = &rates->limits[i];
        const struct weir_limit *at = local && limit->local != NULL ? limit->local : limit;
        int fit = hash_name(limit) == mark->name ? fits(at, mark) : 0;
        if (fit > best) {
            settling->limit = at;
            settling->cap = caps != NULL ? &caps->limits[i] : NULL;
            best = fit;
        }
    }
    return best;
}

static int try_rule(const struct weir_rules *rules, uint32_t number,
                    const struct weir_limit_mark *mark, bool local, int best,
                    struct weir_settling *settling)
{
    const struct rules_rule *rule = &rules->rules[number];
    const struct rules_refund *refund = rule->refund;
    int found =
        try_rates(&rule->rates, refund != NULL ? &refund->caps : NULL, mark, local, best, settling);
    for (uint32_t p = 0; rule->plans != NULL && p < rules->plan_count; p++) {
        found = try_rates(&rule->plans[p], refund != NULL ? &refund->plans[p] : NULL, mark, local,
                          found, settling);
    }
    if (found > best) {
        settling->rule = number;
        settling->floor = rule->floor;
    }
    return found;
}

bool weir_rules_find_marked(const struct weir_rules *rules, const struct weir_limit_mark *mark,
                            uint32_t rule, bool local, struct weir_settling *settling)
{
    int best = 0;
    if (rule < rules->rule_count) {
        best = try_rule(rules, rule, mark, local, best, settling);
    }
    for (uint32_t i = 0; i < rules->rule_count && best < 2; i++) {
        best = try_rule(rules, i, mark, local, best, settling);
    }
    return best > 0;
}

bool weir_rules_gives_back(const struct weir_rules *rules, uint32_t rule, uint32_t status)
{
    const struct rules_refund *refund = rules->rules[rule].refund;
    uint32_t bit = status - WEIR_STATUS_MIN;
    return refund != NULL && status >= WEIR_STATUS_MIN && status <= WEIR_STATUS_MAX &&
           (refund->statuses[bit / 8] >> bit % 8 & 1) != 0;
}
