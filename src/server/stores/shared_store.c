/* SPDX-License-Identifier: Apache-2.0 */
/* see shared_store.h */
#include "server/stores/shared_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/bytes.h"
#include "server/daemon/connectivity.h"
#include "server/daemon/redis_access.h"
#include "server/net/seed.h"
#include "store/redis/client/refusal.h"
#include "store/redis/stats.h"

struct member {
    struct weir_shared_store *shared;
    unsigned index;
    const struct weir_store_redis_stats *stats; /* NULL: has not joined, or has left */
    struct weir_connectivity_member reach;
    bool open; /* its breaker, as it reported last */
};

struct weir_shared_store {
    pthread_mutex_t lock;
    struct weir_log *log;
    struct weir_rules *rules; /* hold the texts of the settings */
    const struct weir_store_settings *settings;
    struct redis_url url;
    struct weir_bytes region;            /* of another region, that lends; empty: this node's own */
    struct redis_secret secret;          /* the workers': what one learns all know */
    struct redis_shared_breaker breaker; /* of the workers' stores, for a region */
    bool has_secret;                     /* without randomness: tokens are this node's alone */
    struct weir_store_redis_stats left;  /* of those that have left */
    struct member members[WEIR_WORKERS_MAX + 1];
    struct weir_connectivity reach; /* of members, without the admin worker's */
    bool reached;                   /* by all of them, once */
    unsigned open;                  /* breakers, the shared one included */
    bool shared_open;               /* that one, as the last line has it */
    char last_event[64], last_text[WEIR_REASON_MAX];
    char refusal[WEIR_REASON_MAX]; /* see weir_shared_store_refusal */
};

/* --- Log lines ----------------------------------------------------------------------------- */

/* A line of this node's store, or of a region's: "store_down", "region_down". */
static void log_named(struct weir_shared_store *shared, enum weir_log_level level,
                      const char *event, const char *name, const char *text)
{
    static const char store[] = "store_";
    char of_region[64];
    struct weir_log_line line;
    if (shared->region.size == 0) {
        weir_log_event(shared->log, level, event, name, text);
        return;
    }
    bool prefixed = strncmp(event, store, sizeof store - 1) == 0;
    snprintf(of_region, sizeof of_region, "region_%s", event + (prefixed ? sizeof store - 1 : 0));
    weir_log_begin(&line, shared->log, level, of_region);
    weir_log_bytes(&line, "region", shared->region.data, shared->region.size);
    weir_log_text(&line, name, text);
    weir_log_end(&line);
}

/* A region that is gone is no failure of this node, which continues with its floors. */
static void log_text(struct weir_shared_store *shared, enum weir_log_level level, const char *event,
                     const char *text)
{
    bool lends = shared->region.size > 0;
    log_named(shared, lends && level == WEIR_LOG_ERROR ? WEIR_LOG_WARNING : level, event, "reason",
              text);
}

/* Workers tell the same within moments of each other. */
static bool is_news(struct weir_shared_store *shared, const char *event, const char *text)
{
    if (!strcmp(event, shared->last_event) && !strcmp(text, shared->last_text))
        return false;
    snprintf(shared->last_event, sizeof shared->last_event, "%s", event);
    snprintf(shared->last_text, sizeof shared->last_text, "%s", text);
    return true;
}

/* Redis' words for a user who may not come in, or may not do this. */
static bool is_refusal(const char *text)
{
    return redis_lacks_rights(weir_bytes_of(text)) || strstr(text, "NOPERM") ||
           strstr(text, "WRONGPASS") || strstr(text, "NOAUTH");
}

static void tell_down(struct weir_shared_store *shared, struct member *member, const char *text)
{
    snprintf(shared->refusal, sizeof shared->refusal, "%s", is_refusal(text) ? text : "");
    bool news = is_news(shared, "store_down", text);
    if (weir_connectivity_lost(&shared->reach, &member->reach))
        log_text(shared, WEIR_LOG_ERROR, "store_down", text);
    else if (news)
        log_text(shared, WEIR_LOG_ERROR, "store_still_down", text);
}

static void tell_up(struct weir_shared_store *shared, struct member *member, const char *text)
{
    if (!weir_connectivity_found(&shared->reach, &member->reach))
        return;
    shared->reached = true;
    shared->refusal[0] = '\0';
    shared->last_event[0] = '\0';
    log_named(shared, WEIR_LOG_INFO, "store_up", "server", text);
}

/* `open` is of one breaker: a member's, or the shared one. */
static void tell_open(struct weir_shared_store *shared, bool *open, const char *text)
{
    bool first = shared->open == 0;
    weir_connectivity_set(open, &shared->open, true);
    if (first)
        log_text(shared, WEIR_LOG_WARNING, "breaker_open", text);
}

static void tell_closed(struct weir_shared_store *shared, bool *open, const char *text)
{
    bool last = shared->open == 1 && *open;
    weir_connectivity_set(open, &shared->open, false);
    if (last)
        log_text(shared, WEIR_LOG_INFO, "breaker_closed", text);
}

/* One worker has changed the shared breaker, and perhaps another has meanwhile: then that one's
 * event counts. */
static void tell_shared(struct weir_shared_store *shared, bool open, const char *text)
{
    if (open == redis_shared_breaker_closed(&shared->breaker))
        return;
    if (open)
        tell_open(shared, &shared->shared_open, text);
    else
        tell_closed(shared, &shared->shared_open, text);
}

void weir_shared_store_tell(struct weir_shared_store *shared, unsigned index, const char *event,
                            const char *text)
{
    struct member *member = &shared->members[index];
    static const char of_all[] = "shared_breaker_";
    if (index == WEIR_SHARED_STORE_ADMIN && strcmp(event, "store_secret") != 0 &&
        strncmp(event, of_all, sizeof of_all - 1) != 0)
        return; /* but all have the secret; the first that sees it change reports it */
    pthread_mutex_lock(&shared->lock);
    if (!strcmp(event, "store_up"))
        tell_up(shared, member, text);
    else if (!strcmp(event, "store_down"))
        tell_down(shared, member, text);
    else if (!strcmp(event, "breaker_open"))
        tell_open(shared, &member->open, text);
    else if (!strcmp(event, "breaker_closed"))
        tell_closed(shared, &member->open, text);
    else if (!strcmp(event, "shared_breaker_open"))
        tell_shared(shared, true, text);
    else if (!strcmp(event, "shared_breaker_closed"))
        tell_shared(shared, false, text);
    else if (is_news(shared, event, text))
        log_text(shared, WEIR_LOG_WARNING, event, text);
    pthread_mutex_unlock(&shared->lock);
}

static void member_on_event(void *context, const char *event, const char *text)
{
    const struct member *member = context;
    weir_shared_store_tell(member->shared, member->index, event, text);
}

/* --- Totals ----------------------------------------------------------------------------------- */

static void add(struct weir_store_redis_stats *to, const struct weir_store_redis_stats *from)
{
    redis_stats_sum(to, from, sizeof *to);
}

void weir_shared_store_totals(struct weir_shared_store *shared, struct weir_shared_totals *totals)
{
    memset(totals, 0, sizeof *totals);
    pthread_mutex_lock(&shared->lock);
    totals->reached = shared->reached;
    add(&totals->stats, &shared->left);
    for (unsigned i = 0; i < WEIR_WORKERS_MAX; i++) {
        const struct weir_store_redis_stats *stats = shared->members[i].stats;
        if (!stats)
            continue;
        add(&totals->stats, stats);
        uint64_t breaker = atomic_load_explicit(&stats->breaker, memory_order_relaxed);
        totals->workers++;
        totals->up += atomic_load_explicit(&stats->up, memory_order_relaxed) != 0;
        totals->open += breaker == WEIR_BREAKER_OPEN;
        totals->half_open += breaker == WEIR_BREAKER_HALF_OPEN;
    }
    if (!redis_shared_breaker_closed(&shared->breaker)) {
        totals->up = 0;
        totals->open = totals->workers;
    }
    pthread_mutex_unlock(&shared->lock);
}

void weir_shared_store_refusal(struct weir_shared_store *shared, char text[WEIR_REASON_MAX])
{
    pthread_mutex_lock(&shared->lock);
    snprintf(text, WEIR_REASON_MAX, "%s", shared->refusal);
    pthread_mutex_unlock(&shared->lock);
}

/* --- Open, join, leave, close ----------------------------------------------------------------- */

static int open_with(struct weir_shared_store **out, struct weir_rules *rules,
                     const struct weir_store_settings *settings, const char *setting,
                     struct weir_log *log, struct weir_reason *reason)
{
    *out = NULL;
    struct weir_shared_store *shared = calloc(1, sizeof *shared);
    if (!shared)
        return WEIR_ERR_MEMORY;
    int err = weir_redis_access_url(&shared->url, &settings->redis, setting, reason);
    if (err < 0) {
        free(shared);
        return err;
    }
    pthread_mutex_init(&shared->lock, NULL);
    uint64_t seed[2] = {0, 0};
    shared->has_secret = getrandom(seed, sizeof seed, 0) == (ssize_t)sizeof seed;
    redis_secret_init(&shared->secret, seed);
    redis_shared_breaker_init(&shared->breaker, weir_seed_draw(0));
    shared->log = log;
    shared->rules = weir_rules_ref_settings(rules);
    shared->settings = settings;
    *out = shared;
    return 0;
}

int weir_shared_store_open(struct weir_shared_store **out, struct weir_rules *rules,
                           struct weir_log *log, struct weir_reason *reason)
{
    const struct weir_store_settings *settings = &weir_rules_settings(rules)->store;
    *out = NULL;
    return settings->redis.url ? open_with(out, rules, settings, "store.redis.url", log, reason)
                               : 0;
}

int weir_shared_store_open_region(struct weir_shared_store **out, struct weir_rules *rules,
                                  const struct weir_store_settings *settings,
                                  struct weir_bytes region, struct weir_log *log,
                                  struct weir_reason *reason)
{
    int err = open_with(out, rules, settings, "regions.redis.url", log, reason);
    if (err == 0)
        (*out)->region = region;
    return err;
}

void weir_shared_store_close(struct weir_shared_store *shared)
{
    if (!shared)
        return;
    weir_rules_unref_settings(shared->rules);
    redis_secret_end(&shared->secret);
    redis_shared_breaker_end(&shared->breaker);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}

int weir_shared_store_join(struct weir_shared_store *shared, unsigned index, uv_loop_t *loop,
                           struct weir_store **store, struct weir_reason *reason)
{
    const struct weir_store_settings *settings = shared->settings;
    struct member *member = &shared->members[index];
    bool lends = shared->region.size > 0;
    const struct weir_store_redis_options options = {
        .loop = loop,
        .url = &shared->url,
        .prefix = settings->prefix,
        .deadline_ns = lends ? WEIR_LENDER_DEADLINE_NS : settings->deadline_ns,
        .share_life_ns = settings->lease_ns,
        .remember_ns = settings->remember_ns,
        .far = lends,
        .shared_breaker = lends ? &shared->breaker : NULL,
        .random_seed = weir_seed_draw(index),
        .secret = shared->has_secret && !lends ? &shared->secret : NULL,
        .event = member_on_event,
        .event_context = member,
    };
    *member = (struct member){.shared = shared, .index = index};
    int err = weir_store_redis_open(store, &options, reason);
    if (err < 0)
        return err;
    pthread_mutex_lock(&shared->lock);
    member->stats = weir_store_redis_stats(*store);
    shared->reach.joined += index != WEIR_SHARED_STORE_ADMIN;
    pthread_mutex_unlock(&shared->lock);
    return 0;
}

void weir_shared_store_leave(struct weir_shared_store *shared, unsigned index,
                             struct weir_store *store, void (*closed)(void *context), void *context)
{
    struct member *member = &shared->members[index];
    pthread_mutex_lock(&shared->lock);
    if (index != WEIR_SHARED_STORE_ADMIN) {
        add(&shared->left, member->stats);
        atomic_store_explicit(&shared->left.shares, 0, memory_order_relaxed); /* given back */
        atomic_store_explicit(&shared->left.roundtrips_known, 0, memory_order_relaxed);
        atomic_store_explicit(&shared->left.roundtrip_ns, 0, memory_order_relaxed);
        weir_connectivity_leave(&shared->reach, &member->reach);
        weir_connectivity_set(&member->open, &shared->open, false);
    }
    member->stats = NULL;
    pthread_mutex_unlock(&shared->lock);
    if (closed)
        weir_store_redis_shutdown(store, closed, context);
    else
        store->ops->close(store);
}
