/* SPDX-License-Identifier: Apache-2.0 */
/* see top_denied.h */
#include "feature/use/engine/top_denied.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct weir_top_denied {
    atomic_flag locked;
    struct weir_heavy *keys;
};

int weir_top_denied_open(struct weir_top_denied **top_denied)
{
    struct weir_top_denied *o = calloc(1, sizeof *o);
    if (!o)
        return WEIR_ERR_MEMORY;
    atomic_flag_clear(&o->locked);
    int err = weir_heavy_open(&o->keys, WEIR_TOP_DENIED_KEYS);
    if (err < 0) {
        free(o);
        return err;
    }
    *top_denied = o;
    return 0;
}

void weir_top_denied_close(struct weir_top_denied *top_denied)
{
    if (top_denied)
        weir_heavy_close(top_denied->keys);
    free(top_denied);
}

static bool try_lock(struct weir_top_denied *o)
{
    return !atomic_flag_test_and_set_explicit(&o->locked, memory_order_acquire);
}

static void unlock(struct weir_top_denied *o)
{
    atomic_flag_clear_explicit(&o->locked, memory_order_release);
}

bool weir_top_denied_count(struct weir_top_denied *top_denied, const uint64_t hash[2])
{
    bool fresh;
    if (!try_lock(top_denied))
        return false;
    weir_heavy_count(top_denied->keys, hash, 1, &fresh);
    if (!fresh)
        unlock(top_denied);
    return fresh;
}

void weir_top_denied_name(struct weir_top_denied *top_denied, struct weir_bytes name,
                          struct weir_bytes key)
{
    weir_heavy_name(top_denied->keys, name, key);
    unlock(top_denied);
}

/* --- Collecting ------------------------------------------------------------------------------- */

static struct weir_heavy_entry *find_in(struct weir_heavy_entry *list, size_t count,
                                        const uint64_t hash[2])
{
    for (size_t i = 0; i < count; i++)
        if (list[i].hash[0] == hash[0] && list[i].hash[1] == hash[1])
            return &list[i];
    return NULL;
}

static bool has_name(const struct weir_heavy_entry *e, struct weir_bytes name)
{
    return e->name_size == name.size && memcmp(e->name, name.data, name.size) == 0;
}

size_t weir_top_denied_collect(struct weir_top_denied *top_denied, struct weir_bytes name,
                               struct weir_heavy_entry *list, size_t count, size_t max)
{
    size_t before = count;
    while (!try_lock(top_denied))
        sched_yield();
    for (uint32_t i = 0; i < weir_heavy_used(top_denied->keys) && count < max; i++) {
        weir_heavy_get(top_denied->keys, i, &list[count]);
        count += !name.data || has_name(&list[count], name);
    }
    unlock(top_denied);

    /* Folded after unlocking, so that the worker misses as little as can be. A summary has a
     * key once: only entries of the others can be the same. */
    for (size_t i = before; i < count;) {
        struct weir_heavy_entry *same = find_in(list, before, list[i].hash);
        if (!same) {
            i++;
            continue;
        }
        same->count += list[i].count;
        same->error += list[i].error;
        list[i] = list[--count];
    }
    return count;
}

static int compare_bytes(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare(const void *left, const void *right)
{
    const struct weir_heavy_entry *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    int order = compare_bytes(a->name, a->name_size, b->name, b->name_size);
    return order != 0 ? order : compare_bytes(a->text, a->text_size, b->text, b->text_size);
}

void weir_top_denied_sort(struct weir_heavy_entry *list, size_t count)
{
    if (count > 0)
        qsort(list, count, sizeof *list, compare);
}
