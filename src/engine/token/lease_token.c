/* SPDX-License-Identifier: Apache-2.0 */
/* see lease_token.h */
#include "engine/token/lease_token.h"

#include <string.h>

#include "core/text/base64url.h"
#include "core/text/siphash.h"

#define HEAD_BYTES 9
#define HASH_BYTES 16
#define NAME_BYTES 24 /* a tag and a digest */
#define BEGUN_BYTES 8
#define LEARNER_BYTES 8
#define CALLER_BYTES 8

#define PLACE_BITS 4
#define CALLER_BIT 0x40

/* Tells this use of the secret from the hashing of keys. */
#define LEASE_DOMAIN UINT64_C(0x657361656c726977) /* "wirlease" */

uint64_t weir_lease_draw(const uint64_t secret[2], uint64_t *counter)
{
    const uint64_t key[2] = {secret[0] ^ LEASE_DOMAIN, secret[1]};
    uint64_t hash[2];
    do {
        ++*counter;
        weir_siphash128(key, counter, sizeof *counter, hash);
    } while (hash[0] == 0);
    return hash[0];
}

uint32_t weir_lease_limit_id(struct weir_bytes name)
{
    uint64_t hash[2];
    weir_siphash128((const uint64_t[2]){0, 0}, name.data, name.size, hash);
    return (uint32_t)hash[0];
}

static int limit_bytes(const struct weir_lease_fields *lease)
{
    return lease->place == WEIR_LEASE_TOKEN_REMOTE ? NAME_BYTES : HASH_BYTES;
}

void weir_lease_token_digest(const struct weir_lease_fields *lease, uint16_t i,
                             unsigned char digest[WEIR_STORE_DIGEST])
{
    weir_put64(digest, lease->hash[i][0]);
    weir_put64(digest + 8, lease->hash[i][1]);
}

void weir_lease_token_add_name(struct weir_lease_fields *lease, const struct weir_store_name *name)
{
    lease->tag[lease->count] = name->tag;
    lease->hash[lease->count][0] = weir_get64(name->digest);
    lease->hash[lease->count++][1] = weir_get64(name->digest + 8);
}

static size_t begun_bytes(uint8_t learners, bool caller)
{
    return learners > 0
               ? BEGUN_BYTES + LEARNER_BYTES * (size_t)learners + (caller ? CALLER_BYTES : 0)
               : 0;
}

static bool names_caller(const struct weir_lease_fields *lease)
{
    size_t size = HEAD_BYTES + (size_t)limit_bytes(lease) * lease->count +
                  begun_bytes(lease->begun.count, true);
    return lease->begun.count > 0 && lease->begun.caller != 0 && size <= WEIR_LEASE_TOKEN_BYTES_MAX;
}

static void write_begun(const struct weir_lease_begun *begun, bool caller, unsigned char *bytes)
{
    if (caller)
        weir_put64(bytes + BEGUN_BYTES + LEARNER_BYTES * begun->count, begun->caller);
    weir_put64(bytes, begun->ns);
    for (uint8_t i = 0; i < begun->count; i++) {
        const struct weir_lease_learner *of = &begun->learners[i];
        weir_put64(bytes + BEGUN_BYTES + LEARNER_BYTES * i,
                   (uint64_t)of->limit << 32 | of->in_flight);
    }
}

static void read_begun(struct weir_lease_begun *begun, bool caller, const unsigned char *bytes)
{
    begun->caller = caller ? weir_get64(bytes + BEGUN_BYTES + LEARNER_BYTES * begun->count) : 0;
    begun->ns = begun->count > 0 ? weir_get64(bytes) : 0;
    for (uint8_t i = 0; i < begun->count; i++) {
        uint64_t word = weir_get64(bytes + BEGUN_BYTES + LEARNER_BYTES * i);
        begun->learners[i] = (struct weir_lease_learner){(uint32_t)(word >> 32), (uint32_t)word};
    }
}

size_t weir_lease_token_write(const struct weir_lease_fields *lease, char *text)
{
    unsigned char bytes[WEIR_LEASE_TOKEN_BYTES_MAX];
    size_t size = HEAD_BYTES;
    bool caller = names_caller(lease);
    bytes[0] = (unsigned char)(lease->place | lease->begun.count << PLACE_BITS |
                               (caller ? CALLER_BIT : 0));
    weir_put64(bytes + 1, lease->id);
    for (uint16_t i = 0; i < lease->count; i++, size += HASH_BYTES) {
        if (lease->place == WEIR_LEASE_TOKEN_REMOTE) {
            weir_put64(bytes + size, lease->tag[i]);
            size += NAME_BYTES - HASH_BYTES;
        }
        weir_lease_token_digest(lease, i, bytes + size);
    }
    if (lease->begun.count > 0)
        write_begun(&lease->begun, caller, bytes + size);
    size += begun_bytes(lease->begun.count, caller);
    return weir_base64url_write(bytes, size, text);
}

/* Reads the limit at `bytes`. Returns whether it is another than all before. */
static bool read_limit(struct weir_lease_fields *lease, const unsigned char *bytes)
{
    uint16_t last = lease->count++;
    lease->tag[last] = 0;
    if (lease->place == WEIR_LEASE_TOKEN_REMOTE) {
        lease->tag[last] = weir_get64(bytes);
        bytes += NAME_BYTES - HASH_BYTES;
    }
    lease->hash[last][0] = weir_get64(bytes);
    lease->hash[last][1] = weir_get64(bytes + 8);
    for (uint16_t i = 0; i < last; i++)
        if (lease->hash[i][0] == lease->hash[last][0] &&
            lease->hash[i][1] == lease->hash[last][1] && lease->tag[i] == lease->tag[last])
            return false;
    return true;
}

int weir_lease_token_read(struct weir_lease_fields *lease, struct weir_bytes text)
{
    unsigned char bytes[WEIR_LEASE_TOKEN_BYTES_MAX];
    if (text.size > WEIR_LEASE_TOKEN_TEXT_MAX)
        return WEIR_ERR_SYNTAX;
    int size = (int)weir_base64url_read(text, bytes);
    if (size < HEAD_BYTES)
        return WEIR_ERR_SYNTAX;
    lease->place = bytes[0] & ((1 << PLACE_BITS) - 1);
    bool caller = (bytes[0] & CALLER_BIT) != 0;
    lease->begun.count = (bytes[0] & ~CALLER_BIT) >> PLACE_BITS;
    size -= (int)begun_bytes(lease->begun.count, caller);
    if (lease->place >= WEIR_LEASE_TOKEN_PLACES || lease->begun.count > WEIR_LEASE_LEARNERS_MAX ||
        size < HEAD_BYTES || (caller && lease->begun.count == 0))
        return WEIR_ERR_SYNTAX;
    lease->id = weir_get64(bytes + 1);
    lease->count = 0;
    int each = limit_bytes(lease), limits = (size - HEAD_BYTES) / each;
    if (lease->id == 0 || limits == 0 || limits > WEIR_CHECKS_MAX ||
        size != HEAD_BYTES + limits * each)
        return WEIR_ERR_SYNTAX;
    for (int at = HEAD_BYTES; at < size; at += each)
        if (!read_limit(lease, bytes + at))
            return WEIR_ERR_SYNTAX;
    read_begun(&lease->begun, caller, bytes + size);
    return caller && lease->begun.caller == 0 ? WEIR_ERR_SYNTAX : 0;
}
