/* SPDX-License-Identifier: Apache-2.0 */
/* see unknown_names.h */
#include "rules/unknown_names.h"

#include <stdatomic.h>
#include <string.h>

#include "rules/compiled.h"
#include "rules/known_names.h"

enum { NAME_FREE, NAME_WRITING, NAME_THERE };

static char plain(char byte)
{
    bool good = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("._-:/@[]", byte));
    return good ? byte : '?';
}

/* Whether a place has this name, which is `size` plain bytes; takes the place if it is free. *busy:
 * another thread is just writing a name there, perhaps this one. */
static bool take_place(struct rules_unknown_name *place, const char *text, uint8_t size, bool *busy)
{
    uint8_t state = NAME_FREE;
    if (atomic_compare_exchange_strong(&place->state, &state, NAME_WRITING)) {
        memcpy(place->text, text, size);
        place->size = size;
        atomic_store_explicit(&place->state, NAME_THERE, memory_order_release);
        return true;
    }
    *busy = state == NAME_WRITING;
    return state == NAME_THERE && place->size == size && memcmp(place->text, text, size) == 0;
}

/* Counts a name; the index of its place, which for the others is the last. */
static uint32_t count(struct rules_unknown_names *unknown, const char *text, uint8_t size,
                      uint64_t add)
{
    uint64_t hash = rules_text_hash(text, size);
    atomic_fetch_add_explicit(&unknown->total, add, memory_order_relaxed);
    bool busy = false; /* then it is one of the others, so that no name has two places */
    for (uint32_t i = 0; i < RULES_UNKNOWN_MAX && !busy; i++) {
        uint32_t index = (uint32_t)((hash + i) % RULES_UNKNOWN_MAX);
        if (take_place(&unknown->names[index], text, size, &busy)) {
            atomic_fetch_add_explicit(&unknown->names[index].count, add, memory_order_relaxed);
            return index;
        }
    }
    atomic_fetch_add_explicit(&unknown->others, add, memory_order_relaxed);
    return RULES_UNKNOWN_MAX;
}

void rules_unknown_name(const struct weir_rules *rules, const char *name, size_t size)
{
    char text[RULES_UNKNOWN_SIZE];
    size_t kept = size < sizeof text ? size : sizeof text;
    for (size_t i = 0; i < kept; i++)
        text[i] = plain(name[i]);
    (void)count(rules->unknown, text, (uint8_t)kept, 1);
}

uint64_t weir_rules_unknown_total(const struct weir_rules *rules)
{
    return atomic_load_explicit(&rules->unknown->total, memory_order_relaxed);
}

struct weir_unknown_name weir_rules_unknown(const struct weir_rules *rules, uint32_t index)
{
    const struct rules_unknown_names *unknown = rules->unknown;
    if (index >= RULES_UNKNOWN_MAX)
        return (struct weir_unknown_name){
            NULL, NULL, atomic_load_explicit(&unknown->others, memory_order_relaxed)};
    const struct rules_unknown_name *place = &unknown->names[index];
    if (atomic_load_explicit(&place->state, memory_order_acquire) != NAME_THERE)
        return (struct weir_unknown_name){NULL, NULL, 0};
    return (struct weir_unknown_name){
        place->text, rules_nearest_name(rules, (struct weir_bytes){place->text, place->size}),
        atomic_load_explicit(&place->count, memory_order_relaxed)};
}

struct weir_unknown_name weir_rules_unknown_news(const struct weir_rules *rules, uint32_t index)
{
    struct weir_unknown_name name = weir_rules_unknown(rules, index);
    uint64_t *told = &rules->unknown->told[index], count = name.count;
    name.count -= *told;
    *told = count;
    return name;
}

void rules_unknown_inherit(struct weir_rules *rules, const struct weir_rules *before)
{
    for (uint32_t i = 0; i < RULES_UNKNOWN_MAX; i++) {
        const struct rules_unknown_name *place = &before->unknown->names[i];
        if (atomic_load_explicit(&place->state, memory_order_acquire) != NAME_THERE)
            continue;
        struct weir_bytes name = {place->text, place->size};
        if (rules_is_built_in(name) || rules_is_declared(rules, name))
            continue;
        uint64_t before_count = atomic_load_explicit(&place->count, memory_order_relaxed);
        uint32_t index = count(rules->unknown, place->text, place->size, before_count);
        rules->unknown->told[index] += before->unknown->told[i];
    }
}
