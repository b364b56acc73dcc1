/* SPDX-License-Identifier: Apache-2.0 */
/* Lease tokens: their fields and their text.
 *
 *   byte 0       where the lease is, enum weir_lease_token_place, and 16 times k, 0..3; and 64
 *                where the caller is named
 *   bytes 1..8   the lease's id, big-endian, not 0
 *   then, 1..WEIR_CHECKS_MAX times, what names a concurrency limit's key:
 *     TABLE, LOCAL   16 bytes: its hash, big-endian
 *     REMOTE         24 bytes: its tag, big-endian, and its digest (struct weir_store_name)
 *   with k > 0   8 bytes: when it began, by the store's time in ns; then, k times, 8 bytes: what
 *                names a limit with `adaptive` (weir_lease_limit_id), and what was in flight there;
 *                then, where the caller is named, 8 bytes: weir_caller_number. It is left out where
 *                the token would be longer than WEIR_LEASE_TOKEN_BYTES_MAX
 *
 * as base64url without padding (RFC 4648 section 5): 34 characters for one limit of a table, 44 for
 * one remote; 695 and 1036 for 32; up to 54 more for what follows health. A token holds only hashes
 * and digests, so that its bearer learns nothing, and its id cannot be guessed, so that only its
 * holder can end the lease. Reading is strict: one text for one token, so no padding, no other
 * alphabet, no bits left over, no limit twice over.
 */
#ifndef WEIR_ENGINE_TOKEN_LEASE_TOKEN_H
#define WEIR_ENGINE_TOKEN_LEASE_TOKEN_H

#include "store/store.h"

/* Limits that learn from the end of one lease: they fit into tokens that are no longer than
 * WEIR_LEASE_TOKEN_MAX. */
#define WEIR_LEASE_LEARNERS_MAX 3

#define WEIR_LEASE_TOKEN_BYTES_MAX (9 + 24 * WEIR_CHECKS_MAX + 8 + 8 * WEIR_LEASE_LEARNERS_MAX)
#define WEIR_LEASE_TOKEN_TEXT_MAX ((WEIR_LEASE_TOKEN_BYTES_MAX * 4 + 2) / 3)

enum weir_lease_token_place {
    WEIR_LEASE_TOKEN_TABLE,  /* the table, as the engine's store */
    WEIR_LEASE_TOKEN_LOCAL,  /* the engine's local store, where on_store_error decided */
    WEIR_LEASE_TOKEN_REMOTE, /* a store that names its states: any node can end the lease */
    WEIR_LEASE_TOKEN_PLACES,
};

/* What a limit that follows health learns when a lease ends. */
struct weir_lease_learner {
    uint32_t limit;     /* weir_lease_limit_id of its name */
    uint32_t in_flight; /* in its units when the lease began, this one included */
};

struct weir_lease_begun {
    uint64_t ns;     /* by the store's time */
    uint64_t caller; /* weir_caller_number, as the token says; 0: it does not */
    uint8_t count;   /* 0: nothing learns, and the others are not valid */
    struct weir_lease_learner learners[WEIR_LEASE_LEARNERS_MAX];
};

struct weir_lease_fields {
    uint64_t id;
    uint64_t hash[WEIR_CHECKS_MAX][2]; /* REMOTE: the digest, as two big-endian numbers */
    uint64_t tag[WEIR_CHECKS_MAX];     /* REMOTE */
    uint16_t count;
    uint8_t place; /* enum weir_lease_token_place */
    struct weir_lease_begun begun;
};

/* A number for a limit's name: the same in every process. */
uint32_t weir_lease_limit_id(struct weir_bytes name);

/* Reads the digest of a token's limit `i`; adds a limit that has this name. */
void weir_lease_token_digest(const struct weir_lease_fields *lease, uint16_t i,
                             unsigned char digest[WEIR_STORE_DIGEST]);
void weir_lease_token_add_name(struct weir_lease_fields *lease, const struct weir_store_name *name);

/* Draws the next id of a lease, never 0: a keyed hash (SipHash) of a counter, so that the holder of
 * one token of a shared key cannot compute those of others. `secret` is the region's, 2 words. */
uint64_t weir_lease_draw(const uint64_t secret[2], uint64_t *counter);

/* Writes a token of 1..WEIR_CHECKS_MAX limits; `text` has WEIR_LEASE_TOKEN_TEXT_MAX bytes. Returns
 * the length. */
size_t weir_lease_token_write(const struct weir_lease_fields *lease, char *text);

/* Errors: WEIR_ERR_SYNTAX. */
int weir_lease_token_read(struct weir_lease_fields *lease, struct weir_bytes text)
    __attribute__((warn_unused_result));

#endif
