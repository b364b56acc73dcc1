/* SPDX-License-Identifier: Apache-2.0 */
/* see lines.h */
#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lines_init(struct lines *lines)
{
    *lines = (struct lines){.dropped = 0};
    lines->last = &lines->first;
    pthread_mutex_init(&lines->lock, NULL);
}

void lines_free(struct lines *lines)
{
    struct line *line;
    while ((line = lines_take(lines)))
        free(line);
    pthread_mutex_destroy(&lines->lock);
}

static struct line *make(enum weir_say level, const char *text)
{
    size_t size = strlen(text) + 1;
    struct line *line = malloc(sizeof *line + size);
    if (!line)
        return NULL;
    line->next = NULL;
    line->level = level;
    memcpy(line->text, text, size);
    return line;
}

/* Under the lock. */
static void append(struct lines *lines, struct line *line)
{
    *lines->last = line;
    lines->last = &line->next;
    atomic_fetch_add(&lines->count, 1);
}

void lines_put(void *context, enum weir_say level, const char *text)
{
    struct lines *lines = context;
    struct line *line = atomic_load(&lines->count) < LINES_MAX ? make(level, text) : NULL;
    pthread_mutex_lock(&lines->lock);
    if (line)
        append(lines, line);
    else
        lines->dropped++;
    pthread_mutex_unlock(&lines->lock);
}

/* Under the lock: where the last line is taken, that others were dropped is one more. */
static void append_dropped(struct lines *lines)
{
    char text[64];
    if (lines->first || lines->dropped == 0)
        return;
    snprintf(text, sizeof text, "%u more lines were dropped", lines->dropped);
    struct line *line = make(WEIR_SAY_WARNING, text);
    if (!line)
        return;
    lines->dropped = 0;
    append(lines, line);
}

struct line *lines_take(struct lines *lines)
{
    pthread_mutex_lock(&lines->lock);
    struct line *line = lines->first;
    if (line) {
        lines->first = line->next;
        if (!lines->first)
            lines->last = &lines->first;
        atomic_fetch_sub(&lines->count, 1);
        append_dropped(lines);
    }
    pthread_mutex_unlock(&lines->lock);
    return line;
}
