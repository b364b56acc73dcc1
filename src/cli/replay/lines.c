/* SPDX-License-Identifier: Apache-2.0 */
/* see lines.h */
#include "cli/replay/lines.h"

#include <inttypes.h>
#include <string.h>

#include "cli/options.h"
#include "cli/replay/second.h"

/* Malformed lines that are reported one by one; the others are counted. */
#define MALFORMED_TOLD_MAX 10

struct lines {
    replay_lines_fn take;
    void *context;
    uint64_t *malformed;
    struct replay_second *second;
};

/* Gives one line to who asked. Returns 0 or -1 after telling why. */
static int give(const struct lines *lines, const struct replay_line *line)
{
    struct weir_reason reason = {{0}};
    int taken = lines->take(lines->context, line, &reason);

    if (taken < 0) {
        cli_error("%s:%" PRIu64 ": %s", line->file, line->number, weir_error_text(taken));
        return -1;
    }
    if (taken == REPLAY_MALFORMED && (*lines->malformed)++ < MALFORMED_TOLD_MAX)
        cli_error("%s:%" PRIu64 ": %s", line->file, line->number, reason.text);
    return 0;
}

static int give_second(const struct lines *lines)
{
    struct replay_line line;
    int error = 0;

    while (replay_second_next(lines->second, &line))
        error = error < 0 ? error : give(lines, &line);
    return error;
}

/* Keeps a line as one of its second, or gives it at once where it has no other. */
static int take(const struct lines *lines, const struct replay_line *line)
{
    if (!replay_second_takes(lines->second, line) && give_second(lines) < 0)
        return -1;
    if (!replay_second_takes(lines->second, line))
        return give(lines, line);
    if (replay_second_add(lines->second, line) == 0)
        return 0;
    cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
    return -1;
}

static int each(struct replay_trace *trace, const struct lines *lines)
{
    struct replay_line line;
    const char *file = NULL;
    int got, failure = 0;

    while ((got = replay_trace_next(trace, &line, &file, &failure)) > 0)
        if (take(lines, &line) < 0)
            return -1;
    if (give_second(lines) < 0)
        return -1;
    if (got < 0) {
        cli_error("%s: %s", file, strerror(failure));
        return -1;
    }
    if (*lines->malformed > MALFORMED_TOLD_MAX)
        cli_error("%" PRIu64 " more lines were malformed", *lines->malformed - MALFORMED_TOLD_MAX);
    return 0;
}

int replay_lines_each(struct replay_trace *trace, replay_lines_fn take_one, void *context,
                      uint64_t *malformed)
{
    struct lines lines = {take_one, context, malformed, replay_second_open()};

    if (!lines.second) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return -1;
    }

    int error = each(trace, &lines);

    replay_second_close(lines.second);
    return error;
}
