/* SPDX-License-Identifier: Apache-2.0 */
/* see key.h */
#include "rules/match/key.h"

#include <string.h>

#include "core/text/hex.h"
#include "core/text/shown.h"
#include "core/text/siphash.h"
#include "feature/identity/rules/keys.h"
#include "feature/standing/standing.h"
#include "rules/match/key_writer.h"
#include "rules/match/made.h"

enum {
    TEXT = RULES_PIECE_TEXT,
    LONG = RULES_PIECE_LONG,
    ADDRESS = RULES_PIECE_ADDRESS,
    MISSING = RULES_PIECE_MISSING,
    HASHED = RULES_PIECE_HASHED,
    INSTEAD = RULES_PIECE_INSTEAD
};

#define TEXT_MAX 128
#define PIECE_MAX (1 + 2 + TEXT_MAX)
#define TUPLE_MAX (RULES_PREFIX_MAX + RULES_KEY_MAX * PIECE_MAX)
#define SECRET_SHOWN 8 /* bytes of a SHA-256 in texts; twice that where nodes share a store */

/* --- The tuple -------------------------------------------------------------------------------- */

/* Grows at its end, and always has room. */
struct tuple {
    uint8_t *bytes, *end;               /* bytes: TUPLE_MAX in scratch, or `room` */
    bool has_long;                      /* a hash is in the place of a value */
    uint16_t begins[RULES_KEY_MAX + 1]; /* where the piece of each attribute begins */
    uint8_t room[TUPLE_MAX];
};

/* Copies 1 to 16 bytes; longer values are worth a call. */
static inline void copy_short(uint8_t *out, const char *from, size_t size)
{
    if (size >= 8) {
        memcpy(out, from, 8);
        memcpy(out + size - 8, from + size - 8, 8);
    } else if (size >= 4) {
        memcpy(out, from, 4);
        memcpy(out + size - 4, from + size - 4, 4);
    } else {
        for (size_t i = 0; i < size; i++)
            out[i] = (uint8_t)from[i];
    }
}

static void tuple_put_value(struct tuple *tuple, const struct rules_evaluation *evaluation,
                            uint8_t instead, struct weir_bytes value)
{
    uint8_t *out = tuple->end;
    if (value.size <= TEXT_MAX) {
        *out++ = (uint8_t)(TEXT | instead);
        *out++ = (uint8_t)value.size;
        *out++ = 0;
        if (value.size <= 16)
            copy_short(out, value.data, value.size);
        else
            memcpy(out, value.data, value.size);
        tuple->end = out + value.size;
        return;
    }
    uint32_t size = (uint32_t)value.size;
    tuple->has_long = true;
    *out++ = (uint8_t)(LONG | instead);
    memcpy(out, &size, sizeof(size));
    out += sizeof(size);
    if (evaluation->rules->shared) {
        rules_sha256(value, out);
        tuple->end = out + WEIR_DIGEST_BYTES;
        return;
    }
    uint64_t hash[2];
    weir_siphash128(evaluation->secret, value.data, value.size, hash);
    memcpy(out, hash, sizeof(hash));
    tuple->end = out + sizeof(hash);
}

static void tuple_put_address(struct tuple *tuple, uint8_t instead,
                              const struct weir_address *address, uint8_t bits)
{
    uint8_t *out = tuple->end;
    out[0] = (uint8_t)(ADDRESS | instead);
    out[1] = address->family;
    out[2] = bits;
    memcpy(out + 3, address->bytes, 16);
    tuple->end = out + (address->family == 6 ? 3 + 16 : 3 + 4);
}

/* The client's address, or its prefix. */
static void tuple_put_client(struct tuple *tuple, const struct rules_evaluation *evaluation,
                             const struct rules_key_part *part, uint8_t instead)
{
    const struct weir_address *client = evaluation->client;
    bool v6 = client->family == 6;
    uint8_t bits = v6 ? part->bits6 : part->bits4;
    if (bits == (v6 ? 128 : 32)) {
        tuple_put_address(tuple, instead, client, bits);
        return;
    }
    struct weir_address address = *client;
    weir_address_mask(&address, bits);
    tuple_put_address(tuple, instead, &address, bits);
}

/* One attribute, or its substitute. Returns false when it is missing. */
static inline bool tuple_put_part(struct tuple *tuple, struct rules_evaluation *evaluation,
                                  const struct rules_rule *rule, const struct rules_key_part *part)
{
    struct weir_bytes value = {NULL, 0};
    uint8_t instead = 0;
    bool there;
    if (part->source == RULES_FROM_ATTRIBUTE) {
        value = rules_value(evaluation, part->attribute);
        there = value.data != NULL;
    } else {
        there = rules_key_present(evaluation, rule, part, &value);
    }
    for (uint8_t i = 0; !there && i < rule->instead_count; i++) {
        part = &rule->instead[i];
        instead += INSTEAD;
        there = rules_key_present(evaluation, rule, part, &value);
    }
    if (!there) {
        *tuple->end++ = MISSING;
        return false;
    }
    if (part->source == RULES_FROM_ADDRESS)
        tuple_put_client(tuple, evaluation, part, instead);
    else if (part->source == RULES_FROM_ATTRIBUTE && part->attribute == WEIR_ATTR_USER &&
             evaluation->user_is_address)
        tuple_put_address(tuple, instead, &evaluation->user_address, evaluation->user_bits);
    else
        tuple_put_value(tuple, evaluation, instead, value);
    return true;
}

static size_t tuple_size(const struct tuple *tuple)
{
    return (size_t)(tuple->end - tuple->bytes);
}

static uint64_t make_tag(const struct rules_rule *rule, const struct tuple *tuple)
{
    static const uint64_t known[2] = {0, 0};
    uint8_t pieces[TUPLE_MAX], *end = pieces;
    uint64_t hash[2];
    for (uint8_t i = 0; i < rule->tag_count; i++) {
        uint16_t from = tuple->begins[rule->tag[i]], to = tuple->begins[rule->tag[i] + 1];
        memcpy(end, tuple->bytes + from, to - from);
        end += to - from;
    }
    weir_siphash128(known, pieces, (size_t)(end - pieces), hash);
    return hash[0] != 0 ? hash[0] : 1; /* 0 says that there is none */
}

/* --- The text --------------------------------------------------------------------------------- */

/* What the text of a key is written from. */
struct source {
    const struct weir_rules *rules;
    const struct rules_rule *rule;
    struct rules_evaluation *evaluation; /* of the request; NULL: it is over */
    const uint8_t *at;                   /* the next piece of the tuple */
};

/* "user=": padded to RULES_LABEL_STEP in memory, so that most cost one copy of a fixed size. */
static void put_label(struct rules_key_writer *writer, const struct rules_key_part *part)
{
    bool fits =
        part->label_size <= RULES_LABEL_STEP && writer->limit - writer->end >= RULES_LABEL_STEP;
    if (fits) {
        memcpy(writer->end, part->label, RULES_LABEL_STEP);
        writer->end += part->label_size;
    } else {
        rules_key_put(writer, part->label, part->label_size);
    }
}

static bool begins(struct weir_bytes value, const char *with, size_t size)
{
    return value.size >= size && memcmp(value.data, with, size) == 0;
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

/* A value that is too long for a tuple: its first bytes and its hash. */
static void put_cut(struct rules_key_writer *writer, struct weir_bytes value, const uint8_t *digest)
{
    char digits[1 + 2 * SECRET_SHOWN] = "~";
    if (value.size > WEIR_SHOWN_WHOLE_MAX)
        value.size = WEIR_SHOWN_WHOLE_MAX;
    (void)weir_hex_write(digits + 1, digest, SECRET_SHOWN);
    rules_key_put_encoded(writer, value, RULES_KEY_OF_LONG);
    rules_key_put(writer, digits, sizeof digits);
}

/* A value, so that it cannot be read as a missing one, an address, a secret, or two attributes. */
static void put_value(struct rules_key_writer *writer, const struct source *source,
                      const struct rules_key_part *part, struct weir_bytes value)
{
    if (part->secret) {
        char text[RULES_SECRET_TEXT_SHARED];
        rules_key_put(writer, text, rules_secret_text(value, source->rules->shared, text));
        return;
    }
    if (value.size > TEXT_MAX && !source->rules->shared) {
        uint8_t digest[WEIR_DIGEST_BYTES];
        rules_sha256(value, digest);
        put_cut(writer, value, digest);
        return;
    }
    if (begins(value, "ip:", 3) || begins(value, "sha256:", 7) || begins(value, "-", 1)) {
        rules_key_put_byte(writer, (unsigned char)*value.data++);
        value.size--;
    }
    bool is_long = value.size > WEIR_SHOWN_WHOLE_MAX && !source->rules->shared;
    rules_key_put_encoded(writer, value, is_long ? RULES_KEY_OF_LONG : RULES_KEY_OF_LIMIT);
}

size_t rules_address_text(const struct weir_address *address, uint8_t bits,
                          char text[WEIR_ADDRESS_TEXT_MAX])
{
    size_t size = weir_address_format(address, text);
    if (bits >= (address->family == 6 ? 128 : 32))
        return size;
    text[size++] = '/';
    if (bits >= 100)
        text[size++] = '1';
    if (bits >= 10)
        text[size++] = (char)('0' + bits / 10 % 10);
    text[size++] = (char)('0' + bits % 10);
    text[size] = '\0';
    return size;
}

/* The client's address without a prefix length: written once a request. */
static void put_client(struct rules_key_writer *writer, struct rules_evaluation *evaluation)
{
    if (evaluation->client_text_size == 0) {
        evaluation->client_text_size =
            (uint8_t)weir_address_format(evaluation->client, evaluation->client_text);
    }
    rules_key_put(writer, evaluation->client_text, evaluation->client_text_size);
}

static void put_address(struct rules_key_writer *writer, struct source *source,
                        const struct rules_key_part *part)
{
    struct weir_address address = {.family = source->at[1]};
    uint8_t bits = source->at[2], size = address.family == 6 ? 16 : 4;
    memcpy(address.bytes, source->at + 3, size);
    source->at += 3 + size;
    if (part->source != RULES_FROM_ADDRESS) {
        rules_key_put(writer, "ip:", 3);
    } else if (source->evaluation && bits == 8 * size) {
        put_client(writer, source->evaluation);
        return;
    }
    char text[WEIR_ADDRESS_TEXT_MAX];
    rules_key_put(writer, text, rules_address_text(&address, bits, text));
}

/* A value that the tuple has only a hash of. */
static void put_long(struct rules_key_writer *writer, struct source *source,
                     const struct rules_key_part *part)
{
    struct weir_bytes value = {NULL, 0};
    source->at += 1 + sizeof(uint32_t) + (source->rules->shared ? WEIR_DIGEST_BYTES : 16);
    if (rules_key_present(source->evaluation, source->rule, part, &value))
        put_value(writer, source, part, value);
}

/* A value of which the tuple has the first bytes and the hash. */
static void put_hashed(struct rules_key_writer *writer, struct source *source,
                       const struct rules_key_part *part)
{
    const uint8_t *piece = source->at;
    struct weir_bytes value = {(const char *)piece + RULES_PIECE_HASHED_HEAD, piece[1]};
    char digits[2 * SECRET_SHOWN];
    source->at += RULES_PIECE_HASHED_HEAD + value.size;
    if (!part->secret) {
        put_cut(writer, value, piece + 2);
        return;
    }
    (void)weir_hex_write(digits, piece + 2, SECRET_SHOWN);
    rules_key_put(writer, "sha256:", 7);
    rules_key_put(writer, digits, sizeof digits);
}

/* The next attribute of the key. */
static void put_part(struct rules_key_writer *writer, struct source *source,
                     const struct rules_key_part *part)
{
    uint8_t kind = rules_piece_kind(*source->at);
    part = rules_piece_part(source->rule, part, *source->at);
    put_label(writer, part);
    if (kind == MISSING) {
        source->at++;
        rules_key_put(writer, "-", 1);
    } else if (kind == ADDRESS) {
        put_address(writer, source, part);
    } else if (kind == LONG) {
        put_long(writer, source, part);
    } else if (kind == HASHED) {
        put_hashed(writer, source, part);
    } else {
        struct weir_bytes value = {(const char *)source->at + 3,
                                   source->at[1] | (size_t)source->at[2] << 8};
        source->at += 3 + value.size;
        put_value(writer, source, part, value);
    }
}

static void cut_text(struct rules_key_writer *writer, bool shared, struct weir_bytes tuple,
                     const uint64_t hash[2])
{
    char *end = writer->limit - 33;
    *end++ = '~';
    if (shared) {
        uint8_t digest[WEIR_DIGEST_BYTES];
        rules_sha256(tuple, digest);
        (void)weir_hex_write(end, digest, 16);
        return;
    }
    for (unsigned i = 0; i < 32; i++)
        *end++ = weir_hex_digit(hash[i / 16] >> (4 * (i % 16)));
}

/* Writes the text of a key of this rule from its tuple, whose hash is that of the state.
 * `evaluation` is NULL when the request is over: then no piece may be LONG. Returns the text's
 * size. */
static size_t write_text(const struct weir_rules *rules, const struct rules_rule *rule,
                         struct weir_bytes tuple, const uint64_t hash[2],
                         struct rules_evaluation *evaluation, char room[WEIR_KEY_TEXT_MAX])
{
    struct rules_key_writer writer = {room, room + WEIR_KEY_TEXT_MAX, false};
    struct source source = {rules, rule, evaluation,
                            (const uint8_t *)tuple.data + rule->prefix_size};
    for (uint32_t i = 0; i < rule->key_count; i++) {
        if (i > 0)
            rules_key_put(&writer, ",", 1);
        put_part(&writer, &source, &rule->key[i]);
    }
    if (writer.end == writer.limit)
        cut_text(&writer, rules->shared, tuple, hash);
    return (size_t)(writer.end - room);
}

struct weir_bytes rules_key_text(const struct weir_rules *rules, const struct rules_rule *rule,
                                 const struct weir_check *check, char room[WEIR_KEY_TEXT_MAX])
{
    size_t size = write_text(rules, rule, check->key, check->hash, NULL, room);
    return (struct weir_bytes){room, size};
}

struct weir_bytes weir_rules_key_text(const struct weir_rules *rules,
                                      const struct weir_check *check, char room[WEIR_KEY_TEXT_MAX])
{
    bool written = !check->key_is_tuple || !check->key.data;
    return written ? check->key : rules_key_text(rules, &rules->rules[check->rule], check, room);
}

/* --- Both ------------------------------------------------------------------------------------- */

/* Whether the text can be written later: from the tuple alone, by the rule that the check names. */
static inline bool keeps_tuple(const struct rules_evaluation *evaluation,
                               const struct rules_rule *rule)
{
    return evaluation->query->keep_tuples && rule->keeps_tuple;
}

/* The SHA-256 of a value, and the id that standing knows it by; 0 where there is no standing. */
static void put_hashes(const struct rules_evaluation *evaluation, const struct rules_key_part *part,
                       struct weir_bytes value, uint8_t *out)
{
    const struct weir_standing *map = evaluation->query->map;
    uint64_t id[2] = {0, 0};
    const struct weir_bytes kind = {part->label, (size_t)(part->label_size - 1)};
    rules_sha256(value, out);
    if (map)
        weir_standing_id(map, kind, value, id);
    memcpy(out + WEIR_DIGEST_BYTES, id, sizeof id);
}

/* Writes what is kept of a tuple with LONG pieces. Returns its size; 0: it has no room. */
static __attribute__((noinline)) size_t keep_long(struct rules_evaluation *evaluation,
                                                  const struct rules_rule *rule,
                                                  const struct tuple *tuple, bool whole,
                                                  char room[WEIR_KEY_TEXT_MAX])
{
    uint8_t kept[WEIR_KEY_TEXT_MAX], *out = kept, *end = kept + sizeof kept;
    const uint8_t *at = tuple->bytes;
    for (uint32_t i = 0; i <= rule->key_count; i++) {
        const uint8_t *next = i < rule->key_count ? tuple->bytes + tuple->begins[i] : tuple->end;
        uint8_t kind = i > 0 ? rules_piece_kind(*at) : 0; /* before the first: the limit's name */
        struct weir_bytes value = {(const char *)at, (size_t)(next - at)};
        if (kind == LONG) {
            const struct rules_key_part *part = rules_piece_part(rule, &rule->key[i - 1], *at);
            if (!rules_key_present(evaluation, rule, part, &value))
                return 0;
            size_t shown = value.size < WEIR_SHOWN_WHOLE_MAX ? value.size : WEIR_SHOWN_WHOLE_MAX;
            size_t head = whole ? 3 : RULES_PIECE_HASHED_HEAD;
            if ((size_t)(end - out) < head + (whole ? value.size : shown))
                return 0;
            out[0] = (uint8_t)(*at - kind + (whole ? TEXT : HASHED));
            out[1] = (uint8_t)(whole ? value.size : shown);
            out[2] = 0; /* there is no room for more than 255 bytes */
            if (!whole)
                put_hashes(evaluation, part, value, out + 2);
            value.size = whole ? value.size : shown;
            out += head;
        }
        if ((size_t)(end - out) < value.size)
            return 0;
        memcpy(out, value.data, value.size);
        out += value.size;
        at = next;
    }
    memcpy(room, kept, (size_t)(out - kept));
    return (size_t)(out - kept);
}

/* Keeps what a check knows of its key where the tuple is not kept as it is: one with LONG pieces,
 * or the text. */
static __attribute__((noinline)) void keep_other(struct rules_evaluation *evaluation,
                                                 const struct rules_rule *rule, struct tuple *tuple,
                                                 struct weir_check *check, char *room)
{
    const struct weir_bytes whole = {(const char *)tuple->room, tuple_size(tuple)};
    if (tuple->bytes != tuple->room) { /* it is where the key will be */
        memcpy(tuple->room, tuple->bytes, whole.size);
        tuple->bytes = tuple->room;
        tuple->end = tuple->room + whole.size;
    }
    check->key = (struct weir_bytes){room, 0};
    if (tuple->has_long && keeps_tuple(evaluation, rule)) {
        check->key.size = keep_long(evaluation, rule, tuple, true, room);
        if (check->key.size == 0)
            check->key.size = keep_long(evaluation, rule, tuple, false, room);
    }
    check->key_is_tuple = check->key.size > 0;
    if (!check->key_is_tuple)
        check->key.size = write_text(evaluation->rules, rule, whole, check->hash, evaluation, room);
}

/* Writes all of a tuple to `bytes`. Returns false where the limit does not apply; `flags`: of its
 * check. */
static inline bool tuple_write(struct tuple *tuple, uint8_t *bytes,
                               struct rules_evaluation *evaluation, const struct rules_rule *rule,
                               uint8_t *flags)
{
    tuple->bytes = bytes;
    tuple->has_long = false;
    if (rule->prefix_size <= RULES_PREFIX_STEP)
        memcpy(tuple->bytes, rule->prefix, RULES_PREFIX_STEP);
    else
        memcpy(tuple->bytes, rule->prefix, RULES_PREFIX_MAX);
    tuple->end = tuple->bytes + rule->prefix_size;
    for (uint32_t i = 0; i < rule->key_count; i++) {
        tuple->begins[i] = (uint16_t)tuple_size(tuple);
        bool there = tuple_put_part(tuple, evaluation, rule, &rule->key[i]);
        if (!there && rule->missing == RULES_DENY)
            *flags |= WEIR_CHECK_ALWAYS_DENY;
        else if (!there && rule->missing != RULES_SHARED)
            return false;
    }
    tuple->begins[rule->key_count] = (uint16_t)tuple_size(tuple);
    return true;
}

int rules_key_hash(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                   uint64_t hash[2])
{
    struct tuple tuple;
    uint8_t flags = 0;
    if (!tuple_write(&tuple, tuple.room, evaluation, rule, &flags))
        return RULES_KEY_MISSING;
    weir_siphash128(evaluation->secret, tuple.bytes, tuple_size(&tuple), hash);
    return 0;
}

int rules_key_build(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                    struct weir_check *check)
{
    struct weir_scratch *scratch = evaluation->scratch;
    struct tuple tuple;
    uint8_t *place = (uint8_t *)scratch->bytes + scratch->used;
    if (!rule->key_at_hand || sizeof(scratch->bytes) - scratch->used < TUPLE_MAX)
        place = tuple.room;
    if (!tuple_write(&tuple, place, evaluation, rule, &check->flags))
        return RULES_KEY_MISSING;
    const size_t size = tuple_size(&tuple);
    siphash128(evaluation->secret, place, size, check->hash);
    check->tag = rule->tag_count > 0 ? make_tag(rule, &tuple) : 0;
    /* The tuple may have looked the caller up, whose values are in the scratch before the key. */
    if (sizeof(scratch->bytes) - scratch->used < WEIR_KEY_TEXT_MAX)
        return WEIR_ERR_TOO_LARGE;
    char *room = scratch->bytes + scratch->used;
    if (!tuple.has_long && size <= WEIR_KEY_TEXT_MAX && keeps_tuple(evaluation, rule)) {
        check->key = (struct weir_bytes){room, size};
        check->key_is_tuple = true;
        if (place == tuple.room)
            memcpy(room, place, size);
    } else {
        keep_other(evaluation, rule, &tuple, check, room);
    }
    scratch->used += (uint32_t)check->key.size;
    return 0;
}

/* Whether a part's value is in the request, or made without room in scratch. */
static bool is_at_hand(const struct weir_rules *rules, const struct rules_key_part *part)
{
    if (part->source != RULES_FROM_ATTRIBUTE)
        return true;
    const struct rules_attribute_row *row = rules->rows[part->attribute];
    return !row->value || row->value == rules_path_value || row->value == rules_host_value;
}

void rules_key_prepare(const struct weir_rules *rules, struct rules_rule *rule, bool keeps_tuple)
{
    rule->keeps_tuple = keeps_tuple && !rules->shared;
    rule->key_at_hand = true;
    for (uint8_t i = 0; i < rule->instead_count; i++)
        rule->key_at_hand = rule->key_at_hand && is_at_hand(rules, &rule->instead[i]);
    for (uint32_t i = 0; i < rule->key_count; i++)
        rule->key_at_hand = rule->key_at_hand && is_at_hand(rules, &rule->key[i]);
}
