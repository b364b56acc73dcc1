/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of standing as the fields and texts that Redis holds.
 *
 *   field   "o user ada", "p client.ip 192.0.2.0/24"      origin (operator, penalty), kind, value
 *   text    "17 suspended 1763859600000000000 1763863200000000000 - 12 operator adatoo many logins"
 *            number of the change, level, since, until ("-": no end), id of an exact value ("-": a
 *            network), size of who, who, why
 *   removal "18 - 1763859700000000000 - - 12 operator ada"   with its time in place of since
 *
 * Times are nanoseconds of weir's timeline: the clocks of all nodes must agree, as for the store.
 *
 * Pure functions.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_REDIS_RECORD_H
#define WEIR_FEATURE_STANDING_SERVER_REDIS_RECORD_H

#include "feature/standing/server/keeper.h"

#define STANDING_FIELD_MAX (2 + WEIR_STANDING_KIND_MAX + 1 + WEIR_LIST_VALUE_MAX)
/* Who is made longer by penalties: "penalty " and a name. */
#define STANDING_BY_MAX 96
#define STANDING_TAIL_MAX (4 + STANDING_BY_MAX + WEIR_STANDING_REASON_MAX)
#define STANDING_TEXT_MAX (12 + 21 + 21 + 33 + STANDING_TAIL_MAX)

/* Writes the field of a value and origin. Returns its size. */
size_t standing_field_write(char out[STANDING_FIELD_MAX], const struct weir_history_entry *entry);

/* Fills kind, value and origin, which point into the text. False: it is none. */
bool standing_field_read(struct weir_bytes text, struct weir_history_entry *entry);

/* Writes an entry without the number of its change. Returns its size. */
size_t standing_text_write(char out[STANDING_TEXT_MAX], const struct weir_history_entry *entry);

/* Writes its tail alone, which says who and why. Returns its size. */
size_t standing_tail_write(char out[STANDING_TAIL_MAX], const struct weir_history_entry *entry);

/* An entry, or the end of one. */
struct shared_record {
    uint64_t number;              /* of its change */
    bool removed;                 /* since_ns is the time of that; there is no level and no end */
    struct weir_history_entry to; /* `by` points into the text */
};

/* Fills *record except what a field says. False: the text is none. */
bool standing_text_read(struct weir_bytes text, struct shared_record *record);

#endif
