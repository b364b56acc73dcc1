/* SPDX-License-Identifier: Apache-2.0 */
/* see commands.h */
#include "feature/xdp/cli/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <jansson.h>

#include "cli/options.h"
#include "cli/rules_file.h"
#include "feature/kernel/names.h"
#include "feature/xdp/attach.h"
#include "feature/xdp/cli/samples.h"
#include "feature/xdp/samples.h"

static int fail(int error, const struct weir_reason *reason)
{
    cli_error("%s", reason->text[0] ? reason->text : weir_error_text(error));
    return EXIT_FAILURE;
}

/* The section of the file; *rules is the caller's. NULL after an error. */
static const struct weir_xdp_settings *load_section(const char *config, struct weir_rules **rules)
{
    *rules = NULL;
    if (cli_load_rules(rules, config) < 0)
        return NULL;
    const struct weir_xdp_settings *xdp = weir_rules_settings(*rules)->xdp;

    if (!xdp)
        cli_error("%s has no section `kernel.xdp`; docs/xdp.md shows one", config);
    return xdp;
}

int xdp_attach(const struct xdp_options *options)
{
    static const char *const texts[] = {
        [WEIR_XDP_ATTACHED] = "attached",
        [WEIR_XDP_UPDATED] = "updated; states and counters are kept",
        [WEIR_XDP_RENEWED] = "updated; states and counters start fresh",
    };
    struct weir_reason reason = {{0}};
    struct weir_rules *rules;
    enum weir_xdp_change change;
    uint64_t secret[2];

    if (!options->config)
        return cli_usage_error("xdp", "attach needs --config");
    const struct weir_xdp_settings *section = load_section(options->config, &rules);

    if (!section) {
        weir_rules_unref(rules);
        return EXIT_FAILURE;
    }
    struct weir_xdp_settings settings = *section;
    struct weir_xdp_place place = {options->pins,
                                   options->interface ? options->interface : settings.interface};

    settings.dry_run |= options->dry_run;
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret) {
        cli_error("cannot draw a random number: %s", strerror(errno));
        weir_rules_unref(rules);
        return EXIT_FAILURE;
    }
    int error = weir_xdp_attach(&place, &settings, secret, &change, &reason);

    if (error == 0)
        printf("%s: %s\n", place.interface, texts[change]);
    weir_rules_unref(rules);
    return error < 0 ? fail(error, &reason) : cli_finish(EXIT_SUCCESS);
}

/* The interface that the command is about, copied to `name`. Returns 0, or the exit status. */
static int read_interface(const struct xdp_options *options, char name[WEIR_XDP_INTERFACE_MAX + 1])
{
    const char *given = options->interface;
    struct weir_rules *rules = NULL;

    if (!given && !options->config)
        return cli_usage_error("xdp", "name the interface by --interface or --config");
    if (given && !weir_kernel_interface_valid(given, strlen(given)))
        return cli_usage_error("xdp", "--interface is no name of an interface");
    const struct weir_xdp_settings *xdp = given ? NULL : load_section(options->config, &rules);

    if (given || xdp)
        snprintf(name, WEIR_XDP_INTERFACE_MAX + 1, "%s", given ? given : xdp->interface);
    weir_rules_unref(rules);
    return given || xdp ? 0 : EXIT_FAILURE;
}

int xdp_detach(const struct xdp_options *options)
{
    char name[WEIR_XDP_INTERFACE_MAX + 1];
    struct weir_reason reason = {{0}};
    struct weir_xdp_place place = {options->pins, name};

    int status = read_interface(options, name);

    if (status != 0)
        return status;
    int error = weir_xdp_detach(&place, &reason);

    if (error < 0)
        return fail(error, &reason);
    printf("%s: detached\n", name);
    return cli_finish(EXIT_SUCCESS);
}

/* --- Status ------------------------------------------------------------------------------------
 */

static json_t *count_json(const struct xdp_count *count)
{
    return json_pack("{s:I,s:I}", "packets", (json_int_t)count->packets, "bytes",
                     (json_int_t)count->bytes);
}

static json_t *limits_json(const struct xdp_filter *filter, const struct xdp_count *counts)
{
    json_t *limits = json_array();

    for (int slot = 0; slot < XDP_LIMITS_MAX; slot++) {
        const struct xdp_limit *limit = &filter->limits[slot];

        if (limit->used)
            json_array_append_new(limits,
                                  json_pack("{s:s,s:b,s:s,s:o}", "name", limit->name, "dry_run",
                                            limit->dry_run || filter->dry_run, "unit",
                                            limit->bytes ? "bytes" : "packets", "denied",
                                            count_json(&counts[XDP_REASON_COUNT + slot])));
    }
    return limits;
}

static json_t *status_json(const char *interface, const struct weir_xdp_running *running,
                           const struct xdp_count *counts)
{
    json_t *reasons = json_object();

    for (int i = 0; i < XDP_REASON_COUNT; i++)
        json_object_set_new(reasons, weir_xdp_reason_names[i], count_json(&counts[i]));
    return json_pack("{s:s,s:b,s:s,s:I,s:b,s:f,s:I,s:o,s:o}", "interface", interface, "attached",
                     !running->orphaned, "mode", running->native ? "native" : "generic", "program",
                     (json_int_t)running->program_id, "dry_run", running->filter.dry_run, "share",
                     running->filter.share / 10000.0, "states", (json_int_t)running->states,
                     "counts", reasons, "limits", limits_json(&running->filter, counts));
}

static void print_status(const char *interface, const struct weir_xdp_running *running,
                         const struct xdp_count *counts)
{
    const struct xdp_filter *filter = &running->filter;

    printf("%s: %s, program %" PRIu32 "%s\n", interface,
           running->orphaned ? "the interface is gone"
           : running->native ? "attached, native mode"
                             : "attached, generic mode",
           running->program_id, filter->dry_run ? ", dry run" : "");
    if (filter->share < XDP_SHARE_ALL)
        printf("applies to %" PRIu32 " %% of sources\n", filter->share / 100);
    for (int i = 0; i < XDP_REASON_COUNT; i++)
        if (counts[i].packets > 0)
            printf("  %-20s %14" PRIu64 " packets %18" PRIu64 " bytes\n", weir_xdp_reason_names[i],
                   counts[i].packets, counts[i].bytes);
    for (int slot = 0; slot < XDP_LIMITS_MAX; slot++)
        if (filter->limits[slot].used)
            printf("limit %s denied %" PRIu64 " packets\n", filter->limits[slot].name,
                   counts[XDP_REASON_COUNT + slot].packets);
}

int xdp_status(const struct xdp_options *options)
{
    char name[WEIR_XDP_INTERFACE_MAX + 1];
    struct weir_reason reason = {{0}};
    struct weir_xdp_place place = {options->pins, name};
    struct weir_xdp_running running;
    struct xdp_count counts[XDP_COUNTS];

    int status = read_interface(options, name);

    if (status != 0)
        return status;
    int error = weir_xdp_running_open(&running, &place, &reason);

    if (error < 0)
        return fail(error, &reason);
    error = weir_xdp_counts(&running, counts, &reason);
    if (error == 0 && options->json) {
        json_t *json = status_json(name, &running, counts);

        json_dumpf(json, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(json);
    } else if (error == 0) {
        print_status(name, &running, counts);
    }
    weir_xdp_running_close(&running);
    return error < 0 ? fail(error, &reason) : cli_finish(EXIT_SUCCESS);
}

/* --- Top ----------------------------------------------------------------------------------------
 */

static void add_sample(void *context, const struct xdp_sample *sample)
{
    xdp_top_add(context, sample);
}

/* Until a signal ends it, or once. */
static int watch(const struct weir_xdp_running *running, const struct xdp_options *options,
                 struct xdp_top *top)
{
    struct weir_reason reason = {{0}};

    do {
        int error = weir_xdp_samples(running, (uint32_t)options->interval_s * 1000, add_sample, top,
                                     &reason);

        if (error < 0)
            return fail(error, &reason);
        xdp_top_print(top, &running->filter, weir_xdp_reason_names, options->count);
        fflush(stdout);
    } while (!options->once && !ferror(stdout));
    return cli_finish(EXIT_SUCCESS);
}

int xdp_top(const struct xdp_options *options)
{
    char name[WEIR_XDP_INTERFACE_MAX + 1];
    struct weir_reason reason = {{0}};
    struct weir_xdp_place place = {options->pins, name};
    struct weir_xdp_running running;
    struct xdp_top *top;

    int status = read_interface(options, name);

    if (status != 0)
        return status;
    int error = weir_xdp_running_open(&running, &place, &reason);

    if (error < 0)
        return fail(error, &reason);
    top = calloc(1, sizeof *top);
    status = top ? watch(&running, options, top) : fail(WEIR_ERR_MEMORY, &reason);

    free(top);
    weir_xdp_running_close(&running);
    return status;
}
