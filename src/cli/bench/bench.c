/* SPDX-License-Identifier: Apache-2.0 */
/* see bench.h */
#include "cli/bench/bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/bench/options.h"
#include "cli/bench/report.h"
#include "cli/bench/run.h"
#include "cli/options.h"

#define EXIT_UNEXPECTED 3

/* Whether as many were allowed as expected. Returns the exit status. */
static int judge(const struct bench_expected *expected, const char *target,
                 const struct bench_result *total)
{
    uint64_t allowed = bench_report_allowed(total);
    double room = expected->percent ? (double)expected->allowed * expected->tolerance / 100
                                    : expected->tolerance;
    if (fabs((double)allowed - (double)expected->allowed) <= room)
        return EXIT_SUCCESS;
    cli_error("%s: %" PRIu64 " of %" PRIu64 " requests were allowed, and not %" PRIu64
              " (tolerance %g)",
              target, allowed, total->replies, expected->allowed, room);
    return EXIT_UNEXPECTED;
}

static int run(struct bench_options *options, struct bench_summary *summary)
{
    struct weir_reason reason;
    if (bench_run(&options->plan, &options->timing, summary, &reason) < 0) {
        cli_error("%s: %s", options->labels.target, reason.text);
        return EXIT_FAILURE;
    }
    const struct bench_result *total = &summary->total;
    if (!options->json) {
        bench_report_text(&options->plan, &options->labels, summary);
    } else if (bench_report_json(&options->plan, &options->labels, summary) < 0) {
        cli_error("the target or the command cannot be printed as JSON: it is not UTF-8");
        return EXIT_FAILURE;
    }
    bool broken = total->lost > 0 || total->ended_early;
    if (options->expected.given && !broken)
        return judge(&options->expected, options->labels.target, total);
    if (total->failed == 0 && !broken)
        return EXIT_SUCCESS;
    cli_error("%s: %s", options->labels.target, total->error);
    return EXIT_FAILURE;
}

int weir_command_bench(int argc, char **argv)
{
    struct bench_options options;
    bool help;
    int status = bench_options_read(&options, argc, argv, &help);
    if (status != 0 || help)
        return status;
    struct bench_summary *summary = malloc(sizeof *summary); /* 58 KiB of histogram */
    if (!summary) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        status = EXIT_FAILURE;
    } else {
        status = run(&options, summary);
    }
    free(summary);
    bench_request_free(&options.plan.request);
    return cli_finish(status);
}
