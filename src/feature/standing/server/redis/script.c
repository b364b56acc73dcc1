/* SPDX-License-Identifier: Apache-2.0 */
/* see script.h */
#include "feature/standing/server/redis/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/refusal.h"
#include "store/redis/script/texts.h"
#include "wire/resp/write.h"

#define CHANGES_KEPT 100000
#define SCAN_COUNT 1000

/* A key's text behind the prefix. */
#define TAG "{standing}:"
enum { KEY_CHANGES, KEY_META, KEY_ENTRIES, KEY_ENDS_O, KEY_ENDS_P, KEY_LADDERS, KEY_GONE, KEYS };
static const char *const key_names[KEYS] = {
    "changes", "meta", "entries", "ends:o", "ends:p", "ladders", "gone",
};

void standing_keys_init(struct standing_keys *keys, const char *prefix, uint64_t entries_max)
{
    *keys = (struct standing_keys){
        .prefix = prefix,
        .entries_max = entries_max ? entries_max : WEIR_STANDING_ENTRIES_DEFAULT,
        .changes_max = CHANGES_KEPT,
        .slot = redis_cluster_slot(TAG, sizeof TAG - 1),
    };
}

/* --- Writing ---------------------------------------------------------------------------------- */

void standing_command_free(struct standing_command *command)
{
    free(command->data);
    *command = (struct standing_command){0};
}

/* Room for `size` bytes more; NULL: no memory. */
static char *room(struct standing_command *command, size_t size)
{
    size_t needed = command->size + size, larger = command->room ? command->room : 512;
    char *more;

    if (command->failed)
        return NULL;
    if (needed <= command->room)
        return command->data + command->size;
    while (larger < needed)
        larger *= 2;
    more = realloc(command->data, larger);
    command->failed = !more;
    if (!more)
        return NULL;
    command->data = more;
    command->room = larger;
    return more + command->size;
}

static void put_array(struct standing_command *command, uint64_t count)
{
    char *out = room(command, WEIR_RESP_HEAD_MAX);

    if (out)
        command->size = (size_t)(weir_resp_write_array(out, count) - command->data);
}

static void put(struct standing_command *command, const char *data, size_t size)
{
    char *out = room(command, WEIR_RESP_BULK_MAX(size));

    if (out)
        command->size = (size_t)(weir_resp_write_bulk(out, data, size) - command->data);
}

static void put_text(struct standing_command *command, const char *text)
{
    put(command, text, strlen(text));
}

static void put_number(struct standing_command *command, uint64_t number)
{
    char digits[WEIR_DECIMAL_MAX];

    put(command, digits, (size_t)(weir_decimal_write(digits, number) - digits));
}

static void put_key(struct standing_command *command, const struct standing_keys *keys, int which)
{
    char key[256];

    put(command, key,
        (size_t)snprintf(key, sizeof key, "%s" TAG "%s", keys->prefix, key_names[which]));
}

static void put_field(struct standing_command *command, const struct weir_history_entry *entry,
                      uint8_t origin)
{
    struct weir_history_entry like = *entry;
    char field[STANDING_FIELD_MAX];

    like.entry.origin = origin;
    put(command, field, standing_field_write(field, &like));
}

/* The field of a value's ladders: that of an entry without its origin. */
static void put_ladder_field(struct standing_command *command,
                             const struct weir_history_entry *entry)
{
    char field[STANDING_FIELD_MAX];

    put(command, field + 2, standing_field_write(field, entry) - 2);
}

void standing_write_poll(struct standing_command *command, const struct standing_keys *keys,
                         const struct standing_seed *seed, const struct standing_follow *follow)
{
    put_array(command, 10);
    put_text(command, "EVALSHA");
    put(command, redis_script_standing_poll.sha, REDIS_SHA_HEX);
    put_number(command, 2);
    put_key(command, keys, KEY_CHANGES);
    put_key(command, keys, KEY_META);
    put_text(command, seed->epoch);
    put_text(command, seed->secret);
    put_text(command, follow->epoch);
    put_number(command, follow->number);
    put_number(command, STANDING_CHANGES_MAX);
}

void standing_write_scan(struct standing_command *command, const struct standing_keys *keys,
                         struct weir_bytes cursor)
{
    put_array(command, 5);
    put_text(command, "HSCAN");
    put_key(command, keys, KEY_ENTRIES);
    put(command, cursor.data, cursor.size);
    put_text(command, "COUNT");
    put_number(command, SCAN_COUNT);
}

void standing_write_get(struct standing_command *command, const struct standing_keys *keys,
                        const struct weir_history_entry *like)
{
    put_array(command, 4);
    put_text(command, "HMGET");
    put_key(command, keys, KEY_ENTRIES);
    put_field(command, like, WEIR_STANDING_BY_OPERATOR);
    put_field(command, like, WEIR_STANDING_BY_PENALTY);
}

void standing_write_rows(struct standing_command *command, const struct standing_keys *keys,
                         uint64_t below, unsigned count)
{
    char newest[32] = "+";

    if (below > 0)
        snprintf(newest, sizeof newest, "%llu-0", (unsigned long long)(below - 1));
    put_array(command, 6);
    put_text(command, "XREVRANGE");
    put_key(command, keys, KEY_CHANGES);
    put_text(command, newest);
    put_text(command, "-");
    put_text(command, "COUNT");
    put_number(command, count);
}

/* The head of a call of redis_script_standing_change, with so many arguments of operations. */
static void put_change(struct standing_command *command, const struct standing_keys *keys,
                       const struct standing_seed *seed, uint64_t now_ns, unsigned arguments)
{
    put_array(command, 3 + KEYS + 5 + arguments);
    put_text(command, "EVALSHA");
    put(command, redis_script_standing_change.sha, REDIS_SHA_HEX);
    put_number(command, KEYS);
    for (int i = 0; i < KEYS; i++)
        put_key(command, keys, i);
    put_text(command, seed->epoch);
    put_text(command, seed->secret);
    put_number(command, now_ns);
    put_number(command, keys->entries_max);
    put_number(command, keys->changes_max);
}

static void put_end(struct standing_command *command, uint64_t until_ns)
{
    if (until_ns == WEIR_NEVER)
        put_text(command, "+inf");
    else
        put_number(command, until_ns / 1000000 + (until_ns % 1000000 != 0));
}

/* The operation that sets an entry: five arguments. */
static void put_set(struct standing_command *command, const struct weir_history_entry *entry)
{
    char text[STANDING_TEXT_MAX];

    put_text(command, "set");
    put_field(command, entry, entry->entry.origin);
    put_text(command, entry->entry.origin == WEIR_STANDING_BY_PENALTY ? "p" : "o");
    /* What never goes has no end here: see standing_change.lua. */
    put_end(command,
            entry->entry.level == WEIR_STANDING_REVOKED ? WEIR_NEVER : entry->entry.until_ns);
    put(command, text, standing_text_write(text, entry));
}

void standing_write_set(struct standing_command *command, const struct standing_keys *keys,
                        const struct standing_seed *seed, const struct weir_history_entry *entry,
                        uint64_t now_ns)
{
    put_change(command, keys, seed, now_ns, 5);
    put_set(command, entry);
}

void standing_write_ladders(struct standing_command *command, const struct standing_keys *keys,
                            const struct weir_history_entry *like)
{
    put_array(command, 3);
    put_text(command, "HGET");
    put_key(command, keys, KEY_LADDERS);
    put_ladder_field(command, like);
}

/* "3 1763859600000000000 1763859600000000000"; all zero, which no ladder is: nothing. */
static void put_state(struct standing_command *command, const struct weir_ladder_state *state)
{
    char text[8 + 2 * WEIR_DECIMAL_MAX] = "";

    if (state->step != 0 || state->until_ns != 0 || state->clean_ns != 0)
        snprintf(text, sizeof text, "%u %llu %llu", (unsigned)state->step,
                 (unsigned long long)state->until_ns, (unsigned long long)state->clean_ns);
    put_text(command, text);
}

void standing_write_swap(struct standing_command *command, const struct standing_keys *keys,
                         const struct standing_seed *seed, const struct weir_history_entry *entry,
                         const struct weir_keeper_swap *swap, uint64_t now_ns)
{
    put_change(command, keys, seed, now_ns, swap->sets ? 6 + 5 : 6);
    put_text(command, "swap");
    put_ladder_field(command, entry);
    put(command, swap->penalty.data, swap->penalty.size);
    put_state(command, &swap->expected);
    put_state(command, &swap->next);
    put_end(command, swap->gone_ns);
    if (swap->sets)
        put_set(command, entry);
}

void standing_write_clear(struct standing_command *command, const struct standing_keys *keys,
                          const struct standing_seed *seed, const struct weir_history_entry *like,
                          uint64_t now_ns)
{
    static const uint8_t origins[] = {WEIR_STANDING_BY_PENALTY, WEIR_STANDING_BY_OPERATOR};
    char text[STANDING_TEXT_MAX];
    size_t size = standing_tail_write(text, like);

    put_change(command, keys, seed, now_ns, 2 * 4 + 2);
    for (int i = 0; i < 2; i++) {
        put_text(command, "clear");
        put_field(command, like, origins[i]);
        put_text(command, origins[i] == WEIR_STANDING_BY_PENALTY ? "p" : "o");
        put(command, text, size);
    }
    put_text(command, "forget");
    put_ladder_field(command, like);
}

/* --- Reading ---------------------------------------------------------------------------------- */

int standing_refuse(const struct weir_resp_node *nodes, uint32_t count, struct weir_reason *reason)
{
    if (count > 0 && nodes[0].type == WEIR_RESP_ERROR) {
        redis_quote(reason->text, sizeof reason->text, nodes[0].text);
        if (nodes[0].text.size == 0)
            snprintf(reason->text, sizeof reason->text, "an error without a text");
        return WEIR_ERR_STORE;
    }
    snprintf(reason->text, sizeof reason->text, "an answer that is none of weir's scripts");
    return WEIR_ERR_SYNTAX;
}

static bool is_array(const struct weir_resp_node *node, uint32_t count)
{
    return node->type == WEIR_RESP_ARRAY && node->count == count;
}

/* "17-0" */
static bool read_id(struct weir_bytes text, uint64_t *number)
{
    *number = 0;
    if (text.size < 3 || text.size > 22 || memcmp(text.data + text.size - 2, "-0", 2) != 0)
        return false;
    for (size_t i = 0; i < text.size - 2; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text.data[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, digit, number))
            return false;
    }
    return true;
}

/* A change of a stream: [id, [f, field, v, text, w, was]], nine nodes. */
#define CHANGE_NODES 9

static bool read_change(const struct weir_resp_node *nodes, struct standing_change *change)
{
    static const char names[] = {'f', 'v', 'w'};

    if (!is_array(&nodes[0], 2) || nodes[1].type != WEIR_RESP_BULK ||
        !read_id(nodes[1].text, &change->number) || !is_array(&nodes[2], 6))
        return false;
    for (int i = 0; i < 3; i++) {
        const struct weir_resp_node *name = &nodes[3 + 2 * i];

        if (name->type != WEIR_RESP_BULK || name->text.size != 1 ||
            name->text.data[0] != names[i] || name[1].type != WEIR_RESP_BULK)
            return false;
    }
    change->field = nodes[4].text;
    change->text = nodes[6].text;
    change->was = nodes[8].text;
    return true;
}

int standing_read_changes(const struct weir_resp_node *nodes, uint32_t count,
                          struct standing_change *changes, size_t most, size_t *found,
                          struct weir_reason *reason)
{
    *found = 0;
    if (count == 0 || nodes[0].type != WEIR_RESP_ARRAY || nodes[0].count > most ||
        count != 1 + nodes[0].count * CHANGE_NODES)
        return standing_refuse(nodes, count, reason);
    for (uint32_t i = 0; i < nodes[0].count; i++)
        if (!read_change(&nodes[1 + i * CHANGE_NODES], &changes[(*found)++]))
            return standing_refuse(nodes, 0, reason);
    return 0;
}

int standing_read_news(const struct weir_resp_node *nodes, uint32_t count,
                       struct standing_news *news, struct weir_reason *reason)
{
    if (count < 5 || !is_array(&nodes[0], 4) || nodes[1].type != WEIR_RESP_BULK ||
        nodes[2].type != WEIR_RESP_BULK || nodes[3].type != WEIR_RESP_INTEGER ||
        nodes[3].integer < 0)
        return standing_refuse(nodes, count, reason);
    news->epoch = nodes[1].text;
    news->secret = nodes[2].text;
    news->last = (uint64_t)nodes[3].integer;
    return standing_read_changes(nodes + 4, count - 4, news->changes, STANDING_CHANGES_MAX,
                                 &news->count, reason);
}

int standing_read_changed(const struct weir_resp_node *nodes, uint32_t count,
                          struct standing_changed *changed, struct weir_reason *reason)
{
    static const char *const names[] = {"ok", "full", "other"};
    int status = 0;

    if (count != 5 || !is_array(&nodes[0], 4) || nodes[1].type != WEIR_RESP_BULK ||
        nodes[2].type != WEIR_RESP_INTEGER || nodes[2].integer < 0 ||
        nodes[3].type != WEIR_RESP_INTEGER || nodes[3].integer < 0 ||
        nodes[4].type != WEIR_RESP_BULK)
        return standing_refuse(nodes, count, reason);
    while (status < 3 && (nodes[1].text.size != strlen(names[status]) ||
                          memcmp(nodes[1].text.data, names[status], nodes[1].text.size) != 0))
        status++;
    if (status == 3)
        return standing_refuse(nodes, 0, reason);
    changed->status = status;
    changed->last = (uint64_t)nodes[2].integer;
    changed->found = (uint64_t)nodes[3].integer;
    changed->was = weir_standing_level_of(nodes[4].text);
    return 0;
}

/* The next number of a line, which a space or the end of `text` ends. */
static bool take_number(struct weir_bytes *text, uint64_t *number)
{
    size_t at = 0;

    *number = 0;
    for (; at < text->size && text->data[at] != ' '; at++) {
        uint64_t digit = (uint64_t)(unsigned char)text->data[at] - '0';

        if (digit > 9 || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, digit, number))
            return false;
    }
    if (at == 0)
        return false;
    at += at < text->size;
    *text = (struct weir_bytes){text->data + at, text->size - at};
    return true;
}

static bool read_ladder(struct weir_bytes line, struct weir_keeper_ladder *ladder)
{
    const char *space = line.size > 0 ? memchr(line.data, ' ', line.size) : NULL;
    size_t size = space ? (size_t)(space - line.data) : 0;
    uint64_t step;

    if (size == 0 || size > WEIR_KEEPER_PENALTY_MAX || memchr(line.data, '\0', size))
        return false;
    memcpy(ladder->penalty, line.data, size);
    ladder->penalty[size] = '\0';
    line = (struct weir_bytes){space + 1, line.size - size - 1};
    if (!take_number(&line, &step) || step > WEIR_LADDER_STEPS_MAX ||
        !take_number(&line, &ladder->state.until_ns) ||
        !take_number(&line, &ladder->state.clean_ns))
        return false;
    ladder->state.step = (uint8_t)step;
    return true;
}

int standing_read_ladders(const struct weir_resp_node *nodes, uint32_t count,
                          struct weir_keeper_ladders *ladders, struct weir_reason *reason)
{
    struct weir_bytes text;

    memset(ladders, 0, sizeof *ladders);
    if (count == 1 && nodes[0].type == WEIR_RESP_NULL)
        return 0;
    if (count != 1 || nodes[0].type != WEIR_RESP_BULK)
        return standing_refuse(nodes, count, reason);
    text = nodes[0].text;
    while (text.size > 0 && ladders->count < WEIR_KEEPER_LADDERS_MAX) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end ? (size_t)(end - text.data) : text.size;

        ladders->count +=
            read_ladder((struct weir_bytes){text.data, size}, &ladders->ladders[ladders->count]);
        size += size < text.size;
        text = (struct weir_bytes){text.data + size, text.size - size};
    }
    return 0;
}

int standing_read_scan(const struct weir_resp_node *nodes, uint32_t count,
                       struct weir_bytes *cursor, const struct weir_resp_node **pairs,
                       uint32_t *pair_count, struct weir_reason *reason)
{
    if (count < 3 || !is_array(&nodes[0], 2) || nodes[1].type != WEIR_RESP_BULK ||
        nodes[1].text.size == 0 || nodes[1].text.size > 20 || nodes[2].type != WEIR_RESP_ARRAY ||
        nodes[2].count % 2 != 0 || count != 3 + nodes[2].count)
        return standing_refuse(nodes, count, reason);
    for (uint32_t i = 3; i < count; i++)
        if (nodes[i].type != WEIR_RESP_BULK)
            return standing_refuse(nodes, 0, reason);
    *cursor = nodes[1].text;
    *pairs = nodes + 3;
    *pair_count = nodes[2].count / 2;
    return 0;
}
