/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that share budgets: the section `regions:` and `global:` of limits, compiled.
 *
 * Every region has a Redis of its own, and the same file. A limit with `global:` has parts
 * (part.h): the home's part counts a key in the Redis of its home (home.h), and each other region
 * has a floor of it in its own Redis. A decision asks the Redis of its own region only. So the sum
 * of what all regions admit is at most what the limit would admit, as long as all files say the
 * same. With `lend`, the home's part also lends: a node abroad takes portions of it beforehand
 * (feature/region/engine/lend.h), which are charged there, and so are no more than that part. With
 * `wait`, a node abroad asks the home's Redis itself (feature/region/engine/question.h), which
 * decides by that part.
 *
 * Files change while nodes run, and not at all nodes at once. Between a file with the old homes and
 * one with the new ones, a file with `moving: true` makes the change exact: a key whose home may
 * change has floors only, in every region. Two rules make a sequence of files exact:
 *
 *   1. No region's part of a key is larger in the moving file than in the old one or the new one.
 *   2. The new file comes when all nodes have had the moving one for the memory of the limit: W of
 *      a window or log, B / r of a bucket of burst B and rate r. (weir_rules_moving reports two W.)
 *
 * A region that is not in a file has no part by it: no node of a new region runs before the wait is
 * over, and none of one that leaves runs after it began.
 *
 * Why. Let o, m and n be the parts of a region by the three files, m <= min(o, n), so that
 * max(o, n) <= o + n - m. Over all regions the o add up to at most 1, the n likewise, the m to M.
 *
 *   While nodes with two files run, a region's state is decided by both of its parts. It keeps what
 *   was used when the limit changes (store/redis/lua), and forgets at the rate of the part that
 *   charged it last. So it admits no more than the larger part does: o or n. These add up to 1.
 *
 *   Windows and logs. An interval of W meets admissions by o or by n, never both, because W lies
 *   between them: at most the bound for 1. Portions that were lent are not used by nodes with the
 *   moving file, and so end before the wait begins.
 *
 *   Buckets. Let an interval of t1 + w + t3 have t1 before all nodes have the moving file, and t3
 *   after the first has the new one. A region admits at most max(o, n) B + (o t1 + m w + n t3) r:
 *   until the state is charged by m it regains faster, by o, but then it was not charged, and what
 *   it regains beyond m w r is less than the burst that m lacks. Over all regions that is at most
 *   (2 - M) B + (t1 + M w + t3) r = B + (t1 + w + t3) r + (1 - M) (B - w r): the bound for 1 where
 *   w >= B / r. A portion that was charged as used at its end, after w began, is of that burst.
 *
 * Threads: immutable once loaded.
 */
#ifndef WEIR_FEATURE_REGION_RULES_REGION_H
#define WEIR_FEATURE_REGION_RULES_REGION_H

#include "feature/region/rules/home.h"
#include "feature/region/rules/part.h"
#include "rules/compiled.h"

struct rules_regions {
    struct rules_region list[RULES_REGIONS_MAX];
    struct rules_region before[RULES_REGIONS_MAX];       /* with the weights of the other file */
    struct weir_store_settings store[RULES_REGIONS_MAX]; /* of each; that of `self` is not set */
    uint8_t lender[RULES_REGIONS_MAX]; /* its number among the regions that the daemon borrows from:
                                          its own, but see weir_rules_number_lenders */
    uint32_t count, self;
    bool reached;      /* a limit lends or waits: nodes ask the Redis of other regions */
    bool waits;        /* a limit waits */
    bool weights_move; /* a region has `weight_before` */
};

/* A region that the daemon has no connection to: it lends after a restart. */
#define RULES_NO_LENDER UINT8_MAX

enum rules_home_by { RULES_HOME_HASH, RULES_HOME_NAMED, RULES_HOME_ATTRIBUTE };

/* `global` of a limit. */
struct rules_global {
    struct rules_fraction floor, home;
    uint8_t by;         /* enum rules_home_by */
    uint8_t region;     /* NAMED */
    uint8_t part;       /* ATTRIBUTE: of the rule's key, in the file's order */
    bool equal;         /* floor and home are */
    bool lends;         /* the home lends what it does not use, of a rate at least */
    uint64_t wait_ns;   /* how long a request waits for the home where the floor denies; 0: never */
    bool moving;        /* keys whose home may change have floors only */
    uint64_t memory_ns; /* how long a state depends on what it has admitted, at most */
};

#define RULES_WAIT_MAX_NS UINT64_C(1000000000)

/* The index of the home of a key, by its text, which names the state in every region. The rule has
 * `global`. An attribute's value is in the text as it is, since names of regions need no encoding;
 * a text that was cut has no such value any more, and its hash chooses the home. */
uint32_t rules_home_of(const struct weir_rules *rules, const struct rules_rule *rule,
                       struct weir_bytes key);

/* Whether a key of the rule, which has `global`, has floors only, in every region: the rule says
 * `moving`, and the two files may not name the same home. They do where a hash chooses it by both
 * weights, and where the key names a region of which neither weight is 0. Without weights of the
 * other file, all keys of the rule move, and so do all keys of a named home. */
bool rules_is_moving(const struct weir_rules *rules, const struct rules_rule *rule,
                     struct weir_bytes key);

/* What of a rule's rates counts in this region for a key: `rates`, or those for a key from abroad
 * or that moves, for which `own` is room. */
const struct rules_rates *rules_rates_here(const struct weir_rules *rules,
                                           const struct rules_rule *rule, struct weir_bytes key,
                                           const struct rules_rates *rates,
                                           struct rules_rates *own);

/* Whether a limit is the floor of a rule, or one of its floors: what counts for keys from abroad
 * where the parts differ. */
bool weir_rules_is_floor(const struct weir_rules *rules, uint32_t rule,
                         const struct weir_limit *limit);

/* Whether another region, the home of a check's key, has decided the check or lent for it: it is on
 * the home's part. */
bool weir_rules_is_by_other_home(const struct weir_rules *rules, const struct weir_check *check);

/* What the home of a key has for a check that is on a floor. */
struct weir_home {
    const struct weir_limit *limit; /* the home's part */
    uint64_t wait_ns;               /* how long a request may wait for it; 0: it may not */
    uint32_t region;                /* its number among those that the daemon reaches */
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

/* Numbers the regions of `rules`, which no thread uses yet, as those of `started` are, by name: the
 * daemon borrows from the regions that it was started with. Returns whether each region of either
 * file is in the other one too. */
bool weir_rules_number_lenders(struct weir_rules *rules, const struct weir_rules *started);

/* How many limits have `moving: true`, and how long to wait until the file with the new homes is
 * exact, from the moment on at which all nodes of all regions have these rules, in ns. */
uint32_t weir_rules_moving(const struct weir_rules *rules, uint64_t *wait_ns);

/* Whether one limit has. */
bool weir_rules_is_moving(const struct weir_rules *rules, uint32_t rule);

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
    bool moving;      /* every region has its floor, for now */
};

/* False: the limit is not `global`. */
bool weir_rules_region(const struct weir_rules *rules, uint32_t rule, struct weir_bytes key,
                       struct weir_region_info *info);

#endif
