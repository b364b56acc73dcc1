/* see replay_lines.h */
#include "cli/replay_lines.h"

#include <inttypes.h>
#include <string.h>

#include "cli/options.h"

/* Malformed lines that are told one by one; the others are counted. */
#define MALFORMED_TOLD_MAX 10

int replay_lines_each(struct replay_trace *trace, replay_lines_fn take, void *context,
                      uint64_t *malformed)
{
    struct replay_line line;
    const char *file = NULL;
    int got, failure = 0;

    while ((got = replay_trace_next(trace, &line, &file, &failure)) > 0) {
        struct weir_reason reason = {{0}};
        int taken = take(context, &line, &reason);

        if (taken < 0) {
            cli_error("%s:%" PRIu64 ": %s", line.file, line.number, weir_error_text(taken));
            return -1;
        }
        if (taken == REPLAY_MALFORMED && (*malformed)++ < MALFORMED_TOLD_MAX)
            cli_error("%s:%" PRIu64 ": %s", line.file, line.number, reason.text);
    }
    if (got < 0) {
        cli_error("%s: %s", file, strerror(failure));
        return -1;
    }
    if (*malformed > MALFORMED_TOLD_MAX)
        cli_error("%" PRIu64 " more lines were malformed", *malformed - MALFORMED_TOLD_MAX);
    return 0;
}
