/* SPDX-License-Identifier: Apache-2.0 */
/* see second.h */
#include "cli/replay/second.h"

#include <stdlib.h>
#include <string.h>

#include <weir/bytes.h>
#include <weir/error.h>

#define STAMP_MAX 64 /* "07/Mar/2004:16:05:49 -0800" has 26 */

struct kept {
    struct replay_line line;
    size_t offset; /* of its text */
};

struct replay_second {
    char *text;
    size_t size, text_room;
    struct kept *lines;
    uint32_t count, room, given;
    char stamp[STAMP_MAX];
    size_t stamp_size;
};

struct replay_second *replay_second_open(void)
{
    return calloc(1, sizeof(struct replay_second));
}

void replay_second_close(struct replay_second *second)
{
    if (!second)
        return;
    free(second->text);
    free(second->lines);
    free(second);
}

/* What stands between the first brackets; size 0: nothing that is a time. */
static struct weir_bytes stamp_of(const struct replay_line *line)
{
    struct weir_bytes none = {NULL, 0};
    const char *end = line->text + line->size;
    const char *from = line->size > 0 ? memchr(line->text, '[', line->size) : NULL;

    if (line->format != REPLAY_ACCESS_LOG || !from)
        return none;

    const char *to = memchr(from, ']', (size_t)(end - from));

    if (!to || to - from > STAMP_MAX)
        return none;
    return (struct weir_bytes){from + 1, (size_t)(to - from) - 1};
}

bool replay_second_takes(const struct replay_second *second, const struct replay_line *line)
{
    struct weir_bytes stamp = stamp_of(line);

    if (stamp.size == 0 || second->count == SECOND_LINES_MAX || second->size > SECOND_BYTES_MAX)
        return false;
    return second->count == 0 ||
           (stamp.size == second->stamp_size && memcmp(stamp.data, second->stamp, stamp.size) == 0);
}

/* Room for one line more. */
static int grow(struct replay_second *second, size_t size)
{
    if (second->count == second->room) {
        uint32_t room = second->room > 0 ? 2 * second->room : 64;
        struct kept *lines = realloc(second->lines, room * sizeof *lines);

        if (!lines)
            return WEIR_ERR_MEMORY;
        second->lines = lines;
        second->room = room;
    }
    if (second->text_room - second->size < size) {
        size_t room = 2 * (second->text_room + size);
        char *text = realloc(second->text, room);

        if (!text)
            return WEIR_ERR_MEMORY;
        second->text = text;
        second->text_room = room;
    }
    return 0;
}

int replay_second_add(struct replay_second *second, const struct replay_line *line)
{
    if (grow(second, line->size) < 0)
        return WEIR_ERR_MEMORY;
    if (second->count == 0) {
        struct weir_bytes stamp = stamp_of(line);

        if (stamp.size > 0) /* always: replay_second_takes */
            memcpy(second->stamp, stamp.data, stamp.size);
        second->stamp_size = stamp.size;
    }
    second->lines[second->count++] = (struct kept){*line, second->size};
    memcpy(second->text + second->size, line->text, line->size);
    second->size += line->size;
    return 0;
}

bool replay_second_next(struct replay_second *second, struct replay_line *line)
{
    if (second->given == second->count) {
        second->count = second->given = 0;
        second->size = 0;
        return false;
    }
    *line = second->lines[second->given].line;
    line->text = second->text + second->lines[second->given].offset;
    line->place = second->given++;
    line->of = second->count;
    return true;
}
