/* SPDX-License-Identifier: Apache-2.0 */
/* see denial_cache.h */
#include "store/redis/denial_cache.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/siphash.h"

#define RECORD_BYTES 160 /* what the ring is sized for: two checks */
#define CHECK_WORDS 10   /* what of a check is hashed */
#define HEAD_WORDS 1
#define EPOCHS 1024 /* keys that share one forget each other's denials: harmless */

struct record {
    uint64_t hash[2];
    uint64_t until_ns, kept_ns; /* the caller's time */
    uint64_t server_ns;         /* decision->now_ns */
    uint64_t count;
    struct weir_outcome outcomes[];
};

#define LONGEST (sizeof(struct record) + WEIR_CHECKS_MAX * sizeof(struct weir_outcome))

/* Positions count all bytes ever written, so that a position tells whether the record there has
 * been overwritten since; where it is in the ring is its remainder. */
struct redis_denial_cache {
    unsigned char *ring;
    uint64_t *index; /* positions; 0: none */
    uint64_t size, mask;
    uint64_t head;         /* where the next record goes */
    uint64_t all_until_ns; /* no record lives longer */
    uint64_t longest_ns;
    uint64_t secret[2];
    uint64_t epochs[EPOCHS]; /* part of what is hashed */
};

int redis_denial_cache_open(struct redis_denial_cache **denials,
                            const struct redis_denial_cache_options *options)
{
    struct redis_denial_cache *new = calloc(1, sizeof *new);
    uint64_t entries = 1;

    if (!new)
        return WEIR_ERR_MEMORY;
    while (entries < options->records)
        entries *= 2;
    new->mask = entries - 1;
    new->size = options->records *(uint64_t)RECORD_BYTES + 2 * LONGEST;
    new->size -= new->size % sizeof(uint64_t);
    new->head = 2 * new->size; /* position 0 is long overwritten */
    new->longest_ns = options->longest_ns;
    if (new->longest_ns == 0 || new->longest_ns > REDIS_DENIAL_CACHE_MAX_NS)
        new->longest_ns = REDIS_DENIAL_CACHE_MAX_NS;
    memcpy(new->secret, options->secret, sizeof new->secret);
    new->index = calloc(entries, sizeof *new->index);
    new->ring = malloc(new->size);
    if (!new->index || !new->ring) {
        redis_denial_cache_close(new);
        return WEIR_ERR_MEMORY;
    }
    *denials = new;
    return 0;
}

void redis_denial_cache_close(struct redis_denial_cache *denials)
{
    free(denials->ring);
    free(denials->index);
    free(denials);
}

/* --- Which decision it is --------------------------------------------------------------------- */

static uint64_t *epoch_of(struct redis_denial_cache *denials, const struct weir_check *check)
{
    return &denials->epochs[check->hash[0] % EPOCHS];
}

static bool is_kind(const struct weir_decision *decision)
{
    if (decision->op != WEIR_OP_DECIDE)
        return false;
    for (uint16_t i = 0; i < decision->count; i++)
        if (decision->checks[i].flags & (WEIR_CHECK_CHARGE_ON_DENY | WEIR_CHECK_IDEMPOTENCY))
            return false;
    return true;
}

static void identify(struct redis_denial_cache *denials, const struct weir_decision *decision,
                     uint64_t hash[2])
{
    uint64_t words[HEAD_WORDS + CHECK_WORDS * WEIR_CHECKS_MAX], *word = words;

    *word++ = decision->policy | (uint64_t)decision->count << 8;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        bool limited = weir_check_has_state(check);
        static const struct weir_limit_spec none;
        const struct weir_limit_spec *spec = limited ? &check->limit->spec : &none;

        *word++ = check->hash[0];
        *word++ = check->hash[1];
        *word++ = check->cost;
        *word++ = spec->rate;
        *word++ = spec->window_ns;
        *word++ = spec->burst;
        *word++ = spec->rollover;
        *word++ = spec->calendar;
        *word++ = (uint64_t)spec->algorithm | (uint64_t)spec->strict << 8 |
                  (uint64_t)check->flags << 16 | (uint64_t)check->scale << 24 |
                  (uint64_t)check->scale_kind << 31 | (uint64_t)spec->segments << 32 |
                  (uint64_t)check->scale_alone << 63;
        *word++ = *epoch_of(denials, check);
    }
    weir_siphash128(denials->secret, words, (size_t)(word - words) * sizeof *words, hash);
}

/* --- Finding ---------------------------------------------------------------------------------- */

static struct record *record_at(const struct redis_denial_cache *denials, uint64_t position)
{
    return (struct record *)(void *)(denials->ring + position % denials->size);
}

static uint64_t less(uint64_t ns, uint64_t elapsed_ns)
{
    if (ns == WEIR_NEVER)
        return ns;
    return ns > elapsed_ns ? ns - elapsed_ns : 0;
}

/* A cell needs nothing: its report is made at the decision's new time. */
static void grow_older(struct weir_outcome *outcome, uint64_t elapsed_ns)
{
    if (!outcome->reported)
        return;
    outcome->next_ns = less(outcome->next_ns, elapsed_ns);
    outcome->report.retry_after_ns = less(outcome->report.retry_after_ns, elapsed_ns);
    outcome->report.reset_after_ns = less(outcome->report.reset_after_ns, elapsed_ns);
}

bool redis_denial_cache_find(struct redis_denial_cache *denials, struct weir_decision *decision,
                             uint64_t now_ns)
{
    uint64_t hash[2];

    if (now_ns >= denials->all_until_ns || !is_kind(decision))
        return false;
    identify(denials, decision, hash);

    uint64_t position = denials->index[hash[0] & denials->mask];

    if (position + denials->size < denials->head)
        return false;

    const struct record *record = record_at(denials, position);

    if (record->hash[0] != hash[0] || record->hash[1] != hash[1] || now_ns >= record->until_ns)
        return false;

    uint64_t elapsed_ns = now_ns - record->kept_ns;

    memcpy(decision->outcomes, record->outcomes, record->count * sizeof *record->outcomes);
    for (uint16_t i = 0; i < decision->count; i++)
        grow_older(&decision->outcomes[i], elapsed_ns);
    decision->now_ns = record->server_ns + elapsed_ns;
    decision->delay_ns = 0;
    decision->verdict = WEIR_DENIED;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
    decision->repeated = false;
    decision->remembered = true;
    return true;
}

/* --- Keeping ---------------------------------------------------------------------------------- */

/* How long all verdicts stay what they are; 0: not to be remembered. */
static uint64_t lasts(const struct redis_denial_cache *denials,
                      const struct weir_decision *decision)
{
    uint64_t lasts_ns = denials->longest_ns;

    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        struct weir_report report;

        if (decision->outcomes[i].charged)
            return 0;
        if (decision->outcomes[i].verdict != WEIR_DENIED || check->flags & WEIR_CHECK_ALWAYS_DENY)
            continue;
        if (check->limit->spec.algorithm == WEIR_CONCURRENCY)
            return 0;
        weir_decision_report(decision, i, &report);
        if (report.retry_after_ns < lasts_ns)
            lasts_ns = report.retry_after_ns;
    }
    return lasts_ns;
}

/* Room for a record: in one piece, and at the ring's begin where nothing lives any more. */
static uint64_t make_room(struct redis_denial_cache *denials, uint64_t bytes, uint64_t now_ns)
{
    uint64_t at = denials->head % denials->size;

    if (now_ns >= denials->all_until_ns || at + bytes > denials->size)
        denials->head += denials->size - at;
    if (now_ns >= denials->all_until_ns)
        denials->head += denials->size;
    at = denials->head;
    denials->head += bytes;
    return at;
}

void redis_denial_cache_keep(struct redis_denial_cache *denials,
                             const struct weir_decision *decision, uint64_t sent_ns,
                             uint64_t now_ns)
{
    uint64_t count = decision->count, hash[2];

    if (decision->verdict != WEIR_DENIED || !is_kind(decision))
        return;

    uint64_t until_ns = sent_ns + lasts(denials, decision);

    if (until_ns <= now_ns)
        return;
    identify(denials, decision, hash);

    uint64_t position =
        make_room(denials, sizeof(struct record) + count * sizeof(struct weir_outcome), now_ns);
    struct record *record = record_at(denials, position);

    record->hash[0] = hash[0];
    record->hash[1] = hash[1];
    record->until_ns = until_ns;
    record->kept_ns = now_ns;
    record->server_ns = decision->now_ns;
    record->count = count;
    memcpy(record->outcomes, decision->outcomes, count * sizeof *record->outcomes);
    denials->index[hash[0] & denials->mask] = position;
    if (until_ns > denials->all_until_ns)
        denials->all_until_ns = until_ns;
}

void redis_denial_cache_forget(struct redis_denial_cache *denials,
                               const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        ++*epoch_of(denials, &decision->checks[i]);
}
