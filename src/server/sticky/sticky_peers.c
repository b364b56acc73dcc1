/* SPDX-License-Identifier: Apache-2.0 */
/* see sticky_peers.h */
#include "server/sticky/sticky_peers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/sticky/sticky.h"
#include "server/daemon/connectivity.h"
#include "server/daemon/redis_access.h"
#include "server/net/seed.h"
#include "store/redis/stats.h"

struct member {
    struct weir_sticky_peers *peers;
    unsigned index;
    struct weir_store *store; /* NULL: has not joined, or has left */
    struct weir_connectivity_member reach[STICKY_PEERS_MAX];
};

struct weir_sticky_peers {
    pthread_mutex_t lock;
    struct weir_log *log;
    struct weir_rules *rules; /* hold the texts of the settings */
    const struct weir_sticky_settings *settings;
    struct redis_url urls[STICKY_PEERS_MAX];
    struct sticky_peer_stats left[STICKY_PEERS_MAX]; /* of workers that have left */
    struct weir_connectivity reach[STICKY_PEERS_MAX];
    struct member members[WEIR_WORKERS_MAX + 1];
};

/* --- Log lines ----------------------------------------------------------------------------- */

static void log_text(struct weir_sticky_peers *peers, enum weir_log_level level, const char *event,
                     uint32_t peer, const char *text)
{
    struct weir_log_line line;
    weir_log_begin(&line, peers->log, level, event);
    weir_log_text(&line, "peer", peers->settings->peers[peer].name);
    weir_log_text(&line, level == WEIR_LOG_INFO ? "server" : "reason", text);
    weir_log_end(&line);
}

void weir_sticky_peers_report(struct weir_sticky_peers *peers, unsigned index, uint32_t peer,
                              bool up, const char *text)
{
    struct member *member = &peers->members[index];
    if (index == WEIR_WORKERS_MAX)
        return;
    pthread_mutex_lock(&peers->lock);
    if (up && weir_connectivity_found(&peers->reach[peer], &member->reach[peer]))
        log_text(peers, WEIR_LOG_INFO, "peer_up", peer, text);
    else if (!up && weir_connectivity_lost(&peers->reach[peer], &member->reach[peer]))
        log_text(peers, WEIR_LOG_ERROR, "peer_down", peer, text);
    pthread_mutex_unlock(&peers->lock);
}

static void on_event(void *context, uint32_t peer, bool up, const char *text)
{
    const struct member *member = context;
    weir_sticky_peers_report(member->peers, member->index, peer, up, text);
}

static void on_refused(void *context, uint32_t peer, const char *text)
{
    const struct member *member = context;
    log_text(member->peers, WEIR_LOG_WARNING, "peer_refuses", peer, text);
}

static uint32_t home(void *context, uint64_t tag)
{
    const struct member *member = context;
    return weir_rules_sticky_home(member->peers->rules, tag);
}

/* --- Totals ----------------------------------------------------------------------------------- */

void weir_sticky_peers_totals(struct weir_sticky_peers *peers, uint32_t peer,
                              struct sticky_peer_stats *totals)
{
    uint64_t workers = 0;
    memset(totals, 0, sizeof *totals);
    pthread_mutex_lock(&peers->lock);
    redis_stats_sum(totals, &peers->left[peer], sizeof *totals);
    for (unsigned i = 0; i < WEIR_WORKERS_MAX; i++) {
        if (!peers->members[i].store)
            continue;
        workers++;
        redis_stats_sum(totals, weir_store_sticky_stats(peers->members[i].store, peer),
                        sizeof *totals);
    }
    uint64_t up = atomic_load_explicit(&totals->up, memory_order_relaxed);
    redis_stats_set(&totals->up, workers > 0 && up >= workers);
    pthread_mutex_unlock(&peers->lock);
}

uint32_t weir_sticky_peers_count(const struct weir_sticky_peers *peers)
{
    return peers->settings->count;
}

const char *weir_sticky_peers_name(const struct weir_sticky_peers *peers, uint32_t peer)
{
    return peers->settings->peers[peer].name;
}

uint32_t weir_sticky_peers_self(const struct weir_sticky_peers *peers)
{
    return peers->settings->self;
}

/* --- Open, join, leave, close ----------------------------------------------------------------- */

static int read_urls(struct weir_sticky_peers *peers, struct weir_reason *reason)
{
    int err = 0;
    for (uint32_t i = 0; i < peers->settings->count && err == 0; i++) {
        struct weir_redis_access access = peers->settings->access;
        access.url = peers->settings->peers[i].url;
        err = weir_redis_access_url(&peers->urls[i], &access, "sticky.peers", reason);
    }
    return err;
}

int weir_sticky_peers_open(struct weir_sticky_peers **out, struct weir_rules *rules,
                           struct weir_log *log, struct weir_reason *reason)
{
    *out = NULL;
    if (!weir_rules_settings(rules)->sticky.by)
        return 0;
    struct weir_sticky_peers *peers = calloc(1, sizeof *peers);
    if (!peers)
        return WEIR_ERR_MEMORY;
    peers->settings = &weir_rules_settings(rules)->sticky;
    int err = read_urls(peers, reason);
    if (err < 0) {
        free(peers);
        return err;
    }
    pthread_mutex_init(&peers->lock, NULL);
    peers->log = log;
    peers->rules = weir_rules_ref(rules);
    *out = peers;
    return 0;
}

void weir_sticky_peers_close(struct weir_sticky_peers *peers)
{
    if (!peers)
        return;
    weir_rules_unref(peers->rules);
    pthread_mutex_destroy(&peers->lock);
    free(peers);
}

int weir_sticky_peers_join(struct weir_sticky_peers *peers, unsigned index, uv_loop_t *loop,
                           struct weir_store *table, const uint64_t *table_secret,
                           struct weir_store **store, struct weir_reason *reason)
{
    const struct redis_url *urls[STICKY_PEERS_MAX];
    struct member *member = &peers->members[index];
    for (uint32_t i = 0; i < peers->settings->count; i++)
        urls[i] = i == peers->settings->self ? NULL : &peers->urls[i];
    const struct sticky_options options = {
        .loop = loop,
        .table = table,
        .table_secret = table_secret,
        .peers = urls,
        .peer_count = peers->settings->count,
        .random_seed = weir_seed_draw(index),
        .home = home,
        .event = on_event,
        .refused = on_refused,
        .context = member,
    };
    *member = (struct member){.peers = peers, .index = index};
    int err = weir_store_sticky_open(store, &options, reason);
    if (err < 0)
        return err;
    pthread_mutex_lock(&peers->lock);
    member->store = *store;
    for (uint32_t i = 0; i < peers->settings->count && index != WEIR_WORKERS_MAX; i++)
        peers->reach[i].joined++;
    pthread_mutex_unlock(&peers->lock);
    return 0;
}

void weir_sticky_peers_leave(struct weir_sticky_peers *peers, unsigned index,
                             struct weir_store *store, void (*closed)(void *context), void *context)
{
    struct member *member = &peers->members[index];
    pthread_mutex_lock(&peers->lock);
    for (uint32_t i = 0; i < peers->settings->count && index != WEIR_WORKERS_MAX; i++) {
        redis_stats_sum(&peers->left[i], weir_store_sticky_stats(store, i), sizeof *peers->left);
        redis_stats_set(&peers->left[i].up, 0);
        weir_connectivity_leave(&peers->reach[i], &member->reach[i]);
    }
    member->store = NULL;
    pthread_mutex_unlock(&peers->lock);
    weir_store_sticky_shutdown(store, closed, context);
}
