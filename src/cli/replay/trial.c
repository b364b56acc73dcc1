/* SPDX-License-Identifier: Apache-2.0 */
/* see trial.h */
#include "cli/replay/trial.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/replay/report.h"
#include "cli/replay/tally.h"
#include "cli/times.h"
#include "server/text/print.h"

/* A key's text is cut here: longer ones are tokens and cookies. */
#define KEY_TEXT_MAX 200

struct difference {
    uint64_t line, now_ns;
    bool stricter;
    uint32_t key_size;
    char *key;
};

/* Of one limit. */
struct trial_limit {
    uint64_t compared, stricter, looser;
    uint32_t shown;
    struct difference first[REPLAY_TRIALS_SHOWN];
};

struct replay_trials {
    const struct weir_rules *rules;
    struct replay_tally *keys; /* that differ */
    uint32_t count;
    struct trial_limit limits[];
};

struct replay_trials *replay_trials_open(const struct weir_rules *rules, uint64_t keys_max)
{
    uint32_t count = weir_rules_count(rules);
    struct replay_trials *trials = calloc(1, sizeof *trials + count * sizeof *trials->limits);
    if (!trials)
        return NULL;
    trials->rules = rules;
    trials->count = count;
    trials->keys = replay_tally_open(count, keys_max);
    if (!trials->keys) {
        free(trials);
        return NULL;
    }
    return trials;
}

void replay_trials_close(struct replay_trials *trials)
{
    if (!trials)
        return;
    for (uint32_t i = 0; i < trials->count; i++)
        for (uint32_t j = 0; j < trials->limits[i].shown; j++)
            free(trials->limits[i].first[j].key);
    replay_tally_close(trials->keys);
    free(trials);
}

static int keep(struct trial_limit *limit, const struct difference *difference,
                struct weir_bytes key)
{
    struct difference *kept = &limit->first[limit->shown];
    *kept = *difference;
    kept->key_size = (uint32_t)key.size;
    kept->key = malloc(key.size + 1);
    if (!kept->key)
        return WEIR_ERR_MEMORY;
    memcpy(kept->key, key.data, key.size);
    limit->shown++;
    return 0;
}

int replay_trials_add(struct replay_trials *trials, const struct weir_check *check,
                      enum weir_trial_outcome outcome, struct weir_bytes key, uint64_t line,
                      uint64_t now_ns)
{
    struct trial_limit *limit = &trials->limits[check->rule];
    limit->compared++;
    if (outcome != WEIR_TRIAL_STRICTER && outcome != WEIR_TRIAL_LOOSER)
        return 0;
    struct difference difference = {
        .line = line, .now_ns = now_ns, .stricter = outcome == WEIR_TRIAL_STRICTER};
    limit->stricter += difference.stricter;
    limit->looser += !difference.stricter;
    int error = replay_tally_add(trials->keys, check->rule, check->hash, key, true);
    return error == 0 && limit->shown < REPLAY_TRIALS_SHOWN ? keep(limit, &difference, key) : error;
}

static void print_counts(const struct replay_trials *trials, uint32_t rule, const char *name,
                         FILE *out)
{
    const struct trial_limit *limit = &trials->limits[rule];
    struct replay_count keys = replay_tally_count(trials->keys, rule);
    char count[32];
    snprintf(count, sizeof count, "%s%" PRIu64, keys.keys_complete ? "" : ">=", keys.keys);
    fprintf(out, "%-*s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10s\n", REPLAY_NAME_WIDTH, name,
            limit->compared, limit->stricter, limit->looser, count);
}

static void print_first(const struct trial_limit *limit, const char *name, FILE *out)
{
    for (uint32_t i = 0; i < limit->shown; i++) {
        const struct difference *difference = &limit->first[i];
        char time[WEIR_MOMENT_MAX];
        fprintf(out, "%-*s %10" PRIu64 " %25s  %-6s  ", REPLAY_NAME_WIDTH, name, difference->line,
                cli_time_text(time, difference->now_ns), difference->stricter ? "deny" : "allow");
        weir_print_key(out, difference->key, difference->key_size, KEY_TEXT_MAX);
        fputc('\n', out);
    }
}

void replay_trials_print(const struct replay_trials *trials, FILE *out)
{
    bool any = false, differ = false;
    struct weir_rule_info info;
    for (uint32_t i = 0; i < trials->count; i++) {
        weir_rules_info(trials->rules, i, &info);
        if (info.candidate_count == 0)
            continue;
        if (!any)
            fprintf(out, "\n%-*s %10s %10s %10s %10s\n", REPLAY_NAME_WIDTH, "CANDIDATE OF",
                    "REQUESTS", "STRICTER", "LOOSER", "KEYS");
        any = true;
        differ |= trials->limits[i].shown > 0;
        print_counts(trials, i, info.name, out);
    }
    if (any)
        fputs("stricter: it would have denied what the limit admits; looser: admitted what it\n"
              "denies; keys: those with such a request\n",
              out);
    if (differ)
        fprintf(out, "\n%-*s %10s %25s  %-6s  %s\n", REPLAY_NAME_WIDTH, "FIRST DIFFERENCES", "LINE",
                "TIME", "WOULD", "KEY");
    for (uint32_t i = 0; i < trials->count; i++) {
        weir_rules_info(trials->rules, i, &info);
        print_first(&trials->limits[i], info.name, out);
    }
}
