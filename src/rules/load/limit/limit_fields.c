/* SPDX-License-Identifier: Apache-2.0 */
/* see limit_fields.h */
#include "rules/load/limit/limit_fields.h"

#include "core/algorithm.h"
#include "feature/region/rules/section.h"
#include "rules/actions/load_reject.h"
#include "rules/actions/load_steps.h"
#include "rules/load/limit/cost.h"
#include "rules/load/limit/match.h"
#include "rules/load/numbers.h"
#include "rules/load/server/sharing.h"

/* --- What scales a limit, by whom ------------------------------------------------------------- */

#define SCALE(name_, example_)                                                                     \
    {                                                                                              \
        name_, RULES_PERCENT, RULES_RANGE(1, 100), .example = (example_),                          \
                                                   .doc = "the part of the limit that they get"    \
    }
static const struct rules_keyword standing_keywords[] = {
    SCALE("warned", 20), SCALE("throttled", 20), SCALE("challenged", 20)};
static const struct rules_section standing_section =
    RULES_SECTION("by_standing", standing_keywords);
static const struct rules_keyword class_keywords[] = {
    SCALE("legitimate", 50), SCALE("suspicious", 50), SCALE("malicious", 50)};
static const struct rules_section class_section = RULES_SECTION("by_class", class_keywords);
static const struct rules_keyword any_class = SCALE(NULL, 60);
static const struct rules_section shed_section = {.what = "shed", .others = &any_class};

/* --- The table -------------------------------------------------------------------------------- */

#define BIT(algorithm) (UINT32_C(1) << WEIR_##algorithm)
#define BUCKETS                                                                                    \
    .algorithms = BIT(TOKEN_BUCKET) | BIT(GCRA) | BIT(LEAKY_BUCKET) | BIT(LEAKY_QUEUE),            \
    .belongs = "token_bucket, gcra and leaky_bucket"
#define WINDOWS .algorithms = BIT(SLIDING_WINDOW), .belongs = "sliding_window"
#define LEASES .algorithms = BIT(CONCURRENCY), .belongs = "concurrency"
#define QUOTAS .algorithms = BIT(QUOTA), .belongs = "quotas"

/* Of `reserve` and the like: what messages show. */
#define EXAMPLE 20

static const struct rules_keyword keywords[] = {
    [RULES_LIMIT_NAME] = {"name", RULES_NAME, .flags = RULES_REQUIRED,
                          .doc = "1 to 64 of `a-z 0-9 . _ -`, unique in the file"},
    [RULES_LIMIT_MATCH] = {"match", RULES_MAPPING, .section = &rules_section_match,
                           .absent = "every request", .doc = "[what it applies to](#match)"},
    [RULES_LIMIT_UNLESS] = {"unless", RULES_NAME, .many = RULES_SEVERAL,
                            .doc = "names of earlier limits, a list or one"},
    [RULES_LIMIT_WHEN] = {"when", RULES_TEXT, .many = RULES_SEVERAL, .absent = "always",
                          .doc = "[when it is in force](#when)"},
    [RULES_LIMIT_KEY] = {"key", RULES_TEXT, .many = RULES_SEVERAL, .flags = RULES_REQUIRED,
                         .absent = "required; `[]` is one count for all",
                         .doc = "[what has a separate count](#key)"},
    [RULES_LIMIT_RATE] = {"rate", RULES_RATE, .many = RULES_SEVERAL, .flags = RULES_TRIED,
                          .absent = "required, except for `concurrency` and quotas",
                          .doc = "[`100/min`](#rate), …, or a [list](#several-rates)"},
    [RULES_LIMIT_QUOTA] = {"quota", RULES_TEXT, .flags = RULES_TRIED | RULES_OF_CALENDAR,
                           .doc = "[`10000/month`](algorithms/quota.md): a number per period of a "
                                  "calendar, instead of `rate`"},
    [RULES_LIMIT_ALGORITHM] = {"algorithm", RULES_CHOICE, .words = algorithm_words,
                               .flags = RULES_TRIED, .otherwise = "sliding_window",
                               .doc = "[`sliding_window`](#algorithm-and-numbers), …",
                               .why = "admits about N in any window, at 30 bytes a key"},
    [RULES_LIMIT_BURST] = {"burst", RULES_NUMBER, RULES_RANGE(1, WEIR_BUCKET_MAX), BUCKETS,
                           .flags = RULES_TRIED | RULES_OF_NUMBERS, .absent = "the rate's count",
                           .doc = "buckets only: 1 to 2^40"},
    [RULES_LIMIT_SEGMENTS] = {"segments", RULES_NUMBER, RULES_RANGE(1, WEIR_SEGMENTS_MAX), WINDOWS,
                              .flags = RULES_TRIED | RULES_OF_NUMBERS, .otherwise = "1",
                              .doc = "`sliding_window` only: 1 to 120",
                              .why = "the smallest state"},
    [RULES_LIMIT_STRICT] = {"strict", RULES_FLAG, WINDOWS, .flags = RULES_TRIED | RULES_OF_NUMBERS,
                            .otherwise = "false",
                            .doc = "`sliding_window` only: it never admits more than N",
                            .why = "the strict form admits less than N where requests come evenly"},
    [RULES_LIMIT_QUEUE] = {"queue", RULES_FLAG, .algorithms = BIT(LEAKY_BUCKET) | BIT(LEAKY_QUEUE),
                           .belongs = "leaky_bucket", .flags = RULES_TRIED | RULES_OF_NUMBERS,
                           .otherwise = "false",
                           .doc = "`leaky_bucket` only: it delays requests instead of denying them",
                           .why = "most callers prefer an answer to a delay"},
    [RULES_LIMIT_TIMEZONE] = {"timezone", RULES_TEXT, QUOTAS,
                              .flags = RULES_TRIED | RULES_OF_CALENDAR, .absent = "the file's",
                              .doc =
                                  "quotas only: the [zone](algorithms/quota.md) of the calendar"},
    [RULES_LIMIT_ANCHOR] = {"anchor", RULES_TEXT, QUOTAS, .flags = RULES_TRIED | RULES_OF_CALENDAR,
                            .absent = "the beginning of the period",
                            .doc = "quotas only: [when a period begins](algorithms/quota.md): "
                                   "`06:00`, `mon`, `15`, `04-06`"},
    [RULES_LIMIT_ROLLOVER] = {"rollover", RULES_TEXT, QUOTAS,
                              .flags = RULES_TRIED | RULES_OF_CALENDAR, .absent = "none",
                              .doc = "quotas only: what may [come over](algorithms/quota.md) from "
                                     "the period before: `20%`, `1000`"},
    [RULES_LIMIT_LIMIT] = {"limit", RULES_TEXT, LEASES, .absent = "required",
                           .doc = "`concurrency` only: how many may be in flight, up to 10,000; "
                                  "`unlimited` or `plan`"},
    [RULES_LIMIT_LIFE] = {"life", RULES_DURATION, RULES_RANGE(RULES_MS, WEIR_WINDOW_MAX_NS), LEASES,
                          .otherwise = "30s",
                          .doc = "`concurrency` only: when a lease ends that is not released",
                          .why = "a lease that a dead program holds comes back soon"},
    [RULES_LIMIT_COST] = {"cost", RULES_NUMBER, RULES_RANGE(0, WEIR_BUCKET_MAX),
                          .section = &rules_section_cost, .otherwise = "1",
                          .doc = "[what a request costs](#cost); multiplies the request's cost",
                          .why = "a request"},
    [RULES_LIMIT_ON_MISSING] = {"on_missing", RULES_TEXT, .many = RULES_SEVERAL,
                                .otherwise = "skip",
                                .doc = "[`skip`, `shared`, `deny`, an attribute, or a "
                                       "list](#key) of attributes that may end in one of these",
                                .why = "a limit by user says nothing of a request without a user"},
    [RULES_LIMIT_ON_DENY] = {"on_deny", RULES_CHOICE, RULES_WORDS("none", "charge"),
                             .otherwise = "none", .doc = "[`none`, `charge`](#behaviour)",
                             .why = "a caller who waits as asked is admitted"},
    [RULES_LIMIT_ON_STORE_ERROR] = {"on_store_error", RULES_CHOICE, .words = rules_failure_words,
                                    .otherwise = "local", .absent = "the store's; `local`",
                                    .doc = "`local`, `open`, `closed`: how to decide while a "
                                           "[store](distributed.md#when-something-fails) fails, or "
                                           "while a [neighbour on the state file is "
                                           "stopped](state.md#a-neighbour-that-is-stopped)",
                                    .why = "neither an outage for everybody nor no limit at all"},
    [RULES_LIMIT_REFUND_ON] = {"refund_on", RULES_STATUS, .many = RULES_SEVERAL,
                               .flags = RULES_NOT_GLOBAL | RULES_NOT_STICKY, .absent = "none",
                               .doc = "[statuses that give units "
                                      "back](reservations.md#in-the-rules-file)"},
    [RULES_LIMIT_REFUND_CAP] = {"refund_cap", RULES_PERCENT, RULES_RANGE(1, 100), .example = 10,
                                .flags = RULES_NOT_GLOBAL, .otherwise = "10%",
                                .doc = "the cap on what they give back in a window",
                                .why = "failing on purpose does not pay"},
    [RULES_LIMIT_DEBT] = {"debt", RULES_PERCENT, RULES_RANGE(0, 1000), .example = 100,
                          .flags = RULES_NOT_GLOBAL | RULES_NOT_STICKY, .otherwise = "100%",
                          .doc = "how far a true cost may go into "
                                 "[debt](reservations.md#in-the-rules-file)",
                          .why =
                              "a true cost above the estimate counts, and ends within one window "
                              "more"},
    [RULES_LIMIT_MODE] = {"mode", RULES_CHOICE, .words = rules_mode_words, .absent = "the store's",
                          .doc = "`exact`, `leased`: [how nodes share it](distributed.md#modes); "
                                 "only with `store`"},
    [RULES_LIMIT_HASH_TAG] = {"hash_tag", RULES_TEXT, .many = RULES_SEVERAL,
                              .flags = RULES_NOT_GLOBAL, .absent = "the whole key",
                              .doc = "attributes of its key, a list or one: [which limits share a "
                                     "slot](distributed.md#slots-of-a-cluster); only with `store`"},
    [RULES_LIMIT_PER_NODE] = {"per_node", RULES_FLAG, .feature = "sticky", .otherwise = "false",
                              .doc = "`true`: every node of a [fleet](distributed.md#sticky-nodes) "
                                     "counts it alone; only with `sticky`"},
    [RULES_LIMIT_GLOBAL] = {"global", RULES_MAPPING, .feature = "regions",
                            .section = &rules_section_global, .absent = "each region counts alone",
                            .doc = "`{ floor: 5%, home: hash, wait: 0 }`: [one budget for all "
                                   "regions](distributed.md#regions); only with `regions`"},
    [RULES_LIMIT_SHADOW] = {"shadow", RULES_FLAG, .otherwise = "false",
                            .doc = "[`true`, `false`](#behaviour)", .why = "a limit limits"},
    [RULES_LIMIT_ENFORCE] = {"enforce", RULES_PERCENT, RULES_RANGE(0, 100), .otherwise = "100%",
                             .doc = "`10%`: [the share of keys that it may deny](#behaviour)",
                             .why = "the same"},
    [RULES_LIMIT_POOL] = {"pool", RULES_NAME, .flags = RULES_NOT_GLOBAL | RULES_NOT_STICKY,
                          .doc = "[the limit to borrow from](#borrow) when this one denies"},
    [RULES_LIMIT_BORROW] = {"borrow", RULES_FLAG, .flags = RULES_NOT_GLOBAL | RULES_NOT_STICKY,
                            .otherwise = "false",
                            .doc = "[`true`: others may borrow unused units](#borrow)"},
    [RULES_LIMIT_RESERVE] = {"reserve", RULES_PERCENT, RULES_RANGE(1, 99), .example = EXAMPLE,
                             .flags = RULES_NOT_GLOBAL | RULES_NOT_STICKY, .absent = "none",
                             .doc = "[`20%`: the part they may not borrow](#borrow)"},
    [RULES_LIMIT_TOP_UP] = {"top_up", RULES_DURATION, RULES_RANGE(RULES_MINUTE, WEIR_WINDOW_MAX_NS),
                            .flags = RULES_NOT_STICKY, .absent = "takes none",
                            .doc =
                                "[`366d`: the limit takes bought units above it](#top_up), which "
                                "live so long"},
    [RULES_LIMIT_SHED] = {"shed", RULES_MAPPING, .section = &shed_section,
                          .flags = RULES_NOT_GLOBAL | RULES_SCALES, .absent = "all of it",
                          .doc = "[`{ sheddable: 60% }`: what of the limit a class may "
                                 "use](priorities.md#what-shed-does)"},
    [RULES_LIMIT_ADAPTIVE] = {"adaptive", RULES_NAME, .feature = "adaptive",
                              .flags = RULES_NOT_GLOBAL | RULES_SCALES,
                              .doc = "[a controller](adaptive.md) that shrinks the limit while the "
                                     "backend struggles"},
    [RULES_LIMIT_CANDIDATE] = {"candidate", RULES_TEXT, .many = RULES_SEVERAL,
                               .section = &rules_section_candidate, .flags = RULES_NOT_STICKY,
                               .doc = "[`50/min`, …: a rate to try in shadow](#candidate)"},
    [RULES_LIMIT_WARN_AT] = {"warn_at", RULES_PERCENT, RULES_RANGE(1, 100), .example = 80,
                             .many = RULES_SEVERAL,
                             .doc = "[`80%`, or a list of up to four](#warn_at): soft thresholds"},
    [RULES_LIMIT_BY_CLASS] = {"by_class", RULES_MAPPING, .feature = "score",
                              .section = &class_section, .flags = RULES_NOT_GLOBAL | RULES_SCALES,
                              .absent = "all of it",
                              .doc =
                                  "[`{ suspicious: 50% }`: the part of the limit that clients of "
                                  "a class get](score.md#what-a-class-does); not with `mode: "
                                  "leased`"},
    [RULES_LIMIT_BY_STANDING] = {"by_standing", RULES_MAPPING, .feature = "standing",
                                 .section = &standing_section,
                                 .flags = RULES_NOT_GLOBAL | RULES_SCALES, .absent = "all of it",
                                 .doc =
                                     "[`{ throttled: 20% }`: the part of the limit that such "
                                     "callers get](standing.md#less-of-a-limit); not with `mode: "
                                     "leased`"},
    [RULES_LIMIT_STEPS] = {"steps", RULES_MAPPING, .many = RULES_LISTED,
                           .section = &rules_section_step, .flags = RULES_NOT_GLOBAL | RULES_SCALES,
                           .absent = "none",
                           .doc = "[what it answers below 100 %](actions.md#steps): marks, delays, "
                                  "challenges"},
    [RULES_LIMIT_REJECT] = {"reject", RULES_MAPPING, .section = &rules_section_reject,
                            .absent = "a problem document",
                            .doc = "[status, header fields and body of its "
                                   "denials](actions.md#reject)"},
};
const struct rules_section rules_section_limit = RULES_SECTION("a limit", keywords);
const struct rules_section rules_section_candidate = {.what = "candidate",
                                                      .keywords = keywords,
                                                      .count =
                                                          sizeof(keywords) / sizeof(keywords[0]),
                                                      .only = RULES_TRIED};
_Static_assert(sizeof(keywords) / sizeof(keywords[0]) <= RULES_KEYWORDS_MAX, "fields have room");

/* --- Percentages of those tables -------------------------------------------------------------- */

bool rules_read_scale(struct rules_loader *loader, enum rules_limit_field of, const char *name,
                      const struct rules_node *node, uint8_t *scale)
{
    const struct rules_section *section = keywords[of].section;
    struct rules_keyword row = section->others ? *section->others : section->keywords[0];
    uint64_t percent = 0;
    row.name = name;
    if (!rules_keyword_number(loader, &row, node, &percent))
        return false;
    *scale = (uint8_t)percent;
    return true;
}

/* --- By their flags --------------------------------------------------------------------------- */

const struct rules_field *rules_limit_flagged(const struct rules_field *fields, uint32_t flag)
{
    for (uint32_t i = 0; i < rules_section_limit.count; i++)
        if (fields[i].value && (keywords[i].flags & flag) != 0)
            return &fields[i];
    return NULL;
}

bool rules_limit_refuse(struct rules_loader *loader, const struct rules_field *fields,
                        uint32_t flag, const char *other)
{
    uint32_t wrong = loader->wrong;
    for (uint32_t i = 0; i < rules_section_limit.count; i++)
        if (fields[i].value && (keywords[i].flags & flag) != 0)
            rules_problem(loader, fields[i].key, "`%s` does not work with %s", fields[i].name,
                          other);
    return loader->wrong == wrong;
}

void rules_limit_leave_out(struct rules_field *fields, uint32_t flag)
{
    for (uint32_t i = 0; i < rules_section_limit.count; i++)
        if ((keywords[i].flags & flag) != 0)
            fields[i].value = NULL;
}

void rules_limit_misplaced(struct rules_loader *loader, const struct rules_field *fields,
                           enum weir_algorithm algorithm)
{
    for (uint32_t i = 0; i < rules_section_limit.count; i++) {
        uint32_t with = keywords[i].algorithms;
        if (fields[i].value && with != 0 && (with & UINT32_C(1) << algorithm) == 0)
            rules_problem(loader, fields[i].key, "`%s` belongs to %s, not to %s", fields[i].name,
                          keywords[i].belongs, weir_algorithm_name(algorithm));
    }
}
