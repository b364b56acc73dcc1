/* SPDX-License-Identifier: Apache-2.0 */
/* see query.h */
#include "feature/standing/server/redis/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/standing/server/json.h"

struct standing_kept {
    struct weir_history_entry entry; /* its texts are in `text` */
    char text[];
};

int standing_query_init(struct standing_query *query, const struct weir_history_filter *filter,
                        struct weir_reason *reason)
{
    *query = (struct standing_query){.filter = filter};
    if (filter->skip > STANDING_PAGE_MAX || filter->count > STANDING_PAGE_MAX - filter->skip) {
        snprintf(reason->text, sizeof reason->text,
                 "skip: entries in Redis can be listed up to number %d; name a kind or a value",
                 STANDING_PAGE_MAX);
        return WEIR_ERR_RANGE;
    }
    query->most = (size_t)(filter->skip + filter->count);
    query->kept = calloc(query->most + 1, sizeof(struct standing_kept *));
    query->rows = json_array();
    if (query->kept && query->rows)
        return 0;
    standing_query_free(query);
    return WEIR_ERR_MEMORY;
}

void standing_query_free(struct standing_query *query)
{
    for (size_t i = 0; query->kept && i < query->count; i++)
        free(query->kept[i]);
    free(query->kept);
    json_decref(query->rows);
    *query = (struct standing_query){.filter = NULL};
}

static bool is_wanted(struct weir_bytes wanted, struct weir_bytes text)
{
    return !wanted.data || weir_bytes_equal(wanted, text);
}

bool standing_query_wants(const struct weir_history_filter *filter,
                          const struct shared_record *record)
{
    const struct weir_history_entry *entry = &record->to;

    return is_wanted(filter->kind, entry->kind) && is_wanted(filter->value, entry->value) &&
           (filter->level < 0 || filter->level == entry->entry.level) &&
           entry->entry.until_ns > filter->now_ns;
}

static int compare_bytes(struct weir_bytes a, struct weir_bytes b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int difference = size > 0 ? memcmp(a.data, b.data, size) : 0;

    return difference != 0 ? difference : (a.size > b.size) - (a.size < b.size);
}

static int compare(const struct weir_history_entry *a, const struct weir_history_entry *b)
{
    int difference = compare_bytes(a->kind, b->kind);

    if (difference == 0)
        difference = compare_bytes(a->value, b->value);
    return difference != 0 ? difference : a->entry.origin - b->entry.origin;
}

static struct weir_bytes copy(char **at, struct weir_bytes text)
{
    struct weir_bytes copied = {*at, text.size};

    if (text.size > 0)
        memcpy(*at, text.data, text.size);
    *at += text.size;
    return copied;
}

static struct standing_kept *keep(const struct weir_history_entry *entry)
{
    size_t size = entry->kind.size + entry->value.size + entry->by.size;
    struct standing_kept *kept = malloc(sizeof *kept + size);
    char *at;

    if (!kept)
        return NULL;
    at = kept->text;
    kept->entry = *entry;
    kept->entry.kind = copy(&at, entry->kind);
    kept->entry.value = copy(&at, entry->value);
    kept->entry.by = copy(&at, entry->by);
    return kept;
}

/* The first place whose entry does not come before this one. */
static size_t place_of(const struct standing_query *query, const struct weir_history_entry *entry)
{
    size_t low = 0, high = query->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (compare(&query->kept[middle]->entry, entry) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int standing_query_take(struct standing_query *query, const struct shared_record *record)
{
    struct standing_kept *kept;
    size_t at;

    if (!standing_query_wants(query->filter, record))
        return 0;
    at = place_of(query, &record->to);
    if (at == query->most ||
        (at < query->count && compare(&query->kept[at]->entry, &record->to) == 0))
        return 0;
    kept = keep(&record->to);
    if (!kept)
        return WEIR_ERR_MEMORY;
    memmove(&query->kept[at + 1], &query->kept[at],
            (query->count - at) * sizeof(struct standing_kept *));
    query->kept[at] = kept;
    if (query->count == query->most)
        free(query->kept[query->count]);
    else
        query->count++;
    return 0;
}

json_t *standing_query_entries(const struct standing_query *query)
{
    json_t *array = json_array();

    for (size_t i = (size_t)query->filter->skip; i < query->count; i++)
        weir_standing_add_entry(array, &query->kept[i]->entry);
    return array;
}

bool standing_query_row(struct standing_query *query, const struct shared_record *record,
                        struct weir_bytes was)
{
    const struct weir_history_filter *filter = query->filter;
    const struct weir_history_row row = {
        .at_ns = record->to.entry.since_ns,
        .was = weir_standing_level_of(was),
        .level = record->removed ? -1 : record->to.entry.level,
        .to = record->to,
    };

    if (!is_wanted(filter->kind, record->to.kind) || !is_wanted(filter->value, record->to.value))
        return true;
    if (query->skipped < filter->skip)
        query->skipped++;
    else if (json_array_size(query->rows) < filter->count)
        weir_standing_add_row(query->rows, &row);
    return json_array_size(query->rows) < filter->count;
}
