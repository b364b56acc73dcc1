/* SPDX-License-Identifier: Apache-2.0 */
/* Trace files as lines: compressed or not, of any format, in docker's and CRI's envelopes, with
 * parts, blank lines and times in disorder. The first byte says which format is asked for (0 to 9,
 * else it is found), and by its highest bit whether disorder is allowed. */
#include "trace_file.h"

#include <string.h>

#include "cli/replay/trace/source.h"

/* A bomb is cut there. */
#define LINES_MAX 20000

static void record_check(const struct replay_line *line)
{
    const struct weir_log_record *record = line->record;
    const struct weir_bytes texts[] = {record->client, record->forwarded, record->user,
                                       record->method, record->target,    record->host};
    size_t sum = 0;
    REQUIRE(record->t_ns < UINT64_C(1) << 62 && line->t_ns < UINT64_C(1) << 62);
    if (record->check)
        return;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t at = 0; texts[i].data && at < texts[i].size; at++)
            sum += (unsigned char)texts[i].data[at]; /* it is there to be read */
    REQUIRE(sum <= SIZE_MAX / 2);
}

/* Reads all lines; returns how many, and what they add up to. */
static uint64_t read_all(const char *path, int format, bool disorder, uint64_t *print)
{
    struct weir_reason reason = {{0}};
    struct replay_source *source = replay_source_open(path, format, disorder, &reason);
    uint64_t lines = 0, requests = 0, number = 0;
    struct replay_line line;
    int got = 0;
    *print = 0;
    REQUIRE(source || reason.text[0] != '\0');
    while (source && lines < LINES_MAX && (got = replay_source_next(source, &line, &reason)) > 0) {
        lines++;
        REQUIRE(line.number >= number);
        number = line.number;
        requests += line.kind == REPLAY_REQUEST;
        if (line.kind == REPLAY_REQUEST)
            record_check(&line);
        REQUIRE(line.kind != REPLAY_BAD || !line.reason || line.reason[0] != '\0');
        *print = *print * 31 + line.t_ns + (uint64_t)line.kind;
    }
    REQUIRE(got >= 0 || reason.text[0] != '\0');
    if (source) {
        const struct replay_file *file = replay_source_file(source);
        REQUIRE(file->lines >= lines && file->requests >= requests);
        REQUIRE(got != 0 || lines == LINES_MAX ||
                (file->lines == lines && file->requests == requests));
    }
    replay_source_close(source);
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_file file;
    uint64_t print, again;
    if (size == 0)
        return 0;
    int format = (data[0] & 0x7f) < WEIR_LOG_FORMATS ? data[0] & 0x7f : REPLAY_FORMAT_AUTO;
    bool disorder = (data[0] & 0x80) != 0;
    trace_file_open(&file, data + 1, size - 1);
    uint64_t lines = read_all(file.path, format, disorder, &print);
    REQUIRE(read_all(file.path, format, disorder, &again) == lines && again == print);
    trace_file_close(&file);
    return 0;
}
