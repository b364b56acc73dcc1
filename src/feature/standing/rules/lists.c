/* SPDX-License-Identifier: Apache-2.0 */
/* see lists.h */
#include "feature/standing/rules/lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "core/text/reason.h"

struct listed {
    struct weir_cidr network; /* family 0: a value */
    uint32_t value, size;     /* in `texts` */
    uint32_t line;
    uint16_t list;
};

struct weir_standing_lists {
    const struct weir_standing_settings *settings;
    uint16_t list; /* that is being read */
    struct listed *items;
    size_t count, room;
    char *texts;
    size_t texts_size, texts_room;
    struct weir_list_file files[WEIR_STANDING_LISTS_MAX];
};

/* --- Reading ---------------------------------------------------------------------------------- */

static int fail_file(struct weir_reason *reason, int err, const char *path, const char *what)
{
    if (reason)
        snprintf(reason->text, sizeof(reason->text), "%.150s: %.90s", path, what);
    return err;
}

/* Makes room for `needed` elements of `size` bytes. */
static bool grow(void **data, size_t *room, size_t needed, size_t size)
{
    size_t larger = *room ? *room : 1024;
    if (needed <= *room)
        return true;
    while (larger < needed)
        larger *= 2;
    void *more = realloc(*data, larger * size);
    if (!more)
        return false;
    *data = more;
    *room = larger;
    return true;
}

int weir_list_read(const struct weir_standing_kind *kind, const char *path,
                   int (*take)(void *context, const struct weir_list_item *item,
                               struct weir_reason *reason),
                   void *context, struct weir_reason *reason)
{
    struct weir_reason why = {{0}};
    char *data = NULL;
    size_t size = 0;
    int err = weir_file_read_whole(path, WEIR_LIST_BYTES_MAX, &data, &size, &why);
    if (err < 0)
        return err == WEIR_ERR_MEMORY ? err : fail_file(reason, err, path, why.text);
    if (size > WEIR_LIST_BYTES_MAX)
        err = fail_file(reason, WEIR_ERR_TOO_LARGE, path, "the list is larger than 256 MiB");
    else
        err = weir_list_parse(kind, path, (struct weir_bytes){data, size}, take, context, reason);
    free(data);
    return err;
}

bool weir_list_file_look(const char *path, struct weir_list_file *file)
{
    struct stat stat_;
    if (stat(path, &stat_) < 0)
        return false;
    file->device = stat_.st_dev;
    file->node = stat_.st_ino;
    file->size_bytes = (uint64_t)stat_.st_size;
    file->changed_ns =
        (uint64_t)stat_.st_mtim.tv_sec * 1000000000 + (uint64_t)stat_.st_mtim.tv_nsec;
    return true;
}

bool weir_list_file_same(const struct weir_list_file *a, const struct weir_list_file *b)
{
    return a->device == b->device && a->node == b->node && a->size_bytes == b->size_bytes &&
           a->changed_ns == b->changed_ns;
}

static int take_item(void *context, const struct weir_list_item *item, struct weir_reason *reason)
{
    struct weir_standing_lists *lists = context;
    const struct weir_standing_list *list = &lists->settings->lists[lists->list];
    bool address = lists->settings->kinds[list->kind].address;
    size_t size = address ? 0 : item->value.size;
    (void)reason;
    if (lists->texts_size + size > UINT32_MAX ||
        !grow((void **)&lists->items, &lists->room, lists->count + 1, sizeof(*lists->items)) ||
        !grow((void **)&lists->texts, &lists->texts_room, lists->texts_size + size + 1, 1))
        return WEIR_ERR_MEMORY;
    lists->items[lists->count] = (struct listed){.list = lists->list,
                                                 .line = item->line,
                                                 .value = (uint32_t)lists->texts_size,
                                                 .size = (uint32_t)size};
    if (address)
        lists->items[lists->count].network = item->network;
    else
        memcpy(lists->texts + lists->texts_size, item->value.data, size);
    lists->texts_size += size;
    lists->count++;
    lists->files[lists->list].entries++;
    return 0;
}

int weir_standing_lists_read(struct weir_standing_lists **out,
                             const struct weir_standing_settings *settings,
                             struct weir_reason *reason)
{
    struct weir_standing_lists *lists = calloc(1, sizeof(*lists));
    int err = lists ? 0 : WEIR_ERR_MEMORY;
    for (uint16_t i = 0; i < settings->lists_count && err == 0; i++) {
        const struct weir_standing_list *list = &settings->lists[i];
        lists->settings = settings;
        lists->list = i;
        /* Before it is read: one that changes meanwhile differs from this look. */
        (void)weir_list_file_look(list->path, &lists->files[i]);
        err = weir_list_read(&settings->kinds[list->kind], list->path, take_item, lists, reason);
    }
    if (err < 0) {
        weir_standing_lists_free(lists);
        lists = NULL;
    }
    *out = lists;
    return err;
}

void weir_standing_lists_free(struct weir_standing_lists *lists)
{
    if (!lists)
        return;
    free(lists->items);
    free(lists->texts);
    free(lists);
}

const struct weir_list_file *weir_standing_lists_file(const struct weir_standing_lists *lists,
                                                      size_t index)
{
    return &lists->files[index];
}

/* --- Setting ---------------------------------------------------------------------------------- */

static void item_id(const struct weir_standing_lists *lists, const struct listed *item,
                    const struct weir_standing *map, uint64_t id[2])
{
    uint16_t kind = lists->settings->lists[item->list].kind;
    weir_standing_id(map, lists->settings->kinds[kind].name,
                     (struct weir_bytes){lists->texts + item->value, item->size}, id);
}

static int set_item(const struct weir_standing_lists *lists, const struct listed *item,
                    struct weir_standing *map, uint64_t now_ns)
{
    const struct weir_standing_list *list = &lists->settings->lists[item->list];
    struct weir_standing_entry entry = {.since_ns = now_ns,
                                        .until_ns = WEIR_NEVER,
                                        .level = list->level,
                                        .origin = WEIR_STANDING_BY_LIST,
                                        .reason_size = (uint8_t)list->reason.size};
    uint64_t id[2];
    if (list->reason.size > 0)
        memcpy(entry.reason, list->reason.data, list->reason.size);
    if (item->network.address.family != 0)
        return weir_standing_set_network(map, &item->network, &entry);
    item_id(lists, item, map, id);
    return weir_standing_set(map, id, &entry);
}

static bool has_item(const struct weir_standing_lists *lists, const struct listed *item,
                     struct weir_standing *map)
{
    uint64_t id[2];
    if (item->network.address.family != 0)
        return weir_standing_has_network(map, &item->network, WEIR_STANDING_BY_LIST);
    item_id(lists, item, map, id);
    return weir_standing_has(map, id, WEIR_STANDING_BY_LIST);
}

/* Counts what is not in the map: it found no room, or had to make room for others. */
static struct weir_standing_lost count_lost(struct weir_standing_lists *lists,
                                            struct weir_standing *map)
{
    struct weir_standing_lost lost = {0};
    for (size_t i = 0; i < lists->count; i++) {
        const struct listed *item = &lists->items[i];
        if (has_item(lists, item, map))
            continue;
        lists->files[item->list].lost++;
        if (lost.count++ == 0) {
            lost.path = lists->settings->lists[item->list].path;
            lost.line = item->line;
        }
    }
    return lost;
}

struct weir_standing_lost weir_standing_lists_set(struct weir_standing_lists *lists,
                                                  struct weir_standing *map, uint64_t now_ns)
{
    struct weir_standing_stats before, after;
    bool failed = false;
    weir_standing_stats(map, &before);
    weir_standing_begin_lists(map);
    for (size_t i = 0; i < lists->count; i++)
        failed |= set_item(lists, &lists->items[i], map, now_ns) < 0;
    weir_standing_end_lists(map);
    weir_standing_stats(map, &after);
    if (!failed && after.evicted == before.evicted)
        return (struct weir_standing_lost){0};
    return count_lost(lists, map);
}

int weir_standing_fill_lists(struct weir_standing *map,
                             const struct weir_standing_settings *settings, uint64_t now_ns,
                             struct weir_reason *reason)
{
    struct weir_standing_lists *lists;
    int err = weir_standing_lists_read(&lists, settings, reason);
    if (err < 0)
        return err;
    struct weir_standing_lost lost = weir_standing_lists_set(lists, map, now_ns);
    weir_standing_lists_free(lists);
    if (lost.count == 0)
        return 0;
    snprintf(reason->text, sizeof(reason->text),
             "%.150s:%u: no room for this entry and %zu more: raise `entries` of `standing`",
             lost.path, (unsigned)lost.line, lost.count - 1);
    return WEIR_ERR_FULL;
}
