/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of traces: every kind of line end, lines of any length, pieces of any size. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/replay/trace.h"
#include "failing_memory.h"
#include "temporary.h"

#include <weir/error.h>

static char path[2][TEMPORARY_MAX];

static int make_files(void **state)
{
    for (int i = 0; i < 2; i++)
        close(temporary_file(path[i]));
    return 0;
}

static int remove_files(void **state)
{
    temporary_remove(path[0]);
    temporary_remove(path[1]);
    return 0;
}

static void write_file(int i, const char *text, size_t size)
{
    FILE *file = fopen(path[i], "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static struct replay_trace *open_trace(const char *const *files, size_t count)
{
    struct replay_trace *trace = replay_trace_open(files, count, REPLAY_AUTO);
    assert_non_null(trace);
    return trace;
}

static void expect_line(struct replay_trace *trace, const char *text, uint64_t number,
                        enum replay_format format)
{
    struct replay_line line;
    const char *file;
    int error;
    assert_int_equal(replay_trace_next(trace, &line, &file, &error), 1);
    assert_int_equal(line.size, strlen(text));
    assert_memory_equal(line.text, text, line.size);
    assert_int_equal(line.number, number);
    assert_int_equal(line.format, format);
    assert_false(line.too_long);
}

static void expect_end(struct replay_trace *trace)
{
    struct replay_line line;
    const char *file;
    int error;
    assert_int_equal(replay_trace_next(trace, &line, &file, &error), 0);
    assert_int_equal(replay_trace_next(trace, &line, &file, &error), 0);
    replay_trace_close(trace);
}

static void lines_end_with_lf_or_crlf_or_the_file_and_blank_ones_only_count(void **state)
{
    const char text[] = "{\"t\":1}\n\n \t\r\n{}\r\nlast";
    write_file(0, text, sizeof text - 1);
    struct replay_trace *trace = open_trace((const char *const[]){path[0]}, 1);
    expect_line(trace, "{\"t\":1}", 1, REPLAY_JSONL);
    expect_line(trace, "{}", 4, REPLAY_JSONL);
    expect_line(trace, "last", 5, REPLAY_JSONL);
    expect_end(trace);
}

static void each_file_has_its_own_format_and_line_numbers(void **state)
{
    write_file(0, "  {}\n", 5);
    write_file(1, "192.0.2.1 - -\n{}\n", 17);
    struct replay_trace *trace = open_trace((const char *const[]){path[0], path[1]}, 2);
    expect_line(trace, "  {}", 1, REPLAY_JSONL);
    expect_line(trace, "192.0.2.1 - -", 1, REPLAY_ACCESS_LOG);
    expect_line(trace, "{}", 2, REPLAY_ACCESS_LOG);
    expect_end(trace);
}

static void an_empty_file_has_no_lines(void **state)
{
    write_file(0, "", 0);
    expect_end(open_trace((const char *const[]){path[0], "/dev/null"}, 2));
}

static void a_line_may_be_as_long_as_the_limit_and_a_longer_one_is_passed_over(void **state)
{
    size_t longest = REPLAY_LINE_MAX, size = 5 * longest;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, 'x', size);
    text[longest] = '\n';         /* 1: just fits */
    text[2 * longest + 2] = '\n'; /* 2: one byte too long */
    text[4 * longest] = '\n';     /* 3: longer than the buffer */
    text[4 * longest + 2] = '\n'; /* 4: "x"; 5: nearly as long as the limit, ended by the file */
    write_file(0, text, size);
    struct replay_trace *trace = open_trace((const char *const[]){path[0]}, 1);
    static const bool too_long[] = {false, true, true, false, false};
    const size_t sizes[] = {longest, 0, 0, 1, size - 4 * longest - 3};
    for (uint64_t i = 0; i < 5; i++) {
        struct replay_line line;
        const char *file;
        int error;
        assert_int_equal(replay_trace_next(trace, &line, &file, &error), 1);
        assert_int_equal(line.number, i + 1);
        assert_int_equal(line.too_long, too_long[i]);
        assert_int_equal(line.size, sizes[i]);
    }
    expect_end(trace);
    free(text);
}

struct feed {
    int fd;
    const char *text;
    size_t size;
};

static void *feed_bytes(void *context)
{
    const struct feed *feed = context;
    for (size_t i = 0; i < feed->size; i++)
        if (write(feed->fd, feed->text + i, 1) != 1)
            break;
    close(feed->fd);
    return NULL;
}

static void lines_are_the_same_when_they_come_byte_by_byte(void **state)
{
    static const char text[] = "one\r\ntwo\n\nthree";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char name[32];
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    struct feed feed = {ends[1], text, sizeof text - 1};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed_bytes, &feed), 0);
    struct replay_trace *trace = open_trace((const char *const[]){name}, 1);
    expect_line(trace, "one", 1, REPLAY_ACCESS_LOG);
    expect_line(trace, "two", 2, REPLAY_ACCESS_LOG);
    expect_line(trace, "three", 4, REPLAY_ACCESS_LOG);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_end(trace);
    close(ends[0]);
}

static void a_file_that_cannot_be_read_is_named_with_its_reason(void **state)
{
    struct replay_line line;
    const char *file = NULL;
    int error = 0;
    struct replay_trace *trace = open_trace((const char *const[]){"/nonexistent/trace"}, 1);
    assert_int_equal(replay_trace_next(trace, &line, &file, &error), WEIR_ERR_IO);
    assert_string_equal(file, "/nonexistent/trace");
    assert_int_equal(error, ENOENT);
    replay_trace_close(trace);
    trace = open_trace((const char *const[]){"/tmp"}, 1);
    assert_int_equal(replay_trace_next(trace, &line, &file, &error), WEIR_ERR_IO);
    assert_int_equal(error, EISDIR);
    replay_trace_close(trace);
}

static void without_memory_there_is_no_trace(void **state)
{
    failing_memory_after(0);
    assert_null(replay_trace_open((const char *const[]){"-"}, 1, REPLAY_AUTO));
    assert_true(failing_memory_stop());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_with_lf_or_crlf_or_the_file_and_blank_ones_only_count),
        cmocka_unit_test(each_file_has_its_own_format_and_line_numbers),
        cmocka_unit_test(an_empty_file_has_no_lines),
        cmocka_unit_test(a_line_may_be_as_long_as_the_limit_and_a_longer_one_is_passed_over),
        cmocka_unit_test(lines_are_the_same_when_they_come_byte_by_byte),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named_with_its_reason),
        cmocka_unit_test(without_memory_there_is_no_trace),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
