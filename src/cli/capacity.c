/* SPDX-License-Identifier: Apache-2.0 */
/* see capacity.h */
#include "cli/capacity.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/options.h"
#include "cli/rules_file.h"
#include "server/daemon/server.h"
#include "table/file/state_file.h"
#include "table/table.h"

#define MIB (UINT64_C(1) << 20)
#define KEYS_MAX UINT64_C(100000000000)
#define NAME_WIDTH 32
#define SIZE_LEAST (4 * MIB) /* in smaller states, single pages of spans make a difference */
#define FULL 0.9             /* spans of changing sizes leave gaps */

struct capacity_options {
    const char *config;
    uint64_t size, keys;
};

#define AT(field) .at = offsetof(struct capacity_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('c', "config", "FILE", "rules file", .kind = CLI_TEXT, AT(config)),
    CLI_OPTION(0, "size", "SIZE", "a new state of this size, 256KiB to 4TiB, instead of state.size",
               .kind = CLI_SIZE, .min = WEIR_TABLE_BYTES_MIN, .max = WEIR_TABLE_BYTES_MAX,
               AT(size)),
    CLI_OPTION(0, "keys", "N", "the size for so many keys of each limit at one time",
               .kind = CLI_U64, .min = 1, .max = KEYS_MAX, AT(keys)),
};

static const struct cli_syntax syntax = {
    .command = "capacity",
    .usage = "Usage: weir capacity --config=FILE [OPTION]...\n"
             "Show for how many keys of each limit the state has room, or, with --keys, how large "
             "it must\n"
             "be.\n",
    .notes = "A key counts while its state differs from a fresh one; it has used up its limit by\n"
             "requests of cost 1. Limits with one key (`key: []`) are left out.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

/* The keys that have room, where no other limit has keys; of a limit by plan that of the plan which
 * takes most. UINT64_MAX: it has one key, or no state. */
static uint64_t keys_of(const struct weir_rules *rules, uint32_t index,
                        const struct weir_table_capacity *capacity)
{
    struct weir_rule_info info;
    const struct weir_limit *limits;
    uint64_t least = UINT64_MAX;
    uint32_t count;
    weir_rules_info(rules, index, &info);
    for (uint32_t set = 0;
         info.key_count > 0 && weir_rules_rates(rules, index, set, &limits, &count); set++) {
        uint64_t keys = count > 0 ? weir_table_keys_of(capacity, limits, count) : UINT64_MAX;
        least = keys < least ? keys : least;
    }
    return least;
}

static int print_keys(const struct weir_rules *rules, uint64_t size)
{
    struct weir_table_capacity capacity;
    int error = weir_server_capacity(rules, size, &capacity);
    if (error < 0)
        return error;
    printf("%-*s %14s\n", NAME_WIDTH, "LIMIT", "KEYS");
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        uint64_t keys = keys_of(rules, i, &capacity);
        weir_rules_info(rules, i, &info);
        if (keys != UINT64_MAX)
            printf("%-*s %14" PRIu64 "\n", NAME_WIDTH, info.name, keys);
    }
    printf("in a state of %" PRIu64 " KiB, of each limit if the others have no keys\n",
           capacity.bytes >> 10);
    return 0;
}

/* The part of a state that so many keys of every limit take together. */
static int part_taken(const struct weir_rules *rules, uint64_t size, uint64_t keys, double *part)
{
    struct weir_table_capacity capacity;
    int error = weir_server_capacity(rules, size, &capacity);
    *part = 0;
    for (uint32_t i = 0; error == 0 && i < weir_rules_count(rules); i++) {
        uint64_t room = keys_of(rules, i, &capacity);
        if (room != UINT64_MAX)
            *part += (double)keys / (double)(room > 0 ? room : 1);
    }
    return error;
}

/* The least size that has room, in whole MiB up to 64 and then in steps of a 64th. */
static int print_size(const struct weir_rules *rules, uint64_t keys)
{
    double part = 2;
    uint64_t size = SIZE_LEAST - MIB;
    while (part > FULL) {
        uint64_t step = size / 64 / MIB * MIB;
        size += step > 0 ? step : MIB;
        int error =
            size > WEIR_TABLE_BYTES_MAX ? WEIR_ERR_TOO_LARGE : part_taken(rules, size, keys, &part);
        if (error < 0)
            return error;
    }
    printf("state: { size: %" PRIu64 "MiB }   # %.0f%% full with %" PRIu64 " keys of each limit\n",
           size / MIB, part * 100, keys);
    return 0;
}

int weir_command_capacity(int argc, char **argv)
{
    struct capacity_options options = {0};
    struct weir_rules *rules;
    int status;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    if (!options.config)
        return cli_usage_error("capacity", "%s", "--config is missing");
    if (options.keys > 0 && options.size > 0)
        return cli_usage_error("capacity", "%s", "--size and --keys exclude each other");
    if (cli_load_rules(&rules, options.config) < 0)
        return EXIT_FAILURE;
    if (weir_rules_settings(rules)->store.redis.url) {
        weir_rules_unref(rules);
        cli_error("%s: the states of these limits are in Redis, whose memory counts",
                  options.config);
        return EXIT_FAILURE;
    }
    int error =
        options.keys > 0 ? print_size(rules, options.keys) : print_keys(rules, options.size);
    weir_rules_unref(rules);
    if (error < 0)
        cli_error("%s: %s", options.config,
                  error == WEIR_ERR_TOO_LARGE ? "no state is large enough"
                                              : weir_error_text(error));
    return cli_finish(error < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}
