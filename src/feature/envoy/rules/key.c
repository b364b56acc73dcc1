/* SPDX-License-Identifier: Apache-2.0 */
/* see key.h */
#include "feature/envoy/rules/key.h"

#include <stdio.h>
#include <string.h>

#include "core/text/hex.h"
#include "core/text/siphash.h"
#include "feature/envoy/rules/compiled.h"
#include "feature/identity/rules/keys.h"
#include "rules/match/key_writer.h"

/* Tuples are gathered here; a full buffer is replaced by its own hash. Most fit. */
#define TUPLE_MAX 1024

struct tuple {
    const uint64_t *secret;
    size_t used;
    uint8_t bytes[TUPLE_MAX];
};

static void tuple_put(struct tuple *tuple, const void *data, size_t size)
{
    const uint8_t *at = data;
    while (size > 0) {
        size_t room = sizeof(tuple->bytes) - tuple->used;
        size_t fits = size < room ? size : room;
        memcpy(tuple->bytes + tuple->used, at, fits);
        tuple->used += fits;
        at += fits;
        size -= fits;
        if (tuple->used == sizeof(tuple->bytes)) {
            uint64_t hash[2];
            weir_siphash128(tuple->secret, tuple->bytes, sizeof(tuple->bytes), hash);
            memcpy(tuple->bytes, hash, sizeof(hash));
            tuple->used = sizeof(hash);
        }
    }
}

static void tuple_put_text(struct tuple *tuple, struct weir_bytes text)
{
    uint32_t size = (uint32_t)text.size;
    tuple_put(tuple, &size, sizeof(size));
    tuple_put(tuple, text.data, text.size);
}

static struct weir_bytes prefix_of(const struct weir_envoy_item *item,
                                   const struct weir_envoy_part *part, char *room)
{
    if (item->rule)
        return item->rule->limits[part->index].prefix;
    return (struct weir_bytes){room, envoy_prefix_write(room, &part->limit->spec, 0)};
}

/* What stands for the value of an entry, and whether it is a pattern. */
static struct weir_bytes value_of(const struct weir_envoy_item *item,
                                  const struct weir_envoy_descriptor *of, uint32_t entry,
                                  bool *pattern)
{
    *pattern = item->patterns && item->patterns[entry].data;
    return *pattern ? item->patterns[entry] : of->entries[entry].value;
}

/* A text that is too long: its end becomes the SHA-256 of a tuple that says all of it. Rare. */
static size_t cut_text(char *out, struct weir_bytes prefix, struct weir_bytes domain,
                       const struct weir_envoy_item *item, const struct weir_envoy_descriptor *of)
{
    uint8_t digest[2 * WEIR_DIGEST_BYTES], piece[3 * WEIR_DIGEST_BYTES + 1];
    rules_sha256(prefix, digest);
    rules_sha256(domain, digest + WEIR_DIGEST_BYTES);
    rules_sha256((struct weir_bytes){(const char *)digest, sizeof(digest)}, digest);
    for (uint32_t i = 0; i < of->entry_count; i++) {
        bool pattern;
        struct weir_bytes value = value_of(item, of, i, &pattern);
        memcpy(piece, digest, WEIR_DIGEST_BYTES);
        rules_sha256(of->entries[i].key, piece + WEIR_DIGEST_BYTES);
        rules_sha256(value, piece + 2 * (size_t)WEIR_DIGEST_BYTES);
        piece[sizeof(piece) - 1] = pattern;
        rules_sha256((struct weir_bytes){(const char *)piece, sizeof(piece)}, digest);
    }
    char *end = out + ENVOY_KEY_TEXT_MAX - 33;
    *end++ = '~';
    (void)weir_hex_write(end, digest, 16);
    return ENVOY_KEY_TEXT_MAX;
}

size_t envoy_counter_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request,
                          const struct weir_envoy_descriptor *of)
{
    const char *prefix = envoy->options.redis_prefix;
    size_t size = (prefix ? strlen(prefix) : 0) + request->domain.size + 1 + 20;
    for (uint32_t i = 0; i < of->entry_count; i++) {
        struct weir_bytes key = of->entries[i].key, value = of->entries[i].value;
        size +=
            key.size + 2 + (value.size > envoy->longest_stat ? value.size : envoy->longest_stat);
    }
    return size;
}

static char *put_bytes(char *out, struct weir_bytes bytes, char behind)
{
    if (bytes.size > 0)
        memcpy(out, bytes.data, bytes.size);
    out[bytes.size] = behind;
    return out + bytes.size + 1;
}

/* prefix domain _ key _ value _ … begin, as src/limiter/cache_key.go of the original writes it. */
void envoy_counter_key(struct weir_envoy_plan *plan, const struct weir_envoy_part *part,
                       uint64_t now_s, struct weir_check *check)
{
    const struct weir_envoy_item *item = &plan->items[part->item];
    const struct weir_envoy_descriptor *of = &plan->request->descriptors[part->item];
    const char *prefix = plan->envoy->options.redis_prefix;
    size_t prefix_size = prefix ? strlen(prefix) : 0;
    uint64_t unit_s = part->limit->spec.window_ns / 1000000000;
    char *start = envoy_plan_alloc(plan, envoy_counter_size(plan->envoy, plan->request, of));
    memcpy(start, prefix ? prefix : "", prefix_size);
    char *out = put_bytes(start + prefix_size, plan->request->domain, '_');
    for (uint32_t i = 0; i < of->entry_count; i++) {
        bool pattern;
        out = put_bytes(out, of->entries[i].key, '_');
        out = put_bytes(out, value_of(item, of, i, &pattern), '_');
    }
    char digits[24];
    int size = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)now_s - now_s % unit_s);
    memcpy(out, digits, (size_t)size);
    check->key = (struct weir_bytes){start, (size_t)(out - start) + (size_t)size};
}

static void hash_key(const struct weir_envoy_item *item, const struct weir_envoy_descriptor *of,
                     struct weir_bytes prefix, struct weir_bytes domain, const uint64_t secret[2],
                     uint64_t hash[2])
{
    struct tuple tuple; /* not cleared: only what is used is read */
    uint8_t head[2] = {0, (uint8_t)prefix.size};
    tuple.secret = secret;
    tuple.used = 0;
    tuple_put(&tuple, head, sizeof(head));
    tuple_put(&tuple, prefix.data, prefix.size);
    tuple_put_text(&tuple, domain);
    for (uint32_t i = 0; i < of->entry_count; i++) {
        bool pattern;
        struct weir_bytes value = value_of(item, of, i, &pattern);
        tuple_put_text(&tuple, of->entries[i].key);
        tuple_put(&tuple, pattern ? "P" : "V", 1);
        tuple_put_text(&tuple, value);
    }
    weir_siphash128(secret, tuple.bytes, tuple.used, hash);
}

static size_t write_text(const struct weir_envoy_item *item, const struct weir_envoy_descriptor *of,
                         struct weir_bytes prefix, struct weir_bytes domain, char *out)
{
    struct rules_key_writer writer = {out, out + ENVOY_KEY_TEXT_MAX, false};
    rules_key_put(&writer, prefix.data, prefix.size);
    rules_key_put(&writer, ":", 1);
    rules_key_put_encoded(&writer, domain, RULES_KEY_OF_ENVOY);
    for (uint32_t i = 0; i < of->entry_count; i++) {
        bool pattern;
        struct weir_bytes value = value_of(item, of, i, &pattern);
        rules_key_put(&writer, i == 0 ? "|" : ",", 1);
        rules_key_put_encoded(&writer, of->entries[i].key, RULES_KEY_OF_ENVOY);
        rules_key_put(&writer, pattern ? "=~" : "=", pattern ? 2 : 1);
        rules_key_put_encoded(&writer, value, RULES_KEY_OF_ENVOY);
    }
    return writer.full ? cut_text(out, prefix, domain, item, of) : (size_t)(writer.end - out);
}

void envoy_key(struct weir_envoy_plan *plan, const struct weir_envoy_part *part,
               const uint64_t secret[2], struct weir_check *check)
{
    const struct weir_envoy_item *item = &plan->items[part->item];
    const struct weir_envoy_descriptor *of = &plan->request->descriptors[part->item];
    struct weir_bytes domain = plan->request->domain;
    char room[ENVOY_PREFIX_MAX];
    struct weir_bytes prefix = prefix_of(item, part, room);
    hash_key(item, of, prefix, domain, secret, check->hash);
    check->key = (struct weir_bytes){"", 0};
    if (plan->envoy->options.shared && (part->flags & WEIR_CHECK_COUNTER) == 0) {
        char *text = envoy_plan_alloc(plan, ENVOY_KEY_TEXT_MAX);
        check->key = (struct weir_bytes){text, write_text(item, of, prefix, domain, text)};
    }
}
