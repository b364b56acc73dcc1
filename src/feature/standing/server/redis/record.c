/* SPDX-License-Identifier: Apache-2.0 */
/* see record.h */
#include "feature/standing/server/redis/record.h"

#include <string.h>

#include "core/text/hex.h"
#include "wire/decimal.h"

#define ID_DIGITS 32

static char *put(char *out, const char *data, size_t size)
{
    if (size > 0)
        memcpy(out, data, size);
    return out + size;
}

static struct weir_bytes cut(struct weir_bytes text, size_t most)
{
    return (struct weir_bytes){text.data, text.size < most ? text.size : most};
}

size_t standing_field_write(char out[STANDING_FIELD_MAX], const struct weir_history_entry *entry)
{
    struct weir_bytes kind = cut(entry->kind, WEIR_STANDING_KIND_MAX);
    struct weir_bytes value = cut(entry->value, WEIR_LIST_VALUE_MAX);
    char *at = out;

    *at++ = entry->entry.origin == WEIR_STANDING_BY_PENALTY ? 'p' : 'o';
    *at++ = ' ';
    at = put(at, kind.data, kind.size);
    *at++ = ' ';
    at = put(at, value.data, value.size);
    return (size_t)(at - out);
}

bool standing_field_read(struct weir_bytes text, struct weir_history_entry *entry)
{
    const char *space;

    if (text.size < 5 || text.size > STANDING_FIELD_MAX || text.data[1] != ' ' ||
        (text.data[0] != 'o' && text.data[0] != 'p'))
        return false;
    entry->entry.origin =
        text.data[0] == 'o' ? WEIR_STANDING_BY_OPERATOR : WEIR_STANDING_BY_PENALTY;
    text = (struct weir_bytes){text.data + 2, text.size - 2};
    space = memchr(text.data, ' ', text.size);
    if (!space || space == text.data || space == text.data + text.size - 1)
        return false;
    entry->kind = (struct weir_bytes){text.data, (size_t)(space - text.data)};
    entry->value = (struct weir_bytes){space + 1, text.size - entry->kind.size - 1};
    return entry->kind.size <= WEIR_STANDING_KIND_MAX && entry->value.size <= WEIR_LIST_VALUE_MAX;
}

static char *put_time(char *out, uint64_t time_ns)
{
    if (time_ns == WEIR_NEVER)
        *out++ = '-';
    else
        out = weir_decimal_write(out, time_ns);
    *out++ = ' ';
    return out;
}

size_t standing_tail_write(char out[STANDING_TAIL_MAX], const struct weir_history_entry *entry)
{
    struct weir_bytes by = cut(entry->by, STANDING_BY_MAX);
    char *at = weir_decimal_write(out, by.size);

    *at++ = ' ';
    at = put(at, by.data, by.size);
    at = put(at, entry->entry.reason, entry->entry.reason_size);
    return (size_t)(at - out);
}

size_t standing_text_write(char out[STANDING_TEXT_MAX], const struct weir_history_entry *entry)
{
    const char *level = weir_standing_level_name(entry->entry.level);
    char *at = put(out, level, strlen(level));

    *at++ = ' ';
    at = put_time(at, entry->entry.since_ns);
    at = put_time(at, entry->entry.until_ns);
    if (entry->network)
        *at++ = '-';
    else
        at = weir_hex_write64(weir_hex_write64(at, entry->id[0]), entry->id[1]);
    *at++ = ' ';
    return (size_t)(at - out) + standing_tail_write(at, entry);
}

/* Takes the word up to the next space. */
static bool take_word(struct weir_bytes *text, struct weir_bytes *word)
{
    const char *space = text->size > 0 ? memchr(text->data, ' ', text->size) : NULL;

    if (!space)
        return false;
    *word = (struct weir_bytes){text->data, (size_t)(space - text->data)};
    *text = (struct weir_bytes){space + 1, text->size - word->size - 1};
    return word->size > 0;
}

static bool read_number(struct weir_bytes word, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < word.size; i++) {
        uint64_t digit = (uint64_t)(unsigned char)word.data[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, digit, number))
            return false;
    }
    return word.size > 0;
}

static bool is_none(struct weir_bytes word)
{
    return word.size == 1 && word.data[0] == '-';
}

static bool read_time(struct weir_bytes word, uint64_t *time_ns)
{
    *time_ns = WEIR_NEVER;
    return is_none(word) || read_number(word, time_ns);
}

static bool read_id(struct weir_bytes word, struct weir_history_entry *entry)
{
    entry->network = is_none(word);
    if (entry->network)
        return true;
    if (word.size != ID_DIGITS)
        return false;
    for (size_t i = 0; i < ID_DIGITS; i++) {
        int digit = weir_hex_value(word.data[i]);

        if (digit < 0)
            return false;
        entry->id[i / 16] = entry->id[i / 16] << 4 | (uint64_t)digit;
    }
    return true;
}

bool standing_text_read(struct weir_bytes text, struct shared_record *record)
{
    struct weir_bytes number, level, since, until, id, size;
    struct weir_history_entry *to = &record->to;
    uint64_t by_size;
    int found;

    *record = (struct shared_record){0};
    if (!take_word(&text, &number) || !read_number(number, &record->number) ||
        !take_word(&text, &level) || !take_word(&text, &since) ||
        !read_time(since, &to->entry.since_ns) || !take_word(&text, &until) ||
        !read_time(until, &to->entry.until_ns) || !take_word(&text, &id) || !read_id(id, to) ||
        !take_word(&text, &size) || !read_number(size, &by_size) || by_size > STANDING_BY_MAX ||
        by_size > text.size || text.size - by_size > WEIR_STANDING_REASON_MAX)
        return false;
    record->removed = is_none(level);
    found = weir_standing_level_of(level);
    if (!record->removed && found < 0)
        return false;
    to->entry.level = found < 0 ? WEIR_STANDING_GOOD : (uint8_t)found;
    to->by = (struct weir_bytes){text.data, by_size};
    to->entry.reason_size = (uint8_t)(text.size - by_size);
    memcpy(to->entry.reason, text.data + by_size, to->entry.reason_size);
    return true;
}
