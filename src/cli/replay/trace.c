/* SPDX-License-Identifier: Apache-2.0 */
/* see trace.h */
#include "cli/replay/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>

/* A whole line always fits with room for a good read behind it. */
#define BUFFER_BYTES (REPLAY_LINE_MAX + ((size_t)1 << 18))

struct replay_trace {
    const char *const *files;
    size_t file_count, file; /* file: index of the next one to open */
    enum replay_format asked, format;
    int fd; /* -1: none open */
    const char *name;
    uint64_t number;
    size_t start, end; /* buffer[start..end) is read and not yet given out */
    bool at_eof, skipping;
    char buffer[BUFFER_BYTES];
};

struct replay_trace *replay_trace_open(const char *const *files, size_t count,
                                       enum replay_format format)
{
    struct replay_trace *trace = malloc(sizeof *trace);
    if (!trace)
        return NULL;
    trace->files = files;
    trace->file_count = count;
    trace->file = 0;
    trace->asked = format;
    trace->fd = -1;
    return trace;
}

static void close_file(struct replay_trace *trace)
{
    if (trace->fd > STDIN_FILENO)
        close(trace->fd);
    trace->fd = -1;
}

void replay_trace_close(struct replay_trace *trace)
{
    if (!trace)
        return;
    close_file(trace);
    free(trace);
}

static bool open_file(struct replay_trace *trace)
{
    const char *path = trace->files[trace->file++];
    bool standard_input = strcmp(path, "-") == 0;
    trace->name = standard_input ? "(standard input)" : path;
    trace->fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    trace->format = trace->asked;
    trace->number = 0;
    trace->start = trace->end = 0;
    trace->at_eof = trace->skipping = false;
    return trace->fd >= 0;
}

/* Reads more behind what is there. False on an error. */
static bool fill(struct replay_trace *trace)
{
    if (trace->start > 0) {
        memmove(trace->buffer, trace->buffer + trace->start, trace->end - trace->start);
        trace->end -= trace->start;
        trace->start = 0;
    }
    ssize_t got;
    do {
        got = read(trace->fd, trace->buffer + trace->end, BUFFER_BYTES - trace->end);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return false;
    trace->at_eof = got == 0;
    trace->end += (size_t)got;
    return true;
}

static bool is_blank(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] != ' ' && text[i] != '\t')
            return false;
    return true;
}

static enum replay_format guess_format(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && (text[i] == ' ' || text[i] == '\t'))
        i++;
    return text[i] == '{' ? REPLAY_JSONL : REPLAY_ACCESS_LOG;
}

/* Takes the line buffer[start..start+size), which `skip` more bytes end. False: it is blank. */
static bool take_line(struct replay_trace *trace, size_t size, size_t skip,
                      struct replay_line *line)
{
    char *text = trace->buffer + trace->start;
    trace->start += size + skip;
    trace->number++;
    if (size > 0 && text[size - 1] == '\r')
        size--;
    bool too_long = trace->skipping || size > REPLAY_LINE_MAX;
    trace->skipping = false;
    if (!too_long && is_blank(text, size))
        return false;
    if (trace->format == REPLAY_AUTO)
        trace->format = guess_format(text, size);
    *line = (struct replay_line){.text = text,
                                 .size = too_long ? 0 : size,
                                 .file = trace->name,
                                 .number = trace->number,
                                 .format = trace->format,
                                 .too_long = too_long};
    return true;
}

/* The next line of the open file: 1, 0 at its end, WEIR_ERR_IO. */
static int next_of_file(struct replay_trace *trace, struct replay_line *line)
{
    for (;;) {
        char *from = trace->buffer + trace->start;
        size_t size = trace->end - trace->start;
        char *newline = memchr(from, '\n', size);
        if (newline) {
            if (take_line(trace, (size_t)(newline - from), 1, line))
                return 1;
            continue;
        }
        if (trace->at_eof) {
            if (size == 0 && !trace->skipping)
                return 0;
            if (take_line(trace, size, 0, line))
                return 1;
            continue;
        }
        if (size > REPLAY_LINE_MAX) { /* keeps none of it: what is left of it is skipped */
            if (trace->format == REPLAY_AUTO)
                trace->format = guess_format(from, size);
            trace->skipping = true;
            trace->start = trace->end;
        }
        if (!fill(trace))
            return WEIR_ERR_IO;
    }
}

int replay_trace_next(struct replay_trace *trace, struct replay_line *line, const char **file,
                      int *error)
{
    for (;;) {
        if (trace->fd < 0) {
            if (trace->file == trace->file_count)
                return 0;
            if (!open_file(trace))
                break;
        }
        int got = next_of_file(trace, line);
        if (got > 0)
            return got;
        if (got < 0)
            break;
        close_file(trace);
    }
    *error = errno;
    *file = trace->name;
    return WEIR_ERR_IO;
}
