/* SPDX-License-Identifier: Apache-2.0 */
/* see progress.h */
#include "cli/fetch/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define S_NS UINT64_C(1000000000)
#define BAR 20

void fetch_duration_text(uint64_t duration_ns, char *text, size_t size)
{
    uint64_t s = duration_ns / S_NS;

    if (s >= 3600)
        snprintf(text, size, "%" PRIu64 "h%02um", s / 3600, (unsigned)(s / 60 % 60));
    else if (s >= 60)
        snprintf(text, size, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
    else
        snprintf(text, size, "%us", (unsigned)s);
}

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
    char duration[32];

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
        fetch_duration_text(left < 1e9 ? (uint64_t)(left * 1e9) : UINT64_MAX, duration,
                            sizeof duration);
        add(&line, "  %s left", duration);
    }
}
