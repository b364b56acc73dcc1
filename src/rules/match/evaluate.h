/* SPDX-License-Identifier: Apache-2.0 */
/* One evaluation: what holds of a request under one set of rules. Each answer is found at most
 * once, and only when a limit needs it.
 *
 *   begin     path and host in normal form
 *   value     an attribute; user, org and plan are looked up when the first of them is needed, a
 *             token is verified when the first of its claims is (feature/identity/rules/identify.h)
 *   holds     a part of a match, by atoms that are found once per attribute
 *   find      the limits that match, through the index
 *
 * Lives on the stack of weir_rules_checks (about 20 KiB, mostly untouched); allocates nothing.
 */
#ifndef WEIR_RULES_MATCH_EVALUATE_H
#define WEIR_RULES_MATCH_EVALUATE_H

#include "feature/identity/rules/jwt.h"
#include "feature/score/rules/score.h"
#include "feature/standing/settings.h"
#include "rules/compiled.h"
#include "rules/match/checks.h"
#include "rules/match/made.h"

/* Patterns of the file that one path may be in. */
#define RULES_PATH_ATOMS_MAX 1024
/* Limits that may match one request before `unless` and the bound on checks. */
#define RULES_MATCHED_MAX 256

struct rules_evaluation {
    const struct weir_rules_query *query; /* the next five are its own, which are needed often */
    const struct weir_rules *rules;
    const struct weir_request *request;
    const uint64_t *secret;
    struct weir_scratch *scratch;
    struct weir_reason *reason;
    const struct weir_address *client; /* by whom keys, strikes and standing count: the request's,
                                          or the IPv4 address within it (core/text/nat64.h) */

    /* What a request may find. rules_begin clears it, in two pieces that are a few stores each. */
    uint8_t *scales; /* gets the scale of each keyword of the limit at hand; NULL: nobody asks */
    struct weir_bytes path, host;
    uint32_t path_count, address_count; /* of the atoms below */
    bool paths_known, addresses_known, caller_known, claims_known;
    bool presented, unanswered; /* a credential is there; a source of callers did not answer */
    bool unknown;               /* a credential is there, and no source knows it: see on_unknown */
    bool user_is_address;       /* then user_address, of which user_bits count */
    uint8_t user_bits;
    uint8_t client_text_size; /* 0: not written yet */
    uint8_t standing;         /* enum weir_standing_level */
    uint8_t standing_kind;    /* of settings.standing->kinds: whose level that is */
    uint8_t challenge;        /* see enum rules_challenge_state */
    uint8_t class;            /* 1 + the class of the request; 0: no limit has asked for it */
    uint16_t standing_sought; /* kinds of standing whose value has been looked for: a set */
    uint16_t standing_there;  /* those of them that the request has */
    bool score_client_known;  /* whose behaviour the score needs */
    int error;                /* of finding the caller: as weir_directory_ops.find; 0: none */

    struct weir_identity identity;
    uint32_t plan; /* RULES_NONE: no such plan */
    uint32_t override_count;
    const struct weir_override *overrides; /* of the caller, ascending by rule */

    /* Cleared as far as there are attributes. */
    uint64_t known[WEIR_ATTRIBUTE_WORDS];  /* attributes whose atom is known: a set */
    uint64_t looked[WEIR_ATTRIBUTE_WORDS]; /* attributes that were looked for in others */

    /* From here on written before read, so never cleared. */
    uint32_t atoms[WEIR_ATTRIBUTES_MAX];
    struct weir_bytes found[WEIR_ATTRIBUTES_MAX]; /* of those looked for; decoded in scratch */
    struct rules_path_segments segments;          /* with paths_known */
    uint32_t path_atoms[RULES_PATH_ATOMS_MAX];
    uint32_t address_atoms[RULES_ADDRESS_ATOMS_MAX];
    char client_text[WEIR_ADDRESS_TEXT_MAX];
    struct weir_address user_address;                  /* with user_is_address */
    struct weir_address client_inside;                 /* where `client` is not the request's */
    struct rules_claims claims;                        /* with claims_known: the values */
    uint64_t standing_ids[WEIR_STANDING_KINDS_MAX][2]; /* of standing_there */
    struct weir_caller_score score;                    /* in a file with `score` */
    uint64_t score_client[2];                          /* with score_client_known */
    char score_text[RULES_SCORE_TEXT_MAX];
};

/* Errors: as weir_rules_checks. */
int rules_begin(struct rules_evaluation *evaluation, const struct weir_rules_query *query);

/* The value of an attribute (not client.ip); data == NULL: absent. */
static inline struct weir_bytes rules_value(struct rules_evaluation *evaluation, uint16_t attribute)
{
    const struct rules_attribute_row *row = evaluation->rules->rows[attribute];
    const struct weir_request *request = evaluation->request;
    if (__builtin_expect(row->value != NULL, 0))
        return row->value(evaluation, attribute);
    return attribute < request->count ? request->values[attribute] : (struct weir_bytes){NULL, 0};
}

/* What the request itself supplies: as it gives it, or a parameter of its query, or a cookie. For
 * attributes that name a caller, which rules_value may have to find first. */
struct weir_bytes rules_supplied(struct rules_evaluation *evaluation, uint16_t attribute);

/* The same without an evaluation; what would have to be decoded is absent. */
struct weir_bytes rules_supplied_plain(const struct weir_rules *rules,
                                       const struct weir_request *request, uint16_t attribute);

/* Which pattern of the rule's path the request is in, the first of them; -1: none. */
int rules_pattern_of(struct rules_evaluation *evaluation, const struct rules_rule *rule);

/* The atom of an attribute's value (RULES_NONE: not in the file); path and address atoms. */
uint32_t rules_atom(struct rules_evaluation *evaluation, uint16_t attribute);
void rules_path_atoms(struct rules_evaluation *evaluation);
void rules_address_atoms(struct rules_evaluation *evaluation);

/* Whether a part of paths has the pattern with this atom. */
bool rules_part_has_place(const struct rules_part *part, uint32_t atom);

bool rules_part_holds(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                      const struct rules_part *part);

/* Whether a key attribute is there; with `value` not NULL, a text's value. */
bool rules_key_present(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                       const struct rules_key_part *part, struct weir_bytes *value);

/* The first key attribute that is missing so that the limit does not apply; NULL: it applies. */
const struct rules_key_part *rules_key_missing(struct rules_evaluation *evaluation,
                                               const struct rules_rule *rule);

/* The limits whose match holds, ascending: those with a key that is there, of which there may be
 * RULES_MATCHED_MAX, and others as far as there is room. Returns how many, or WEIR_ERR_TOO_LARGE.
 */
int rules_find(struct rules_evaluation *evaluation, uint32_t matched[RULES_MATCHED_MAX]);

/* Whether the part's value is in the request: nothing has to be found out, verified or matched. */
static inline bool rules_at_hand(const struct weir_rules *rules, const struct rules_key_part *part)
{
    return part->source == RULES_FROM_ADDRESS ||
           (part->source == RULES_FROM_ATTRIBUTE && part->attribute >= WEIR_ATTR_FIRST_NAMED &&
            (rules->rows[part->attribute]->flags & RULES_MADE) == 0);
}

/* "more than 32 limits apply" */
int rules_too_many(struct rules_evaluation *evaluation);

#endif
