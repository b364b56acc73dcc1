/* Tickets: what a lease token says, and its text.
 *
 *   byte 0       0: the lease is at the store, 1: at the local store (on_store_error: local)
 *   bytes 1..8   the lease's id, big-endian, not 0
 *   then, 1..WEIR_CHECKS_MAX times, 16 bytes: the hash of a concurrency limit's key, big-endian
 *
 * as base64url without padding (RFC 4648 section 5): 34 characters for one limit, 695 for 32. A
 * ticket names only keyed hashes, so that it tells its bearer nothing, and who does not hold it
 * cannot make it. Reading is strict: one text for one ticket, so no padding, no other alphabet, no
 * bits left over, no limit twice over.
 */
#ifndef WEIR_ENGINE_TICKET_H
#define WEIR_ENGINE_TICKET_H

#include "core/check.h"

#define WEIR_TICKET_BYTES_MAX (9 + 16 * WEIR_CHECKS_MAX)
#define WEIR_TICKET_TEXT_MAX ((WEIR_TICKET_BYTES_MAX * 4 + 2) / 3)

struct weir_ticket {
    uint64_t id;
    uint64_t hash[WEIR_CHECKS_MAX][2];
    uint16_t count;
    bool local;
};

/* Draws the next id of a lease, never 0: a keyed hash (SipHash) of a counter, so that who holds one
 * ticket of a shared key cannot compute those of others. `secret` is the region's, 2 words. */
uint64_t weir_lease_draw(const uint64_t secret[2], uint64_t *counter);

/* Writes a ticket of 1..WEIR_CHECKS_MAX hashes; `text` has WEIR_TICKET_TEXT_MAX bytes. Returns the
 * length. */
size_t weir_ticket_write(const struct weir_ticket *ticket, char *text);

/* Errors: WEIR_ERR_SYNTAX. */
int weir_ticket_read(struct weir_ticket *ticket, struct weir_bytes text)
    __attribute__((warn_unused_result));

#endif
