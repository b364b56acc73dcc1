/* SPDX-License-Identifier: Apache-2.0 */
/* see progress.h */
#include "cli/fetch/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "server/text/durations.h"

#define LEFT_MAX_S 1000000000 /* of a rate that is nearly 0 */
#define BAR 20

struct line {
    char *text;
    size_t size, room;
};

static void __attribute__((format(printf, 2, 3))) add(struct line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int size = vsnprintf(line->text + line->size, line->room - line->size, format, arguments);
    va_end(arguments);
    line->size += (size_t)size;
    if (line->size >= line->room)
        line->size = line->room - 1;
}

void fetch_progress_text(const struct fetch_progress *progress, unsigned width,
                         char text[FETCH_PROGRESS_MAX])
{
    struct line line = {text, 0, width + 1 < FETCH_PROGRESS_MAX ? width + 1 : FETCH_PROGRESS_MAX};
    uint64_t filled = progress->total > 0 ? progress->done * BAR / progress->total : 0;
    double seconds = (double)progress->elapsed_ns / 1e9;
    double rate = seconds > 0 ? (double)progress->done / seconds : 0;
    char duration[WEIR_DURATION_MAX];

    add(&line, "[");
    for (unsigned i = 0; i < BAR; i++)
        add(&line, i < filled ? "#" : ".");
    add(&line, "] %" PRIu64 "/%" PRIu64 "  %.1f/s", progress->done, progress->total, rate);
    if (progress->limit.remaining != WEIR_CLIENT_UNKNOWN) {
        add(&line, "  limit: %" PRIu64, progress->limit.remaining);
        if (progress->limit.limit != WEIR_CLIENT_UNKNOWN)
            add(&line, " of %" PRIu64, progress->limit.limit);
        add(&line, " left");
    }
    if (progress->retries > 0)
        add(&line, "  %" PRIu64 " %s", progress->retries,
            progress->retries == 1 ? "retry" : "retries");
    if (progress->failed > 0)
        add(&line, "  %" PRIu64 " failed", progress->failed);
    if (progress->done > 0 && progress->done < progress->total) {
        double left = (double)(progress->total - progress->done) / rate;
        uint64_t left_s = left < LEFT_MAX_S ? (uint64_t)ceil(left) : LEFT_MAX_S;
        add(&line, "  %s left", weir_duration(duration, left_s * 1000));
    }
}
