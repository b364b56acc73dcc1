/* SPDX-License-Identifier: Apache-2.0 */
/* see detect.h */
#include "cli/replay/trace/detect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lines of a sample, one after the other. */
struct walk {
    const char *at, *end;
};

bool replay_is_blank(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

/* The next line that is not blank. */
static bool walk_next(struct walk *walk, struct weir_bytes *line)
{
    while (walk->at < walk->end) {
        const char *newline = memchr(walk->at, '\n', (size_t)(walk->end - walk->at));
        const char *end = newline ? newline : walk->end;
        *line = (struct weir_bytes){walk->at, (size_t)(end - walk->at)};
        walk->at = newline ? newline + 1 : walk->end;
        if (line->size > 0 && line->data[line->size - 1] == '\r')
            line->size--;
        if (!replay_is_blank(line->data, line->size))
            return true;
    }
    return false;
}

struct replay_sample replay_sample_of(const char *text, size_t size, bool skipping, bool at_eof)
{
    struct replay_sample sample = {text, size, 0};
    const char *first = skipping && size > 0 ? memchr(text, '\n', size) : NULL;
    if (skipping) {
        sample.text = first ? first + 1 : text + size;
        sample.size = (size_t)(text + size - sample.text);
    }
    while (!at_eof && sample.size > 0 && sample.text[sample.size - 1] != '\n')
        sample.size--;
    struct walk walk = {sample.text, sample.text + sample.size};
    struct weir_bytes line;
    while (walk_next(&walk, &line))
        sample.lines++;
    return sample;
}

/* A copy that may be written to. */
static char *copy_line(char *copy, struct weir_bytes line)
{
    return memcpy(copy, line.data, line.size);
}

/* The envelope that most of the first lines have. */
static enum weir_log_envelope find_envelope(const struct replay_sample *sample, char *copy)
{
    struct walk walk = {sample->text, sample->text + sample->size};
    size_t lines = 0, having[WEIR_LOG_ENVELOPES] = {0};
    struct weir_log_piece piece;
    struct weir_bytes line;
    while (lines < REPLAY_DETECT_LINES && walk_next(&walk, &line)) {
        lines++;
        for (int e = WEIR_LOG_DOCKER; e < WEIR_LOG_ENVELOPES; e++)
            having[e] += weir_log_unwrap((enum weir_log_envelope)e, copy_line(copy, line),
                                         line.size, &piece);
    }
    for (int e = WEIR_LOG_DOCKER; e < WEIR_LOG_ENVELOPES; e++)
        if (2 * having[e] > lines)
            return (enum weir_log_envelope)e;
    return WEIR_LOG_PLAIN;
}

/* Adds the points of all rows for one line. Returns whether it fits any. */
static bool add_points(unsigned points[WEIR_LOG_FORMATS], struct weir_bytes line, char *copy,
                       struct weir_log_room *room)
{
    bool fits = false;
    for (int f = 0; f < WEIR_LOG_FORMATS; f++) {
        unsigned more =
            weir_log_fits((enum weir_log_format)f, copy_line(copy, line), line.size, room);
        points[f] += more;
        fits |= more > 0;
    }
    return fits;
}

/* Writes the lines of a container's program to `to`, which has room for the sample. Parts are put
 * together, as long as no line of the other stream is between them. */
static size_t unwrap_sample(const struct replay_sample *sample, enum weir_log_envelope envelope,
                            char *copy, char *to)
{
    struct walk walk = {sample->text, sample->text + sample->size};
    struct weir_log_piece piece;
    struct weir_bytes line;
    size_t size = 0;
    while (walk_next(&walk, &line)) {
        if (!weir_log_unwrap(envelope, copy_line(copy, line), line.size, &piece))
            continue;
        memcpy(to + size, piece.text, piece.size);
        size += piece.size;
        if (!piece.goes_on)
            to[size++] = '\n';
    }
    return size;
}

/* Finds the row with most points for the first lines. */
static int find_format(struct walk walk, char *copy, struct weir_log_room *room)
{
    unsigned points[WEIR_LOG_FORMATS] = {0};
    struct weir_bytes line;
    for (size_t fit = 0; fit < REPLAY_DETECT_LINES && walk_next(&walk, &line);)
        fit += add_points(points, line, copy, room);
    return weir_log_best(points);
}

int replay_detect(struct replay_file *file, const struct replay_sample *sample, int format,
                  struct weir_log_room *room, struct weir_reason *reason)
{
    struct walk walk = {sample->text, sample->text + sample->size};
    char *copy = malloc(2 * sample->size + 2);
    if (!copy) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(WEIR_ERR_MEMORY));
        return -1;
    }
    file->envelope = find_envelope(sample, copy);
    if (file->envelope != WEIR_LOG_PLAIN) {
        char *program = copy + sample->size + 1;
        size_t size = unwrap_sample(sample, file->envelope, copy, program);
        walk = (struct walk){program, program + size};
    }
    file->format = format >= 0 ? format : find_format(walk, copy, room);
    free(copy);
    return file->format >= 0;
}

int replay_detect_guess(struct replay_file *file, const struct replay_sample *sample,
                        struct weir_reason *reason)
{
    char names[REPLAY_FORMATS_MAX];
    struct walk walk = {sample->text, sample->text + sample->size};
    struct weir_bytes line;
    if (file->format >= 0 || !walk_next(&walk, &line))
        return 0;
    size_t at = 0;
    while (at + 1 < line.size && (line.data[at] == ' ' || line.data[at] == '\t'))
        at++;
    if (line.data[at] == '{' && file->envelope == WEIR_LOG_PLAIN) {
        file->format = WEIR_LOG_JSONL;
        return 0;
    }
    snprintf(reason->text, sizeof reason->text,
             "its first lines are of no format that weir knows. --format forces one: %s",
             replay_format_names(names));
    return -1;
}

const char *replay_format_names(char text[REPLAY_FORMATS_MAX])
{
    size_t size = (size_t)snprintf(text, REPLAY_FORMATS_MAX, "auto");
    for (int f = 0; f < WEIR_LOG_FORMATS && size < REPLAY_FORMATS_MAX; f++)
        size += (size_t)snprintf(text + size, REPLAY_FORMATS_MAX - size, "%s%s",
                                 f == WEIR_LOG_FORMATS - 1 ? " or " : ", ",
                                 weir_log_row((enum weir_log_format)f)->name);
    return text;
}

int replay_format_of(const char *name)
{
    for (int f = 0; f < WEIR_LOG_FORMATS; f++)
        if (strcmp(name, weir_log_row((enum weir_log_format)f)->name) == 0)
            return f;
    return strcmp(name, "auto") == 0 ? REPLAY_FORMAT_AUTO : -2;
}
