/* Who an API key belongs to: the keys file, and a table by SHA-256.
 *
 *   2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824:
 *     { user: alice, org: acme, plan: pro }
 *
 * weir never sees a key at rest, only its SHA-256; `user` is required. Read event by event, not as
 * a tree, and as plain lines where it has no others (keys_lines.h), because a million keys are a
 * normal file. Memory: 64 bytes a caller, 4 to 8 for its slot,
 * and its texts (orgs are shared). The digest is its own hash: nobody can aim at a slot without
 * choosing SHA-256 outputs. Threads: immutable once loaded.
 */
#ifndef WEIR_RULES_KEYS_H
#define WEIR_RULES_KEYS_H

#include "rules/arena.h"
#include "rules/caller.h"
#include "rules/rules.h"
#include "rules/words.h"

struct rules_caller {
    uint8_t digest[WEIR_DIGEST_BYTES];
    const char *user, *org; /* org may be NULL */
    uint16_t user_size, org_size;
    uint32_t plan; /* RULES_NONE: the default */
    uint32_t line; /* in the file */
};

/* All zero is empty. */
struct rules_keys {
    struct rules_caller *callers;
    uint32_t *slots; /* index into callers, or RULES_NONE; a power of two, at most half full */
    uint32_t count, room, mask;
};

/* Reads the file `path` into `keys`. `plans` are the names that a plan may have. Returns 0,
 * WEIR_ERR_RULES with problems added, WEIR_ERR_IO when the file cannot be opened (errno says why),
 * or WEIR_ERR_MEMORY. */
int rules_keys_load(struct rules_keys *keys, struct rules_arena *arena, const char *path,
                    const struct rules_words *plans, const char *const *plan_names,
                    uint32_t plan_count, struct weir_problems *problems)
    __attribute__((warn_unused_result));

/* Whose key has this digest; *plan is his plan's number, RULES_NONE: the default (its text is not
 * given). False: nobody's. Allocates nothing. */
bool rules_keys_find(const struct rules_keys *keys, const uint8_t digest[WEIR_DIGEST_BYTES],
                     struct weir_caller *caller, uint32_t *plan);

/* SHA-256, without allocating. */
void rules_sha256(struct weir_bytes data, uint8_t digest[WEIR_DIGEST_BYTES]);

void rules_keys_free(struct rules_keys *keys);

#endif
