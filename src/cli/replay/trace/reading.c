/* SPDX-License-Identifier: Apache-2.0 */
/* see reading.h */
#include "cli/replay/trace/reading.h"

#include <inttypes.h>

#include "server/text/durations.h"

/* The name of a file is given where there are several. */
static void print_file(const struct replay_file *file, bool named, const char *prefix, FILE *out)
{
    const char *envelope = weir_log_envelope_name(file->envelope);
    fprintf(out, "%sread %s%s", prefix, named ? file->name : "as", named ? ": " : " ");
    fprintf(out, "%s%s%s%s%s, %" PRIu64 " lines\n", file->packing, file->packing[0] ? ", " : "",
            envelope, envelope[0] ? ", " : "",
            file->format < 0 ? "nothing" : weir_log_row((enum weir_log_format)file->format)->name,
            file->lines);
}

/* What is behind, of one file. */
static void print_behind(const struct replay_file *file, bool named, const char *prefix, FILE *out)
{
    char behind[WEIR_DURATION_MAX];
    if (file->behind > 0)
        fprintf(out,
                "%s%" PRIu64 " lines of %s stand below ones that were written later, by up to %s\n",
                prefix, file->behind, named ? file->name : "the trace",
                weir_duration(behind, (file->behind_ns + 999999) / 1000000));
}

void replay_reading_print(const struct replay_reading *reading,
                          const struct replay_clients *clients, const char *prefix, FILE *out)
{
    uint64_t others = 0;
    bool zoneless = false;
    for (size_t i = 0; i < reading->count; i++) {
        const struct replay_file *file = &reading->files[i];
        others += file->others;
        zoneless |= file->format == WEIR_LOG_HAPROXY;
        if (i < REPLAY_FILES_SHOWN)
            print_file(file, reading->count > 1, prefix, out);
    }
    if (reading->count > REPLAY_FILES_SHOWN)
        fprintf(out, "%sread %zu more files\n", prefix, reading->count - REPLAY_FILES_SHOWN);
    if (reading->reordered)
        fprintf(out,
                "%sthe files were read in the order of their first times, not in the order given\n",
                prefix);
    if (reading->merged)
        fprintf(out, "%stheir times overlap: lines were merged by time\n", prefix);
    for (size_t i = 0; i < reading->count; i++)
        print_behind(&reading->files[i], reading->count > 1, prefix, out);
    if (zoneless)
        fprintf(out, "%sHAProxy's times have no zone: they were read as UTC\n", prefix);
    if (others > 0)
        fprintf(out, "%s%" PRIu64 " lines are what a server says of itself, and no requests\n",
                prefix, others);
    replay_clients_print(clients, prefix, out);
}

void replay_partial_print(const struct replay_reading *reading, uint64_t lines, const char *prefix,
                          FILE *out)
{
    fprintf(out, "%sPartial: the reading was ended after %" PRIu64 " lines", prefix, lines);
    if (reading->total_bytes > 0)
        fprintf(out, ", about %.0f %% of the trace",
                100.0 * (double)reading->taken_bytes / (double)reading->total_bytes);
    fputs(".\n", out);
}
