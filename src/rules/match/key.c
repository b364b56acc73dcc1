/* SPDX-License-Identifier: Apache-2.0 */
/* see key.h */
#include "rules/match/key.h"

#include <string.h>

#include "core/hex.h"
#include "core/siphash.h"
#include "rules/identity/keys.h"

enum { TEXT = 1, LONG, ADDRESS, MISSING, INSTEAD = 0x10 };

#define TEXT_MAX 128
#define KEY_TEXT_MAX 256 /* 32 checks of it are half the scratch; paths have most of the rest */
#define PIECE_MAX (1 + 2 + TEXT_MAX)
#define TUPLE_MAX (RULES_PREFIX_MAX + RULES_KEY_MAX * PIECE_MAX)
#define SECRET_SHOWN 8 /* bytes of a SHA-256 in texts; twice that where nodes share a store */

/* Both grow at their end. The tuple always has room; the text stops at its end, and is cut. */
struct writer {
    uint8_t *tuple_end;
    char *text_end, *text_limit;
    uint16_t begins[RULES_KEY_MAX + 1]; /* where the piece of each attribute begins in the tuple */
    uint8_t tuple[TUPLE_MAX];
};

static void text_put(struct writer *writer, const char *text, size_t size)
{
    size_t room = (size_t)(writer->text_limit - writer->text_end);
    size_t fits = size < room ? size : room;
    memcpy(writer->text_end, text, fits);
    writer->text_end += fits;
}

/* "user=": padded to RULES_LABEL_STEP in memory, so that most cost one copy of a fixed size. */
static void text_put_label(struct writer *writer, const struct rules_key_part *part)
{
    bool fits = part->label_size <= RULES_LABEL_STEP &&
                writer->text_limit - writer->text_end >= RULES_LABEL_STEP;
    if (fits) {
        memcpy(writer->text_end, part->label, RULES_LABEL_STEP);
        writer->text_end += part->label_size;
    } else {
        text_put(writer, part->label, part->label_size);
    }
}

/* Graphic ASCII but % and the comma between attributes: one bit a byte. */
static bool shown_plainly(unsigned char byte)
{
    static const uint64_t plain[4] = {UINT64_C(0xFFFFEFDE00000000), UINT64_C(0x7FFFFFFFFFFFFFFF)};
    return (plain[byte / 64] >> byte % 64 & 1) != 0;
}

static void text_put_encoded(struct writer *writer, unsigned char byte)
{
    char encoded[3] = {'%', weir_hex_digit(byte >> 4), weir_hex_digit(byte)};
    text_put(writer, encoded, 3);
}

static bool begins(struct weir_bytes value, const char *with, size_t size)
{
    return value.size >= size && memcmp(value.data, with, size) == 0;
}

/* A value, so that it cannot be read as a missing one, an address, a secret, or two attributes. */
static void text_put_value(struct writer *writer, struct weir_bytes value)
{
    const char *at = value.data, *end = value.data + value.size;
    if (begins(value, "ip:", 3) || begins(value, "sha256:", 7) || begins(value, "-", 1))
        text_put_encoded(writer, (unsigned char)*at++);
    while (at < end && writer->text_end < writer->text_limit) {
        char *out = writer->text_end;
        while (at < end && out < writer->text_limit && shown_plainly((unsigned char)*at))
            *out++ = *at++;
        writer->text_end = out;
        if (at < end && out < writer->text_limit)
            text_put_encoded(writer, (unsigned char)*at++);
    }
}

size_t rules_secret_text(struct weir_bytes value, bool shared, char *text)
{
    uint8_t digest[WEIR_DIGEST_BYTES];
    size_t shown = shared ? 2 * SECRET_SHOWN : SECRET_SHOWN;
    rules_sha256(value, digest);
    memcpy(text, "sha256:", 7);
    (void)weir_hex_write(text + 7, digest, shown);
    return 7 + 2 * shown;
}

_Static_assert(RULES_SECRET_TEXT == 7 + 2 * SECRET_SHOWN, "a secret's text has its size");
_Static_assert(RULES_SECRET_TEXT_SHARED == 7 + 4 * SECRET_SHOWN, "a secret's text has its size");

static void text_put_address(struct writer *writer, const struct weir_address *address,
                             uint8_t bits)
{
    char text[WEIR_ADDRESS_TEXT_MAX];
    size_t size = weir_address_format(address, text);
    text_put(writer, text, size);
    if (bits < (address->family == 6 ? 128 : 32)) {
        char length[4] = {'/'};
        size_t used = 1;
        if (bits >= 100)
            length[used++] = '1';
        if (bits >= 10)
            length[used++] = (char)('0' + bits / 10 % 10);
        length[used++] = (char)('0' + bits % 10);
        text_put(writer, length, used);
    }
}

static void tuple_put_text(struct writer *writer, const struct rules_evaluation *evaluation,
                           uint8_t instead, struct weir_bytes value)
{
    uint8_t *out = writer->tuple_end;
    if (value.size <= TEXT_MAX) {
        *out++ = (uint8_t)(TEXT | instead);
        *out++ = (uint8_t)value.size;
        *out++ = 0;
        memcpy(out, value.data, value.size);
        writer->tuple_end = out + value.size;
        return;
    }
    uint32_t size = (uint32_t)value.size;
    *out++ = (uint8_t)(LONG | instead);
    memcpy(out, &size, sizeof(size));
    out += sizeof(size);
    if (evaluation->rules->shared) {
        rules_sha256(value, out);
        writer->tuple_end = out + WEIR_DIGEST_BYTES;
        return;
    }
    uint64_t hash[2];
    weir_siphash128(evaluation->secret, value.data, value.size, hash);
    memcpy(out, hash, sizeof(hash));
    writer->tuple_end = out + sizeof(hash);
}

static void tuple_put_address(struct writer *writer, uint8_t instead,
                              const struct weir_address *address, uint8_t bits)
{
    uint8_t *out = writer->tuple_end;
    out[0] = (uint8_t)(ADDRESS | instead);
    out[1] = address->family;
    out[2] = bits;
    memcpy(out + 3, address->bytes, 16);
    writer->tuple_end = out + (address->family == 6 ? 3 + 16 : 3 + 4);
}

/* The client's address, or its prefix: an address kept whole is written out once a request. */
static void put_client(struct rules_evaluation *evaluation, const struct rules_key_part *part,
                       uint8_t instead, struct writer *writer)
{
    const struct weir_address *client = &evaluation->request->client;
    bool v6 = client->family == 6;
    uint8_t bits = v6 ? part->bits6 : part->bits4;
    if (bits == (v6 ? 128 : 32)) {
        tuple_put_address(writer, instead, client, bits);
        if (evaluation->client_text_size == 0) {
            evaluation->client_text_size =
                (uint8_t)weir_address_format(client, evaluation->client_text);
        }
        text_put(writer, evaluation->client_text, evaluation->client_text_size);
        return;
    }
    struct weir_address address = *client;
    weir_address_mask(&address, bits);
    tuple_put_address(writer, instead, &address, bits);
    text_put_address(writer, &address, bits);
}

/* One attribute, or what stands for it. Returns false when it is missing. */
static bool put_part(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                     const struct rules_key_part *part, struct writer *writer)
{
    struct weir_bytes value = {NULL, 0};
    uint8_t instead = 0;
    bool there = rules_key_present(evaluation, rule, part, &value);
    if (!there && rule->missing == RULES_INSTEAD) {
        part = &rule->instead;
        instead = INSTEAD;
        there = rules_key_present(evaluation, rule, part, &value);
    }
    text_put_label(writer, part);
    if (!there) {
        *writer->tuple_end++ = MISSING;
        text_put(writer, "-", 1);
        return false;
    }
    if (part->source == RULES_FROM_ADDRESS) {
        put_client(evaluation, part, instead, writer);
    } else if (part->source == RULES_FROM_ATTRIBUTE && part->attribute == WEIR_ATTR_USER &&
               evaluation->user_is_address) {
        tuple_put_address(writer, instead, &evaluation->user_address, evaluation->user_bits);
        text_put(writer, "ip:", 3);
        text_put_address(writer, &evaluation->user_address, evaluation->user_bits);
    } else {
        tuple_put_text(writer, evaluation, instead, value);
        if (part->secret) {
            char text[RULES_SECRET_TEXT_SHARED];
            size_t size = rules_secret_text(value, evaluation->rules->shared, text);
            text_put(writer, text, size);
        } else {
            text_put_value(writer, value);
        }
    }
    return true;
}

static size_t tuple_size(const struct writer *writer)
{
    return (size_t)(writer->tuple_end - writer->tuple);
}

static void cut_text(const struct rules_evaluation *evaluation, struct writer *writer,
                     const uint64_t hash[2])
{
    char *end = writer->text_limit - 33;
    *end++ = '~';
    if (evaluation->rules->shared) {
        uint8_t digest[WEIR_DIGEST_BYTES];
        rules_sha256((struct weir_bytes){(const char *)writer->tuple, tuple_size(writer)}, digest);
        (void)weir_hex_write(end, digest, 16);
        return;
    }
    for (unsigned i = 0; i < 32; i++)
        *end++ = weir_hex_digit(hash[i / 16] >> (4 * (i % 16)));
}

static uint64_t make_tag(const struct rules_rule *rule, const struct writer *writer)
{
    static const uint64_t known[2] = {0, 0};
    uint8_t pieces[TUPLE_MAX], *end = pieces;
    uint64_t hash[2];
    for (uint8_t i = 0; i < rule->tag_count; i++) {
        uint16_t from = writer->begins[rule->tag[i]], to = writer->begins[rule->tag[i] + 1];
        memcpy(end, writer->tuple + from, to - from);
        end += to - from;
    }
    weir_siphash128(known, pieces, (size_t)(end - pieces), hash);
    return hash[0] != 0 ? hash[0] : 1; /* 0 says that there is none */
}

int rules_key_build(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                    struct weir_check *check)
{
    struct weir_scratch *scratch = evaluation->scratch;
    struct writer writer;
    if (sizeof(scratch->bytes) - scratch->used < KEY_TEXT_MAX)
        return WEIR_ERR_TOO_LARGE;
    char *text = scratch->bytes + scratch->used;
    /* Taken before it is written: who the caller is may be found only now, and is kept behind. */
    uint32_t taken = scratch->used += KEY_TEXT_MAX;
    writer.text_end = text;
    writer.text_limit = text + KEY_TEXT_MAX;
    if (rule->prefix_size <= RULES_PREFIX_STEP)
        memcpy(writer.tuple, rule->prefix, RULES_PREFIX_STEP);
    else
        memcpy(writer.tuple, rule->prefix, RULES_PREFIX_MAX);
    writer.tuple_end = writer.tuple + rule->prefix_size;
    for (uint32_t i = 0; i < rule->key_count; i++) {
        if (i > 0)
            text_put(&writer, ",", 1);
        writer.begins[i] = (uint16_t)tuple_size(&writer);
        bool there = put_part(evaluation, rule, &rule->key[i], &writer);
        if (!there && rule->missing == RULES_DENY)
            check->flags |= WEIR_CHECK_ALWAYS_DENY;
    }
    writer.begins[rule->key_count] = (uint16_t)tuple_size(&writer);
    weir_siphash128(evaluation->secret, writer.tuple, tuple_size(&writer), check->hash);
    check->tag = rule->tag_count > 0 ? make_tag(rule, &writer) : 0;
    if (writer.text_end == writer.text_limit)
        cut_text(evaluation, &writer, check->hash);
    check->key = (struct weir_bytes){text, (size_t)(writer.text_end - text)};
    if (scratch->used == taken)
        scratch->used -= KEY_TEXT_MAX - (uint32_t)check->key.size;
    return 0;
}
