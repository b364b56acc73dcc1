/* SPDX-License-Identifier: Apache-2.0 */
/* Who an API key belongs to: the keys file, and a table by SHA-256.
 *
 *   2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824:
 *     { user: alice, org: acme, plan: pro, limits: { api: 5000/min burst 200 } }
 *
 * weir never sees a key at rest, only its SHA-256; `user` is required. A million keys are a normal
 * file, so it is read event by event, not as a tree, and as plain lines where it has no others
 * (keys_lines.h), and what it becomes is packed:
 *
 *   owners      48 bytes a key: its digest, and the offsets of the rest
 *   slots       4 bytes each, by the first bytes of the digest, at most three quarters full: the
 *               digest is its own hash, and to aim at a slot is to choose an output of SHA-256
 *   texts       each its length (a byte) and its bytes; orgs, which repeat, once
 *   overrides   each different one once, and each different set of them once: owners who have
 *               the same share it (keys_overrides.h)
 *
 * So a key takes 48 bytes, 5 to 11 for its slot, and its user's name. Threads: immutable once
 * loaded.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_KEYS_H
#define WEIR_FEATURE_IDENTITY_RULES_KEYS_H

#include <stdbool.h>

#include "feature/identity/rules/caller.h"
#include "rules/rules.h"
#include "rules/string_map.h"

struct rules_key_owner {
    uint8_t digest[WEIR_DIGEST_BYTES];
    uint32_t user, org; /* their texts; RULES_NONE: no org */
    uint32_t plan;      /* RULES_NONE: the default */
    uint32_t set;       /* of overrides; 0: none */
};

/* All zero is empty. */
struct rules_keys {
    struct rules_key_owner *owners;
    uint32_t *slots; /* index into owners, or RULES_NONE; a power of two */
    uint32_t count, room, mask;

    char **texts; /* blocks */
    uint32_t text_blocks, text_used;

    struct weir_override **overrides; /* each once, ascending by rule; what sets have are copies */
    uint32_t override_count;
    struct weir_override *list; /* those of set 1, of set 2, ..., each ascending by rule */
    uint32_t *set_ends;         /* in the list; the first is of set 0, and 0 */
    uint32_t set_count;         /* with set 0; 0: there are none */

    uint64_t *by_user; /* hash of the user << 32 | owner, of those with overrides; ascending */
    uint32_t by_user_count;
};

/* The owner of the key with this digest; *plan is the number of the owner's plan, RULES_NONE: the
 * default (its text is not given). False: the key is unknown. Allocates nothing. */
bool rules_keys_find(const struct rules_keys *keys, const uint8_t digest[WEIR_DIGEST_BYTES],
                     struct weir_caller *caller, uint32_t *plan);

/* What the first key of a user that has an override of this rule has; NULL: none. O(log). */
const struct weir_override *rules_keys_override(const struct rules_keys *keys,
                                                struct weir_bytes user, uint32_t rule);

/* SHA-256, without allocating. */
void rules_sha256(struct weir_bytes data, uint8_t digest[WEIR_DIGEST_BYTES]);

void rules_keys_free(struct rules_keys *keys);

/* --- While it is loaded ----------------------------------------------------------------------- */

/* Keeps a text of 1 to WEIR_IDENTITY_MAX bytes; *at is where. Errors: WEIR_ERR_MEMORY. */
int rules_keys_keep(struct rules_keys *keys, struct weir_bytes text, uint32_t *at)
    __attribute__((warn_unused_result));
struct weir_bytes rules_keys_text(const struct rules_keys *keys, uint32_t at);

/* Adds an owner. Returns its index, or -1 when memory is out. Its digest is not there yet: see
 * rules_keys_index. */
int64_t rules_keys_add(struct rules_keys *keys, const struct rules_key_owner *owner);

/* The owner of a digest: its index; RULES_NONE: there is none. */
uint32_t rules_keys_index(const struct rules_keys *keys, const uint8_t digest[WEIR_DIGEST_BYTES]);

/* Gives back what loading took beyond need, and makes `by_user`. Errors: WEIR_ERR_MEMORY. */
int rules_keys_finish(struct rules_keys *keys) __attribute__((warn_unused_result));

#endif
