/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that share budgets: the section `regions:` and `global:` of limits, compiled.
 *
 * Every region has a Redis of its own, and the same file. A limit with `global:` has parts
 * (part.h): the home's part counts a key in the Redis of its home (home.h), and each other region
 * has a floor of it in its own Redis. A decision asks the Redis of its own region only. So the sum
 * of what all regions admit is at most what the limit would admit, as long as all files say the
 * same. With `lend`, the home's part also lends: a node abroad takes portions of it beforehand
 * (engine/region/lend.h), which are charged there, and so are no more than that part. With `wait`,
 * a node abroad asks the home's Redis itself (engine/region/question.h), which decides by that
 * part.
 *
 * Threads: immutable once loaded.
 */
#ifndef WEIR_RULES_REGION_REGION_H
#define WEIR_RULES_REGION_REGION_H

#include "rules/compiled.h"
#include "rules/region/home.h"
#include "rules/region/part.h"

struct rules_regions {
    struct rules_region list[RULES_REGIONS_MAX];
    struct weir_store_settings store[RULES_REGIONS_MAX]; /* of each; that of `self` is not set */
    uint32_t count, self;
    bool reached; /* a limit lends or waits: nodes ask the Redis of other regions */
    bool waits;   /* a limit waits */
};

enum rules_home_by { RULES_HOME_HASH, RULES_HOME_NAMED, RULES_HOME_ATTRIBUTE };

/* `global` of a limit. */
struct rules_global {
    struct rules_fraction floor, home;
    uint8_t by;       /* enum rules_home_by */
    uint8_t region;   /* NAMED */
    uint8_t part;     /* ATTRIBUTE: of the rule's key, in the file's order */
    bool equal;       /* floor and home are */
    bool lends;       /* the home lends what it does not use, of a rate at least */
    uint64_t wait_ns; /* how long a request waits for the home where the floor denies; 0: never */
};

#define RULES_WAIT_MAX_NS UINT64_C(1000000000)

/* The index of the home of a key, by its text, which names the state in every region. The rule has
 * `global`. An attribute's value is in the text as it is, since names of regions need no encoding;
 * a text that was cut has no such value any more, and its hash chooses the home. */
uint32_t rules_home_of(const struct weir_rules *rules, const struct rules_rule *rule,
                       struct weir_bytes key);

/* What of a rule's rates counts in this region for a key: `rates`, or those for a key from abroad,
 * for which `own` is room. */
const struct rules_rates *rules_rates_here(const struct weir_rules *rules,
                                           const struct rules_rule *rule, struct weir_bytes key,
                                           const struct rules_rates *rates,
                                           struct rules_rates *own);

/* Whether a limit is the floor of a rule, or one of its floors: what counts for keys from abroad
 * where the parts differ. */
bool weir_rules_is_floor(const struct weir_rules *rules, uint32_t rule,
                         const struct weir_limit *limit);

/* What the home of a key has for a check that is on a floor. */
struct weir_home {
    const struct weir_limit *limit; /* the home's part */
    uint64_t wait_ns;               /* how long a request may wait for it; 0: it may not */
    uint32_t region;
    bool lends;
};

/* The home of a check of a decision, if it lends or may be waited for. False: the check is on no
 * floor, or its floor is all that this region has. */
bool weir_rules_home(const struct weir_rules *rules, const struct weir_check *check,
                     struct weir_home *home);

/* Whether nodes ask the Redis of other regions for any limit, because it lends or waits. */
bool weir_rules_regions_reached(const struct weir_rules *rules);

/* Whether requests wait for the home of any limit. */
bool weir_rules_regions_wait(const struct weir_rules *rules);

/* Whether the home of a rule lends; whether requests wait for it. */
bool weir_rules_is_lent(const struct weir_rules *rules, uint32_t rule);
bool weir_rules_waits(const struct weir_rules *rules, uint32_t rule);

/* Region `region` of a file that has `count` regions: its name, and where its states are. NULL:
 * there is no such region, or it is this node's own. */
const struct weir_store_settings *weir_rules_region_store(const struct weir_rules *rules,
                                                          uint32_t region, struct weir_bytes *name);

/* Whether the file has the section `regions`. */
bool weir_rules_has_regions(const struct weir_rules *rules);

/* The name of this node's region; empty: the file has no such section. */
struct weir_bytes weir_rules_region_self(const struct weir_rules *rules);

/* What a limit is for a key in this region, for people. */
struct weir_region_info {
    struct weir_bytes self, home;
    struct rules_fraction floor, home_share;
    bool equal;       /* all regions have the same part, so the home plays no role */
    bool lends;       /* the home lends what it does not use */
    uint64_t wait_ns; /* how long a request waits for the home; 0: it does not */
};

/* False: the limit is not `global`. */
bool weir_rules_region(const struct weir_rules *rules, uint32_t rule, struct weir_bytes key,
                       struct weir_region_info *info);

#endif
