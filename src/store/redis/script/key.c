/* SPDX-License-Identifier: Apache-2.0 */
/* see key.h
 *
 * SHA-256 is called through OpenSSL's older interface: the newer one (EVP) allocates on every call,
 * and this runs on the path of a request. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "store/redis/script/key.h"

#include <openssl/sha.h>
#include <string.h>

#include "core/text/hex.h"
#include "store/redis/client/client.h"

#define TAG_DIGITS 16

static char *put(char *out, const void *data, size_t size)
{
    if (size > 0)
        memcpy(out, data, size);
    return out + size;
}

/* A lease's token says its tag, and that may be 0. */
uint64_t redis_key_tag(const struct weir_check *check)
{
    return check->limit ? weir_check_tag(check) : check->tag;
}

uint16_t redis_key_cluster_slot(uint64_t tag)
{
    char digits[TAG_DIGITS];

    weir_hex_write64(digits, tag);
    return redis_cluster_slot(digits, sizeof digits);
}

uint16_t redis_check_cluster_slot(const struct weir_check *check)
{
    return check->flags & WEIR_CHECK_COUNTER ? redis_cluster_slot(check->key.data, check->key.size)
                                             : redis_key_cluster_slot(redis_key_tag(check));
}

/* The prefix of the text: the limit's name and ':', or the mark of a limit without a name. */
static const char *name_of(const struct weir_check *check, size_t *size, char *mark)
{
    bool named = check->limit && check->limit->name;

    *mark = named ? ':' : '!';
    *size = named ? strlen(check->limit->name) : 0;
    return named ? check->limit->name : "";
}

void redis_key_digest(const struct weir_check *check, unsigned char digest[REDIS_DIGEST])
{
    unsigned char whole[SHA256_DIGEST_LENGTH];
    SHA256_CTX context;
    size_t size;
    char mark;
    const char *name = name_of(check, &size, &mark);

    SHA256_Init(&context);
    SHA256_Update(&context, name, size);
    SHA256_Update(&context, &mark, 1);
    SHA256_Update(&context, check->key.data, check->key.size);
    SHA256_Final(whole, &context);
    memcpy(digest, whole, REDIS_DIGEST);
}

static bool is_digest(const struct weir_check *check)
{
    return check->limit &&
           (check->limit->spec.algorithm == WEIR_CONCURRENCY || check->limit->digest);
}

size_t redis_key_size(const char *prefix, const struct weir_check *check)
{
    size_t size;
    char mark;

    if (check->flags & WEIR_CHECK_COUNTER)
        return check->key.size;
    if (is_digest(check))
        return REDIS_KEY_DIGEST_SIZE(strlen(prefix));
    name_of(check, &size, &mark);
    if (check->flags & WEIR_CHECK_IDEMPOTENCY)
        size = 0;
    return strlen(prefix) + 2 + TAG_DIGITS + size + 1 + check->key.size;
}

static char *write_start(char *out, const char *prefix, uint64_t tag)
{
    out = put(out, prefix, strlen(prefix));
    *out++ = '{';
    out = weir_hex_write64(out, tag);
    *out++ = '}';
    return out;
}

char *redis_key_write_digest(char *out, const char *prefix, uint64_t tag,
                             const unsigned char digest[REDIS_DIGEST])
{
    out = write_start(out, prefix, tag);
    *out++ = '~';
    return weir_hex_write(out, digest, REDIS_DIGEST);
}

char *redis_key_write(char *out, const char *prefix, const struct weir_check *check)
{
    size_t size;
    char mark;
    const char *name = name_of(check, &size, &mark);

    if (check->flags & WEIR_CHECK_COUNTER)
        return put(out, check->key.data, check->key.size);
    if (is_digest(check)) {
        unsigned char digest[REDIS_DIGEST];

        redis_key_digest(check, digest);
        return redis_key_write_digest(out, prefix, redis_key_tag(check), digest);
    }
    if (check->flags & WEIR_CHECK_IDEMPOTENCY) {
        size = 0;
        mark = '=';
    }
    out = write_start(out, prefix, redis_key_tag(check));
    out = put(out, name, size);
    *out++ = mark;
    return put(out, check->key.data, check->key.size);
}

char *redis_key_write_reservation(char *out, const char *prefix, uint64_t tag, uint64_t id)
{
    out = write_start(out, prefix, tag);
    *out++ = '?';
    return weir_hex_write64(out, id);
}
