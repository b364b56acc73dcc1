/* SPDX-License-Identifier: Apache-2.0 */
/* see compare.h */
#include "cli/replay/compare/compare.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/replay/compare/contest.h"
#include "cli/replay/report.h"
#include "server/text/durations.h"

/* A limit by plan has one contest for each plan's rate: another limit is another contest. */
struct entry {
    uint32_t rule;
    const struct weir_limit *limit;
    struct replay_contest *contest;
    size_t next; /* entry of the same rule + 1; 0: none */
};

struct replay_compare {
    const struct weir_rules *rules;
    struct entry *entries;
    size_t count, room;
    size_t *first; /* of each rule: its first entry + 1; 0: none */
};

struct replay_compare *replay_compare_open(const struct weir_rules *rules)
{
    struct replay_compare *compare = calloc(1, sizeof *compare);
    if (!compare)
        return NULL;
    compare->rules = rules;
    compare->first = calloc((size_t)weir_rules_count(rules) + 1, sizeof *compare->first);
    if (!compare->first) {
        free(compare);
        return NULL;
    }
    return compare;
}

void replay_compare_close(struct replay_compare *compare)
{
    if (!compare)
        return;
    for (size_t i = 0; i < compare->count; i++)
        replay_contest_close(compare->entries[i].contest);
    free(compare->entries);
    free(compare->first);
    free(compare);
}

static struct replay_contest *open_contest(struct replay_compare *compare,
                                           const struct weir_check *check)
{
    if (compare->count == compare->room) {
        size_t room = compare->room > 0 ? compare->room * 2 : 16;
        struct entry *entries = realloc(compare->entries, room * sizeof *entries);
        if (!entries)
            return NULL;
        compare->entries = entries;
        compare->room = room;
    }
    struct replay_contest *contest = replay_contest_open(check->limit);
    if (!contest)
        return NULL;
    compare->entries[compare->count++] =
        (struct entry){check->rule, check->limit, contest, compare->first[check->rule]};
    compare->first[check->rule] = compare->count;
    return contest;
}

int replay_compare_add(struct replay_compare *compare, const struct weir_check *check,
                       uint64_t now_ns)
{
    if (!check->limit || check->limit->spec.algorithm == WEIR_CONCURRENCY)
        return 0;
    struct replay_contest *contest = NULL;
    for (size_t at = compare->first[check->rule]; at > 0; at = compare->entries[at - 1].next)
        if (compare->entries[at - 1].limit == check->limit)
            contest = compare->entries[at - 1].contest;
    if (!contest)
        contest = open_contest(compare, check);
    return !contest ? WEIR_ERR_MEMORY
                    : replay_contest_add(contest, check->hash, now_ns, check->cost);
}

/* "12 (3.40%)"; no share where there is nothing to share. */
static void print_share(FILE *out, uint64_t part, uint64_t whole)
{
    char text[64];
    if (whole > 0)
        snprintf(text, sizeof text, "%" PRIu64 " (%.2f%%)", part,
                 100.0 * (double)part / (double)whole);
    else
        snprintf(text, sizeof text, "%" PRIu64, part);
    fprintf(out, " %17s", text);
}

static void print_contest(FILE *out, const struct replay_contest *contest)
{
    const struct replay_contender *contenders;
    size_t count = replay_contest_results(contest, &contenders);
    const struct replay_contender *exact = &contenders[0];
    fprintf(out, "  %-36s %10s %10s %17s %17s %10s\n", "ALGORITHM", "ALLOWED", "DENIED",
            "WRONG ALLOWS", "WRONG DENIALS", "WORST");
    for (size_t i = 0; i < count; i++) {
        const struct replay_contender *contender = &contenders[i];
        fprintf(out, "%c %-36s %10" PRIu64 " %10" PRIu64, contender->configured ? '*' : ' ',
                contender->name, contender->allowed, contender->denied);
        print_share(out, contender->wrong_allows, exact->denied);
        print_share(out, contender->wrong_denials, exact->allowed);
        fprintf(out, " %10" PRIu64 "\n", contender->worst);
    }
}

void replay_compare_print(const struct replay_compare *compare, FILE *out)
{
    if (compare->count == 0) {
        fputs("\nNo limit with a rate applied: nothing to compare.\n", out);
        return;
    }
    for (size_t i = 0; i < compare->count; i++) {
        const struct entry *entry = &compare->entries[i];
        const struct weir_limit_spec *spec = &entry->limit->spec;
        struct weir_rule_info info;
        weir_rules_info(compare->rules, entry->rule, &info);
        char window[WEIR_DURATION_MAX];
        fprintf(out, "\n%s: %" PRIu64 " in any %s, %" PRIu64 " keys\n", info.name, spec->rate,
                weir_duration_exact(window, spec->window_ns), replay_contest_keys(entry->contest));
        print_contest(out, entry->contest);
    }
    fputs(
        "\nWrong verdicts are shares of what the exact log denied and allowed; WORST is the most\n"
        "that one key was admitted in any window. '*' is the algorithm of the rules file.\n",
        out);
}
