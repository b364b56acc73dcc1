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

#include "cli/replay/trace/trace.h"
#include "failing_memory.h"
#include "temporary.h"
#include "test.h"

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

#define STAMP(second) "[07/Mar/2004:16:05:" second " +0000]"
#define LINE(client, second) client " - - " STAMP(second) " \"GET / HTTP/1.1\" 200 1"
#define T0 UINT64_C(1078675500) /* 16:05:00 */
#define S UINT64_C(1000000000)

static struct weir_reason reason;
static const char *failed;
static const char *first_file[] = {path[0]}, *second_file[] = {path[1]};

static struct replay_trace *open_trace(const char *const *files, size_t count, int format,
                                       bool disorder)
{
    const struct replay_trace_options options = {files, count, format, disorder};
    struct replay_trace *trace = replay_trace_open(&options);
    assert_non_null(trace);
    return trace;
}

static struct replay_trace *open_one(const char *text)
{
    static const char *files[] = {path[0]};
    write_file(0, text, strlen(text));
    return open_trace(files, 1, REPLAY_FORMAT_AUTO, false);
}

/* `client` NULL: a line that is malformed, or no request. */
static struct replay_line expect_line(struct replay_trace *trace, const char *client, uint64_t t_ns)
{
    struct replay_line line = {0};
    int got = replay_trace_next(trace, &line, &failed, &reason);
    if (got != 1)
        fail_msg("%s: %d, %s", client ? client : "(bad)", got, got < 0 ? reason.text : "the end");
    assert_int_equal(line.kind == REPLAY_REQUEST, client != NULL);
    if (!client)
        return line;
    assert_int_equal(line.record->client.size, strlen(client));
    assert_memory_equal(line.record->client.data, client, strlen(client));
    assert_true(line.t_ns == t_ns);
    return line;
}

static void expect_end(struct replay_trace *trace)
{
    struct replay_line line;
    assert_int_equal(replay_trace_next(trace, &line, &failed, &reason), 0);
    assert_int_equal(replay_trace_next(trace, &line, &failed, &reason), 0);
    replay_trace_close(trace);
}

static void expect_failure(struct replay_trace *trace, const char *why)
{
    struct replay_line line;
    int got;
    while ((got = replay_trace_next(trace, &line, &failed, &reason)) > 0)
        continue;
    assert_int_equal(got, -1);
    if (!strstr(reason.text, why))
        fail_msg("'%s' is not in '%s'", why, reason.text);
    replay_trace_close(trace);
}

TEST("lines end with lf or crlf or the file and blank ones only count")
{
    struct replay_trace *trace = open_one(
        "\xef\xbb\xbf\r\n" LINE("a", "00") "\r\n\n \t\r\n" LINE("b", "01") "\n" LINE("c", "02"));
    assert_int_equal(expect_line(trace, "a", T0 * S).number, 2);
    struct replay_line line = expect_line(trace, "b", (T0 + 1) * S);
    assert_int_equal(line.number, 5);
    assert_int_equal(line.n, 2);
    assert_int_equal(expect_line(trace, "c", (T0 + 2) * S).number, 6);
    expect_end(trace);
}

TEST("lines of a second are spread over it whatever stands between them")
{
    struct replay_trace *trace = open_one(LINE("a", "00") "\n" LINE("b", "00") "\nbad\n" LINE(
        "c", "00") "\n" LINE("d", "00") "\n" LINE("e", "01") "\n" LINE("f", "00") "\n");
    expect_line(trace, "a", T0 * S);
    expect_line(trace, "b", T0 * S + S / 4);
    struct replay_line bad = expect_line(trace, NULL, 0);
    assert_int_equal(bad.kind, REPLAY_BAD);
    assert_string_equal(bad.reason, "line: not of the common log format");
    expect_line(trace, "c", T0 * S + S / 2);
    expect_line(trace, "d", T0 * S + S / 4 * 3);
    expect_line(trace, "e", (T0 + 1) * S);
    expect_line(trace, "f", T0 * S); /* a second later: a second of its own */
    struct replay_reading reading = replay_trace_reading(trace);
    assert_int_equal(reading.files[0].behind, 1);
    assert_true(reading.files[0].behind_ns == S);
    expect_end(trace);
}

TEST("a second may be larger than the first room")
{
    const size_t count = SECOND_LINES_MAX + 10;
    char *text = malloc(count * 80), *at = text;
    if (!text)
        abort(); /* which gcc 14 knows to end the test */
    for (size_t i = 0; i < count; i++)
        at += sprintf(at, "h%zu - - " STAMP("00") " \"GET / HTTP/1.1\" 200 1\n", i);
    struct replay_trace *trace = open_one(text);
    for (size_t i = 0; i < count; i++) {
        char client[32];
        bool cut = i >= SECOND_LINES_MAX;
        snprintf(client, sizeof client, "h%zu", i);
        expect_line(trace, client,
                    T0 * S + (cut ? (i - SECOND_LINES_MAX) * S / 10 : i * S / SECOND_LINES_MAX));
    }
    expect_end(trace);
    free(text);
}

TEST("files are read in the order of their first times")
{
    write_file(0, LINE("c", "30") "\n", sizeof LINE("c", "30"));
    write_file(1, "{\"t\":1}\n{\"t\":2}", 15);
    struct replay_trace *trace =
        open_trace((const char *const[]){path[0], path[1]}, 2, REPLAY_FORMAT_AUTO, false);
    struct replay_line line;
    assert_int_equal(replay_trace_next(trace, &line, &failed, &reason), 1);
    assert_true(line.t_ns == S && line.record->check != NULL && line.number == 1);
    assert_int_equal(replay_trace_next(trace, &line, &failed, &reason), 1);
    assert_true(line.t_ns == 2 * S);
    line = expect_line(trace, "c", (T0 + 30) * S);
    assert_true(line.number == 1 && line.n == 3);
    struct replay_reading reading = replay_trace_reading(trace);
    assert_true(reading.reordered && !reading.merged && reading.count == 2);
    assert_string_equal(reading.files[0].name, path[1]);
    assert_int_equal(reading.files[0].format, WEIR_LOG_JSONL);
    assert_int_equal(reading.files[1].format, WEIR_LOG_COMMON);
    expect_end(trace);
}

TEST("files whose times overlap are merged")
{
    static const char one[] = LINE("a", "00") "\n" LINE("b", "10") "\n" LINE("c", "20") "\n";
    static const char other[] =
        LINE("A", "05") "\n" LINE("B", "10") "\n" LINE("C", "10") "\n" LINE("D", "40") "\n";
    write_file(0, one, sizeof one - 1);
    write_file(1, other, sizeof other - 1);
    for (int swapped = 0; swapped < 2; swapped++) {
        struct replay_trace *trace = open_trace(
            (const char *const[]){path[swapped], path[1 - swapped]}, 2, REPLAY_FORMAT_AUTO, false);
        expect_line(trace, "a", T0 * S);
        expect_line(trace, "A", (T0 + 5) * S);
        expect_line(trace, "b", (T0 + 10) * S);
        expect_line(trace, "B", (T0 + 10) * S);
        expect_line(trace, "C", (T0 + 10) * S + S / 2);
        expect_line(trace, "c", (T0 + 20) * S);
        expect_line(trace, "D", (T0 + 40) * S);
        struct replay_reading reading = replay_trace_reading(trace);
        assert_true(reading.merged);
        assert_int_equal(reading.reordered, swapped);
        assert_true(reading.taken_bytes == reading.total_bytes);
        assert_true(reading.total_bytes == sizeof one + sizeof other - 2);
        expect_end(trace);
    }
}

TEST("disorder of a minute is an error unless it is allowed")
{
#define EARLIER "a - - [07/Mar/2004:16:04:%s +0000] \"GET / HTTP/1.1\" 200 1\n"
    char text[400];
    for (int behind = 60; behind <= 61; behind++) {
        snprintf(text, sizeof text, "%s\n" EARLIER, LINE("b", "30"), behind == 60 ? "30" : "29");
        struct replay_trace *trace = open_one(text);
        if (behind == 61) {
            expect_failure(trace, "line 2 was written 1min 1s before line 1");
            assert_string_equal(failed, path[0]);
            trace = open_trace(first_file, 1, REPLAY_FORMAT_AUTO, true);
        }
        expect_line(trace, "b", (T0 + 30) * S);
        expect_line(trace, "a", (T0 + 30 - (unsigned)behind) * S);
        expect_end(trace);
    }
}

TEST("an empty file has no lines")
{
    write_file(0, "\n\n", 2);
    expect_end(
        open_trace((const char *const[]){path[0], "/dev/null"}, 2, REPLAY_FORMAT_AUTO, false));
}

TEST("what is of no format is refused and a format can be forced")
{
    expect_failure(open_one("hello\nworld\n"), "--format forces one: auto, jsonl, combined");
    struct replay_trace *trace = open_trace(first_file, 1, WEIR_LOG_COMBINED, false);
    assert_string_equal(expect_line(trace, NULL, 0).reason, "line: not of the combined log format");
    expect_line(trace, NULL, 0);
    expect_end(trace);
    trace = open_one("{\"typo\":1}\n"); /* weir's own, it seems: the fault of each is named */
    assert_non_null(strstr(expect_line(trace, NULL, 0).reason, "unknown field"));
    expect_end(trace);
}

TEST("a program may say much before its first request")
{
    const size_t noise = 3000;
    char *text = malloc(noise * 40 + 200), *at = text;
    if (!text)
        abort(); /* which gcc 14 knows to end the test */
    for (size_t i = 0; i < noise; i++)
        at += sprintf(at, "/docker-entrypoint.sh: step %zu\n", i);
    strcpy(at, LINE("a", "00") "\n");
    struct replay_trace *trace = open_one(text);
    for (size_t i = 0; i < noise; i++)
        expect_line(trace, NULL, 0);
    expect_line(trace, "a", T0 * S);
    expect_end(trace);
    free(text);
}

TEST("a line may be as long as the limit and a longer one is skipped")
{
    size_t longest = REPLAY_LINE_MAX, size = 5 * longest;
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';
    text[longest] = '\n';         /* 1: just fits */
    text[2 * longest + 2] = '\n'; /* 2: one byte too long */
    text[4 * longest] = '\n';     /* 3: longer than the room */
    text[4 * longest + 2] = '\n'; /* 4: "x"; 5: nearly as long as the limit, ended by the file */
    write_file(0, text, size);
    struct replay_trace *trace = open_trace(first_file, 1, WEIR_LOG_COMMON, false);
    static const bool too_long[] = {false, true, true, false, false};
    for (uint64_t i = 0; i < 5; i++) {
        struct replay_line line = expect_line(trace, NULL, 0);
        assert_int_equal(line.number, i + 1);
        assert_string_equal(line.reason, too_long[i] ? "line: longer than 1 MiB"
                                                     : "line: not of the common log format");
    }
    expect_end(trace);
    free(text);
}

TEST("containers lines are unwrapped and put together")
{
#define DOCKER(text, stream) "{\"log\":\"" text "\",\"stream\":\"" stream "\",\"time\":\"x\"}\n"
#define ESCAPED(client, second) client " - - " STAMP(second) " \\\"GET / HTTP/1.1\\\" 200 1"
    struct replay_trace *trace = open_one(
        DOCKER("starting\\n", "stderr") DOCKER(ESCAPED("a", "00") "\\n", "stdout")
            DOCKER("b - - " STAMP("00"), "stdout") DOCKER("noise\\n", "stderr")
                DOCKER(" \\\"GET / HTTP/1.1\\\" 200 1\\n", "stdout") DOCKER("\\n", "stdout")
                    DOCKER(ESCAPED("c", "00") "\\n", "stdout") "no envelope\n" DOCKER("cut off",
                                                                                      "stdout"));
    expect_line(trace, NULL, 0);
    assert_int_equal(expect_line(trace, "a", T0 * S).number, 2);
    expect_line(trace, NULL, 0);
    assert_int_equal(expect_line(trace, "b", T0 * S).number, 5); /* a second of its own */
    assert_int_equal(expect_line(trace, "c", T0 * S).number, 7);
    assert_non_null(strstr(expect_line(trace, NULL, 0).reason, "envelope"));
    assert_non_null(strstr(expect_line(trace, NULL, 0).reason, "its last part"));
    struct replay_reading reading = replay_trace_reading(trace);
    assert_int_equal(reading.files[0].envelope, WEIR_LOG_DOCKER);
    expect_end(trace);

#define CRI(tag) "2016-10-06T00:17:09.669794202Z stdout " tag " "
    trace = open_one(CRI("F") LINE("a", "00") "\n" CRI("P") "b - - \n" CRI("F")
                         STAMP("00") " \"GET / HTTP/1.1\" 200 1\n");
    expect_line(trace, "a", T0 * S);
    expect_line(trace, "b", T0 * S);
    expect_end(trace);
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

TEST("lines are the same when they come byte by byte")
{
    static const char text[] = LINE("a", "00") "\r\n" LINE("b", "00") "\n\n" LINE("c", "01");
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char name[32];
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    struct feed feed = {ends[1], text, sizeof text - 1};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed_bytes, &feed), 0);
    struct replay_trace *trace =
        open_trace((const char *const[]){name}, 1, REPLAY_FORMAT_AUTO, false);
    expect_line(trace, "a", T0 * S);
    expect_line(trace, "b", T0 * S + S / 2);
    expect_line(trace, "c", (T0 + 1) * S);
    assert_int_equal(replay_trace_reading(trace).total_bytes, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_end(trace);
    close(ends[0]);
}

/* Runs a command that writes the file $B from $A. */
static void pack(const char *command)
{
    assert_int_equal(setenv("A", path[0], 1), 0);
    assert_int_equal(setenv("B", path[1], 1), 0);
    assert_int_equal(system(command), 0);
}

TEST("compressed files are read in pieces and known by their bytes")
{
    static const char *const commands[] = {"gzip -c $A > $B", "zstd -q -c $A > $B"};
    static const char *const names[] = {"gzip", "zstd"};
    const size_t count = 100000;
    char *text = malloc(count * 80), *at = text;
    if (!text)
        abort(); /* which gcc 14 knows to end the test */
    for (size_t i = 0; i < count; i++)
        at += sprintf(at, "h%zu - - " STAMP("%02zu") " \"GET / HTTP/1.1\" 200 1\n", i,
                      i * 60 / count);
    for (int c = 0; c < 2; c++) {
        write_file(0, text, (size_t)(at - text));
        pack(commands[c]);
        struct replay_trace *trace = open_trace(second_file, 1, REPLAY_FORMAT_AUTO, false);
        for (size_t i = 0; i < count; i++) {
            struct replay_line line;
            char client[32];
            int size = snprintf(client, sizeof client, "h%zu", i);
            assert_int_equal(replay_trace_next(trace, &line, &failed, &reason), 1);
            assert_int_equal(line.record->client.size, size);
            assert_memory_equal(line.record->client.data, client, (size_t)size);
        }
        assert_string_equal(replay_trace_reading(trace).files[0].packing, names[c]);
        expect_end(trace);
    }
    free(text);
}

TEST("members of gzip and frames of zstd follow each other")
{
    static const char *const commands[] = {"(gzip -c $A; gzip -c $A; head -c 512 /dev/zero) > $B",
                                           "(zstd -q -c $A; zstd -q -c $A) > $B"};
    for (int c = 0; c < 2; c++) {
        write_file(0, LINE("a", "00") "\n", sizeof LINE("a", "00"));
        pack(commands[c]);
        struct replay_trace *trace = open_trace(second_file, 1, REPLAY_FORMAT_AUTO, false);
        expect_line(trace, "a", T0 * S);
        expect_line(trace, "a", T0 * S + S / 2);
        expect_end(trace);
    }
}

TEST("what is damaged or cut off is an error")
{
    static const struct {
        const char *command, *why;
    } cases[] = {
        {"gzip -c $A | head -c -4 > $B", "its gzip data is cut off"},
        {"(gzip -c $A; echo rest) > $B", "its gzip data is damaged"},
        {"zstd -q -c $A | head -c -4 > $B", "its zstd data is cut off"},
        {"(zstd -q -c $A; echo rest) > $B", "its zstd data cannot be read"},
        {"cat $A > /dev/null; printf 'BZh91AY' > $B", "bzip2"},
        {"cat $A > /dev/null; printf '\\3757zXZ\\0' > $B", "xz"},
        {"cat $A > /dev/null; printf '\\377\\376a\\0' > $B", "UTF-16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(0, LINE("a", "00") "\n", sizeof LINE("a", "00"));
        pack(cases[i].command);
        expect_failure(open_trace(second_file, 1, REPLAY_FORMAT_AUTO, false), cases[i].why);
        assert_string_equal(failed, path[1]);
    }
}

TEST("a file that cannot be read is named with its reason")
{
    static const char *const files[] = {"/nonexistent/trace", "/tmp"};
    static const int errors[] = {ENOENT, EISDIR};
    for (int i = 0; i < 2; i++) {
        expect_failure(open_trace(&files[i], 1, REPLAY_FORMAT_AUTO, false), strerror(errors[i]));
        assert_string_equal(failed, files[i]);
    }
}

TEST("without memory there is no trace")
{
    const struct replay_trace_options options = {first_file, 1, REPLAY_FORMAT_AUTO, false};
    int failures = 0;
    write_file(0, LINE("a", "00") "\n" LINE("b", "00") "\n", 2 * sizeof LINE("a", "00"));
    for (long after = 0;; after++) {
        failing_memory_after(after);
        struct replay_trace *trace = replay_trace_open(&options);
        struct replay_line line;
        int got = 1;
        while (trace && (got = replay_trace_next(trace, &line, &failed, &reason)) > 0)
            continue;
        bool failing = failing_memory_stop();
        replay_trace_close(trace);
        if (!failing)
            break;
        assert_true(!trace || got < 0);
        failures++;
    }
    assert_true(failures > 5);
}

RUN_TESTS_WITH(make_files, remove_files)
