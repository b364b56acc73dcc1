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

void weir_metrics_head(struct weir_metrics *metrics, const char *name, const char *type,
                       const char *help)
{
    weir_metrics_put(metrics, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void weir_metrics_number(struct weir_metrics *metrics, const char *name, const char *type,
                         const char *help, uint64_t value)
{
    weir_metrics_head(metrics, name, type, help);
    weir_metrics_put(metrics, "%s %" PRIu64 "\n", name, value);
}
