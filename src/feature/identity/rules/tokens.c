/* SPDX-License-Identifier: Apache-2.0 */
/* see tokens.h
 *
 *   tags   8 for each set, 32 bytes: what a miss looks at
 *   good   digest, fingerprint, times | for each claim: size (2 bytes, NO_TEXT: absent), text
 */
#include "feature/identity/rules/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "feature/identity/rules/jwt.h"
#include "feature/identity/rules/keys.h"
#include "rules/counter.h"

#define WAYS 8
#define SETS (WEIR_TOKENS_MAX / WAYS)
#define TEXTS 448
#define NO_TEXT UINT16_MAX
/* What is wrong with a token stays wrong, but lack of memory fails good ones too. */
#define BAD_NS (60 * UINT64_C(1000000000))

struct good {
    uint8_t digest[WEIR_DIGEST_BYTES];
    uint64_t fingerprint;
    uint64_t from_ns, until_ns, used_ns;
    uint8_t texts[TEXTS];
};

struct bad {
    uint8_t digest[WEIR_DIGEST_BYTES];
    uint64_t fingerprint;
    uint64_t until_ns; /* 0: free; whether it is still so is not known from then on */
    uint8_t result;
};

_Static_assert(sizeof(struct good) == 512, "good entries have the size that tokens.h says");
_Static_assert(sizeof(struct bad) == 56, "bad entries have the size that tokens.h says");

struct weir_tokens {
    struct weir_token_counters *counters;
    uint32_t tags[SETS][WAYS]; /* 0: free */
    struct good good[SETS][WAYS];
    struct bad bad[WEIR_TOKENS_MAX];
};

const char *const weir_token_names[WEIR_TOKEN_RESULTS] = {
    "valid", "malformed", "key", "issuer", "audience", "expired", "signature", "cached",
};

int weir_tokens_open(struct weir_tokens **tokens, struct weir_token_counters *counters)
{
    *tokens = calloc(1, sizeof(**tokens));
    if (!*tokens)
        return WEIR_ERR_MEMORY;
    (*tokens)->counters = counters;
    return 0;
}

void weir_tokens_close(struct weir_tokens *tokens)
{
    free(tokens);
}

/* Where a digest belongs, and what tells it from others there. */
struct place {
    uint32_t set, bad, tag;
};

static struct place place_of(const uint8_t digest[WEIR_DIGEST_BYTES])
{
    uint32_t words[2];
    memcpy(words, digest, sizeof(words));
    return (struct place){words[0] % SETS, words[0] % WEIR_TOKENS_MAX, words[1] | 1};
}

static bool is_of(const uint8_t *own, uint64_t fingerprint, const uint8_t *digest,
                  const struct rules_jwt *jwt)
{
    return fingerprint == jwt->fingerprint && memcmp(own, digest, WEIR_DIGEST_BYTES) == 0;
}

/* --- Good ones -------------------------------------------------------------------------------- */

static struct good *find_good(struct weir_tokens *tokens, const struct place *place,
                              const uint8_t *digest, const struct rules_jwt *jwt)
{
    for (uint32_t i = 0; i < WAYS; i++) {
        struct good *entry = &tokens->good[place->set][i];
        if (tokens->tags[place->set][i] == place->tag &&
            is_of(entry->digest, entry->fingerprint, digest, jwt))
            return entry;
    }
    return NULL;
}

static void read_good(const struct good *entry, const struct rules_jwt *jwt,
                      struct rules_claims *claims)
{
    const uint8_t *at = entry->texts;
    claims->from_ns = entry->from_ns;
    claims->until_ns = entry->until_ns;
    for (uint8_t i = 0; i < jwt->claim_count; i++) {
        uint16_t size;
        memcpy(&size, at, sizeof(size));
        at += sizeof(size);
        claims->values[i] = (struct weir_bytes){NULL, 0};
        if (size != NO_TEXT) {
            claims->values[i] = (struct weir_bytes){(const char *)at, size};
            at += size;
        }
    }
}

/* Free, else expired, else longest unused. */
static uint32_t choose_way(const struct weir_tokens *tokens, uint32_t set, uint64_t now_ns)
{
    uint32_t way = 0;
    uint64_t oldest_ns = UINT64_MAX;
    for (uint32_t i = 0; i < WAYS; i++) {
        const struct good *entry = &tokens->good[set][i];
        if (tokens->tags[set][i] == 0 || entry->until_ns <= now_ns)
            return i;
        if (entry->used_ns < oldest_ns) {
            oldest_ns = entry->used_ns;
            way = i;
        }
    }
    return way;
}

static void keep_good(struct weir_tokens *tokens, const struct place *place, const uint8_t *digest,
                      const struct rules_jwt *jwt, const struct rules_claims *claims,
                      uint64_t now_ns)
{
    if (claims->used + jwt->claim_count * sizeof(uint16_t) > TEXTS)
        return;
    uint32_t way = choose_way(tokens, place->set, now_ns);
    struct good *entry = &tokens->good[place->set][way];
    tokens->tags[place->set][way] = place->tag;
    memcpy(entry->digest, digest, WEIR_DIGEST_BYTES);
    entry->fingerprint = jwt->fingerprint;
    entry->from_ns = claims->from_ns;
    entry->until_ns = claims->until_ns;
    entry->used_ns = now_ns;
    uint8_t *at = entry->texts;
    for (uint8_t i = 0; i < jwt->claim_count; i++) {
        const struct weir_bytes *value = &claims->values[i];
        uint16_t size = value->data ? (uint16_t)value->size : NO_TEXT;
        memcpy(at, &size, sizeof(size));
        at += sizeof(size);
        if (value->data) {
            memcpy(at, value->data, value->size);
            at += value->size;
        }
    }
}

/* --- Bad ones --------------------------------------------------------------------------------- */

static void keep_bad(struct weir_tokens *tokens, const struct place *place, const uint8_t *digest,
                     const struct rules_jwt *jwt, const struct rules_claims *claims,
                     enum weir_token result, uint64_t now_ns)
{
    struct bad *entry = &tokens->bad[place->bad];
    bool early = result == WEIR_TOKEN_EXPIRED && now_ns < claims->from_ns;
    memcpy(entry->digest, digest, WEIR_DIGEST_BYTES);
    entry->fingerprint = jwt->fingerprint;
    entry->until_ns = now_ns + BAD_NS;
    if (early && claims->from_ns < entry->until_ns)
        entry->until_ns = claims->from_ns;
    entry->result = (uint8_t)result;
}

/* --- The whole -------------------------------------------------------------------------------- */

static enum weir_token verify(struct weir_tokens *tokens, const struct rules_jwt *jwt,
                              struct weir_bytes token, uint64_t now_ns, struct rules_claims *claims)
{
    uint8_t digest[WEIR_DIGEST_BYTES];
    if (token.size > RULES_TOKEN_MAX)
        return WEIR_TOKEN_MALFORMED; /* which is cheaper to say than to remember */
    rules_sha256(token, digest);
    struct place place = place_of(digest);
    struct good *good = find_good(tokens, &place, digest, jwt);
    if (good) {
        good->used_ns = now_ns;
        read_good(good, jwt, claims);
        return now_ns >= good->from_ns && now_ns < good->until_ns ? WEIR_TOKEN_CACHED
                                                                  : WEIR_TOKEN_EXPIRED;
    }
    const struct bad *bad = &tokens->bad[place.bad];
    if (now_ns < bad->until_ns && is_of(bad->digest, bad->fingerprint, digest, jwt))
        return (enum weir_token)bad->result;
    enum weir_token result = rules_jwt_verify(jwt, token, now_ns, claims);
    if (result == WEIR_TOKEN_VALID)
        keep_good(tokens, &place, digest, jwt, claims, now_ns);
    else
        keep_bad(tokens, &place, digest, jwt, claims, result, now_ns);
    return result;
}

enum weir_token rules_tokens_verify(struct weir_tokens *tokens, const struct rules_jwt *jwt,
                                    struct weir_bytes token, uint64_t now_ns,
                                    struct rules_claims *claims)
{
    if (!tokens)
        return rules_jwt_verify(jwt, token, now_ns, claims);
    enum weir_token result = verify(tokens, jwt, token, now_ns, claims);
    weir_count(&tokens->counters->results[result], 1);
    return result;
}
