/* SPDX-License-Identifier: Apache-2.0 */
/* see keys.h
 *
 * SHA-256 is called through OpenSSL's older interface: the newer one (EVP) allocates on every call,
 * and this runs on the path of a request. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "feature/identity/rules/keys.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/identity/rules/override.h"

#define OWNERS_FIRST 16
#define BLOCKS_FIRST 16

/* Texts don't move while others are added. A block that nobody has written to takes no memory. */
#define BLOCK_SHIFT 18
#define BLOCK_BYTES (UINT32_C(1) << BLOCK_SHIFT)
#define BLOCKS_MAX (UINT32_MAX >> BLOCK_SHIFT)

void rules_sha256(struct weir_bytes data, uint8_t digest[WEIR_DIGEST_BYTES])
{
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, data.data, data.size);
    SHA256_Final(digest, &context);
}

/* --- Texts ------------------------------------------------------------------------------------ */

static int add_block(struct rules_keys *keys)
{
    uint32_t count = keys->text_blocks;
    if (count == BLOCKS_MAX)
        return WEIR_ERR_MEMORY;
    if (count == 0 || (count >= BLOCKS_FIRST && (count & (count - 1)) == 0)) {
        size_t room = count == 0 ? BLOCKS_FIRST : (size_t)count * 2;
        char **texts = realloc(keys->texts, room * sizeof(*texts));
        if (!texts)
            return WEIR_ERR_MEMORY;
        keys->texts = texts;
    }
    char *block = malloc(BLOCK_BYTES);
    if (!block)
        return WEIR_ERR_MEMORY;
    keys->texts[keys->text_blocks++] = block;
    keys->text_used = 0;
    return 0;
}

int rules_keys_keep(struct rules_keys *keys, struct weir_bytes text, uint32_t *at)
{
    if (keys->text_blocks == 0 || BLOCK_BYTES - keys->text_used < text.size + 1) {
        int err = add_block(keys);
        if (err < 0)
            return err;
    }
    char *to = keys->texts[keys->text_blocks - 1] + keys->text_used;
    *at = (keys->text_blocks - 1) << BLOCK_SHIFT | keys->text_used;
    to[0] = (char)(unsigned char)(text.size - 1);
    memcpy(to + 1, text.data, text.size);
    keys->text_used += (uint32_t)text.size + 1;
    return 0;
}

struct weir_bytes rules_keys_text(const struct rules_keys *keys, uint32_t at)
{
    const char *text = keys->texts[at >> BLOCK_SHIFT] + (at & (BLOCK_BYTES - 1));
    return (struct weir_bytes){text + 1, (size_t)(unsigned char)text[0] + 1};
}

/* --- Owners ----------------------------------------------------------------------------------- */

/* The slot of a digest, or the free one where it would go. */
static uint32_t find_slot(const struct rules_keys *keys, const uint8_t *digest)
{
    uint32_t at;
    memcpy(&at, digest, sizeof(at));
    at &= keys->mask;
    while (keys->slots[at] != RULES_NONE &&
           memcmp(keys->owners[keys->slots[at]].digest, digest, WEIR_DIGEST_BYTES) != 0)
        at = (at + 1) & keys->mask;
    return at;
}

uint32_t rules_keys_index(const struct rules_keys *keys, const uint8_t digest[WEIR_DIGEST_BYTES])
{
    return keys->count == 0 ? RULES_NONE : keys->slots[find_slot(keys, digest)];
}

static bool grow_owners(struct rules_keys *keys)
{
    uint32_t room = keys->room == 0 ? OWNERS_FIRST : keys->room * 2;
    if (room > UINT32_MAX / 8)
        return false;
    struct rules_key_owner *owners = realloc(keys->owners, room * sizeof(*owners));
    if (owners) {
        keys->owners = owners;
        keys->room = room;
    }
    return owners;
}

static bool grow_slots(struct rules_keys *keys)
{
    uint32_t count = !keys->slots ? OWNERS_FIRST * 2 : (keys->mask + 1) * 2;
    uint32_t *slots = malloc(count * sizeof(*slots));
    if (!slots)
        return false;
    memset(slots, 0xFF, count * sizeof(*slots));
    free(keys->slots);
    keys->slots = slots;
    keys->mask = count - 1;
    for (uint32_t i = 0; i < keys->count; i++)
        keys->slots[find_slot(keys, keys->owners[i].digest)] = i;
    return true;
}

int64_t rules_keys_add(struct rules_keys *keys, const struct rules_key_owner *owner)
{
    if (keys->count == keys->room && !grow_owners(keys))
        return -1;
    if ((!keys->slots || keys->count >= (keys->mask + 1) / 4 * 3) && !grow_slots(keys))
        return -1;
    keys->slots[find_slot(keys, owner->digest)] = keys->count;
    keys->owners[keys->count] = *owner;
    return keys->count++;
}

bool rules_keys_find(const struct rules_keys *keys, const uint8_t digest[WEIR_DIGEST_BYTES],
                     struct weir_caller *caller, uint32_t *plan)
{
    uint32_t index = rules_keys_index(keys, digest);
    if (index == RULES_NONE)
        return false;
    const struct rules_key_owner *owner = &keys->owners[index];
    *caller = (struct weir_caller){.user = rules_keys_text(keys, owner->user)};
    if (owner->org != RULES_NONE)
        caller->org = rules_keys_text(keys, owner->org);
    if (owner->set > 0) {
        uint32_t begin = keys->set_ends[owner->set - 1];
        caller->overrides = keys->list + begin;
        caller->override_count = keys->set_ends[owner->set] - begin;
    }
    *plan = owner->plan;
    return true;
}

/* --- Users ------------------------------------------------------------------------------------ */

static uint64_t user_hash(struct weir_bytes user)
{
    return rules_text_hash(user.data, user.size) & UINT64_C(0xFFFFFFFF00000000);
}

static int compare_words(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int index_users(struct rules_keys *keys)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < keys->count && keys->set_count > 0; i++)
        count += keys->owners[i].set > 0;
    if (count == 0)
        return 0;
    keys->by_user = malloc(count * sizeof(*keys->by_user));
    if (!keys->by_user)
        return WEIR_ERR_MEMORY;
    for (uint32_t i = 0; i < keys->count; i++) {
        const struct rules_key_owner *owner = &keys->owners[i];
        if (owner->set > 0) {
            keys->by_user[keys->by_user_count++] =
                user_hash(rules_keys_text(keys, owner->user)) | i;
        }
    }
    qsort(keys->by_user, count, sizeof(*keys->by_user), compare_words);
    return 0;
}

const struct weir_override *rules_keys_override(const struct rules_keys *keys,
                                                struct weir_bytes user, uint32_t rule)
{
    uint64_t hash = user_hash(user);
    uint32_t low = 0, high = keys->by_user_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (keys->by_user[middle] < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < keys->by_user_count && keys->by_user[low] >> 32 == hash >> 32; low++) {
        const struct rules_key_owner *owner = &keys->owners[(uint32_t)keys->by_user[low]];
        struct weir_bytes text = rules_keys_text(keys, owner->user);
        uint32_t begin = keys->set_ends[owner->set - 1], end = keys->set_ends[owner->set];
        const struct weir_override *found =
            rules_override_of(keys->list + begin, end - begin, rule);
        if (found && weir_bytes_equal(text, user))
            return found;
    }
    return NULL;
}

/* --- The end ---------------------------------------------------------------------------------- */

static int compare_overrides(const void *a, const void *b)
{
    const struct weir_override *const *x = a, *const *y = b;
    return (*x)->rule < (*y)->rule ? -1 : (*x)->rule > (*y)->rule;
}

int rules_keys_finish(struct rules_keys *keys)
{
    if (keys->count > 0 && keys->count < keys->room) {
        struct rules_key_owner *owners = realloc(keys->owners, keys->count * sizeof(*keys->owners));
        if (!owners)
            return WEIR_ERR_MEMORY;
        keys->owners = owners;
        keys->room = keys->count;
    }
    if (keys->override_count > 0) {
        qsort(keys->overrides, keys->override_count, sizeof(struct weir_override *),
              compare_overrides);
    }
    return index_users(keys);
}

void rules_keys_free(struct rules_keys *keys)
{
    for (uint32_t i = 0; i < keys->text_blocks; i++)
        free(keys->texts[i]);
    for (uint32_t i = 0; i < keys->override_count; i++)
        free(keys->overrides[i]);
    free(keys->texts);
    free(keys->overrides);
    free(keys->list);
    free(keys->set_ends);
    free(keys->by_user);
    free(keys->owners);
    free(keys->slots);
    memset(keys, 0, sizeof(*keys));
}
