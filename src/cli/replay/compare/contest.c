/* SPDX-License-Identifier: Apache-2.0 */
/* see contest.h */
#include "cli/replay/compare/contest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "cli/replay/log.h"

#define KEYS_MIN 128
#define FINE_SEGMENTS_MAX 60 /* Figma's choice */
#define FEW_SEGMENTS_MAX 10  /* what `weir validate` hints at */
#define FIRST_ALGORITHM 1    /* contender 0 is the exact log */

/* One key: the logs of all contenders, then the algorithms' states, each at its offset. */
struct contest_key {
    uint64_t hash[2];
    struct replay_log logs[REPLAY_CONTENDERS_MAX];
    uint64_t states[];
};

struct replay_contest {
    uint64_t limit, window_ns;
    size_t count; /* of contenders */
    struct replay_contender contenders[REPLAY_CONTENDERS_MAX];
    struct weir_limit limits[REPLAY_CONTENDERS_MAX];
    size_t state_at[REPLAY_CONTENDERS_MAX], state_words;
    struct weir_map keys; /* of struct contest_key */
};

/* Adds an algorithm unless N or W is out of its range (a bucket may have rates that no window
 * has). */
static void add_contender(struct replay_contest *contest, const char *name,
                          const struct weir_limit_spec *spec)
{
    struct weir_limit *limit = &contest->limits[contest->count];
    if (weir_limit_init(limit, spec, NULL) < 0)
        return;
    struct replay_contender *contender = &contest->contenders[contest->count];
    snprintf(contender->name, sizeof contender->name, "%s", name);
    contest->state_at[contest->count] = contest->state_words;
    contest->state_words +=
        limit->span_words > 0 ? limit->span_words : sizeof(struct weir_cell) / sizeof(uint64_t);
    contest->count++;
}

static bool is_bucket(enum weir_algorithm algorithm)
{
    return algorithm == WEIR_TOKEN_BUCKET || algorithm == WEIR_GCRA ||
           algorithm == WEIR_LEAKY_BUCKET;
}

/* Whether two limits decide alike. */
static bool are_alike(const struct weir_limit_spec *a, const struct weir_limit_spec *b)
{
    bool same_algorithm =
        a->algorithm == b->algorithm || (is_bucket(a->algorithm) && is_bucket(b->algorithm));
    return same_algorithm && a->rate == b->rate && a->window_ns == b->window_ns &&
           a->burst == b->burst && a->segments == b->segments && a->strict == b->strict;
}

/* The largest number of segments up to `most` that divides the window. */
static uint32_t segments_up_to(uint32_t most, uint64_t window_ns)
{
    uint32_t segments = most;
    while (window_ns % segments != 0)
        segments--;
    return segments;
}

static void describe(char name[REPLAY_CONTENDER_NAME_MAX], const struct weir_limit_spec *spec)
{
    const char *algorithm = weir_algorithm_name(spec->algorithm);
    if (spec->algorithm == WEIR_SLIDING_WINDOW)
        snprintf(name, REPLAY_CONTENDER_NAME_MAX, "%s, %u segments%s", algorithm, spec->segments,
                 spec->strict ? ", strict" : "");
    else if (spec->algorithm == WEIR_LEAKY_QUEUE)
        snprintf(name, REPLAY_CONTENDER_NAME_MAX, "%s, queue of %llu", algorithm,
                 (unsigned long long)spec->burst);
    else if (is_bucket(spec->algorithm))
        snprintf(name, REPLAY_CONTENDER_NAME_MAX, "%s, burst %llu", algorithm,
                 (unsigned long long)spec->burst);
    else
        snprintf(name, REPLAY_CONTENDER_NAME_MAX, "%s", algorithm);
}

/* Marks the contender that is the configured limit, or adds one. */
static void mark_configured(struct replay_contest *contest, const struct weir_limit *limit)
{
    if (limit->spec.algorithm == WEIR_SLIDING_LOG) {
        contest->contenders[0].configured = true;
        return;
    }
    for (size_t i = FIRST_ALGORITHM; i < contest->count; i++) {
        if (are_alike(&limit->spec, &contest->limits[i].spec)) {
            contest->contenders[i].configured = true;
            return;
        }
    }
    char name[REPLAY_CONTENDER_NAME_MAX];
    describe(name, &limit->spec);
    add_contender(contest, name, &limit->spec);
    contest->contenders[contest->count - 1].configured = true;
}

static void add_contenders(struct replay_contest *contest, const struct weir_limit *limit)
{
    struct weir_limit_spec spec = {.rate = limit->spec.rate, .window_ns = limit->spec.window_ns};
    uint32_t few = segments_up_to(FEW_SEGMENTS_MAX, spec.window_ns);
    uint32_t fine = segments_up_to(FINE_SEGMENTS_MAX, spec.window_ns);
    char name[REPLAY_CONTENDER_NAME_MAX];
    spec.algorithm = WEIR_FIXED_WINDOW;
    add_contender(contest, "fixed_window", &spec);
    spec.algorithm = WEIR_SLIDING_WINDOW;
    add_contender(contest, "sliding_window", &spec);
    spec.segments = few;
    describe(name, &spec);
    if (few > 1 && few < fine)
        add_contender(contest, name, &spec);
    spec.segments = fine;
    describe(name, &spec);
    add_contender(contest, name, &spec);
    spec.strict = true;
    describe(name, &spec);
    add_contender(contest, name, &spec);
    spec.segments = 0;
    spec.strict = false;
    spec.algorithm = WEIR_TOKEN_BUCKET;
    add_contender(contest, "token_bucket, gcra, leaky_bucket", &spec);
    spec.algorithm = WEIR_LEAKY_QUEUE;
    add_contender(contest, "leaky_bucket, queue", &spec);
    mark_configured(contest, limit);
}

struct replay_contest *replay_contest_open(const struct weir_limit *limit)
{
    struct replay_contest *contest = calloc(1, sizeof *contest);
    if (!contest)
        return NULL;
    if (!weir_map_open(&contest->keys, KEYS_MIN)) {
        free(contest);
        return NULL;
    }
    contest->limit = limit->spec.rate;
    contest->window_ns = limit->spec.window_ns;
    contest->count = FIRST_ALGORITHM;
    snprintf(contest->contenders[0].name, REPLAY_CONTENDER_NAME_MAX, "sliding_log (exact)");
    add_contenders(contest, limit);
    return contest;
}

void replay_contest_close(struct replay_contest *contest)
{
    if (!contest)
        return;
    uint32_t at = 0;
    for (struct contest_key *key; (key = weir_map_next(&contest->keys, &at));) {
        for (size_t j = 0; j < contest->count; j++)
            replay_log_free(&key->logs[j]);
        free(key);
    }
    weir_map_close(&contest->keys);
    free(contest);
}

static uint64_t key_hash(const void *item)
{
    return ((const struct contest_key *)item)->hash[0];
}

static bool key_is(const void *item, const void *hash)
{
    return memcmp(((const struct contest_key *)item)->hash, hash, 2 * sizeof(uint64_t)) == 0;
}

static const struct weir_map_kind keys_kind = {key_hash, key_is};

/* The key, made when it is new; NULL when out of memory. */
static struct contest_key *find_key(struct replay_contest *contest, const uint64_t hash[2])
{
    struct contest_key *key = weir_map_find(&contest->keys, &keys_kind, hash[0], hash);
    if (key)
        return key;
    key = calloc(1, sizeof *key + contest->state_words * sizeof key->states[0]);
    if (!key)
        return NULL;
    key->hash[0] = hash[0];
    key->hash[1] = hash[1];
    if (weir_map_add(&contest->keys, &keys_kind, key))
        return key;
    free(key);
    return NULL;
}

/* One contender's verdict on the request; its admissions go to its log. */
static int decide(struct replay_contest *contest, struct contest_key *key, size_t i,
                  const struct weir_use *use, bool *allowed)
{
    struct replay_contender *contender = &contest->contenders[i];
    struct replay_log *log = &key->logs[i];
    uint64_t delay_ns = 0;
    if (i < FIRST_ALGORITHM) {
        replay_log_expire(log, use->now_ns, contest->window_ns);
        *allowed = replay_log_admits(log, contest->limit, use->cost);
    } else {
        *allowed = weir_decide(&contest->limits[i], &key->states[contest->state_at[i]], use, NULL,
                               &delay_ns);
    }
    contender->allowed += *allowed;
    contender->denied += !*allowed;
    if (!*allowed)
        return 0;
    uint64_t t_ns = use->now_ns + delay_ns;
    replay_log_expire(log, t_ns, contest->window_ns);
    int error = replay_log_add(log, t_ns, use->cost);
    if (log->worst > contender->worst)
        contender->worst = log->worst;
    return error;
}

int replay_contest_add(struct replay_contest *contest, const uint64_t hash[2], uint64_t now_ns,
                       uint64_t cost)
{
    struct contest_key *key = find_key(contest, hash);
    if (!key)
        return WEIR_ERR_MEMORY;
    const struct weir_use use = {.now_ns = now_ns, .cost = cost};
    bool exact = false;
    for (size_t i = 0; i < contest->count; i++) {
        bool allowed;
        int error = decide(contest, key, i, &use, &allowed);
        if (error < 0)
            return error;
        if (i < FIRST_ALGORITHM)
            exact = allowed;
        contest->contenders[i].wrong_allows += allowed && !exact;
        contest->contenders[i].wrong_denials += !allowed && exact;
    }
    return 0;
}

size_t replay_contest_results(const struct replay_contest *contest,
                              const struct replay_contender **contenders)
{
    *contenders = contest->contenders;
    return contest->count;
}

uint64_t replay_contest_keys(const struct replay_contest *contest)
{
    return contest->keys.count;
}
