/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that share budgets: the section `regions:` and `global:` of limits, compiled.
 *
 * Every region has a Redis of its own, and the same file. A limit with `global:` has parts
 * (part.h): the home's part counts a key in the Redis of its home (home.h), and each other region
 * has a floor of it in its own Redis. A node only ever asks the Redis of its region. So the sum of
 * what all regions admit is at most what the limit would admit, as long as all files say the same.
 *
 * Threads: immutable once loaded.
 */
#ifndef WEIR_RULES_REGION_REGION_H
#define WEIR_RULES_REGION_REGION_H

#include "rules/compiled.h"
#include "rules/match/evaluate.h"
#include "rules/region/home.h"
#include "rules/region/part.h"

struct rules_regions {
    struct rules_region list[RULES_REGIONS_MAX];
    uint32_t count, self;
};

enum rules_home_by { RULES_HOME_HASH, RULES_HOME_NAMED, RULES_HOME_ATTRIBUTE };

/* `global` of a limit. */
struct rules_global {
    struct rules_fraction floor, home;
    uint8_t by;     /* enum rules_home_by */
    uint8_t region; /* NAMED */
    uint8_t part;   /* ATTRIBUTE: of the rule's key, in the file's order */
};

/* The index of the home of a check's key, which is built. The rule has `global`. */
uint32_t rules_home_of(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                       const struct weir_check *check);

/* What of a rule's rates counts in this region for a check's key: `rates`, or those for a key from
 * abroad, for which `own` is room. */
const struct rules_rates *rules_rates_here(struct rules_evaluation *evaluation,
                                           const struct rules_rule *rule,
                                           const struct weir_check *check,
                                           const struct rules_rates *rates,
                                           struct rules_rates *own);

#endif
