/* SPDX-License-Identifier: Apache-2.0 */
/* see bench.h */
#include "cli/bench/bench.h"

#include <stdlib.h>

#include "cli/bench/options.h"
#include "cli/bench/report.h"
#include "cli/bench/run.h"
#include "cli/options.h"

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
    if (total->failed == 0 && total->lost == 0 && !total->ended_early)
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
