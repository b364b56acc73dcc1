/* see secret.h */
#include "store/redis/secret.h"

#include <openssl/sha.h>
#include <string.h>

void redis_secret_init(struct redis_secret *secret, const uint64_t seed[2])
{
    static const char digits[] = "0123456789abcdef";

    memset(secret, 0, sizeof *secret);
    for (int i = 0; i < 32; i++)
        secret->text[i] = digits[seed[i / 16] >> (60 - 4 * (i % 16)) & 15];
    secret->size = 32;
}

/* An operator may write any text: all of it counts. */
static void derive(uint64_t words[2], struct weir_bytes text)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)text.data, text.size, hash);
    memcpy(words, hash, 2 * sizeof *words);
}

enum redis_secret_told redis_secret_tell(struct redis_secret *secret, struct weir_bytes text,
                                         uint64_t now_ns)
{
    bool first = secret->known == 0;

    if (text.size < REDIS_SECRET_TEXT_MIN || text.size > REDIS_SECRET_TEXT_MAX)
        return REDIS_SECRET_NONE;
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

const uint64_t *redis_secret_at(const struct redis_secret *secret, unsigned i, uint64_t now_ns)
{
    if (i >= secret->known)
        return NULL;
    if (secret->known > 1 && now_ns < secret->adopted_at_ns)
        i = 1 - i; /* the other one still signs */
    return secret->words[i];
}
