/* SPDX-License-Identifier: Apache-2.0 */
/* see keys.h */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "feature/challenge/keys.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 64 /* of SHA-256 */
#define IPV6_BITS 64

static void key_init(struct weir_challenge_key *key, const char *secret, size_t size)
{
    static const char domain[] = "weir challenge key id";
    unsigned char pad[BLOCK] = {0}, digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, domain, sizeof domain);
    SHA256_Update(&context, secret, size);
    SHA256_Final(digest, &context);
    memcpy(key->id, digest, sizeof key->id);
    if (size > BLOCK)
        SHA256((const unsigned char *)secret, size, pad);
    else
        memcpy(pad, secret, size);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36;
    SHA256_Init(&key->inner);
    SHA256_Update(&key->inner, pad, BLOCK);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    SHA256_Init(&key->outer);
    SHA256_Update(&key->outer, pad, BLOCK);
    OPENSSL_cleanse(pad, sizeof pad);
    OPENSSL_cleanse(&context, sizeof context);
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static int refuse(struct weir_reason *reason, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return WEIR_ERR_SYNTAX;
}

/* One line without white space around it, not empty and no comment. */
static int add_line(struct weir_challenge_keys *keys, const char *secret, size_t size,
                    struct weir_reason *reason)
{
    if (size < WEIR_CHALLENGE_SECRET_MIN || size > WEIR_CHALLENGE_SECRET_MAX) {
        snprintf(reason->text, sizeof reason->text,
                 "the key has %zu bytes; use %d to %d, such as the output of `openssl rand -hex "
                 "32`",
                 size, WEIR_CHALLENGE_SECRET_MIN, WEIR_CHALLENGE_SECRET_MAX);
        return WEIR_ERR_SYNTAX;
    }
    if (keys->count == WEIR_CHALLENGE_KEYS_MAX)
        return refuse(reason, "more than 8 keys; remove those that no longer sign");
    struct weir_challenge_key *key = &keys->keys[keys->count];
    key_init(key, secret, size);
    if (weir_challenge_key_find(keys, key->id))
        return refuse(reason, "the key is there twice");
    keys->count++;
    return 0;
}

int weir_challenge_keys_read(struct weir_challenge_keys *keys, struct weir_bytes text,
                             uint32_t *line, struct weir_reason *reason)
{
    size_t at = 0;
    keys->count = 0;
    for (*line = 1; at < text.size; ++*line) {
        const char *begin = text.data + at;
        const char *stop = memchr(begin, '\n', text.size - at);
        size_t size = stop ? (size_t)(stop - begin) : text.size - at;
        at += size + (stop != NULL);
        while (size > 0 && is_space(begin[size - 1]))
            size--;
        while (size > 0 && is_space(*begin)) {
            begin++;
            size--;
        }
        if (size == 0 || *begin == '#')
            continue;
        int err = add_line(keys, begin, size, reason);
        if (err < 0)
            return err;
    }
    *line = 0;
    return keys->count > 0 ? 0 : refuse(reason, "there is no key in it");
}

const struct weir_challenge_key *weir_challenge_key_find(const struct weir_challenge_keys *keys,
                                                         const unsigned char *id)
{
    for (uint32_t i = 0; i < keys->count; i++)
        if (!memcmp(keys->keys[i].id, id, WEIR_CHALLENGE_KEY_ID))
            return &keys->keys[i];
    return NULL;
}

void weir_challenge_sign(const struct weir_challenge_key *key, enum weir_challenge_kind kind,
                         const struct weir_address *client, const unsigned char *bytes, size_t size,
                         unsigned char mac[WEIR_CHALLENGE_MAC])
{
    struct weir_address network = *client;
    SHA256_CTX context = key->inner;
    unsigned char head[2 + sizeof network.bytes];
    if (network.family == 6)
        weir_address_mask(&network, IPV6_BITS);
    head[0] = (unsigned char)kind;
    head[1] = network.family;
    memcpy(head + 2, network.bytes, sizeof network.bytes);
    SHA256_Update(&context, head, sizeof head);
    SHA256_Update(&context, bytes, size);
    SHA256_Final(mac, &context);
    context = key->outer;
    SHA256_Update(&context, mac, WEIR_CHALLENGE_MAC);
    SHA256_Final(mac, &context);
}

bool weir_challenge_verify(const struct weir_challenge_key *key, enum weir_challenge_kind kind,
                           const struct weir_address *client, const unsigned char *bytes,
                           size_t size, const unsigned char *mac)
{
    unsigned char right[WEIR_CHALLENGE_MAC];
    weir_challenge_sign(key, kind, client, bytes, size, right);
    return CRYPTO_memcmp(right, mac, sizeof right) == 0;
}
