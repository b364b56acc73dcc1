/* SPDX-License-Identifier: Apache-2.0 */
/* see classes.h */
#include "cli/replay/pressure/classes.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/replay/report.h"
#include "cli/replay/tally.h"
#include "feature/score/rules/score.h"

/* In the tally, row c counts what reached class c, and row WEIR_CLASSES + s what signal s held for.
 */
struct replay_classes {
    const struct weir_score_info *info;
    struct replay_tally *tally;
    uint64_t keyless; /* requests without the key of `score` */
};

int replay_classes_open(struct replay_classes **classes, const struct weir_rules *rules,
                        uint64_t keys_max)
{
    const struct weir_score_info *info = weir_rules_score(rules);
    *classes = NULL;
    if (!info)
        return 0;
    struct replay_classes *opened = calloc(1, sizeof *opened);
    if (!opened)
        return WEIR_ERR_MEMORY;
    opened->info = info;
    opened->tally = replay_tally_open((uint32_t)WEIR_CLASSES + info->signal_count, keys_max);
    *classes = opened;
    return opened->tally ? 0 : WEIR_ERR_MEMORY;
}

void replay_classes_close(struct replay_classes *classes)
{
    if (!classes)
        return;
    if (classes->tally)
        replay_tally_close(classes->tally);
    free(classes);
}

static int count(struct replay_classes *classes, uint32_t row,
                 const struct weir_caller_score *score)
{
    const struct weir_bytes none = {"", 0};
    return replay_tally_add(classes->tally, row, score->client, none, true);
}

int replay_classes_add(struct replay_classes *classes, const struct weir_decision *decision)
{
    const struct weir_caller_score *score = weir_decision_score(decision);
    int err = 0;
    if (!score)
        return 0;
    classes->keyless += !score->keyed;
    for (uint32_t c = 0; c <= score->class && err == 0; c++)
        err = count(classes, c, score);
    for (uint32_t s = 0; s < classes->info->signal_count && err == 0; s++)
        if ((score->held >> s & 1) != 0)
            err = count(classes, WEIR_CLASSES + s, score);
    return err;
}

static void print_share(FILE *out, uint64_t part, uint64_t of)
{
    fprintf(out, " %10" PRIu64 " %7.2f%%", part, of > 0 ? 100.0 * (double)part / (double)of : 0.0);
}

void replay_classes_print(const struct replay_classes *classes, FILE *out)
{
    const struct weir_score_info *info = classes->info;
    struct replay_count all = replay_tally_count(classes->tally, 0);
    fprintf(out, "\n%-*s %10s %8s %10s %8s\n", REPLAY_NAME_WIDTH, "CLASS", "REQUESTS", "",
            "CLIENTS", "");
    for (uint32_t c = 0; c < WEIR_CLASSES; c++) {
        struct replay_count reached = replay_tally_count(classes->tally, c), worse = {0};
        if (c + 1 < WEIR_CLASSES)
            worse = replay_tally_count(classes->tally, c + 1);
        fprintf(out, "%-*s", REPLAY_NAME_WIDTH, weir_class_name((uint8_t)c));
        print_share(out, reached.requests - worse.requests, all.requests);
        print_share(out, reached.keys - worse.keys, all.keys);
        fputc('\n', out);
    }
    fprintf(out, "\n%-*s %10s %8s %10s %8s\n", REPLAY_NAME_WIDTH, "SIGNAL", "REQUESTS", "",
            "CLIENTS", "");
    for (uint32_t s = 0; s < info->signal_count; s++) {
        struct replay_count held = replay_tally_count(classes->tally, WEIR_CLASSES + s);
        fprintf(out, "%-*.*s", REPLAY_NAME_WIDTH, (int)info->signals[s].name.size,
                info->signals[s].name.data);
        print_share(out, held.requests, all.requests);
        print_share(out, held.keys, all.keys);
        fputc('\n', out);
    }
    fputs("a client counts for the worst class that it reached\n", out);
    if (!all.keys_complete)
        fputs("more clients than --max-keys: those beyond are counted in requests only\n", out);
    if (classes->keyless > 0)
        fprintf(out, "%" PRIu64 " requests without the key of `score` count as one client\n",
                classes->keyless);
    if (info->behaviour && weir_behaviour_evicted(info->behaviour) > 0)
        fprintf(out,
                "%" PRIu64 " clients were forgotten: give `score` more `clients` for exact runs\n",
                weir_behaviour_evicted(info->behaviour));
}
