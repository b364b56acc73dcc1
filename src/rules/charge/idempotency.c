/* SPDX-License-Identifier: Apache-2.0 */
/* see idempotency.h
 *
 * SHA-256 is called through OpenSSL's older interface: the newer one (EVP) allocates on every call,
 * and this runs on the path of a request. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "rules/charge/idempotency.h"

#include <openssl/sha.h>
#include <string.h>

#include "core/text/base64url.h"
#include "core/text/hex.h"
#include "core/text/siphash.h"
#include "rules/compiled.h"

/* Hex digits of the record's name: 128 bits. */
#define TEXT_BYTES 16

static void add_number(SHA256_CTX *context, uint64_t number)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> (56 - 8 * i));
    SHA256_Update(context, bytes, sizeof(bytes));
}

/* With its length, so that no two lists of texts are the same bytes. */
static void add_text(SHA256_CTX *context, const char *text, size_t size)
{
    add_number(context, size);
    SHA256_Update(context, text, size);
}

static void add_check(SHA256_CTX *context, const struct weir_check *check, bool shared)
{
    if (shared) {
        add_text(context, check->limit->name, strlen(check->limit->name));
        add_text(context, check->key.data, check->key.size);
    } else {
        add_number(context, check->hash[0]);
        add_number(context, check->hash[1]);
    }
    add_number(context, check->cost);
}

int weir_rules_idempotency(const struct weir_rules *rules, const struct weir_check *checks,
                           uint16_t count, struct weir_bytes key, const uint64_t secret[2],
                           struct weir_scratch *scratch, struct weir_check *record,
                           uint64_t *lease_id)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    const struct weir_check *first = NULL;
    SHA256_CTX context;
    if (sizeof(scratch->bytes) - scratch->used < 2 * TEXT_BYTES)
        return WEIR_ERR_TOO_LARGE;
    SHA256_Init(&context);
    if (!rules->shared) {
        add_number(&context, secret[0]);
        add_number(&context, secret[1]);
    }
    add_text(&context, key.data, key.size);
    for (uint16_t i = 0; i < count; i++) {
        if (!weir_check_has_state(&checks[i]))
            continue;
        first = !first ? &checks[i] : first;
        add_check(&context, &checks[i], rules->shared);
    }
    SHA256_Final(digest, &context);
    char *text = scratch->bytes + scratch->used;
    scratch->used += 2 * TEXT_BYTES;
    (void)weir_hex_write(text, digest, TEXT_BYTES);
    *record = (struct weir_check){
        .limit = &rules->idempotency,
        .cost = 1,
        .key = {text, 2 * TEXT_BYTES},
        /* Beside a state that it is charged with; the table needs none. */
        .tag = first && rules->shared ? weir_check_tag(first) : 0,
        .rule = UINT32_MAX,
        .flags = WEIR_CHECK_IDEMPOTENCY,
        .on_store_error = WEIR_FAIL_LOCAL,
    };
    weir_siphash128(secret, digest, TEXT_BYTES, record->hash);
    uint64_t id = weir_get64(digest + TEXT_BYTES);
    *lease_id = id != 0 ? id : 1;
    return 0;
}
