/* SPDX-License-Identifier: Apache-2.0 */
/* The strikes that a request may turn out to be: one for each penalty whose kind of value it has.
 *
 * They are found with the checks, because the request is gone when a store denies it or when its
 * outcome is reported. Each has the check that counts it, in the limit NAME~strikes
 * (feature/penalties/rules/penalty.h), and says for the map of standing whom it is held against. A
 * request without the value (no user, no such header), or with one longer than
 * WEIR_STRIKE_VALUE_MAX, is no strike of that penalty. As for standing, a user counts only where it
 * was verified, and not where it is an address. A trusted caller has no strikes: its ladder would
 * climb unseen, since trust beats penalties, and the steps would come in force when the trust ends.
 *
 * Threads: reads only, as evaluate.h. Allocates nothing.
 */
#ifndef WEIR_FEATURE_PENALTIES_RULES_STRIKES_H
#define WEIR_FEATURE_PENALTIES_RULES_STRIKES_H

#include "core/check.h"
#include "core/text/address.h"
#include "feature/penalties/rules/penalty.h"
#include "rules/match/checks.h"

/* The longest value that a standing may be set for (feature/standing/list.h). */
#define WEIR_STRIKE_VALUE_MAX 1024

struct weir_strike {
    struct weir_check check;  /* its key is in scratch (weir_strike_key_text); its `rule` is none */
    struct weir_cidr network; /* of a kind of addresses: the client's; else not valid */
    uint64_t id[2];           /* of another kind: as the map has it; else not valid */
    struct weir_bytes value;  /* likewise: the value itself, in scratch, also of a secret kind */
    bool hidden;              /* `value` is a secret's "sha256:…", in place of the secret */
    uint8_t penalty;          /* its number */
};

struct weir_strikes {
    uint32_t count;
    bool without_map; /* also where there is no map: values of other kinds than addresses then have
                         no id, 0 and 0, and can only be counted */
    struct weir_strike strikes[WEIR_PENALTIES_MAX];
};

/* The text of the key of a strike's check, by the rules that have found it; it may be written into
 * `room`. */
struct weir_bytes weir_strike_key_text(const struct weir_rules *rules,
                                       const struct weir_strike *strike,
                                       char room[WEIR_KEY_TEXT_MAX]);

/* --- Within the rules ------------------------------------------------------------------------- */

struct rules_evaluation;

/* Fills *strikes. `refused`: the caller's standing refuses the request, which is
 * a strike only for penalties with strikes_while_suspended. Errors: WEIR_ERR_TOO_LARGE (scratch is
 * full). Finding out who is calling may fail: see evaluation->error. */
int rules_strikes_find(struct rules_evaluation *evaluation, bool refused,
                       struct weir_strikes *strikes) __attribute__((warn_unused_result));

#endif
