/* SPDX-License-Identifier: Apache-2.0 */
/* see exposition.h */
#include "server/admin/exposition.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One line: the longest name, the name of a limit, a key with each byte of it encoded, a number. */
#define LINE_MAX_BYTES 3072

/* Room for so much more; false: there is none, and nothing is written any more. */
static bool exposition_reserve(struct weir_metrics *metrics, size_t size)
{
    struct weir_buffers *buffers = &metrics->daemon->admin->buffers;
    if (!metrics->text)
        return false;
    struct weir_buffer *text = weir_buffer_reserve(buffers, metrics->text, size);
    if (!text)
        weir_buffer_give(buffers, metrics->text);
    metrics->text = text;
    return text;
}

void weir_metrics_put(struct weir_metrics *metrics, const char *format, ...)
{
    if (!exposition_reserve(metrics, LINE_MAX_BYTES))
        return;
    struct weir_buffer *text = metrics->text;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text->data + text->used, LINE_MAX_BYTES, format, arguments);
    va_end(arguments);
    text->used += size < LINE_MAX_BYTES ? (size_t)size : LINE_MAX_BYTES - 1;
}

void weir_metrics_text(struct weir_metrics *metrics, const char *text, size_t size)
{
    if (!exposition_reserve(metrics, size))
        return;
    memcpy(metrics->text->data + metrics->text->used, text, size);
    metrics->text->used += size;
}

static void put_labels(struct weir_metrics *metrics, const char *labels, va_list values)
{
    char before = '{';
    for (const char *at = labels; at && *at;) {
        size_t size = strcspn(at, ",");
        weir_metrics_put(metrics, "%c%.*s=\"%s\"", before, (int)size, at,
                         va_arg(values, const char *));
        before = ',';
        at += size + (at[size] == ',');
    }
    if (labels)
        weir_metrics_put(metrics, "}");
}

void weir_metrics_series(struct weir_metrics *metrics, const struct weir_metric *metric,
                         const char *suffix, ...)
{
    va_list values;
    va_start(values, suffix);
    weir_metrics_put(metrics, "%s%s", metric->name, suffix);
    put_labels(metrics, metric->labels, values);
    weir_metrics_put(metrics, " ");
    va_end(values);
}

/* The object that holds a value, made when it is the first, and the value's name in it. */
static json_t *json_place(json_t *owner, const char *where, const char **name, const char *label)
{
    size_t size = strcspn(where, ".*");
    if (where[size] == '\0') {
        *name = where;
        return owner;
    }
    *name = label;
    if (size == 0)
        return owner;
    json_t *object = json_object_getn(owner, where, size);
    if (!object && json_object_setn_new(owner, where, size, json_object()) == 0)
        object = json_object_getn(owner, where, size);
    return object;
}

static void put_json(json_t *owner, const struct weir_metric *metric, uint64_t value,
                     va_list labels)
{
    const char *label = NULL, *name;
    for (const char *at = metric->labels; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        label = va_arg(labels, const char *);
    json_t *object = metric->json ? json_place(owner, metric->json, &name, label) : NULL;
    if (object)
        json_object_set_new(object, name, json_integer((json_int_t)value));
}

void weir_metrics_value(struct weir_metrics *metrics, const struct weir_metric *metric,
                        uint64_t value, ...)
{
    va_list values;
    va_start(values, value);
    if (metrics->json) {
        put_json(metrics->json, metric, value, values);
    } else {
        weir_metrics_put(metrics, "%s", metric->name);
        put_labels(metrics, metric->labels, values);
        weir_metrics_put(metrics, " %" PRIu64 "\n", value);
    }
    va_end(values);
}

void weir_metrics_seconds(struct weir_metrics *metrics, const struct weir_metric *metric,
                          int64_t ns)
{
    uint64_t absolute = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    weir_metrics_put(metrics, "%s %s%" PRIu64 ".%09" PRIu64 "\n", metric->name, ns < 0 ? "-" : "",
                     absolute / 1000000000, absolute % 1000000000);
}

static uint64_t number_at(const void *numbers, size_t at)
{
    uint64_t number;
    memcpy(&number, (const char *)numbers + at, sizeof number);
    return number;
}

void weir_metrics_table(struct weir_metrics *metrics, const struct weir_metric_table *table)
{
    _Alignas(16) char numbers[WEIR_METRIC_NUMBERS_MAX] = {0};
    if (table->read && !table->read(metrics->daemon, numbers))
        return;
    for (const struct weir_metric *row = table->rows; row->name; row++) {
        if (row->there && !row->there(row, numbers))
            continue;
        weir_metrics_put(metrics, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name,
                         row->type);
        if (row->put)
            row->put(metrics, row, numbers);
        else
            weir_metrics_value(metrics, row, number_at(numbers, row->at));
    }
}
