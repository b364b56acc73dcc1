/* SPDX-License-Identifier: Apache-2.0 */
/* How states are called in Redis.
 *
 *   <prefix>{<tag>}<limit's name>:<key's text>    the state of one key of one limit
 *   <prefix>{<tag>}!<text>                        of a limit of a command, which has no name
 *   <prefix>{<tag>}~<digest>                      concurrency: what a lease's token can name;
 *                                                 and limits whose states other regions see
 *   <prefix>{<tag>}=<text>                        the record of an idempotency key
 *   <prefix>{<tag>}?<id>                          a reservation
 *   <prefix>secret                                the secret of the store: secret.h
 *   <key's text>                                  WEIR_CHECK_COUNTER: a key of others
 *
 * The tag is 16 hex digits: those of the rule's hash_tag values, else of the key's text, so that
 * limits with the same key share a slot of a Cluster. The digest is 32 hex digits, the first half
 * of the SHA-256 of "<limit's name>:<text>" or "!<text>": without a token, nobody can
 * make one for another state's key. Names hold none of : ! ~ = ?, so different states have
 * different keys. A text is never cut.
 */
#ifndef WEIR_STORE_REDIS_SCRIPT_KEY_H
#define WEIR_STORE_REDIS_SCRIPT_KEY_H

#include "core/check.h"

#define REDIS_DIGEST 16 /* bytes */

/* The bytes that the key of this check takes. */
size_t redis_key_size(const char *prefix, const struct weir_check *check);

/* Writes the key of a check; returns where it ends. A check without a limit (WEIR_OP_RESET, LOOK)
 * is one of a command. */
char *redis_key_write(char *out, const char *prefix, const struct weir_check *check);

/* The same for a state that is known by tag and digest (WEIR_OP_RELEASE: from a lease's token). */
#define REDIS_KEY_DIGEST_SIZE(prefix_size) ((prefix_size) + 2 + 16 + 1 + 2 * REDIS_DIGEST)
char *redis_key_write_digest(char *out, const char *prefix, uint64_t tag,
                             const unsigned char digest[REDIS_DIGEST]);

#define REDIS_KEY_RESERVATION_MAX(prefix_size) ((prefix_size) + 2 + 16 + 1 + 16)
char *redis_key_write_reservation(char *out, const char *prefix, uint64_t tag, uint64_t id);

/* The tag of a check, its own text's where it has none. */
uint64_t redis_key_tag(const struct weir_check *check);

/* The slot of all keys with a tag: what decides which checks may share a call. */
uint16_t redis_key_cluster_slot(uint64_t tag);

/* The slot of a check's key. */
uint16_t redis_check_cluster_slot(const struct weir_check *check);

/* The digest of a check whose state is named by one. */
void redis_key_digest(const struct weir_check *check, unsigned char digest[REDIS_DIGEST]);

#endif
