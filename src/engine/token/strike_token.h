/* SPDX-License-Identifier: Apache-2.0 */
/* The strikes that a reservation may turn out to be, in its token (reservation.h).
 *
 * The one who settles has the token alone, so that says whom an outcome is held against: for each
 * penalty with `outcomes` whose value the request had, the state that counts its strikes, and the
 * value. Of a secret (an API key) it has the SHA-256.
 *
 *   mark of the penalty (8), hash of the state's key (16), its tag (8), size (2) and text of that
 * key family (1): 4 or 6, then the length of the network (1) and its address (4 or 16) 0, then the
 * id of the value (16), its size (2) and text
 *
 * A penalty is found again by its name and the kind of its values. Where it has gone from the
 * rules, the outcome is no strike of it.
 *
 * Threads: pure.
 */
#ifndef WEIR_ENGINE_TOKEN_STRIKE_TOKEN_H
#define WEIR_ENGINE_TOKEN_STRIKE_TOKEN_H

#include "feature/penalties/rules/strikes.h"

/* Of a secret's text: "sha256:" and 64 digits. */
#define WEIR_HIDDEN_SIZE 71

/* One strike that a reservation may be. */
struct weir_reserved_strike {
    uint64_t penalty;         /* mark of it */
    uint64_t hash[2], tag;    /* of the state that counts */
    struct weir_bytes key;    /* likewise */
    struct weir_cidr network; /* family 0: the value is none of addresses */
    uint64_t id[2];           /* of another value; else not valid */
    struct weir_bytes value;  /* likewise; of a secret kind "sha256:…" */
};

/* Those of one reservation. */
struct weir_reserved_strikes {
    uint8_t count;
    struct weir_reserved_strike strikes[WEIR_PENALTIES_MAX];
    /* When it is made: the texts of secrets, and of keys. */
    char hidden[WEIR_PENALTIES_MAX][WEIR_HIDDEN_SIZE];
    char keys[WEIR_PENALTIES_MAX][WEIR_KEY_TEXT_MAX];
};

/* Keeps of the strikes that the rules have found those of penalties with `outcomes`. */
void weir_strikes_reserve(const struct weir_rules *rules, const struct weir_strike *strikes,
                          uint32_t count, struct weir_reserved_strikes *reserved);

/* Fills *strike from a token, by the present rules. False: they have no such penalty. */
bool weir_strike_find(const struct weir_rules *rules, const struct weir_reserved_strike *reserved,
                      struct weir_strike *strike);

/* Writes them, at least one. Returns where they end, or NULL where they do not fit before `end`. */
unsigned char *weir_strikes_pack(const struct weir_reserved_strikes *reserved, unsigned char *at,
                                 const unsigned char *end);

/* Reads them; their texts stay where they are. Returns where they end, or NULL where they are cut
 * or malformed. */
const unsigned char *weir_strikes_unpack(struct weir_reserved_strikes *reserved,
                                         const unsigned char *at, const unsigned char *end);

#endif
