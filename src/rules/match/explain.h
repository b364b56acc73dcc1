/* SPDX-License-Identifier: Apache-2.0 */
/* Why each limit of a rules file applies to a request, or why not. For people (`weir explain`), not
 * for the path of a request: it walks all limits, one after the other, without the index.
 *
 * Threads: as rules.h, reads only. Allocates nothing.
 */
#ifndef WEIR_RULES_MATCH_EXPLAIN_H
#define WEIR_RULES_MATCH_EXPLAIN_H

#include "rules/charge/scale.h"
#include "rules/match/checks.h"

enum weir_why {
    WEIR_WHY_APPLIES, /* it made checks[check], and those of its other rates behind */
    WEIR_WHY_MATCH,   /* a part of `match` does not hold: `attribute`, `wanted`, `found` */
    WEIR_WHY_WHEN,    /* not in force at this time: `wanted` */
    WEIR_WHY_KEY,     /* a key attribute is missing (on_missing: skip): `attribute` */
    WEIR_WHY_REFUSED, /* the caller is suspended or revoked, and so meets no limit */
    WEIR_WHY_TRUSTED, /* the caller is trusted, and the limit's match does not ask for such */
    WEIR_WHY_UNLESS,  /* an earlier limit that `unless` names made a check: `unless` */
};

struct weir_explanation {
    uint8_t why;             /* enum weir_why */
    int16_t check;           /* index into checks; -1 when it does not apply */
    uint32_t unless;         /* index of the limit that `unless` names */
    const char *attribute;   /* "method", "path.id", …; owned by the rules */
    const char *wanted;      /* what the file asks for: "GET, HEAD"; owned by the rules */
    struct weir_bytes found; /* what the request has, normalised; data == NULL: nothing */
    bool secret;             /* `found` is not to be shown: the text has its SHA-256 */
    bool own;                /* it applies with rates of the caller's own, an override */
    uint8_t scale;           /* percent of the limit that the request may use; 0: all of it */
    uint8_t scales[WEIR_SCALE_CAUSES]; /* what each keyword makes of it; 0: the limit has none */
    const char *class;      /* the class that `shed` counts; NULL: the limit has no `shed` */
    const char *controller; /* that its `adaptive` names; NULL: none */
};

/* Decides as weir_rules_checks does (without loans), and fills
 * explanations[0..weir_rules_count(rules)). Unlike there, query->identity is always complete.
 * Values point into the request, the rules and scratch. Returns the number of checks. Errors: as
 * weir_rules_checks. With query->map, query->standing is filled too. */
int weir_rules_explain(const struct weir_rules_query *query, struct weir_check *checks,
                       struct weir_explanation *explanations) __attribute__((warn_unused_result));

/* Room that is always enough for weir_explanation_text. */
#define WEIR_EXPLANATION_TEXT_MAX 512

/* One line for people, NUL-terminated, cut where it is too long: "applies", "applies, with the
 * caller's own rates", or "method is GET, not POST". Control characters are escaped. Returns its
 * length. */
size_t weir_explanation_text(const struct weir_rules *rules,
                             const struct weir_explanation *explanation,
                             char text[WEIR_EXPLANATION_TEXT_MAX]);

#endif
