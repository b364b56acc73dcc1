/* SPDX-License-Identifier: Apache-2.0 */
/* see log.h */
#include "server/daemon/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/text/shown.h"
#include "core/text/utf8.h"
#include "server/daemon/clock.h"

/* Room that a line always keeps for its closing quote, brace and newline. */
#define LINE_TAIL 8

static const char *const level_names[] = {"info", "warning", "error"};

void weir_log_init(struct weir_log *log, int fd, enum weir_log_format format)
{
    memset(log, 0, sizeof *log);
    log->fd = fd;
    log->format = format;
}

/* Counts a line of the second `now_s`; false when the second has had `most`. */
static bool log_admit(struct weir_log *log, uint64_t now_s, uint64_t most)
{
    uint64_t seen = atomic_load_explicit(&log->second_lines, memory_order_relaxed);
    for (;;) {
        uint64_t lines = seen >> 24 == now_s ? seen & 0xffffff : 0;
        if (lines >= most) {
            atomic_fetch_add_explicit(&log->dropped, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&log->dropped_total, 1, memory_order_relaxed);
            return false;
        }
        uint64_t next = now_s << 24 | (lines + 1);
        if (atomic_compare_exchange_weak_explicit(&log->second_lines, &seen, next,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
}

static void line_put(struct weir_log_line *line, const char *text, size_t size)
{
    size_t room = sizeof line->text - LINE_TAIL - line->used;
    if (size > room)
        size = room;
    memcpy(line->text + line->used, text, size);
    line->used += size;
}

static void line_put_string(struct weir_log_line *line, const char *text)
{
    line_put(line, text, strlen(text));
}

static bool is_plain(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '=';
}

/* Writes the text of the character at the start of text[0..size), at most 6 bytes; *step: how many
 * bytes it is. Escaped are controls and what hides or turns other characters, by their numbers, and
 * bytes that are no UTF-8. */
static size_t put_character(char written[8], const char *text, size_t size, size_t *step)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t length = weir_utf8_size(text, size);
    unsigned number = length == 2   ? (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu)
                      : length == 3 ? (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu)
                                    : c[0];
    *step = length > 0 ? length : 1;
    if (*c == '"' || *c == '\\')
        return (size_t)snprintf(written, 8, "\\%c", *c);
    if (length == 0 || !weir_text_is_plain(text, length))
        return (size_t)snprintf(written, 8, "\\u%04x", number);
    memcpy(written, text, length);
    return length;
}

/* A quoted value, escaped the same way in both formats. */
static void line_put_quoted(struct weir_log_line *line, const char *text, size_t size)
{
    line_put(line, "\"", 1);
    for (size_t i = 0, step; i < size; i += step) {
        char written[8];
        size_t length = put_character(written, text + i, size - i, &step);
        if (line->used + length > sizeof line->text - LINE_TAIL)
            break; /* never half a character or escape */
        line_put(line, written, length);
    }
    line->text[line->used++] = '"'; /* LINE_TAIL keeps room for it */
}

static void line_put_name(struct weir_log_line *line, const char *name)
{
    if (line->log->format == WEIR_LOG_JSON) {
        line_put_string(line, line->used > 1 ? ",\"" : "\"");
        line_put_string(line, name);
        line_put(line, "\":", 2);
    } else {
        if (line->used)
            line_put(line, " ", 1);
        line_put_string(line, name);
        line_put(line, "=", 1);
    }
}

void weir_log_begin(struct weir_log_line *line, struct weir_log *log, enum weir_log_level level,
                    const char *event)
{
    weir_log_begin_below(line, log, level, event, WEIR_LOG_LINES_PER_SECOND);
}

void weir_log_begin_below(struct weir_log_line *line, struct weir_log *log,
                          enum weir_log_level level, const char *event, uint64_t most)
{
    struct timespec now;
    line->log = log;
    line->used = 0;
    line->wanted = false;
    if (level < log->least)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    line->wanted = log_admit(log, (uint64_t)now.tv_sec, most);
    if (!line->wanted)
        return;
    if (log->format == WEIR_LOG_JSON)
        line_put(line, "{", 1);
    char time_text[WEIR_TIMESTAMP_SIZE];
    weir_clock_timestamp((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, time_text);
    weir_log_bytes(line, "time", time_text, sizeof time_text);
    weir_log_text(line, "level", level_names[level]);
    weir_log_text(line, "event", event);
    uint64_t dropped = atomic_exchange_explicit(&log->dropped, 0, memory_order_relaxed);
    if (dropped)
        weir_log_number(line, "dropped_lines", (int64_t)dropped);
}

void weir_log_bytes(struct weir_log_line *line, const char *name, const char *value, size_t size)
{
    if (!line->wanted)
        return;
    /* A field that finds no room is left out whole: the line stays well-formed. */
    if (line->used + strlen(name) + 16 > sizeof line->text - LINE_TAIL)
        return;
    line_put_name(line, name);
    bool plain = line->log->format == WEIR_LOG_TEXT && size > 0;
    for (size_t i = 0; plain && i < size; i++)
        plain = is_plain((unsigned char)value[i]);
    if (plain)
        line_put(line, value, size);
    else
        line_put_quoted(line, value, size);
}

void weir_log_text(struct weir_log_line *line, const char *name, const char *value)
{
    weir_log_bytes(line, name, value, strlen(value));
}

void weir_log_number(struct weir_log_line *line, const char *name, int64_t value)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%lld", (long long)value);
    if (!line->wanted || line->used + strlen(name) + 32 > sizeof line->text - LINE_TAIL)
        return;
    line_put_name(line, name);
    line_put(line, text, (size_t)size);
}

void weir_log_end(struct weir_log_line *line)
{
    if (!line->wanted)
        return;
    if (line->log->format == WEIR_LOG_JSON)
        line->text[line->used++] = '}';
    line->text[line->used++] = '\n';
    size_t done = 0;
    while (done < line->used) {
        ssize_t n = write(line->log->fd, line->text + done, line->used - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* a log that cannot be written must not stop the server */
        done += (size_t)n;
    }
}

void weir_log_event(struct weir_log *log, enum weir_log_level level, const char *event,
                    const char *name, const char *value)
{
    struct weir_log_line line;
    weir_log_begin(&line, log, level, event);
    if (name)
        weir_log_text(&line, name, value);
    weir_log_end(&line);
}
