/* SPDX-License-Identifier: Apache-2.0 */
/* see observer.h */
#include "feature/use/server/observer.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "core/answer.h"
#include "core/bytes.h"
#include "core/text/siphash.h"
#include "engine/answer.h"
#include "engine/engine.h"
#include "feature/standing/rules/match.h"
#include "rules/counter.h"
#include "rules/match/key.h"

#define S UINT64_C(1000000000)
#define CAUSE_HASH UINT64_C(0x9e3779b97f4a7c15) /* tells the row of a cause from the limit's */
#define PACES 1024 /* keys whose denials are paced at one time; others take their place */

/* How many denials of a key were kept in this second. */
struct pace {
    uint64_t hash;
    uint64_t second, more;
    uint32_t kept;
};

struct weir_observer {
    const struct weir_observer_settings *settings;
    atomic_flag locked;
    unsigned active;
    struct weir_heavy *seen[2][WEIR_SEEN];
    uint64_t random;
    uint64_t second, passed; /* of the last sample; requests of it */
    uint32_t weight;         /* requests that the next sample stands for */
    enum weir_cause cause;   /* why the request at hand was refused */

    struct pace paces[PACES];
    struct weir_denial *denials;
    _Atomic uint32_t denials_in, denials_out; /* counted on; each has one writer */
    struct weir_observer_stats stats;
};

static const uint32_t rooms[WEIR_SEEN] = {
    [WEIR_SEEN_KEYS] = WEIR_USE_KEYS,
    [WEIR_SEEN_PLACES] = WEIR_USE_PLACES,
    [WEIR_SEEN_CALLERS] = WEIR_USE_CALLERS,
    [WEIR_SEEN_BURSTS] = WEIR_USE_BURSTS,
};

static struct weir_heavy *active(const struct weir_observer *o, enum weir_seen what)
{
    return o->seen[o->active][what];
}

int weir_observer_open(struct weir_observer **observer,
                       const struct weir_observer_settings *settings, uint64_t seed)
{
    struct weir_observer *o = calloc(1, sizeof *o);
    int err = o ? 0 : WEIR_ERR_MEMORY;
    for (int i = 0; i < 2 * WEIR_SEEN && err == 0; i++)
        err = weir_heavy_open(&o->seen[i / WEIR_SEEN][i % WEIR_SEEN], rooms[i % WEIR_SEEN]);
    if (err == 0) {
        o->denials = calloc(WEIR_USE_DENIALS, sizeof *o->denials);
        err = o->denials ? 0 : WEIR_ERR_MEMORY;
    }
    if (err < 0) {
        weir_observer_close(o);
        return err;
    }
    o->settings = settings;
    o->random = seed | 1;
    o->weight = 1;
    atomic_flag_clear(&o->locked);
    *observer = o;
    return 0;
}

void weir_observer_close(struct weir_observer *observer)
{
    if (!observer)
        return;
    for (int i = 0; i < 2 * WEIR_SEEN; i++)
        weir_heavy_close(observer->seen[i / WEIR_SEEN][i % WEIR_SEEN]);
    free(observer->denials);
    free(observer);
}

static bool try_lock(struct weir_observer *o)
{
    return !atomic_flag_test_and_set_explicit(&o->locked, memory_order_acquire);
}

static void unlock(struct weir_observer *o)
{
    atomic_flag_clear_explicit(&o->locked, memory_order_release);
}

/* --- Samples ---------------------------------------------------------------------------------- */

static uint32_t draw(struct weir_observer *o, uint32_t below)
{
    o->random ^= o->random << 13; /* Marsaglia's xorshift */
    o->random ^= o->random >> 7;
    o->random ^= o->random << 17;
    return (uint32_t)(((o->random >> 32) * below) >> 32);
}

/* From which request of a second on 1 in how many is a sample. */
static const struct {
    uint32_t from, gap;
} gaps[] = {{0, 1}, {WEIR_USE_EXACT, 16}, {1 << 15, 64}, {1 << 18, 256}};

/* How many requests pass until the next sample: at random, on average the gap. A gap that is always
 * the same would see one part only of requests that come in turns. */
static uint32_t next_gap(struct weir_observer *o, uint64_t now_ns)
{
    uint64_t second = now_ns / S;
    unsigned i = sizeof gaps / sizeof *gaps - 1;
    if (second != o->second) {
        o->second = second;
        o->passed = 0;
    }
    while (o->passed < gaps[i].from)
        i--;
    o->weight = gaps[i].gap;
    uint32_t gap = o->weight > 1 ? 1 + draw(o, 2 * o->weight - 1) : 1;
    o->passed += gap;
    return gap;
}

/* Causes that have a row of their own in place of the limit: it only was where it happened. */
static bool has_row(enum weir_cause cause)
{
    return cause == WEIR_CAUSE_CHALLENGE || cause == WEIR_CAUSE_STORE;
}

/* By limit: a key that makes room in the sketch of keys takes its bursts along. */
static void see_burst(struct weir_observer *o, const struct weir_observed *observed, uint32_t rule,
                      uint64_t weight)
{
    struct weir_heavy *bursts = active(o, WEIR_SEEN_BURSTS);
    struct weir_rule_info info;
    bool fresh;
    weir_rules_info(observed->rules, rule, &info);
    struct weir_bytes name = weir_bytes_of(info.name);
    const uint64_t hash[2] = {weir_fnv(WEIR_FNV_BASIS, name.data, name.size), name.size};
    weir_heavy_count(bursts, hash, weight, &fresh);
    if (fresh)
        weir_heavy_name(bursts, name, (struct weir_bytes){"", 0});
}

static void see_key(struct weir_observer *o, const struct weir_observed *observed, uint16_t first,
                    uint16_t end, uint64_t weight)
{
    const struct weir_decision *d = observed->decision;
    const struct weir_check *check = &d->checks[first];
    struct weir_heavy *keys = active(o, WEIR_SEEN_KEYS);
    struct weir_report report = {0};
    bool fresh, denied = false, shadow = (check->flags & WEIR_CHECK_SHADOW) != 0;
    uint16_t tightest = first;
    if (check->limit)
        tightest = weir_decision_tightest(d, first, end, &report);
    for (uint16_t i = first; i < end; i++)
        denied |= d->outcomes[i].verdict == WEIR_DENIED;
    struct weir_heavy_use *use = weir_heavy_count(keys, check->hash, weight, &fresh);
    if (fresh) {
        struct weir_shown_list key;
        struct weir_rule_info info;
        weir_rules_info(observed->rules, check->rule, &info);
        weir_observed_key(observed, first, &key);
        weir_heavy_name(keys, weir_bytes_of(info.name), weir_shown_packed(&key));
    }
    use->cost += d->verdict == WEIR_ALLOWED ? check->cost * weight : 0;
    use->denied += denied && !shadow && !has_row(o->cause) ? weight : 0;
    if (!denied && d->verdict == WEIR_ALLOWED && check->limit && report.remaining == 0) {
        use->exhausted += weight;
        see_burst(o, observed, check->rule, weight);
    }
    use->seen_ns = d->now_ns;
    use->rule = check->rule;
    use->generation = atomic_load_explicit(&o->settings->generation, memory_order_relaxed);
    use->capacity = check->limit ? d->checks[tightest].limit->capacity : 0;
    use->remaining = report.remaining;
    use->reset_after_ns = report.reset_after_ns;
    weir_heavy_vote(use, observed->place.route, weight);
}

static void see_place(struct weir_observer *o, const struct weir_observed *observed,
                      const char *kind, struct weir_bytes text, uint64_t weight)
{
    const struct weir_decision *d = observed->decision;
    /* Texts, not numbers, are the same after a reload; they come from the rules. */
    uint64_t hash[2] = {weir_fnv(WEIR_FNV_BASIS, text.data, text.size), (uint64_t)kind[0]};
    bool fresh;
    hash[0] ^= hash[0] >> 29;
    struct weir_heavy *places = active(o, WEIR_SEEN_PLACES);
    struct weir_heavy_use *use = weir_heavy_count(places, hash, weight, &fresh);
    if (fresh)
        weir_heavy_name(places, weir_bytes_of(kind), text);
    use->cost +=
        d->verdict == WEIR_ALLOWED && weir_decision_limits(d) > 0 ? d->checks[0].cost * weight : 0;
    use->denied += d->verdict == WEIR_DENIED ? weight : 0;
    use->seen_ns = d->now_ns;
}

/* Who asked: one of the names of what is in `callers`. */
static void see_caller(struct weir_observer *o, const struct weir_observed *observed,
                       const char *kind, struct weir_bytes value, uint64_t weight)
{
    const struct weir_decision *d = observed->decision;
    const uint64_t secret[2] = {o->settings->secret[0] ^ (uint64_t)kind[0], o->settings->secret[1]};
    uint64_t hash[2];
    bool fresh;
    weir_siphash128(secret, value.data, value.size, hash);
    struct weir_heavy *callers = active(o, WEIR_SEEN_CALLERS);
    struct weir_heavy_use *use = weir_heavy_count(callers, hash, weight, &fresh);
    if (fresh) {
        struct weir_shown_list list = {.size = 0};
        weir_observed_pack(observed, &list, kind, value);
        weir_heavy_name(callers, weir_bytes_of(kind), weir_shown_packed(&list));
    }
    use->denied += d->verdict == WEIR_DENIED ? weight : 0;
    use->seen_ns = d->now_ns;
}

/* A user that is an address (`identify: client.ip`) is counted as one. */
static bool names_user(struct weir_bytes user)
{
    struct weir_address address;
    return user.data && weir_address_parse(&address, user.data, user.size) < 0;
}

static void see_callers(struct weir_observer *o, const struct weir_observed *observed,
                        uint64_t weight)
{
    const struct weir_asker asker = weir_observed_caller(observed);
    char text[WEIR_ADDRESS_TEXT_MAX];
    see_caller(o, observed, WEIR_USE_ALL, (struct weir_bytes){"", 0}, weight);
    if (names_user(asker.user))
        see_caller(o, observed, WEIR_USE_USER, asker.user, weight);
    if (asker.org.data)
        see_caller(o, observed, WEIR_USE_ORG, asker.org, weight);
    if (asker.client->family != 0) {
        struct weir_address network = *asker.client;
        uint8_t bits = network.family == 6 ? 64 : 32;
        weir_address_mask(&network, bits);
        size_t size = rules_address_text(&network, bits, text);
        see_caller(o, observed, WEIR_USE_ADDRESS, (struct weir_bytes){text, size}, weight);
    }
}

/* Whether a check is of a limit that the rules show. */
static bool is_shown(const struct weir_observed *observed, const struct weir_check *check)
{
    return check->rule < weir_rules_count(observed->rules);
}

static void see_keys(struct weir_observer *o, const struct weir_observed *observed)
{
    const struct weir_decision *d = observed->decision;
    for (uint16_t i = 0, end; i < weir_decision_limits(d); i = end) {
        end = weir_decision_limit_end(d, i);
        if (is_shown(observed, &d->checks[i]))
            see_key(o, observed, i, end, 1);
    }
}

/* One of the limits, which stands for all. */
static void see_one_key(struct weir_observer *o, const struct weir_observed *observed,
                        uint64_t weight)
{
    const struct weir_decision *d = observed->decision;
    uint16_t first[WEIR_CHECKS_MAX];
    uint32_t count = 0;
    for (uint16_t i = 0; i < weir_decision_limits(d); i = weir_decision_limit_end(d, i))
        if (is_shown(observed, &d->checks[i]))
            first[count++] = i;
    if (count == 0)
        return;
    uint16_t drawn = first[count > 1 ? draw(o, count) : 0];
    see_key(o, observed, drawn, weir_decision_limit_end(d, drawn), weight * count);
}

/* The standing that has refused the caller, before any limit; NULL: none has. */
static const struct weir_caller_standing *refused_by(const struct weir_observed *observed)
{
    const struct weir_caller_standing *standing = weir_decision_standing(observed->decision);
    return standing && standing->refused ? standing : NULL;
}

/* A caller that is refused has no key of a limit: it has one of the standing. A caller that is
 * unknown has none at all: all of them are one row. */
static void see_refused(struct weir_observer *o, const struct weir_observed *observed,
                        uint64_t weight)
{
    static const uint64_t unknown[2] = {CAUSE_HASH, WEIR_CAUSE_UNKNOWN};
    const struct weir_caller_standing *standing = refused_by(observed);
    struct weir_heavy *keys = active(o, WEIR_SEEN_KEYS);
    bool fresh;
    if (standing->by.size == 0 && !standing->unknown)
        return;
    const uint64_t *hash = standing->unknown ? unknown : standing->hash;
    struct weir_heavy_use *use = weir_heavy_count(keys, hash, weight, &fresh);
    if (fresh) {
        struct weir_shown_list key = {.size = 0};
        if (!standing->unknown)
            weir_observed_refused(observed, &key);
        weir_heavy_name(keys, weir_answer_refuser(standing->unknown), weir_shown_packed(&key));
    }
    use->denied += weight;
    use->seen_ns = observed->decision->now_ns;
    use->rule = UINT32_MAX;
    weir_heavy_vote(use, observed->place.route, weight);
}

/* The limit to blame, or where the store failed, the first one. */
static void see_cause(struct weir_observer *o, const struct weir_observed *observed,
                      uint64_t weight)
{
    const struct weir_decision *d = observed->decision;
    uint16_t at = d->denied_by != UINT16_MAX ? d->denied_by : 0;
    struct weir_heavy *keys = active(o, WEIR_SEEN_KEYS);
    bool fresh;
    if (at >= weir_decision_limits(d))
        return;
    const struct weir_check *check = &d->checks[at];
    const uint64_t hash[2] = {check->hash[0] ^ CAUSE_HASH * (uint64_t)o->cause, check->hash[1]};
    struct weir_heavy_use *use = weir_heavy_count(keys, hash, weight, &fresh);
    if (fresh) {
        struct weir_shown_list key;
        weir_observed_key(observed, at, &key);
        weir_heavy_name(keys, weir_bytes_of(weir_cause_names[o->cause]), weir_shown_packed(&key));
    }
    use->denied += weight;
    use->seen_ns = d->now_ns;
    use->rule = UINT32_MAX;
    use->generation = atomic_load_explicit(&o->settings->generation, memory_order_relaxed);
    weir_heavy_vote(use, observed->place.route, weight);
}

static void see_sample(struct weir_observer *o, const struct weir_observed *observed)
{
    uint64_t weight = o->weight;
    o->cause = observed->decision->verdict == WEIR_DENIED ? weir_decision_cause(observed->decision)
                                                          : WEIR_CAUSE_LIMIT;
    weir_count(&o->stats.sampled, 1);
    if (!try_lock(o)) {
        weir_count(&o->stats.lost, 1);
        return;
    }
    see_callers(o, observed, weight);
    if (refused_by(observed))
        see_refused(o, observed, weight);
    else if (weight == 1)
        see_keys(o, observed);
    else
        see_one_key(o, observed, weight);
    if (has_row(o->cause))
        see_cause(o, observed, weight);
    struct weir_bytes route = weir_rules_route_text(observed->rules, observed->place.route);
    struct weir_bytes plan = weir_rules_plan_name(observed->rules, observed->place.plan);
    if (route.data)
        see_place(o, observed, WEIR_USE_ROUTE, route, weight);
    if (plan.data)
        see_place(o, observed, WEIR_USE_PLAN, plan, weight);
    unlock(o);
}

/* --- Denials ---------------------------------------------------------------------------------- */

/* Whether this denial is kept; *more: how many were left out before it. */
static bool paced(struct weir_observer *o, uint64_t hash, uint64_t now_ns, uint32_t per_key,
                  uint64_t *more)
{
    struct pace *pace = &o->paces[hash % PACES];
    uint64_t second = now_ns / S;
    if (pace->hash != hash)
        *pace = (struct pace){.hash = hash, .second = second};
    if (pace->second != second) {
        pace->second = second;
        pace->kept = 0;
    }
    if (pace->kept >= per_key) {
        pace->more++;
        weir_count(&o->stats.denials_more, 1);
        return false;
    }
    pace->kept++;
    *more = pace->more;
    pace->more = 0;
    return true;
}

static void fill_limit(struct weir_denial *denial, const struct weir_observed *observed,
                       uint16_t blamed)
{
    const struct weir_decision *d = observed->decision;
    const struct weir_check *check = &d->checks[blamed];
    struct weir_report report = {0, 0, WEIR_NEVER, WEIR_NEVER};
    struct weir_rule_info info;
    weir_rules_info(observed->rules, check->rule, &info);
    denial->limit_size =
        weir_denial_copy(denial->limit, sizeof denial->limit, weir_bytes_of(info.name));
    weir_observed_key(observed, blamed, &denial->key);
    denial->cost = check->cost;
    denial->algorithm = (int8_t)info.algorithm;
    if (check->limit) {
        weir_decision_report(d, blamed, &report);
        denial->rate = check->limit->spec.rate;
        denial->window_ns = check->limit->spec.window_ns;
    }
    denial->capacity = report.limit;
    denial->remaining = report.remaining;
    denial->retry_after_ns = report.retry_after_ns;
    denial->reset_after_ns = report.reset_after_ns;
}

/* Not inlined: an answer is large. */
static __attribute__((noinline)) void fill_rest(struct weir_denial *denial,
                                                const struct weir_observed *observed)
{
    const struct weir_decision *d = observed->decision;
    const struct weir_caller_standing *standing = weir_decision_standing(d);
    struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    weir_engine_answer(d, &answer, lease);
    denial->action = answer.action != WEIR_ACTION_NONE ? answer.action : WEIR_ACTION_REJECT;
    denial->source = d->source;
    denial->standing = standing ? standing->entry.level : WEIR_STANDING_GOOD;
    if (d->denied_by != UINT16_MAX)
        return;
    denial->algorithm = -1;
    denial->retry_after_ns = denial->reset_after_ns = answer.standing.ends_ns;
    denial->limit_size = weir_denial_copy(denial->limit, sizeof denial->limit,
                                          weir_answer_refuser(answer.standing.unknown));
    if (standing)
        weir_observed_refused(observed, &denial->key);
}

static void fill_caller(struct weir_denial *denial, const struct weir_observed *observed)
{
    const struct weir_asker asker = weir_observed_caller(observed);
    char text[WEIR_ADDRESS_TEXT_MAX];
    if (names_user(asker.user))
        weir_observed_pack(observed, &denial->caller, WEIR_USE_USER, asker.user);
    if (asker.org.data)
        weir_observed_pack(observed, &denial->caller, WEIR_USE_ORG, asker.org);
    if (asker.client->family == 0)
        return;
    size_t size = weir_address_format(asker.client, text);
    weir_observed_pack(observed, &denial->caller, WEIR_USE_ADDRESS,
                       (struct weir_bytes){text, size});
}

static void see_denial(struct weir_observer *o, const struct weir_observed *observed,
                       uint32_t per_key)
{
    const struct weir_decision *d = observed->decision;
    const struct weir_caller_standing *standing = weir_decision_standing(d);
    uint16_t blamed = d->denied_by;
    bool by_limit =
        blamed != UINT16_MAX && d->checks[blamed].rule < weir_rules_count(observed->rules);
    if (!by_limit && !(standing && standing->refused))
        return;
    const uint64_t *hash = by_limit ? d->checks[blamed].hash : standing->hash;
    uint64_t more;
    if (!paced(o, hash[0], d->now_ns, per_key, &more))
        return;
    uint32_t in = atomic_load_explicit(&o->denials_in, memory_order_relaxed);
    if (in - atomic_load_explicit(&o->denials_out, memory_order_acquire) == WEIR_USE_DENIALS) {
        weir_count(&o->stats.denials_full, 1);
        return;
    }
    struct weir_denial *denial = &o->denials[in % WEIR_USE_DENIALS];
    *denial = (struct weir_denial){.time_ns = d->now_ns, .more = more, .hash = {hash[0], hash[1]}};
    if (by_limit)
        fill_limit(denial, observed, blamed);
    fill_rest(denial, observed);
    fill_caller(denial, observed);
    denial->route_size =
        weir_denial_copy(denial->route, sizeof denial->route,
                         weir_rules_route_text(observed->rules, observed->place.route));
    denial->plan_size =
        weir_denial_copy(denial->plan, sizeof denial->plan,
                         weir_rules_plan_name(observed->rules, observed->place.plan));
    atomic_store_explicit(&o->denials_in, in + 1, memory_order_release);
}

uint32_t weir_observer_see(void *context, const struct weir_observed *observed)
{
    struct weir_observer *o = context;
    uint32_t per_key = atomic_load_explicit(&o->settings->per_key, memory_order_relaxed);
    if (observed->decision->verdict == WEIR_DENIED && per_key > 0)
        see_denial(o, observed, per_key);
    if (!observed->sampled)
        return 1;
    see_sample(o, observed);
    return next_gap(o, observed->decision->now_ns);
}

/* --- For the main thread ---------------------------------------------------------------------- */

void weir_observer_take(struct weir_observer *observer, const struct weir_heavy *seen[WEIR_SEEN])
{
    unsigned taken = observer->active, other = 1 - taken; /* which only this thread changes */
    for (int i = 0; i < WEIR_SEEN; i++)
        weir_heavy_clear(observer->seen[other][i]);
    while (!try_lock(observer)) {
        /* the worker is at one sample */
    }
    observer->active = other;
    unlock(observer);
    for (int i = 0; i < WEIR_SEEN; i++)
        seen[i] = observer->seen[taken][i];
}

bool weir_observer_take_denial(struct weir_observer *observer, struct weir_denial *denial)
{
    uint32_t out = atomic_load_explicit(&observer->denials_out, memory_order_relaxed);
    if (out == atomic_load_explicit(&observer->denials_in, memory_order_acquire))
        return false;
    *denial = observer->denials[out % WEIR_USE_DENIALS];
    atomic_store_explicit(&observer->denials_out, out + 1, memory_order_release);
    return true;
}

const struct weir_observer_stats *weir_observer_stats(const struct weir_observer *observer)
{
    return &observer->stats;
}
