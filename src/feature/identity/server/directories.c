/* SPDX-License-Identifier: Apache-2.0 */
/* see directories.h */
#include "feature/identity/server/directories.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "core/text/hex.h"
#include "server/daemon/connectivity.h"
#include "server/daemon/redis_access.h"
#include "server/net/seed.h"
#include "store/redis/stats.h"

/* Forgotten digests that a worker may be behind with; one that is further behind forgets all. */
#define FORGOTTEN_MAX 1024

/* Problems of keys that are not reported again; those that share a place push each other out. */
#define PROBLEMS_MAX 4096

/* "key=0123456789abcdef" */
#define SHOWN_DIGITS 16

struct member {
    struct weir_directories *directories;
    struct weir_redis_directory *directory; /* NULL: has not joined, or has left */
    uint64_t forgotten;                     /* of all up to now, those that it has */
    struct weir_connectivity_member reach;
};

struct weir_directories {
    pthread_mutex_t lock;
    struct weir_log *log;
    struct weir_rules *rules; /* hold the texts of the settings */
    const struct weir_identities_settings *settings;
    struct redis_url url;
    struct weir_overrides *overrides;
    struct weir_directory_terms terms;
    struct weir_directory_counters left; /* of those that have left */
    struct member members[WEIR_WORKERS_MAX];
    struct weir_connectivity reach;
    char last_reason[WEIR_REASON_MAX], last_problem[WEIR_REASON_MAX];
    uint64_t problems[PROBLEMS_MAX]; /* hashes of digest and text */
    uint64_t forgotten;              /* so far */
    uint8_t digests[FORGOTTEN_MAX][WEIR_DIGEST_BYTES];
};

/* --- Log lines ----------------------------------------------------------------------------- */

/* Workers tell the same within moments of each other. */
static bool is_news(char last[WEIR_REASON_MAX], const char *text)
{
    if (strncmp(last, text, WEIR_REASON_MAX - 1) == 0)
        return false;
    snprintf(last, WEIR_REASON_MAX, "%s", text);
    return true;
}

static void tell_down(struct weir_directories *all, const char *text, bool first)
{
    bool news = is_news(all->last_reason, text);
    if (first)
        weir_log_event(all->log, WEIR_LOG_ERROR, "identities_down", "reason", text);
    else if (news)
        weir_log_event(all->log, WEIR_LOG_ERROR, "identities_still_down", "reason", text);
}

static void tell_up(struct weir_directories *all, const char *text)
{
    all->last_reason[0] = all->last_problem[0] = '\0';
    weir_log_event(all->log, WEIR_LOG_INFO, "identities_up", "server", text);
}

static void member_report(void *context, bool up, const char *text)
{
    struct member *member = context;
    struct weir_directories *all = member->directories;
    pthread_mutex_lock(&all->lock);
    if (!up)
        tell_down(all, text, weir_connectivity_lost(&all->reach, &member->reach));
    else if (weir_connectivity_found(&all->reach, &member->reach))
        tell_up(all, text);
    pthread_mutex_unlock(&all->lock);
}

/* Whether it is to be logged: a bad key is looked up again and again. */
static bool is_new_problem(struct weir_directories *all, const uint8_t *digest, const char *text)
{
    uint64_t hash;
    memcpy(&hash, digest, sizeof hash);
    hash = weir_fnv(hash, text, strlen(text));
    uint64_t *place = &all->problems[(hash ^ hash >> 32) % PROBLEMS_MAX];
    bool is_new = *place != hash;
    *place = hash;
    return is_new;
}

static void log_problem(struct weir_log *log, const uint8_t *digest, const char *text)
{
    struct weir_log_line line;
    char shown[SHOWN_DIGITS];
    char *end = weir_hex_write(shown, digest, SHOWN_DIGITS / 2);
    weir_log_begin(&line, log, WEIR_LOG_WARNING, "identity_bad");
    weir_log_bytes(&line, "key", shown, (size_t)(end - shown));
    weir_log_text(&line, "problem", text);
    weir_log_end(&line);
}

static void member_problem(void *context, const uint8_t *digest, const char *text)
{
    const struct member *member = context;
    struct weir_directories *all = member->directories;
    pthread_mutex_lock(&all->lock);
    if (!digest && is_news(all->last_problem, text))
        weir_log_event(all->log, WEIR_LOG_ERROR, "identities_refused", "reason", text);
    else if (digest && is_new_problem(all, digest, text))
        log_problem(all->log, digest, text);
    pthread_mutex_unlock(&all->lock);
}

/* --- Forgetting ------------------------------------------------------------------------------- */

void weir_directories_forget(struct weir_directories *all, const uint8_t digest[WEIR_DIGEST_BYTES])
{
    pthread_mutex_lock(&all->lock);
    memcpy(all->digests[all->forgotten++ % FORGOTTEN_MAX], digest, WEIR_DIGEST_BYTES);
    pthread_mutex_unlock(&all->lock);
}

/* Takes the next digest that a member has yet to forget. False: no more. */
static bool forgotten_next(struct weir_directories *all, struct member *member, bool *behind,
                           uint8_t digest[WEIR_DIGEST_BYTES])
{
    pthread_mutex_lock(&all->lock);
    bool more = member->forgotten < all->forgotten;
    *behind = all->forgotten - member->forgotten > FORGOTTEN_MAX;
    if (more && !*behind)
        memcpy(digest, all->digests[member->forgotten % FORGOTTEN_MAX], WEIR_DIGEST_BYTES);
    member->forgotten = *behind ? all->forgotten : member->forgotten + more;
    pthread_mutex_unlock(&all->lock);
    return more;
}

void weir_directories_catch_up(struct weir_directories *all, unsigned index)
{
    struct member *member = &all->members[index];
    uint8_t digest[WEIR_DIGEST_BYTES];
    bool behind;
    while (forgotten_next(all, member, &behind, digest))
        if (behind)
            weir_caller_directory_forget_all(weir_redis_directory_of(member->directory));
        else
            weir_caller_directory_forget(weir_redis_directory_of(member->directory), digest);
}

/* --- Totals ----------------------------------------------------------------------------------- */

static void add(struct weir_directory_counters *to, const struct weir_directory_counters *from)
{
    redis_stats_sum(to, from, sizeof *to);
}

void weir_directories_totals(struct weir_directories *all, struct weir_directories_totals *totals)
{
    memset(totals, 0, sizeof *totals);
    totals->deny = atomic_load(&all->terms.deny);
    totals->overrides = weir_overrides_count(all->overrides);
    pthread_mutex_lock(&all->lock);
    add(&totals->counters, &all->left);
    for (unsigned i = 0; i < WEIR_WORKERS_MAX; i++)
        if (all->members[i].directory)
            add(&totals->counters, &weir_redis_directory_of(all->members[i].directory)->counters);
    totals->workers = all->reach.joined;
    totals->up = all->reach.up;
    pthread_mutex_unlock(&all->lock);
}

/* --- Open, join, leave, close ----------------------------------------------------------------- */

void weir_directories_set(struct weir_directories *all,
                          const struct weir_identities_settings *settings)
{
    atomic_store(&all->terms.life_ns, settings->life_ns);
    atomic_store(&all->terms.unknown_life_ns, settings->unknown_life_ns);
    atomic_store(&all->terms.stale_ns, settings->stale_ns);
    atomic_store(&all->terms.deadline_ns, settings->deadline_ns);
    atomic_store(&all->terms.deny, settings->deny);
}

bool weir_directories_differ(const struct weir_identities_settings *a,
                             const struct weir_identities_settings *b)
{
    return weir_redis_access_differs(&a->redis, &b->redis) ||
           weir_setting_differs(a->prefix, b->prefix) || a->max_keys != b->max_keys;
}

int weir_directories_open(struct weir_directories **out, struct weir_rules *rules,
                          struct weir_table *table, struct weir_log *log,
                          struct weir_reason *reason)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    *out = NULL;
    if (!settings->identities.redis.url)
        return 0;
    struct weir_directories *all = calloc(1, sizeof *all);
    if (!all)
        return WEIR_ERR_MEMORY;
    int err =
        weir_redis_access_url(&all->url, &settings->identities.redis, "identities.redis", reason);
    if (err == 0)
        err = weir_overrides_open(&all->overrides, table, settings->store.nodes);
    if (err < 0) {
        free(all);
        return err;
    }
    pthread_mutex_init(&all->lock, NULL);
    all->log = log;
    all->rules = weir_rules_ref_settings(rules);
    all->settings = &settings->identities;
    weir_directories_set(all, all->settings);
    *out = all;
    return 0;
}

void weir_directories_close(struct weir_directories *all)
{
    if (!all)
        return;
    weir_overrides_close(all->overrides);
    weir_rules_unref_settings(all->rules);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

int weir_directories_join(struct weir_directories *all, unsigned index, uv_loop_t *loop,
                          struct weir_store *store, struct weir_store *local,
                          struct weir_redis_directory **directory, struct weir_reason *reason)
{
    struct member *member = &all->members[index];
    struct weir_redis_directory_options options = {
        .loop = loop,
        .url = &all->url,
        .prefix = all->settings->prefix,
        .terms = &all->terms,
        .seed = weir_seed_draw(index),
        .max_keys = all->settings->max_keys,
        .overrides = all->overrides,
        .store = store,
        .local = local,
        .report = member_report,
        .problem = member_problem,
        .context = member,
    };
    *member = (struct member){.directories = all};
    int err = weir_redis_directory_open(directory, &options, reason);
    if (err < 0)
        return err;
    pthread_mutex_lock(&all->lock);
    member->directory = *directory;
    member->forgotten = all->forgotten;
    all->reach.joined++;
    pthread_mutex_unlock(&all->lock);
    return 0;
}

void weir_directories_leave(struct weir_directories *all, unsigned index)
{
    struct member *member = &all->members[index];
    struct weir_redis_directory *directory = member->directory;
    struct weir_directory_counters *counters = &weir_redis_directory_of(directory)->counters;
    pthread_mutex_lock(&all->lock);
    atomic_store(&counters->known, 0);
    atomic_store(&counters->nobody, 0);
    add(&all->left, counters);
    weir_connectivity_leave(&all->reach, &member->reach);
    member->directory = NULL;
    pthread_mutex_unlock(&all->lock);
    weir_redis_directory_close(directory);
}
