/* SPDX-License-Identifier: Apache-2.0 */
/* see progress.h */
#include "cli/replay/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "server/text/durations.h"

#define NS_PER_S UINT64_C(1000000000)
#define CLEAR_LINE "\r\033[K" /* ECMA-48: EL */

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void replay_progress_begin(struct replay_progress *progress, const struct replay_trace *trace,
                           const char *doing)
{
    *progress = (struct replay_progress){.trace = trace, .doing = doing};
    progress->on_terminal = isatty(STDERR_FILENO) == 1;
    if (progress->on_terminal)
        progress->started_ns = progress->shown_ns = clock_ns();
}

/* "12,400,000" */
static size_t put_grouped(char *text, size_t size, uint64_t number)
{
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t used = 0;
    for (int i = 0; i < count && used + 2 < size; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return used;
}

const char *replay_progress_text(char text[REPLAY_PROGRESS_MAX], const char *doing, uint64_t lines,
                                 uint64_t taken, uint64_t total, uint64_t elapsed_ns)
{
    const size_t room = REPLAY_PROGRESS_MAX;
    double seconds = (double)(elapsed_ns > 0 ? elapsed_ns : 1) / 1e9;
    double rate = (double)lines / seconds;
    size_t size = (size_t)snprintf(text, room, "%.20s: ", doing);
    size += put_grouped(text + size, room - size, lines);
    size += (size_t)snprintf(text + size, room - size,
                             rate < 1e6 ? " lines  %.0f k/s" : " lines  %.1f M/s",
                             rate < 1e6 ? rate / 1e3 : rate / 1e6);
    if (total == 0)
        return text;
    taken = taken < total ? taken : total;
    size += (size_t)snprintf(text + size, room - size, "  %.0f %%",
                             100.0 * (double)taken / (double)total);
    if (taken > 0 && taken < total) {
        char left[WEIR_DURATION_MAX];
        double left_ms = seconds * 1e3 * (double)(total - taken) / (double)taken;
        (void)snprintf(text + size, room - size, "  %s left",
                       weir_duration(left, left_ms < 1e12 ? (uint64_t)left_ms : (uint64_t)1e12));
    }
    return text;
}

void replay_progress_show(struct replay_progress *progress, uint64_t lines)
{
    char text[REPLAY_PROGRESS_MAX];
    uint64_t now_ns = clock_ns();
    progress->checked = lines;
    if (now_ns - progress->shown_ns < NS_PER_S)
        return;
    struct replay_reading reading = replay_trace_reading(progress->trace);
    progress->shown_ns = now_ns;
    progress->shown = true;
    fprintf(stderr, CLEAR_LINE "%s",
            replay_progress_text(text, progress->doing, lines, reading.taken_bytes,
                                 reading.total_bytes, now_ns - progress->started_ns));
    fflush(stderr);
}

void replay_progress_clear(struct replay_progress *progress)
{
    if (progress->shown)
        fputs(CLEAR_LINE, stderr);
    progress->shown = false;
}
