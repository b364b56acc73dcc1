/* SPDX-License-Identifier: Apache-2.0 */
/* What a rules file becomes: the structures that the loader fills and that evaluation reads.
 *
 * Everything here is immutable once loaded, except the scales of limits that follow health
 * (feature/adaptive/rules/limit.h). It lives in the arena of its struct weir_rules, except the
 * tables that own their memory (words, tries, index, keys).
 */
#ifndef WEIR_RULES_COMPILED_H
#define WEIR_RULES_COMPILED_H

#include <stdatomic.h>

#include "feature/adaptive/rules/limit.h"
#include "feature/identity/rules/keys.h"
#include "feature/penalties/rules/penalty.h"
#include "feature/standing/settings.h"
#include "feature/webhook/rules/warn.h"
#include "rules/arena.h"
#include "rules/attribute_table.h"
#include "rules/calendar/schedule.h"
#include "rules/charge/settle.h"
#include "rules/match/address_trie.h"
#include "rules/match/index.h"
#include "rules/match/path_trie.h"
#include "rules/match/routes.h"
#include "rules/rules.h"
#include "rules/string_map.h"
#include "rules/unknown_names.h"

#define RULES_PARTS_MAX 32  /* parts of one `match`; the index keeps them in a 32-bit set */
#define RULES_KEY_MAX 8     /* attributes of one key: its tuple has to fit a fixed buffer */
#define RULES_INSTEAD_MAX 8 /* attributes of one `on_missing`; a piece's first byte says which */
#define RULES_NAME_MAX 64   /* of a limit, a plan */
#define RULES_ATTRIBUTE_NAME_MAX 128
#define RULES_LABEL_STEP 16  /* labels are padded to it */
#define RULES_PREFIX_STEP 16 /* most prefixes of tuples are at most this long */
#define RULES_PREFIX_MAX 80  /* 1 + RULES_NAME_MAX, rounded up to steps */
#define RULES_GLOBS_MAX 64   /* limits that only a glob can find: each is tried on every request */
#define RULES_SOURCES_MAX 16 /* of `identify` */

enum rules_part_kind {
    RULES_PART_VALUES,  /* an attribute: literals and globs */
    RULES_PART_PATH,    /* patterns */
    RULES_PART_ADDRESS, /* prefixes of client.ip */
    RULES_PART_CAPTURE, /* a segment that a pattern named: globs */
    RULES_PART_SPECIAL, /* one of those above with `absent`, `not` or `at_least` */
};

/* The index of an atom in a part whose atoms are not in ascending order. */
struct rules_place {
    uint32_t atom, at;
};

/* One part of a `match`: any of its values has to hold. A literal, a pattern, a prefix is an
 * "atom": a number that equal literals, patterns and prefixes of the file share, so that a request
 * tests each of them once. */
struct rules_part {
    uint8_t kind;
    uint8_t of;          /* SPECIAL: the kind of its values */
    bool globs;          /* some value is one: the index cannot use the part */
    bool fold;           /* `ignore_case`: values are globs in lower case */
    bool secret;         /* shown only as SHA-256 */
    bool absent;         /* SPECIAL: one of the values is `absent` */
    bool negated;        /* SPECIAL: present, but none of the values */
    uint8_t supplied_by; /* SPECIAL: how its absence is known; enum rules_supplied_by */
    uint16_t at_least;   /* SPECIAL: of client.score, which has no values then; 0: it has */
    uint16_t attribute;
    uint32_t count;
    const uint32_t *atoms;            /* RULES_NONE for a glob */
    const struct weir_bytes *values;  /* globs where the atom is RULES_NONE */
    const struct rules_place *places; /* PATH: of its atoms, ascending; the first of equal ones */
    const int8_t *segments;           /* CAPTURE: its segment in each pattern of the limit, or -1 */
    const char *name, *wanted;        /* "method", "GET, HEAD": for people */
};

enum rules_source {
    RULES_FROM_ATTRIBUTE,
    RULES_FROM_ADDRESS,
    RULES_FROM_CAPTURE,
    RULES_FROM_LITERAL, /* whatever the request has: see load/server/sharing.c */
};

/* An attribute of a key. */
struct rules_key_part {
    uint8_t source;
    uint8_t bits4, bits6; /* ADDRESS: the prefix kept */
    bool secret;          /* shown only as SHA-256 */
    uint16_t attribute;
    uint8_t label_size;
    const char *label;      /* in key texts: "client.ip=", the name without a prefix length */
    const char *name;       /* as in the file */
    const int8_t *segments; /* CAPTURE: as in struct rules_part */
    struct weir_bytes literal;
};

/* What a limit does without an attribute of its key, and without all that may take its place. */
enum rules_missing { RULES_SKIP, RULES_SHARED, RULES_DENY };

/* The rates of a limit, or of one of its plans. Each has a state of its own and makes a check. */
struct rules_rates {
    struct weir_limit *limits; /* NULL: unlimited, or by plan */
    uint8_t count;
    const uint32_t *states;    /* of each, its number among a key's: see states.h; NULL: 0, 1, 2 */
    struct weir_limit *abroad; /* `global`: what counts in place of `limits` for a key whose home is
                                  another region; NULL: the same */
    uint32_t lent;             /* by a bit each: those whose homes can lend */
};
_Static_assert(WEIR_RATES_MAX <= 32, "a bit for each rate");

/* Lengths of the records of warnings, and the name of their limits: no rule's has a '~'. See
 * feature/webhook/rules/warn.h. */
#define RULES_WARNED 9
#define RULES_WARNED_NAME "warned~"

/* What the names of the limits that count strikes end in. */
#define RULES_STRIKES "~strikes"

/* `refund_on`; see charge/settle.h. */
struct rules_refund {
    uint8_t statuses[63];      /* a bit for each of 100 to 599 */
    struct rules_rates caps;   /* one for each of rule->rates */
    struct rules_rates *plans; /* by plan, as rule->plans */
};

struct rules_cost;
struct rules_global;
struct rules_loan;
struct weir_reject;
struct weir_steps;
struct rules_limit_template;

struct rules_rule {
    const char *name;
    const struct rules_part *parts; /* those about the caller last: they may cost a SHA-256 */
    const struct rules_key_part *key;
    const char *const *key_names;
    const uint32_t *unless; /* ascending */
    struct rules_rates rates;
    struct rules_rates *plans;            /* by plan: one for each */
    const struct rules_key_part *instead; /* on_missing: what takes the place of a missing
                                             attribute, the first that is there */
    const struct rules_part *path_part;   /* NULL: none */
    uint64_t cost;
    const struct rules_cost *costs;    /* NULL: `cost` is all; see charge/cost.h */
    uint64_t when;                     /* the bit of its schedule; 0: it is always in force */
    struct rules_refund *refund;       /* NULL: no outcome gives anything back */
    struct rules_rates candidate;      /* what it may be one day: see charge/candidate.h */
    const struct rules_loan *loan;     /* from its pool; NULL: it borrows nothing */
    struct rules_loan *lends;          /* as a pool; NULL: nothing */
    const struct rules_global *global; /* feature/region; NULL: its states are of one region */
    const uint8_t *by_standing;        /* its scale in percent, by level; NULL: 100 % for all */
    const uint8_t *by_class;           /* the same by class of the score (feature/score) */
    const uint8_t *shed; /* by class, the percentage that it may use (feature/priority); NULL: all
                            classes may use all */
    const struct weir_steps *steps;   /* actions/steps.h; NULL: none */
    const struct weir_reject *reject; /* actions/reject.h; NULL: it denies as any limit */
    uint16_t floor;                   /* of debt: see weir_check.floor */
    uint16_t adaptive;                /* 1 + the number of its scale; 0: it follows no controller */
    struct weir_warn_at warn_at;
    uint32_t part_count, key_count, unless_count;
    uint8_t name_size, missing, instead_count, on_store_error, algorithm;
    uint8_t flags;        /* of its checks */
    uint8_t enforce;      /* percent of the keys that it may deny; shadow for the others */
    bool personal;        /* callers may have rates of their own */
    bool scaled;          /* some keyword scales it: see join_scales in match/checks.c */
    bool alone_class;     /* its key contains that of the score: see charge/scale.h */
    uint16_t alone_kinds; /* of standings, a bit each: those that its key contains */
    bool for_trusted;     /* its match says which standing, and so may apply to trusted callers */
    bool plain;           /* one rate for all callers, and nothing that changes a check of it: see
                             rules_checks_prepare */
    bool keeps_tuple;     /* its checks may keep the tuple of the key: see match/key.c */
    bool key_at_hand;     /* no part of its key takes room in scratch when it is read */
    uint8_t prefix_size, tag_count;
    uint8_t tag[RULES_KEY_MAX]; /* hash_tag: which of its key's attributes, in the file's order */
    const uint8_t *prefix;      /* what its tuples begin with, padded; see match/key.c */
    const char *const *tag_names;
    /* Of its rates; NULL: no caller may have overrides. */
    const struct rules_limit_template *limit_template;
    uint32_t own_count; /* callers of the keys file that have rates of their own */
};

/* What limits borrow from one pool: the pool's rule as it is for them. Its key takes what the
 * pool's match pins to one literal, its rates leave the reserve, and it decides whatever the pool
 * is for its owners (shadow, enforce, on_deny). */
struct rules_loan {
    uint32_t pool;
    struct rules_rule lender;
};

/* Where `identify` looks. */
enum rules_identify_kind {
    RULES_BY_KEY,     /* an attribute is an API key: looked up in the keys file, then in Redis */
    RULES_BY_ADDRESS, /* client.ip itself */
    RULES_BY_TOKEN,   /* claims of a verified token */
};

struct rules_identify {
    uint8_t kind;         /* enum rules_identify_kind */
    uint8_t bits4, bits6; /* BY_ADDRESS: the prefix kept */
    uint16_t attribute;   /* BY_KEY */
    bool credential;      /* BY_KEY: a value of Authorization, see core/text/credential.h */
};

/* Schedules of one file: bits of a word. */
#define RULES_SCHEDULES_MAX 64

struct rules_named_schedule {
    struct rules_schedule schedule;
    const char *text; /* as in the file */
};

struct rules_jwt;
struct rules_keyword;
struct rules_priority;
struct rules_score;

/* `answer` of `standing`: the answer to a refused caller. */
struct rules_refusal {
    uint16_t status;
    struct weir_bytes body, content_type; /* data == NULL: problem details */
};

/* What the file says of standing beside its settings; see feature/standing/rules/match.h. */
struct rules_standing {
    struct rules_rule
        *kinds; /* of each of settings.standing->kinds: a key of its attribute alone */
    struct rules_refusal suspended, revoked;
    const char *list_names[WEIR_STANDING_LISTS_MAX]; /* of settings.standing->lists */
};

/* One of `penalties`. */
struct rules_penalty {
    struct weir_penalty penalty;
    struct rules_rule strikes; /* counts them: a key of its attribute alone, and one rate */
    uint8_t *denials;          /* a bit for each limit whose denials are strikes */
    uint8_t statuses[63];      /* as in struct rules_refund: outcomes that are strikes */
};

struct rules_regions;

struct weir_rules {
    atomic_uint references;
    atomic_uint holders; /* who read settings alone, and one for all `references` */
    struct rules_arena arena;
    struct weir_settings settings;
    struct weir_limit idempotency;                   /* of its records; see charge/idempotency.h */
    struct weir_limit settled[WEIR_SETTLED_CLASSES]; /* of the records of settlements */
    struct weir_limit warned[RULES_WARNED];  /* of the records of warnings; see feature/webhook */
    struct weir_limit solved;                /* of those of solutions; see feature/challenge */
    uint16_t challenge_sources[2];           /* attributes with tokens: cookies, the field */
    uint8_t path_options;                    /* enum weir_path_options */
    const struct rules_keyword *server_only; /* a keyword of the file that only `weir serve` can do;
                                                NULL: all can do all of it */
    uint32_t deprecated;                     /* things in the file that later versions refuse */
    bool warns;                              /* some limit has thresholds */
    bool lends;                              /* some limit has a pool */
    bool tries;                              /* some limit has a candidate */
    bool acts;                               /* some limit has steps, or shapes its denials */
    const struct weir_reject *reject;        /* of all denials; NULL: weir's own form */
    bool shared; /* other nodes know the same states, by the texts of keys: see match/key.c */

    struct rules_rule *rules;
    struct weir_limit **top_ups; /* of each rule, or NULL: see charge/top_up.h; NULL: of none */
    uint32_t rule_count;
    struct rules_string_map rule_names;

    struct rules_named_schedule schedules[RULES_SCHEDULES_MAX];
    uint32_t schedule_count;

    char *text; /* that they were made of; NULL: it is not kept */
    size_t text_size;

    const char *attribute_names[WEIR_ATTRIBUTES_MAX];
    struct rules_string_map attributes;
    uint16_t attribute_count;
    const struct rules_attribute_row *rows[WEIR_ATTRIBUTES_MAX];
    uint8_t repeated[WEIR_ATTRIBUTES_MAX]; /* enum rules_repeated */
    uint64_t field_sizes; /* of the names of header fields that are read: a bit for each, mod 64 */
    uint64_t cost_sources[WEIR_ATTRIBUTE_WORDS]; /* attributes that a `cost` is from: a set */
    uint16_t cookies; /* header.cookie, where some attribute is within it */

    struct rules_string_map declared; /* names in `attributes` */
    const char **declared_names;
    uint32_t declared_count;
    struct rules_unknown_names *unknown; /* in requests: the one other thing here that changes */
    bool strict_attributes; /* a name that is not known is an error of a program's request */

    const char **plan_names;
    struct rules_string_map plans;
    uint32_t plan_count, default_plan; /* RULES_NONE: no default */

    struct rules_identify identify[RULES_SOURCES_MAX];
    uint32_t identify_count;
    bool denies_unknown;            /* `on_unknown: deny` */
    struct weir_adaptive *adaptive; /* see feature/adaptive */
    struct weir_adaptive_limit *adaptive_limits;
    atomic_uchar *scales; /* of these limits: the one thing here that changes */
    uint32_t adaptive_count, adaptive_limit_count;

    struct rules_keys keys;
    struct rules_jwt *jwt;           /* NULL: no token is read */
    struct rules_priority *priority; /* NULL: requests have no classes */
    struct rules_score *score;       /* feature/score; NULL: callers have no scores */
    struct rules_regions *regions;   /* feature/region; NULL: no such section */
    struct rules_standing standing;
    struct rules_penalty *penalties;
    uint32_t penalty_count;

    uint32_t atom_count;
    struct rules_string_map literals; /* (attribute, value) -> atom */
    struct rules_path_trie paths;
    struct rules_routes routes;
    struct rules_address_trie addresses;
    struct rules_index index;

    uint32_t *follows;                 /* follow.h; NULL: not made */
    const struct weir_rules *followed; /* by these; compared only */
};

/* Whether a node decides its part of a limit alone while the shared store fails: see
 * division.h. */
static inline bool rules_is_divided(const struct weir_rules *rules, const struct rules_rule *rule)
{
    return rules->shared && rule->on_store_error == WEIR_FAIL_LOCAL &&
           rules->settings.store.nodes >= 2;
}

/* The number of a plan; RULES_NONE: there is none of this name. */
static inline uint32_t rules_plan_find(const struct weir_rules *rules, struct weir_bytes name)
{
    return rules_string_map_find(&rules->plans, 0, rules_text_hash(name.data, name.size), name.data,
                                 name.size);
}

/* The index of a limit; -1: there is none of this name. */
static inline int rules_rule_find(const struct weir_rules *rules, struct weir_bytes name)
{
    uint32_t index = rules_string_map_find(
        &rules->rule_names, 0, rules_text_hash(name.data, name.size), name.data, name.size);
    return index == RULES_NONE ? -1 : (int)index;
}

/* The attributes that identify makes: user, org, plan. */
static inline bool rules_about_caller(uint16_t attribute)
{
    return attribute >= WEIR_ATTR_USER && attribute <= WEIR_ATTR_PLAN;
}

#endif
