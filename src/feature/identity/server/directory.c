/* SPDX-License-Identifier: Apache-2.0 */
/* see directory.h */
#include "feature/identity/server/directory.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "store/redis/stats.h"

static struct weir_caller_directory *directory_of(struct weir_directory *base)
{
    return (struct weir_caller_directory *)base;
}

static uint64_t now_of(const struct weir_caller_directory *directory)
{
    return directory->options.clock(directory->options.context);
}

static void count(_Atomic uint64_t *counter)
{
    redis_stats_add(counter, 1);
}

static uint64_t term(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* --- Lookups in flight ------------------------------------------------------------------------ */

static struct weir_directory_lookup **bucket_of(struct weir_caller_directory *directory,
                                                const uint8_t digest[WEIR_DIGEST_BYTES])
{
    uint64_t word;
    memcpy(&word, digest, sizeof word);
    word = (word ^ directory->options.seed) * (directory->options.seed | 1);
    return &directory->buckets[(word ^ word >> 32) % WEIR_DIRECTORY_BUCKETS];
}

static bool is_of(const struct weir_directory_lookup *lookup,
                  const uint8_t digest[WEIR_DIGEST_BYTES])
{
    return memcmp(lookup->digest, digest, WEIR_DIGEST_BYTES) == 0;
}

/* The lookup of a digest. Beside it there may be some of before the key was forgotten: they are for
 * those that wait for them already, who do not wait again once they are answered. */
static struct weir_directory_lookup *lookup_find(struct weir_caller_directory *directory,
                                                 const uint8_t digest[WEIR_DIGEST_BYTES])
{
    if (directory->answered && is_of(directory->answered, digest))
        return directory->answered;
    struct weir_directory_lookup *lookup = *bucket_of(directory, digest);
    while (lookup && (lookup->forgotten || !is_of(lookup, digest)))
        lookup = lookup->next;
    return lookup;
}

/* The latest deadline is last; a reload may make later ones sooner. */
static void lookup_link(struct weir_caller_directory *directory,
                        struct weir_directory_lookup *lookup)
{
    struct weir_directory_lookup *before = directory->latest;
    while (before && before->due_ns > lookup->due_ns)
        before = before->sooner;
    lookup->sooner = before;
    lookup->later = before ? before->later : directory->soonest;
    *(before ? &before->later : &directory->soonest) = lookup;
    *(lookup->later ? &lookup->later->sooner : &directory->latest) = lookup;
}

static void lookup_unlink(struct weir_caller_directory *directory,
                          struct weir_directory_lookup *lookup)
{
    *(lookup->sooner ? &lookup->sooner->later : &directory->soonest) = lookup->later;
    *(lookup->later ? &lookup->later->sooner : &directory->latest) = lookup->sooner;
}

/* NULL: no memory. */
static struct weir_directory_lookup *lookup_take(struct weir_caller_directory *directory,
                                                 const uint8_t digest[WEIR_DIGEST_BYTES],
                                                 uint64_t now_ns)
{
    size_t room = directory->options.source->room;
    struct weir_directory_lookup *lookup = directory->free;
    if (lookup)
        directory->free = lookup->next;
    else
        lookup = malloc(sizeof *lookup + room);
    if (!lookup)
        return NULL;
    struct weir_directory_lookup **bucket = bucket_of(directory, digest);
    memset(lookup, 0, sizeof *lookup + room);
    memcpy(lookup->digest, digest, WEIR_DIGEST_BYTES);
    lookup->due_ns = now_ns + term(&directory->options.terms->deadline_ns);
    lookup->next = *bucket;
    *bucket = lookup;
    lookup_link(directory, lookup);
    directory->lookups++;
    return lookup;
}

static void lookup_give(struct weir_caller_directory *directory,
                        struct weir_directory_lookup *lookup)
{
    struct weir_directory_lookup **at = bucket_of(directory, lookup->digest);
    while (*at != lookup)
        at = &(*at)->next;
    *at = lookup->next;
    lookup->next = directory->free;
    directory->free = lookup;
    directory->lookups--;
}

static void report_up(struct weir_caller_directory *directory, bool before)
{
    bool after = weir_breaker_closed(&directory->breaker);
    if (after != before)
        directory->options.up(directory->options.context, after);
}

/* What it means for the breaker that a lookup was answered, or was not in time. */
static void lookup_tell_breaker(struct weir_caller_directory *directory,
                                struct weir_directory_lookup *lookup, uint64_t now_ns,
                                bool answered)
{
    bool before = weir_breaker_closed(&directory->breaker);
    if (lookup->probe)
        weir_breaker_probed(&directory->breaker, now_ns, answered);
    else
        weir_breaker_call(&directory->breaker, now_ns, answered);
    lookup->probe = false;
    report_up(directory, before);
}

/* Asks. NULL: it cannot be asked. */
static struct weir_directory_lookup *lookup_begin(struct weir_caller_directory *directory,
                                                  const uint8_t digest[WEIR_DIGEST_BYTES],
                                                  uint64_t now_ns)
{
    bool probe = !weir_breaker_closed(&directory->breaker);
    if (directory->lookups >= directory->options.lookups_max ||
        (probe && !weir_breaker_probe(&directory->breaker, now_ns)))
        return NULL;
    struct weir_directory_lookup *lookup = lookup_take(directory, digest, now_ns);
    if (lookup) {
        lookup->probe = probe;
        if (directory->options.source->ask(directory->options.source, lookup) == 0)
            return lookup;
        lookup_tell_breaker(directory, lookup, now_ns, false);
        lookup_unlink(directory, lookup);
        lookup_give(directory, lookup);
    } else if (probe) {
        weir_breaker_probed(&directory->breaker, now_ns, false);
    }
    count(&directory->counters.error);
    return NULL;
}

/* --- Finding ---------------------------------------------------------------------------------- */

static void insert_override(struct weir_directory_record *record,
                            const struct weir_override *override)
{
    uint32_t at = record->override_count++;
    for (; at > 0 && record->overrides[at - 1].rule > override->rule; at--)
        record->overrides[at] = record->overrides[at - 1];
    record->overrides[at] = *override;
}

/* Makes the overrides of a caller those for the present rules. */
static void compile(struct weir_caller_directory *directory,
                    const struct weir_directory_entry *entry)
{
    const struct weir_caller_directory_options *options = &directory->options;
    struct weir_directory_record *record = entry->record;
    struct weir_override override;
    struct weir_bytes limit, text;
    size_t at = 0;
    record->serial = directory->serial;
    record->override_count = 0;
    if (record->plan.data && !weir_rules_has_plan(directory->rules, record->plan))
        options->problem(options->context, entry->digest, "plan is not in the rules file");
    while (weir_directory_record_next(record, &at, &limit, &text)) {
        struct weir_reason reason = {{0}};
        int err =
            options->override(options->context, directory->rules, limit, text, &override, &reason);
        if (err < 0)
            options->problem(options->context, entry->digest,
                             reason.text[0] ? reason.text : weir_error_text(err));
        else
            insert_override(record, &override);
    }
}

static int tell_caller(struct weir_caller_directory *directory, const struct weir_rules *rules,
                       const struct weir_directory_entry *entry, struct weir_caller *caller)
{
    const struct weir_directory_record *record = entry->record;
    if (__builtin_expect(directory->rules != rules, 0)) {
        if (directory->rules)
            weir_rules_unref(directory->rules);
        directory->rules = weir_rules_ref((struct weir_rules *)(uintptr_t)rules);
        directory->serial++;
    }
    if (__builtin_expect(record->serial != directory->serial, 0))
        compile(directory, entry);
    *caller = (struct weir_caller){
        .user = record->user,
        .org = record->org,
        .plan = record->plan,
        .overrides = record->overrides,
        .override_count = record->override_count,
    };
    return 1;
}

/* The answer for a key that cannot be looked up now. `entry` is what was known of it, or NULL. */
static int guess(struct weir_caller_directory *directory, const struct weir_rules *rules,
                 const struct weir_directory_entry *entry, uint64_t now_ns,
                 struct weir_caller *caller)
{
    if (entry && now_ns < entry->stale_until_ns) {
        count(&directory->counters.stale);
        return tell_caller(directory, rules, entry, caller);
    }
    count(&directory->counters.guessed);
    directory->base.guessed = true;
    return atomic_load_explicit(&directory->options.terms->deny, memory_order_relaxed)
               ? WEIR_ERR_STORE
               : 0;
}

/* Asks again while what is known still counts, so that no request waits for a key that is in use.
 */
static void refresh(struct weir_caller_directory *directory, struct weir_directory_entry *entry,
                    uint64_t now_ns)
{
    uint64_t left_ns = entry->fresh_until_ns - now_ns;
    entry->refresh_ns = UINT64_MAX;
    if (!lookup_find(directory, entry->digest) && !lookup_begin(directory, entry->digest, now_ns))
        entry->refresh_ns = now_ns + left_ns / 4; /* and again, a few times */
}

/* Those that have waited for it are answered by `found` or `unknown`. */
static void count_hit(struct weir_caller_directory *directory, const uint8_t *digest,
                      _Atomic uint64_t *counter)
{
    if (!directory->answered || !is_of(directory->answered, digest))
        count(counter);
}

static int directory_find(struct weir_directory *base, const struct weir_rules *rules,
                          const uint8_t digest[WEIR_DIGEST_BYTES], struct weir_caller *caller)
{
    struct weir_caller_directory *directory = directory_of(base);
    uint64_t now_ns = now_of(directory);
    base->guessed = false;
    struct weir_directory_entry *entry = weir_directory_cache_find(&directory->known, digest);
    if (entry && now_ns < entry->fresh_until_ns) {
        if (__builtin_expect(now_ns >= entry->refresh_ns, 0))
            refresh(directory, entry, now_ns);
        count_hit(directory, digest, &directory->counters.hit);
        return tell_caller(directory, rules, entry, caller);
    }
    const struct weir_directory_entry *nobody =
        entry ? NULL : weir_directory_cache_find(&directory->nobody, digest);
    if (nobody && now_ns < nobody->fresh_until_ns) {
        count_hit(directory, digest, &directory->counters.negative_hit);
        return 0;
    }
    struct weir_directory_lookup *lookup = lookup_find(directory, digest);
    if (!lookup)
        lookup = lookup_begin(directory, digest, now_ns);
    if (!lookup || lookup->state != WEIR_LOOKUP_ASKED || base->hurried)
        return guess(directory, rules, entry, now_ns, caller);
    directory->last = lookup;
    return WEIR_ERR_PENDING;
}

static void directory_wait(struct weir_directory *base, struct weir_directory_waiter *waiter)
{
    struct weir_directory_lookup *lookup = directory_of(base)->last;
    waiter->lookup = lookup;
    waiter->previous = lookup->last;
    waiter->next = NULL;
    *(lookup->last ? &lookup->last->next : &lookup->first) = waiter;
    lookup->last = waiter;
}

static void directory_leave(struct weir_directory *base, struct weir_directory_waiter *waiter)
{
    struct weir_directory_lookup *lookup = waiter->lookup;
    (void)base;
    *(waiter->previous ? &waiter->previous->next : &lookup->first) = waiter->next;
    *(waiter->next ? &waiter->next->previous : &lookup->last) = waiter->previous;
}

static const struct weir_directory_ops directory_ops = {
    .find = directory_find,
    .wait = directory_wait,
    .leave = directory_leave,
};

/* --- Answers ---------------------------------------------------------------------------------- */

/* A waiter that is answered may begin to wait again, for another key. */
static void tell_waiters(struct weir_caller_directory *directory,
                         struct weir_directory_lookup *lookup)
{
    struct weir_directory_lookup *before = directory->answered;
    struct weir_directory_waiter *waiter;
    directory->answered = lookup;
    while ((waiter = lookup->first)) {
        directory_leave(&directory->base, waiter);
        waiter->done(waiter);
    }
    directory->answered = before;
}

static void count_entries(struct weir_caller_directory *directory)
{
    redis_stats_set(&directory->counters.known, directory->known.count);
    redis_stats_set(&directory->counters.nobody, directory->nobody.count);
}

/* From 15/16 of a life to all of it: entries of one moment don't all end in one. */
static uint64_t jittered(struct weir_caller_directory *directory, uint64_t life_ns)
{
    return life_ns - weir_random_up_to(&directory->random, life_ns / 16);
}

static void keep_caller(struct weir_caller_directory *directory, const uint8_t *digest,
                        uint64_t now_ns, struct weir_directory_record *record)
{
    const struct weir_directory_terms *terms = directory->options.terms;
    struct weir_directory_entry *entry = weir_directory_cache_put(&directory->known, digest);
    uint64_t life_ns = jittered(directory, term(&terms->life_ns));
    weir_directory_cache_remove(&directory->nobody, digest);
    if (entry->record && weir_directory_record_equal(entry->record, record)) {
        free(record); /* the one before has its overrides compiled */
    } else {
        free(entry->record);
        entry->record = record;
    }
    entry->refresh_ns = now_ns + life_ns - life_ns / 8;
    entry->fresh_until_ns = now_ns + life_ns;
    entry->stale_until_ns = entry->fresh_until_ns + term(&terms->stale_ns);
}

static void keep_nobody(struct weir_caller_directory *directory, const uint8_t *digest,
                        uint64_t now_ns)
{
    struct weir_directory_entry *entry = weir_directory_cache_put(&directory->nobody, digest);
    weir_directory_cache_remove(&directory->known, digest);
    entry->fresh_until_ns =
        now_ns + jittered(directory, term(&directory->options.terms->unknown_life_ns));
}

static void count_answer(struct weir_caller_directory *directory, int result, uint64_t took_ns)
{
    struct weir_directory_counters *counters = &directory->counters;
    count(result > 0 ? &counters->found : result == 0 ? &counters->unknown : &counters->error);
    if (result >= 0)
        redis_stats_latency(&counters->latency_ns, counters->latency_buckets, took_ns);
}

void weir_caller_directory_answer(struct weir_caller_directory *directory,
                                  struct weir_directory_lookup *lookup, int result,
                                  struct weir_directory_record *record, uint64_t took_ns)
{
    uint64_t now_ns = now_of(directory);
    bool answered = result >= 0 || result == WEIR_ERR_STORE;
    if (lookup->state == WEIR_LOOKUP_ASKED) {
        lookup_unlink(directory, lookup);
        lookup_tell_breaker(directory, lookup, now_ns, answered);
    } else if (answered) { /* late, but alive */
        weir_breaker_hurry(&directory->breaker, now_ns);
    }
    lookup->state = WEIR_LOOKUP_ENDED;
    count_answer(directory, result, took_ns);
    if (result > 0)
        keep_caller(directory, lookup->digest, now_ns, record);
    else if (result == 0)
        keep_nobody(directory, lookup->digest, now_ns);
    tell_waiters(directory, lookup);
    if (lookup->forgotten) {
        weir_directory_cache_remove(&directory->known, lookup->digest);
        weir_directory_cache_remove(&directory->nobody, lookup->digest);
    }
    lookup_give(directory, lookup);
    count_entries(directory);
}

uint64_t weir_caller_directory_expire(struct weir_caller_directory *directory)
{
    uint64_t now_ns = now_of(directory);
    struct weir_directory_lookup *lookup;
    while ((lookup = directory->soonest) && lookup->due_ns <= now_ns) {
        lookup_unlink(directory, lookup);
        lookup->state = WEIR_LOOKUP_LATE;
        count(&directory->counters.late);
        lookup_tell_breaker(directory, lookup, now_ns, false);
        tell_waiters(directory, lookup);
    }
    return directory->soonest ? directory->soonest->due_ns : WEIR_NEVER;
}

void weir_caller_directory_hurry(struct weir_caller_directory *directory)
{
    weir_breaker_hurry(&directory->breaker, now_of(directory));
}

/* --- Forgetting ------------------------------------------------------------------------------- */

void weir_caller_directory_forget(struct weir_caller_directory *directory,
                                  const uint8_t digest[WEIR_DIGEST_BYTES])
{
    struct weir_directory_lookup *lookup = lookup_find(directory, digest);
    if (lookup)
        lookup->forgotten = true;
    weir_directory_cache_remove(&directory->known, digest);
    weir_directory_cache_remove(&directory->nobody, digest);
    count_entries(directory);
}

void weir_caller_directory_forget_all(struct weir_caller_directory *directory)
{
    for (uint32_t i = 0; i < WEIR_DIRECTORY_BUCKETS; i++)
        for (struct weir_directory_lookup *at = directory->buckets[i]; at; at = at->next)
            at->forgotten = true;
    while (directory->known.count > 0)
        weir_directory_cache_remove(&directory->known, directory->known.entries[0].digest);
    while (directory->nobody.count > 0)
        weir_directory_cache_remove(&directory->nobody, directory->nobody.entries[0].digest);
    count_entries(directory);
}

/* --- Open, close ------------------------------------------------------------------------------ */

int weir_caller_directory_open(struct weir_caller_directory *directory,
                               const struct weir_caller_directory_options *options)
{
    memset(directory, 0, sizeof *directory);
    directory->base.ops = &directory_ops;
    directory->options = *options;
    directory->random = options->seed;
    if (!directory->options.lookups_max)
        directory->options.lookups_max = WEIR_DIRECTORY_LOOKUPS_MAX;
    weir_breaker_init(&directory->breaker, options->seed);
    int err = weir_directory_cache_open(&directory->known, options->max_keys, options->seed);
    if (err < 0)
        return err;
    err = weir_directory_cache_open(&directory->nobody, WEIR_DIRECTORY_NOBODY_MAX, options->seed);
    if (err < 0)
        weir_directory_cache_close(&directory->known);
    return err;
}

void weir_caller_directory_close(struct weir_caller_directory *directory)
{
    for (uint32_t i = 0; i < WEIR_DIRECTORY_BUCKETS; i++)
        while (directory->buckets[i])
            lookup_give(directory, directory->buckets[i]);
    while (directory->free) {
        struct weir_directory_lookup *lookup = directory->free;
        directory->free = lookup->next;
        free(lookup);
    }
    weir_directory_cache_close(&directory->known);
    weir_directory_cache_close(&directory->nobody);
    if (directory->rules)
        weir_rules_unref(directory->rules);
}
