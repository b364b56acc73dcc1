/* SPDX-License-Identifier: Apache-2.0 */
/* see secret.h */
#include "store/redis/secret.h"

#include <openssl/sha.h>
#include <string.h>

#include "core/text/hex.h"

void redis_secret_init(struct redis_secret *secret, const uint64_t seed[2])
{
    memset(secret, 0, sizeof *secret);
    pthread_mutex_init(&secret->lock, NULL);
    (void)weir_hex_write64(weir_hex_write64(secret->text, seed[0]), seed[1]);
    secret->size = 32;
}

void redis_secret_end(struct redis_secret *secret)
{
    pthread_mutex_destroy(&secret->lock);
}

/* An operator may write any text: all of it counts. */
static void derive(uint64_t words[2], struct weir_bytes text)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)text.data, text.size, hash);
    memcpy(words, hash, 2 * sizeof *words);
}

static enum redis_secret_result take(struct redis_secret *secret, struct weir_bytes text,
                                     uint64_t now_ns)
{
    bool first = secret->known == 0;

    if (!first && text.size == secret->size && memcmp(text.data, secret->text, text.size) == 0)
        return REDIS_SECRET_SAME;
    memcpy(secret->words[1], secret->words[0], sizeof secret->words[1]);
    derive(secret->words[0], text);
    memcpy(secret->text, text.data, text.size);
    secret->size = (uint8_t)text.size;
    secret->known += secret->known < REDIS_SECRETS;
    secret->adopted_at_ns = first ? now_ns : now_ns + REDIS_SECRET_ADOPT_NS;
    return first ? REDIS_SECRET_FIRST : REDIS_SECRET_OTHER;
}

enum redis_secret_result redis_secret_take(struct redis_secret *secret, struct weir_bytes text,
                                           uint64_t now_ns)
{
    enum redis_secret_result result;

    if (text.size < REDIS_SECRET_TEXT_MIN || text.size > REDIS_SECRET_TEXT_MAX)
        return REDIS_SECRET_NONE;
    pthread_mutex_lock(&secret->lock);
    result = take(secret, text, now_ns);
    pthread_mutex_unlock(&secret->lock);
    return result;
}

size_t redis_secret_text(struct redis_secret *secret, char text[REDIS_SECRET_TEXT_MAX])
{
    size_t size;

    pthread_mutex_lock(&secret->lock);
    size = secret->size;
    memcpy(text, secret->text, size);
    pthread_mutex_unlock(&secret->lock);
    return size;
}

bool redis_secret_at(struct redis_secret *secret, unsigned i, uint64_t now_ns, uint64_t words[2])
{
    bool known;

    pthread_mutex_lock(&secret->lock);
    known = i < secret->known;
    if (secret->known > 1 && now_ns < secret->adopted_at_ns)
        i = 1 - i; /* the other one still signs */
    if (known)
        memcpy(words, secret->words[i], sizeof secret->words[i]);
    pthread_mutex_unlock(&secret->lock);
    return known;
}
