/* SPDX-License-Identifier: Apache-2.0 */
/* One request under one set of rules: what holds of it, found at most once and only when asked for.
 *
 *   begin     path and host in normal form
 *   value     an attribute; user, org and plan are looked up when the first of them is asked for,
 *             a token is verified when the first of its claims is
 *   holds     a part of a match, by atoms that are found once per attribute
 *   find      the limits that match, through the index
 *   key       tuple, hash and text of a limit's key (key.c)
 *
 * Lives on the stack of weir_rules_checks (about 16 KiB, mostly untouched); allocates nothing.
 */
#ifndef WEIR_RULES_MATCH_EVALUATE_H
#define WEIR_RULES_MATCH_EVALUATE_H

#include "rules/compiled.h"
#include "rules/identity/jwt.h"

/* Patterns of the file that one path may be in. */
#define RULES_PATH_ATOMS_MAX 1024
/* Limits that may match one request before `unless` and the bound on checks. */
#define RULES_MATCHED_MAX 256

struct rules_evaluation {
    const struct weir_rules *rules;
    const struct weir_request *request;
    const uint64_t *secret;
    struct weir_scratch *scratch;
    struct weir_reason *reason;

    struct weir_bytes path, host;
    uint32_t path_count, address_count; /* of the atoms below */
    bool paths_known, addresses_known, caller_known, claims_known;
    bool user_is_address; /* then user_address, of which user_bits count */
    uint8_t user_bits;
    uint8_t client_text_size; /* 0: not written yet */
    struct weir_address user_address;
    int error; /* of finding the caller: as weir_directory_ops.find; 0: none */
    struct weir_identity identity;
    uint32_t plan;                         /* RULES_NONE: no such plan */
    const struct weir_override *overrides; /* of the caller, ascending by rule */
    uint32_t override_count;
    uint64_t known[WEIR_ATTRIBUTES_MAX / 64]; /* attributes whose atom is known: a set */

    /* From here on written before read, so never cleared. */
    uint32_t atoms[WEIR_ATTRIBUTES_MAX];
    struct rules_path_segments segments; /* with paths_known */
    uint32_t path_atoms[RULES_PATH_ATOMS_MAX];
    uint32_t address_atoms[RULES_ADDRESS_ATOMS_MAX];
    char client_text[WEIR_ADDRESS_TEXT_MAX];
    struct rules_claims claims; /* with claims_known: the values */
};

/* Errors: as weir_rules_checks. */
int rules_begin(struct rules_evaluation *evaluation, const struct weir_rules *rules,
                const struct weir_request *request, const uint64_t secret[2],
                struct weir_scratch *scratch, struct weir_reason *reason);

/* The value of an attribute (not client.ip); data == NULL: absent. */
struct weir_bytes rules_value(struct rules_evaluation *evaluation, uint16_t attribute);

/* Makes user, org, plan and overrides known; else sets `error`: the caller counts as unknown. */
void rules_identify(struct rules_evaluation *evaluation);

/* A claim of the request's token, by its number; data == NULL: it has no such claim, or there is no
 * valid token. It lives as long as the evaluation. Rules with `jwt` only. */
struct weir_bytes rules_claim(struct rules_evaluation *evaluation, uint8_t claim);

/* A copy in scratch; data == NULL: there is none to copy, or no room. */
struct weir_bytes rules_scratch_copy(struct weir_scratch *scratch, struct weir_bytes text);

/* Makes claims live as long as scratch: to be called before it holds more than path, host and
 * address, beside which all claims fit. */
void rules_claims_keep(struct rules_evaluation *evaluation);

/* Which pattern of the rule's path the request is in, the first of them; -1: none. */
int rules_pattern_of(struct rules_evaluation *evaluation, const struct rules_rule *rule);

/* The atom of an attribute's value (RULES_NONE: not in the file); path and address atoms. */
uint32_t rules_atom(struct rules_evaluation *evaluation, uint16_t attribute);
void rules_path_atoms(struct rules_evaluation *evaluation);
void rules_address_atoms(struct rules_evaluation *evaluation);

bool rules_part_holds(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                      const struct rules_part *part);

/* The limits whose match holds and whose key is there, ascending. Returns how many, or
 * WEIR_ERR_TOO_LARGE. */
int rules_find(struct rules_evaluation *evaluation, uint32_t matched[RULES_MATCHED_MAX]);

/* Whether a key attribute is there; with `value` not NULL, a text's value. */
bool rules_key_present(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                       const struct rules_key_part *part, struct weir_bytes *value);

/* The first key attribute that is missing so that the limit does not apply; NULL: it applies. */
const struct rules_key_part *rules_key_missing(struct rules_evaluation *evaluation,
                                               const struct rules_rule *rule);

/* Fills hash, key and flags of a check; see key.c. Errors: WEIR_ERR_TOO_LARGE (scratch is full). */
int rules_key_build(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                    struct weir_check *check);

/* How a secret is shown: "sha256:" and 16 digits. Where its text names a state that nodes share,
 * 32: nobody finds two of one text. Returns the text's size. */
#define RULES_SECRET_TEXT 23
#define RULES_SECRET_TEXT_SHARED 39
size_t rules_secret_text(struct weir_bytes value, bool shared, char *text);

/* Makes the checks of a limit that applies behind the first `count` of them: one for each of its
 * rates. Returns how many there are then. Errors: WEIR_ERR_TOO_LARGE (more than WEIR_CHECKS_MAX, or
 * scratch is full), WEIR_ERR_SYNTAX (a bad cost). */
int rules_checks_build(struct rules_evaluation *evaluation, uint32_t rule,
                       struct weir_check checks[WEIR_CHECKS_MAX], int count);

/* The earlier check whose limit `unless` of this rule names: its index, or -1. */
int rules_unless(const struct rules_rule *rule, const struct weir_check *checks, int count);

/* "more than 32 limits apply" */
int rules_too_many(struct rules_evaluation *evaluation);

#endif
