/* SPDX-License-Identifier: Apache-2.0 */
/* see trace.h */
#include "cli/replay/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A file that was looked at. */
struct known {
    const char *path;
    size_t given;                 /* its place in the command line */
    uint64_t first_ns, size;      /* size: 0 where it is not known */
    dev_t device;                 /* of a file; with `inode` */
    ino_t inode;                  /* 0: not known */
    struct replay_source *source; /* open now; NULL: not yet, or no more */
    struct replay_line head;      /* with `source`: its next line, if `has_head` */
    bool has_head;
};

struct replay_trace {
    struct replay_trace_options options;
    struct known *known;       /* in the order of first_ns, once `looked` */
    struct replay_file *files; /* what is known of each; of an open one its source knows more */
    size_t *open, open_count;  /* indices of those that are being read */
    size_t next;               /* the first that has not been begun */
    size_t current;            /* index of the one whose line was given; SIZE_MAX: none */
    bool looked, reordered, merged, piped;
    const char *failed; /* the file that something failed with */
    uint64_t done_bytes, total_bytes, n;
};

struct replay_trace *replay_trace_open(const struct replay_trace_options *options)
{
    struct replay_trace *trace = calloc(1, sizeof *trace);
    size_t room = options->count > 0 ? options->count : 1;
    if (!trace)
        return NULL;
    trace->options = *options;
    trace->current = SIZE_MAX;
    trace->known = calloc(room, sizeof *trace->known);
    trace->files = calloc(room, sizeof *trace->files);
    trace->open = calloc(room, sizeof *trace->open);
    if (trace->known && trace->files && trace->open)
        return trace;
    replay_trace_close(trace);
    return NULL;
}

void replay_trace_close(struct replay_trace *trace)
{
    if (!trace)
        return;
    for (size_t i = 0; trace->known && i < trace->options.count; i++)
        replay_source_close(trace->known[i].source);
    free(trace->known);
    free(trace->files);
    free(trace->open);
    free(trace);
}

/* Notes the file that something failed with. */
static int fail(struct replay_trace *trace, const char *path)
{
    trace->failed = strcmp(path, "-") == 0 ? "(standard input)" : path;
    return -1;
}

static int open_source(struct replay_trace *trace, struct known *known, struct weir_reason *reason)
{
    if (known->source)
        return 0;
    known->source =
        replay_source_open(known->path, trace->options.format, trace->options.disorder, reason);
    return known->source ? 0 : fail(trace, known->path);
}

/* Takes the next line of an open file for its head. */
static int take_head(struct replay_trace *trace, struct known *known, struct weir_reason *reason)
{
    int got = replay_source_next(known->source, &known->head, reason);
    known->has_head = got > 0;
    return got < 0 ? fail(trace, known->path) : 0;
}

/* --- Looking ---------------------------------------------------------------------------------- */

/* Notes which file it is. Each of its requests would count twice if it were given again, as by
 * `access.log access.log*`. */
static int note_file(struct replay_trace *trace, size_t i, struct weir_reason *reason)
{
    struct known *known = &trace->known[i];
    struct stat status;
    if (stat(known->path, &status) < 0)
        return 0;
    known->size = status.st_size > 0 ? (uint64_t)status.st_size : 0;
    known->device = status.st_dev;
    known->inode = status.st_ino;
    for (size_t before = 0; before < i && known->inode != 0; before++) {
        const struct known *other = &trace->known[before];
        if (other->inode != known->inode || other->device != known->device)
            continue;
        snprintf(reason->text, sizeof reason->text, "the same file as %s: give it once",
                 other->path);
        return fail(trace, known->path);
    }
    return 0;
}

/* Opens a file for its format and its first time. What can be opened again is closed. */
static int look(struct replay_trace *trace, size_t i, struct weir_reason *reason)
{
    struct known *known = &trace->known[i];
    known->path = trace->options.files[i];
    known->given = i;
    if (open_source(trace, known, reason) < 0)
        return -1;
    bool again = replay_source_is_file(known->source);
    if (again && note_file(trace, i, reason) < 0)
        return -1;
    trace->piped |= !again;
    trace->total_bytes += known->size;
    if (!again && trace->options.count == 1)
        return 0; /* no other to be compared with: nothing has to wait for its first request */
    do {
        if (take_head(trace, known, reason) < 0)
            return -1;
    } while (again && known->has_head && known->head.kind != REPLAY_REQUEST);
    known->first_ns = known->has_head ? known->head.t_ns : 0;
    if (again) {
        replay_source_close(known->source);
        known->source = NULL;
        known->has_head = false;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct known *one = a, *other = b;
    if (one->first_ns != other->first_ns)
        return one->first_ns < other->first_ns ? -1 : 1;
    return one->given < other->given ? -1 : 1;
}

static int look_at_all(struct replay_trace *trace, struct weir_reason *reason)
{
    for (size_t i = 0; i < trace->options.count; i++)
        if (look(trace, i, reason) < 0)
            return -1;
    qsort(trace->known, trace->options.count, sizeof *trace->known, compare);
    for (size_t i = 0; i < trace->options.count; i++)
        trace->reordered |= trace->known[i].given != i;
    trace->looked = true;
    return 0;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* Begins the next file. */
static int begin_file(struct replay_trace *trace, struct weir_reason *reason)
{
    struct known *known = &trace->known[trace->next];
    if (open_source(trace, known, reason) < 0)
        return -1;
    trace->files[trace->next] = *replay_source_file(known->source);
    if (!known->has_head && take_head(trace, known, reason) < 0)
        return -1;
    trace->merged |= trace->open_count > 0;
    trace->open[trace->open_count++] = trace->next++;
    return 0;
}

static void end_file(struct replay_trace *trace, size_t slot)
{
    struct known *known = &trace->known[trace->open[slot]];
    trace->files[trace->open[slot]] = *replay_source_file(known->source);
    trace->done_bytes += known->size;
    replay_source_close(known->source);
    known->source = NULL;
    trace->open_count--;
    memmove(&trace->open[slot], &trace->open[slot + 1],
            (trace->open_count - slot) * sizeof *trace->open);
}

/* The open file whose head is first, of equals the one that began first. */
static size_t first_open(const struct replay_trace *trace)
{
    size_t first = 0;
    for (size_t i = 1; i < trace->open_count; i++)
        if (trace->known[trace->open[i]].head.t_ns < trace->known[trace->open[first]].head.t_ns)
            first = i;
    return first;
}

/* Moves the file on whose line was given. */
static int move_on(struct replay_trace *trace, struct weir_reason *reason)
{
    size_t slot = trace->current;
    if (slot == SIZE_MAX)
        return 0;
    trace->current = SIZE_MAX;
    struct known *known = &trace->known[trace->open[slot]];
    if (take_head(trace, known, reason) < 0)
        return -1;
    if (!known->has_head)
        end_file(trace, slot);
    return 0;
}

/* The next line of the one file that is left, which needs no comparing; 0: it has ended. */
static int next_of_last(struct replay_trace *trace, struct replay_line *line,
                        struct weir_reason *reason)
{
    struct known *known = &trace->known[trace->open[0]];
    bool given = trace->current != SIZE_MAX;
    int got = given ? replay_source_next(known->source, line, reason) : 1;
    if (got < 0)
        return fail(trace, known->path);
    if (!given)
        *line = known->head;
    if (got == 0) {
        known->has_head = false;
        trace->current = SIZE_MAX;
        end_file(trace, 0);
        return 0;
    }
    trace->current = 0;
    line->n = ++trace->n;
    return 1;
}

static int next_line(struct replay_trace *trace, struct replay_line *line,
                     struct weir_reason *reason)
{
    if (!trace->looked && look_at_all(trace, reason) < 0)
        return -1;
    if (trace->open_count == 1 && trace->next == trace->options.count) {
        int got = next_of_last(trace, line, reason);
        if (got != 0)
            return got;
    } else if (move_on(trace, reason) < 0) {
        return -1;
    }
    size_t first = first_open(trace);
    while (trace->next < trace->options.count &&
           (trace->open_count == 0 ||
            trace->known[trace->next].first_ns <= trace->known[trace->open[first]].head.t_ns)) {
        if (begin_file(trace, reason) < 0)
            return -1;
        if (!trace->known[trace->open[trace->open_count - 1]].has_head)
            end_file(trace, trace->open_count - 1);
        first = first_open(trace);
    }
    if (trace->open_count == 0)
        return 0;
    trace->current = first;
    *line = trace->known[trace->open[first]].head;
    line->n = ++trace->n;
    return 1;
}

int replay_trace_next(struct replay_trace *trace, struct replay_line *line, const char **file,
                      struct weir_reason *reason)
{
    int got = next_line(trace, line, reason);
    if (got < 0)
        *file = trace->failed;
    return got;
}

struct replay_reading replay_trace_reading(const struct replay_trace *trace)
{
    uint64_t taken = trace->done_bytes;
    for (size_t i = 0; i < trace->open_count; i++) {
        const struct known *known = &trace->known[trace->open[i]];
        trace->files[trace->open[i]] = *replay_source_file(known->source);
        taken += known->size > 0 ? replay_source_taken(known->source) : 0;
    }
    return (struct replay_reading){
        .files = trace->files,
        .count = trace->next,
        .reordered = trace->reordered,
        .merged = trace->merged,
        .taken_bytes = taken,
        .total_bytes = trace->piped ? 0 : trace->total_bytes,
    };
}
