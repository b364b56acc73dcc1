/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: one an event, well-formed whatever the values, rate limited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "server/daemon/log.h"
#include "test.h"

/* Lines go to a temporary file; `text` is all of it. */
struct sink {
    FILE *file;
    struct weir_log log;
    char text[1 << 20];
};

static struct sink *sink_open(enum weir_log_format format)
{
    struct sink *sink = calloc(1, sizeof *sink);
    assert_non_null(sink);
    sink->file = tmpfile();
    assert_non_null(sink->file);
    weir_log_init(&sink->log, fileno(sink->file), format);
    return sink;
}

static const char *sink_read(struct sink *sink)
{
    ssize_t size = pread(fileno(sink->file), sink->text, sizeof sink->text - 1, 0);
    assert_true(size >= 0);
    sink->text[size] = 0;
    return sink->text;
}

static void sink_close(struct sink *sink)
{
    fclose(sink->file);
    free(sink);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

TEST("a text line is fields of name and value")
{
    struct sink *sink = sink_open(WEIR_LOG_TEXT);
    struct weir_log_line line;
    weir_log_begin(&line, &sink->log, WEIR_LOG_INFO, "listening");
    weir_log_text(&line, "address", "127.0.0.1:80");
    weir_log_text(&line, "why", "two words");
    weir_log_number(&line, "n", -5);
    weir_log_end(&line);
    const char *text = sink_read(sink);
    assert_memory_equal(text, "time=20", 7);
    assert_non_null(strstr(text, " level=info event=listening address=127.0.0.1:80 "
                                 "why=\"two words\" n=-5\n"));
    sink_close(sink);
}

TEST("a value can neither end a line nor leave its quotes")
{
    struct sink *sink = sink_open(WEIR_LOG_TEXT);
    weir_log_event(&sink->log, WEIR_LOG_ERROR, "x", "v", "a\nlevel=\"fake\" \\ \x1b[2J\xff");
    const char *text = sink_read(sink);
    assert_int_equal(count_lines(text), 1);
    assert_non_null(strstr(text, "v=\"a\\u000alevel=\\\"fake\\\" \\\\ \\u001b[2J\\u00ff\"\n"));
    sink_close(sink);
}

TEST("names of all scripts are as they are, but hide nothing")
{
    static const char value[] = "علي Søren 小林 🦊 o\u202ekcab \xc2\x85 \xd8";
    static const enum weir_log_format formats[] = {WEIR_LOG_TEXT, WEIR_LOG_JSON};
    for (size_t i = 0; i < 2; i++) {
        struct sink *sink = sink_open(formats[i]);
        weir_log_event(&sink->log, WEIR_LOG_ERROR, "x", "v", value);
        assert_non_null(
            strstr(sink_read(sink), "\"علي Søren 小林 🦊 o\\u202ekcab \\u0085 \\u00d8\""));
        sink_close(sink);
    }
}

TEST("a line that is full ends before a character that has no room")
{
    static char value[20000];
    for (size_t i = 0; i + 3 < sizeof value; i += 3)
        memcpy(value + i, "小", 3);
    for (size_t ascii = 0; ascii < 3; ascii++) { /* so that each byte of it is the last in turn */
        struct sink *sink = sink_open(WEIR_LOG_JSON);
        char name[4] = "vvv";
        name[ascii + 1] = '\0';
        weir_log_event(&sink->log, WEIR_LOG_ERROR, "x", name, value);
        json_t *line = json_loads(sink_read(sink), 0, NULL); /* which refuses half a character */
        assert_true(json_string_length(json_object_get(line, name)) > 900);
        json_decref(line);
        sink_close(sink);
    }
}

TEST("json lines parse and carry the values")
{
    struct sink *sink = sink_open(WEIR_LOG_JSON);
    struct weir_log_line line;
    weir_log_begin(&line, &sink->log, WEIR_LOG_WARNING, "odd");
    weir_log_text(&line, "v", "\"\\\n\x01 plain");
    weir_log_number(&line, "n", 7);
    weir_log_end(&line);
    json_t *value = json_loads(sink_read(sink), 0, NULL);
    assert_non_null(value);
    assert_string_equal(json_string_value(json_object_get(value, "event")), "odd");
    assert_string_equal(json_string_value(json_object_get(value, "level")), "warning");
    assert_string_equal(json_string_value(json_object_get(value, "v")), "\"\\\n\x01 plain");
    assert_int_equal(json_integer_value(json_object_get(value, "n")), 7);
    json_decref(value);
    sink_close(sink);
}

TEST("a value that is too long is cut and the line stays well formed")
{
    struct sink *sink = sink_open(WEIR_LOG_JSON);
    struct weir_log_line line;
    char huge[3 * WEIR_LOG_LINE_MAX];
    for (size_t size = WEIR_LOG_LINE_MAX - 300; size < WEIR_LOG_LINE_MAX + 50; size++) {
        memset(huge, size % 2 ? 'x' : '\n', size);
        weir_log_init(&sink->log, fileno(sink->file), WEIR_LOG_JSON);
        assert_int_equal(ftruncate(fileno(sink->file), 0), 0);
        assert_int_equal(lseek(fileno(sink->file), 0, SEEK_SET), 0);
        weir_log_begin(&line, &sink->log, WEIR_LOG_INFO, "big");
        weir_log_bytes(&line, "v", huge, size);
        weir_log_text(&line, "after", "a value of some length");
        weir_log_number(&line, "n", INT64_MIN);
        weir_log_end(&line);
        const char *text = sink_read(sink);
        assert_true(strlen(text) <= WEIR_LOG_LINE_MAX);
        json_t *value = json_loads(text, 0, NULL);
        assert_non_null(value);
        json_decref(value);
    }
    sink_close(sink);
}

TEST("a flood is cut and says how much is missing")
{
    struct sink *sink = sink_open(WEIR_LOG_TEXT);
    for (int i = 0; i < 5000; i++)
        weir_log_event(&sink->log, WEIR_LOG_INFO, "flood", NULL, NULL);
    size_t lines = count_lines(sink_read(sink));
    /* A test that runs over the turn of a second or two gets the share of each. */
    assert_true(lines >= WEIR_LOG_LINES_PER_SECOND);
    assert_int_equal(lines + sink->log.dropped_total, 5000);
    assert_true(sink->log.dropped_total > 0);
    sink->log.second_lines = 0; /* as if another second had come */
    uint64_t dropped = sink->log.dropped;
    char expected[64];
    weir_log_event(&sink->log, WEIR_LOG_INFO, "after", NULL, NULL);
    snprintf(expected, sizeof expected, "event=after dropped_lines=%llu\n",
             (unsigned long long)dropped);
    assert_non_null(strstr(sink_read(sink), expected));
    sink_close(sink);
}

TEST("what may be many leaves room for others")
{
    struct sink *sink = sink_open(WEIR_LOG_TEXT);
    for (int i = 0; i < 5000; i++) {
        struct weir_log_line line;
        weir_log_begin_below(&line, &sink->log, WEIR_LOG_INFO, "many", 10);
        weir_log_end(&line);
    }
    assert_true(sink->log.dropped_total > 0);
    for (int i = 0; i < WEIR_LOG_LINES_PER_SECOND - 10; i++)
        weir_log_event(&sink->log, WEIR_LOG_INFO, "other", NULL, NULL);
    assert_int_equal(count_lines(sink_read(sink)) + sink->log.dropped_total,
                     5000 + WEIR_LOG_LINES_PER_SECOND - 10);
    assert_non_null(strstr(sink_read(sink), "event=other"));
    sink_close(sink);
}

TEST("a log that cannot be written does no harm")
{
    struct weir_log log;
    weir_log_init(&log, -1, WEIR_LOG_TEXT);
    weir_log_event(&log, WEIR_LOG_ERROR, "lost", "a", "b");
    assert_int_equal(log.dropped_total, 0);
}

RUN_TESTS()
