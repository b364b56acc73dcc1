/* SPDX-License-Identifier: Apache-2.0 */
/* see decisions.h */
#include "cli/replay/decisions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "feature/standing/rules/match.h"

/* Room of one limit: its name (64 bytes), five numbers of at most 20 digits, and the field names
 * (105 bytes); and of what stands around them. */
#define LIMIT_BYTES_MAX 320
#define DECISION_BYTES_MAX (64 + WEIR_CHECKS_MAX * LIMIT_BYTES_MAX)
#define BUFFER_BYTES ((size_t)1 << 18)

struct replay_decisions {
    int fd;
    int error; /* errno of the first write that failed */
    size_t used;
    char buffer[BUFFER_BYTES];
};

struct replay_decisions *replay_decisions_open(const char *path)
{
    struct replay_decisions *decisions = malloc(sizeof *decisions);
    if (!decisions)
        return NULL;
    decisions->error = 0;
    decisions->used = 0;
    decisions->fd = STDOUT_FILENO;
    if (strcmp(path, "-") != 0)
        decisions->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (decisions->fd < 0) {
        free(decisions);
        return NULL;
    }
    return decisions;
}

static void flush(struct replay_decisions *decisions)
{
    size_t done = 0;
    while (done < decisions->used && decisions->error == 0) {
        ssize_t wrote = write(decisions->fd, decisions->buffer + done, decisions->used - done);
        if (wrote >= 0)
            done += (size_t)wrote;
        else if (errno != EINTR)
            decisions->error = errno;
    }
    decisions->used = 0;
}

static char *put_text(char *out, const char *text, size_t size)
{
    memcpy(out, text, size);
    return out + size;
}

#define PUT(out, literal) put_text(out, literal, sizeof(literal) - 1)

static char *put_number(char *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return put_text(out, digits + at, sizeof digits - at);
}

static char *put_verdict(char *out, bool allowed)
{
    return allowed ? PUT(out, "true") : PUT(out, "false");
}

static char *put_limit(char *out, const struct weir_rules *rules,
                       const struct weir_decision *decision, uint16_t first, uint16_t end)
{
    struct weir_report report;
    uint16_t i = weir_decision_tightest(decision, first, end, &report);
    const struct weir_check *check = &decision->checks[i];
    struct weir_rule_info info;
    weir_rules_info(rules, check->rule, &info);
    out = PUT(out, "{\"name\":\"");
    out = put_text(out, info.name, strlen(info.name)); /* [a-z0-9._-]: nothing to escape */
    out = PUT(out, "\",\"allowed\":");
    out = put_verdict(out, decision->outcomes[i].verdict == WEIR_ALLOWED);
    if (check->flags & WEIR_CHECK_UNLIMITED)
        return PUT(out, ",\"remaining\":null,\"retry_after_ns\":0,\"reset_after_ns\":0,"
                        "\"delay_ns\":0}");
    if (check->flags & WEIR_CHECK_ALWAYS_DENY)
        return PUT(out, ",\"remaining\":0,\"retry_after_ns\":-1,\"reset_after_ns\":0,"
                        "\"delay_ns\":0}");
    out = PUT(out, ",\"remaining\":");
    out = put_number(out, report.remaining);
    out = PUT(out, ",\"retry_after_ns\":");
    out = report.retry_after_ns == WEIR_NEVER ? PUT(out, "-1")
                                              : put_number(out, report.retry_after_ns);
    out = PUT(out, ",\"reset_after_ns\":");
    out = report.reset_after_ns == WEIR_NEVER ? PUT(out, "-1")
                                              : put_number(out, report.reset_after_ns);
    uint64_t delay_ns = 0; /* of several rates the longest, where all of them admit */
    bool admits = decision->outcomes[i].verdict == WEIR_ALLOWED; /* the tightest denies first */
    for (uint16_t rate = first; admits && rate < end; rate++)
        delay_ns = decision->outcomes[rate].delay_ns > delay_ns ? decision->outcomes[rate].delay_ns
                                                                : delay_ns;
    out = PUT(out, ",\"delay_ns\":");
    out = put_number(out, delay_ns);
    *out++ = '}';
    return out;
}

void replay_decisions_add(struct replay_decisions *decisions, uint64_t n,
                          const struct weir_rules *rules, const struct weir_decision *decision)
{
    if (BUFFER_BYTES - decisions->used < DECISION_BYTES_MAX)
        flush(decisions);
    char *out = decisions->buffer + decisions->used;
    out = PUT(out, "{\"n\":");
    out = put_number(out, n);
    out = PUT(out, ",\"allowed\":");
    out = put_verdict(out, decision->verdict == WEIR_ALLOWED);
    const struct weir_caller_standing *standing = weir_decision_standing(decision);
    if (standing) {
        const char *level = weir_standing_level_name(standing->entry.level);
        out = PUT(out, ",\"standing\":\"");
        out = put_text(out, level, strlen(level));
        *out++ = '"';
    }
    out = PUT(out, ",\"limits\":[");
    for (uint16_t i = 0, end; i < weir_decision_limits(decision); i = end) {
        end = weir_decision_limit_end(decision, i);
        if (i > 0)
            *out++ = ',';
        out = put_limit(out, rules, decision, i, end);
    }
    out = PUT(out, "]}\n");
    decisions->used = (size_t)(out - decisions->buffer);
}

int replay_decisions_close(struct replay_decisions *decisions)
{
    flush(decisions);
    int error = decisions->error;
    if (decisions->fd != STDOUT_FILENO && close(decisions->fd) < 0 && error == 0)
        error = errno;
    free(decisions);
    return error;
}
