/* SPDX-License-Identifier: Apache-2.0 */
/* Lease tokens: their fields and their text.
 *
 *   byte 0       where the lease is, enum weir_lease_token_place
 *   bytes 1..8   the lease's id, big-endian, not 0
 *   then, 1..WEIR_CHECKS_MAX times, what names a concurrency limit's key:
 *     TABLE, LOCAL   16 bytes: its hash, big-endian
 *     REMOTE         24 bytes: its tag, big-endian, and its digest (struct weir_store_name)
 *
 * as base64url without padding (RFC 4648 section 5): 34 characters for one limit of a table, 44 for
 * one remote; 695 and 1036 for 32. A token holds only hashes and digests, so that its bearer
 * learns nothing, and its id cannot be guessed, so that only its holder can end the lease.
 * Reading is strict: one text for one token, so no padding, no other alphabet, no bits left over,
 * no limit twice over.
 */
#ifndef WEIR_ENGINE_LEASE_TOKEN_H
#define WEIR_ENGINE_LEASE_TOKEN_H

#include "store/store.h"

#define WEIR_LEASE_TOKEN_BYTES_MAX (9 + 24 * WEIR_CHECKS_MAX)
#define WEIR_LEASE_TOKEN_TEXT_MAX ((WEIR_LEASE_TOKEN_BYTES_MAX * 4 + 2) / 3)

enum weir_lease_token_place {
    WEIR_LEASE_TOKEN_TABLE,  /* the table, as the engine's store */
    WEIR_LEASE_TOKEN_LOCAL,  /* the engine's local store, where on_store_error decided */
    WEIR_LEASE_TOKEN_REMOTE, /* a store that names its states: any node can end the lease */
    WEIR_LEASE_TOKEN_PLACES,
};

struct weir_lease_fields {
    uint64_t id;
    uint64_t hash[WEIR_CHECKS_MAX][2]; /* REMOTE: the digest, as two big-endian numbers */
    uint64_t tag[WEIR_CHECKS_MAX];     /* REMOTE */
    uint16_t count;
    uint8_t place; /* enum weir_lease_token_place */
};

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
