/* SPDX-License-Identifier: Apache-2.0 */
/* see penalties.h */
#include "cli/replay/penalties.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/replay/due_queue.h"
#include "cli/replay/report.h"
#include "cli/times.h"
#include "feature/standing/settings.h"
#include "server/text/print.h"

#define BUCKETS 65536
#define KEY_SHOWN_MAX 200

/* What a penalty knows of a value. */
struct climber {
    struct climber *next;  /* in its bucket */
    struct climber *older; /* made before it; of all */
    uint64_t value[3];     /* the id; or the bits of a network, and their number */
    struct weir_ladder_state state;
    uint64_t reached_ns[WEIR_LADDER_STEPS_MAX]; /* first; 0: never */
    uint8_t penalty, highest;
    bool network;
    struct weir_cidr cidr;
    uint32_t key_size;
    char key[];
};

/* A term may be back at that time. */
struct due {
    struct due_time time;
    struct climber *climber;
};

struct replay_penalties {
    const struct weir_rules *rules;
    struct weir_standing *map;
    uint64_t callers_max, callers, left_out, unplaced;
    uint64_t strikes[WEIR_PENALTIES_MAX];
    struct climber *buckets[BUCKETS];
    struct climber *newest;
    struct due_queue due;
};

struct replay_penalties *replay_penalties_open(const struct weir_rules *rules,
                                               struct weir_standing *map, uint64_t callers_max)
{
    struct replay_penalties *penalties = calloc(1, sizeof *penalties);

    if (!penalties)
        return NULL;
    penalties->rules = rules;
    penalties->map = map;
    penalties->callers_max = callers_max;
    penalties->due.item_size = sizeof(struct due);
    return penalties;
}

void replay_penalties_close(struct replay_penalties *penalties)
{
    if (!penalties)
        return;
    while (penalties->newest) {
        struct climber *climber = penalties->newest;

        penalties->newest = climber->older;
        free(climber);
    }
    due_queue_free(&penalties->due);
    free(penalties);
}

/* --- Climbers --------------------------------------------------------------------------------- */

static struct climber **bucket_of(struct replay_penalties *penalties, const uint64_t value[3])
{
    uint64_t hash = (value[0] ^ value[1] * UINT64_C(0x9e3779b97f4a7c15) ^ value[2]) *
                    UINT64_C(0xbf58476d1ce4e5b9);

    return &penalties->buckets[(hash >> 32) % BUCKETS];
}

static void value_of(const struct weir_struck *struck, uint64_t value[3])
{
    const struct weir_cidr *network = &struck->strike->network;

    memset(value, 0, 3 * sizeof *value);
    if (!struck->kind->address) {
        memcpy(value, struck->strike->id, 2 * sizeof *value);
        return;
    }
    memcpy(value, network->address.bytes, network->address.family == 4 ? 4 : 16);
    value[2] = (uint64_t)network->address.family << 8 | network->bits;
}

static bool is_of(const struct climber *climber, const uint64_t value[3])
{
    return memcmp(climber->value, value, sizeof climber->value) == 0;
}

static struct climber *find(struct replay_penalties *penalties, const struct weir_struck *struck,
                            const uint64_t value[3])
{
    struct climber *climber = *bucket_of(penalties, value);

    while (climber && (climber->penalty != struck->strike->penalty || !is_of(climber, value)))
        climber = climber->next;
    return climber;
}

static struct climber *add(struct replay_penalties *penalties, const struct weir_struck *struck,
                           const uint64_t value[3], struct weir_bytes key)
{
    struct climber **bucket = bucket_of(penalties, value);
    struct climber *climber = calloc(1, sizeof *climber + key.size);

    if (!climber)
        return NULL;
    memcpy(climber->value, value, sizeof climber->value);
    climber->penalty = struck->strike->penalty;
    climber->network = struck->kind->address;
    climber->cidr = struck->strike->network;
    climber->key_size = (uint32_t)key.size;
    memcpy(climber->key, key.data, key.size);
    climber->next = *bucket;
    *bucket = climber;
    climber->older = penalties->newest;
    penalties->newest = climber;
    penalties->callers++;
    return climber;
}

/* --- In force --------------------------------------------------------------------------------- */

/* Puts the strictest term of a value in force, and notes when another one is back. */
static int put_in_force(struct replay_penalties *penalties, struct climber *of, uint64_t now_ns)
{
    struct weir_penalty_term terms[WEIR_PENALTIES_MAX];
    struct weir_standing_entry entry;
    uint32_t count = 0;
    uint64_t due_ns;
    int error;

    for (struct climber *at = *bucket_of(penalties, of->value); at; at = at->next)
        if (is_of(at, of->value))
            terms[count++] = (struct weir_penalty_term){
                weir_rules_penalty(penalties->rules, at->penalty), &at->state};
    if (weir_penalty_strictest(terms, count, now_ns, &entry, &due_ns) < 0)
        return 0;
    error = of->network ? weir_standing_set_network(penalties->map, &of->cidr, &entry)
                        : weir_standing_set(penalties->map, of->value, &entry);
    penalties->unplaced += error < 0;
    if (due_ns == 0)
        return 0;
    return due_queue_push(&penalties->due, &(struct due){{.due_ns = due_ns}, of});
}

int replay_penalties_strike(struct replay_penalties *penalties, const struct weir_struck *struck,
                            struct weir_bytes key)
{
    const struct weir_ladder *ladder = &struck->penalty->ladder;
    struct climber *climber;
    uint64_t value[3];

    value_of(struck, value);
    climber = find(penalties, struck, value);
    penalties->strikes[struck->strike->penalty]++;
    if (!struck->moves) {
        if (climber)
            weir_ladder_strike(ladder, &climber->state, struck->now_ns);
        return 0;
    }
    if (!climber && penalties->callers >= penalties->callers_max) {
        penalties->left_out++;
        return 0;
    }
    if (!climber && !(climber = add(penalties, struck, value, key)))
        return WEIR_ERR_MEMORY;
    weir_ladder_move(ladder, &climber->state, struck->now_ns);
    if (climber->state.step > climber->highest) {
        climber->highest = climber->state.step;
        climber->reached_ns[climber->highest - 1] = struck->now_ns;
    }
    return put_in_force(penalties, climber, struck->now_ns);
}

void replay_penalties_move(struct replay_penalties *penalties, uint64_t now_ns)
{
    struct due due;

    while (penalties->due.count > 0 && due_queue_first_ns(&penalties->due) <= now_ns) {
        due_queue_pop(&penalties->due, &due);
        if (put_in_force(penalties, due.climber, due.time.due_ns) < 0)
            return; /* the term that would be back later is not */
    }
}

/* --- The report ------------------------------------------------------------------------------- */

/* Higher first, then earlier, then by key. */
static int compare(const void *a, const void *b)
{
    const struct climber *one = *(struct climber *const *)a, *other = *(struct climber *const *)b;
    uint64_t one_ns = one->reached_ns[one->highest - 1];
    uint64_t other_ns = other->reached_ns[other->highest - 1];
    uint32_t size = one->key_size < other->key_size ? one->key_size : other->key_size;

    if (one->highest != other->highest)
        return one->highest > other->highest ? -1 : 1;
    if (one_ns != other_ns)
        return one_ns < other_ns ? -1 : 1;
    int order = memcmp(one->key, other->key, size);
    return order != 0 ? order : (one->key_size > size) - (other->key_size > size);
}

static void print_summary(const struct replay_penalties *penalties, FILE *out, uint32_t number,
                          struct climber *const *climbers, uint64_t count)
{
    const struct weir_penalty *penalty = weir_rules_penalty(penalties->rules, number);
    const char *comma = "";

    fprintf(out, "%.*s: %" PRIu64 " strikes; ", (int)penalty->name.size, penalty->name.data,
            penalties->strikes[number]);
    if (count == 0)
        fprintf(out, "nobody reached a step");
    for (uint8_t step = 1; step <= penalty->ladder.count; step++) {
        uint64_t reached = 0;

        for (uint64_t i = 0; i < count; i++)
            reached += climbers[i]->highest >= step;
        if (reached == 0)
            break;
        fprintf(out, "%s%" PRIu64 " reached step %u", comma, reached, (unsigned)step);
        comma = ", ";
    }
    fputc('\n', out);
}

static void print_climber(const struct replay_penalties *penalties, FILE *out,
                          const struct climber *climber)
{
    const struct weir_penalty *penalty = weir_rules_penalty(penalties->rules, climber->penalty);

    for (uint8_t step = 1; step <= climber->highest; step++) {
        const char *level = weir_standing_level_name(penalty->ladder.steps[step - 1].level);
        char time[WEIR_MOMENT_MAX];

        fprintf(out, "%-*.*s %2u %-10s  %-25s  ", REPLAY_NAME_WIDTH, (int)penalty->name.size,
                penalty->name.data, (unsigned)step, level,
                cli_time_text(time, climber->reached_ns[step - 1]));
        weir_print_key(out, climber->key, climber->key_size, KEY_SHOWN_MAX);
        fputc('\n', out);
    }
}

void replay_penalties_print(const struct replay_penalties *penalties, FILE *out, uint64_t top)
{
    struct climber **climbers = calloc((size_t)penalties->callers + 1, sizeof *climbers);
    bool titled = false;

    if (!climbers) {
        cli_error("out of memory: the penalties are left out");
        return;
    }
    fputc('\n', out);
    for (int rows = 0; rows < 2; rows++) {
        for (uint32_t i = 0; i < weir_rules_penalty_count(penalties->rules); i++) {
            uint64_t count = 0;

            for (struct climber *at = penalties->newest; at; at = at->older)
                if (at->penalty == i)
                    climbers[count++] = at;
            qsort(climbers, (size_t)count, sizeof(struct climber *), compare);
            if (rows == 0)
                print_summary(penalties, out, i, climbers, count);
            if (rows == 1 && count > 0 && !titled)
                fprintf(out, "\n%-*s %-13s  %-25s  %s\n", REPLAY_NAME_WIDTH, "PENALTY", "STEP",
                        "REACHED", "CALLER");
            titled |= rows == 1 && count > 0;
            for (uint64_t j = 0; rows == 1 && j < count && j < top; j++)
                print_climber(penalties, out, climbers[j]);
        }
    }
    free(climbers);
    if (penalties->left_out > 0)
        fprintf(out, "Not complete: %" PRIu64 " moves of further callers; raise --max-keys\n",
                penalties->left_out);
    if (penalties->unplaced > 0)
        fprintf(out, "Not exact: %" PRIu64 " moves had no room; raise standing.entries\n",
                penalties->unplaced);
}
