/* SPDX-License-Identifier: Apache-2.0 */
/* see sticky_peers.h */
#include "feature/sticky/server/sticky_peers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/sticky/rules/sticky.h"
#include "server/daemon/connectivity.h"
#include "server/daemon/redis_access.h"
#include "server/net/seed.h"
#include "store/redis/stats.h"

#define CACHE_LINE 64

struct weir_sticky_list {
    _Atomic unsigned references;
    struct weir_rules *rules; /* hold the texts of the settings */
    const struct weir_sticky_settings *settings;
    struct redis_url urls[STICKY_PEERS_MAX];
    struct weir_tls_context *tls; /* NULL: no URL needs it */
};

/* Each worker writes its own. */
struct worker_stats {
    _Alignas(CACHE_LINE) struct sticky_peer_stats of;
};

/* What is known of a peer, by its name. */
struct node {
    struct worker_stats stats[WEIR_WORKERS_MAX + 1];
    struct weir_connectivity_member member[WEIR_WORKERS_MAX];
    struct weir_connectivity reach;
    char name[RULES_PEER_NAME_MAX + 1];
    bool listed;          /* by the newest list */
    unsigned connections; /* of workers' stores, those that close included */
    struct node *next;
};

struct member {
    struct weir_sticky_peers *peers;
    unsigned index;
    struct weir_sticky_list *list; /* that its store goes by; NULL: has not joined, or has left */
};

struct weir_sticky_peers {
    pthread_mutex_t lock;
    struct weir_log *log;
    struct weir_sticky_list *newest;
    unsigned joined; /* workers */
    struct node *nodes;
    struct member members[WEIR_WORKERS_MAX + 1];
};

/* --- Lists ------------------------------------------------------------------------------------ */

static struct weir_sticky_list *list_ref(struct weir_sticky_list *list)
{
    atomic_fetch_add_explicit(&list->references, 1, memory_order_relaxed);
    return list;
}

void weir_sticky_list_unref(struct weir_sticky_list *list)
{
    if (!list || atomic_fetch_sub(&list->references, 1) != 1)
        return;
    weir_tls_unref(list->tls);
    weir_rules_unref(list->rules);
    explicit_bzero(list->urls, sizeof list->urls);
    free(list);
}

static int read_urls(struct weir_sticky_list *list, struct weir_reason *reason)
{
    int err = 0;
    for (uint32_t i = 0; i < list->settings->count && err == 0; i++) {
        struct weir_redis_access access = list->settings->access;
        char line[sizeof "sticky.peers, " + RULES_PEER_NAME_MAX];
        snprintf(line, sizeof line, "sticky.peers, %s", list->settings->peers[i].name);
        access.url = list->settings->peers[i].url;
        err = weir_redis_access_url(&list->urls[i], &access, line, reason);
    }
    return err;
}

/* One for all peers and workers: the system's authorities alone take milliseconds to read. */
static int read_tls(struct weir_sticky_list *list, struct weir_reason *reason)
{
    const struct weir_redis_access *access = &list->settings->access;
    const struct weir_tls_options options = {
        .cert_file = access->cert_file,
        .key_file = access->key_file,
        .ca_file = access->ca_file,
        .insecure = access->insecure,
    };
    struct weir_reason why = {{0}};
    bool needed = false;
    for (uint32_t i = 0; i < list->settings->count; i++)
        needed = needed || list->urls[i].tls;
    int err = needed ? weir_tls_client(&list->tls, &options, &why) : 0;
    if (err == 0 || err == WEIR_ERR_MEMORY)
        return err;
    snprintf(reason->text, sizeof reason->text, "sticky.tls: %.220s", why.text);
    return WEIR_ERR_RULES;
}

int weir_sticky_list_read(struct weir_sticky_list **out, struct weir_rules *rules,
                          struct weir_reason *reason)
{
    *out = NULL;
    if (!weir_rules_settings(rules)->sticky.by)
        return 0;
    struct weir_sticky_list *list = calloc(1, sizeof *list);
    if (!list)
        return WEIR_ERR_MEMORY;
    atomic_init(&list->references, 1);
    list->rules = weir_rules_ref(rules);
    list->settings = &weir_rules_settings(rules)->sticky;
    int err = read_urls(list, reason);
    if (err == 0)
        err = read_tls(list, reason);
    if (err < 0) {
        weir_sticky_list_unref(list);
        return err;
    }
    *out = list;
    return 0;
}

static bool is_self(const struct weir_sticky_list *list, uint32_t peer)
{
    return peer == list->settings->self;
}

/* The number of the peer with this name; -1: there is none. */
static int find_peer(const struct weir_sticky_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->settings->count; i++)
        if (!strcmp(list->settings->peers[i].name, name))
            return (int)i;
    return -1;
}

/* The number that a peer of a new list has in the one before, if its connection can stay. */
static uint32_t find_same(const struct weir_sticky_list *before,
                          const struct weir_sticky_list *list, uint32_t peer)
{
    int found = find_peer(before, list->settings->peers[peer].name);
    if (found < 0 || is_self(before, (uint32_t)found) ||
        strcmp(before->settings->peers[found].url, list->settings->peers[peer].url) != 0 ||
        weir_redis_access_differs(&before->settings->access, &list->settings->access))
        return STICKY_NEW;
    return (uint32_t)found;
}

/* --- Peers by name; under the lock ------------------------------------------------------------ */

static struct node *find_node(const struct weir_sticky_peers *peers, const char *name)
{
    struct node *node = peers->nodes;
    while (node && strcmp(node->name, name) != 0)
        node = node->next;
    return node;
}

/* NULL: no memory. */
static struct node *make_node(struct weir_sticky_peers *peers, const char *name)
{
    struct node *node = aligned_alloc(CACHE_LINE, sizeof *node);
    if (!node)
        return NULL;
    memset(node, 0, sizeof *node);
    snprintf(node->name, sizeof node->name, "%s", name);
    node->reach.joined = peers->joined;
    node->next = peers->nodes;
    peers->nodes = node;
    return node;
}

static void drop_unused(struct weir_sticky_peers *peers)
{
    for (struct node **at = &peers->nodes; *at;) {
        struct node *node = *at;
        if (node->listed || node->connections > 0) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        free(node);
    }
}

/* A node for each other peer of the list. */
static int make_nodes(struct weir_sticky_peers *peers, const struct weir_sticky_list *list)
{
    for (uint32_t i = 0; i < list->settings->count; i++) {
        const char *name = list->settings->peers[i].name;
        if (!is_self(list, i) && !find_node(peers, name) && !make_node(peers, name)) {
            drop_unused(peers);
            return WEIR_ERR_MEMORY;
        }
    }
    return 0;
}

static void mark_listed(struct weir_sticky_peers *peers, const struct weir_sticky_list *list)
{
    for (struct node *node = peers->nodes; node; node = node->next)
        node->listed = find_peer(list, node->name) >= 0;
    drop_unused(peers);
}

/* --- Log lines -------------------------------------------------------------------------------- */

static void log_text(struct weir_sticky_peers *peers, enum weir_log_level level, const char *event,
                     const struct node *node, const char *text)
{
    struct weir_log_line line;
    weir_log_begin(&line, peers->log, level, event);
    weir_log_text(&line, "peer", node->name);
    weir_log_text(&line, level == WEIR_LOG_INFO ? "server" : "reason", text);
    weir_log_end(&line);
}

static void on_event(void *context, void *owner, bool up, const char *text)
{
    const struct member *member = context;
    struct weir_sticky_peers *peers = member->peers;
    struct node *node = owner;
    if (member->index == WEIR_WORKERS_MAX)
        return;
    pthread_mutex_lock(&peers->lock);
    if (up && weir_connectivity_found(&node->reach, &node->member[member->index]))
        log_text(peers, WEIR_LOG_INFO, "peer_up", node, text);
    else if (!up && weir_connectivity_lost(&node->reach, &node->member[member->index]))
        log_text(peers, WEIR_LOG_ERROR, "peer_down", node, text);
    pthread_mutex_unlock(&peers->lock);
}

static void on_refused(void *context, void *owner, const char *text)
{
    const struct member *member = context;
    log_text(member->peers, WEIR_LOG_WARNING, "peer_refuses", owner, text);
}

static void on_gone(void *context, void *owner)
{
    const struct member *member = context;
    struct node *node = owner;
    pthread_mutex_lock(&member->peers->lock);
    node->connections--;
    drop_unused(member->peers);
    pthread_mutex_unlock(&member->peers->lock);
}

static uint32_t home(void *context, uint64_t tag)
{
    const struct member *member = context;
    return weir_rules_sticky_home(member->list->rules, tag);
}

/* Names of `list` that `other` lacks, or has with another URL. */
static void log_names(struct weir_log_line *line, const char *key,
                      const struct weir_sticky_list *list, const struct weir_sticky_list *other,
                      bool moved)
{
    char text[STICKY_PEERS_MAX * (RULES_PEER_NAME_MAX + 1)] = "";
    size_t size = 0;
    for (uint32_t i = 0; i < list->settings->count; i++) {
        const struct weir_sticky_peer *peer = &list->settings->peers[i];
        int found = find_peer(other, peer->name);
        bool differs = found >= 0 && !is_self(list, i) &&
                       strcmp(other->settings->peers[found].url, peer->url) != 0;
        if (moved ? differs : found < 0)
            size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", size > 0 ? " " : "",
                                     peer->name);
    }
    if (size > 0)
        weir_log_text(line, key, text);
}

static void log_change(struct weir_sticky_peers *peers, const struct weir_sticky_list *before,
                       const struct weir_sticky_list *list)
{
    bool same = before->settings->count == list->settings->count;
    for (uint32_t i = 0; i < list->settings->count && same; i++)
        same = is_self(list, i) ? find_peer(before, list->settings->peers[i].name) >= 0
                                : find_same(before, list, i) != STICKY_NEW;
    if (same)
        return;
    struct weir_log_line line;
    weir_log_begin(&line, peers->log, WEIR_LOG_INFO, "peers_changed");
    weir_log_number(&line, "nodes", list->settings->count);
    log_names(&line, "joined", list, before, false);
    log_names(&line, "left", before, list, false);
    log_names(&line, "moved", list, before, true);
    weir_log_end(&line);
}

/* --- Totals ----------------------------------------------------------------------------------- */

static void sum_node(const struct weir_sticky_peers *peers, const struct node *node,
                     struct weir_sticky_total *total)
{
    memset(total, 0, sizeof *total);
    memcpy(total->name, node->name, sizeof total->name);
    for (unsigned i = 0; i < WEIR_WORKERS_MAX; i++)
        redis_stats_sum(&total->stats, &node->stats[i].of, sizeof total->stats);
    uint64_t up = atomic_load_explicit(&total->stats.up, memory_order_relaxed);
    redis_stats_set(&total->stats.up, peers->joined > 0 && up >= peers->joined);
}

uint32_t weir_sticky_peers_totals(struct weir_sticky_peers *peers,
                                  struct weir_sticky_total totals[STICKY_PEERS_MAX])
{
    uint32_t count = 0;
    pthread_mutex_lock(&peers->lock);
    const struct weir_sticky_list *list = peers->newest;
    for (uint32_t i = 0; i < list->settings->count; i++)
        if (!is_self(list, i))
            sum_node(peers, find_node(peers, list->settings->peers[i].name), &totals[count++]);
    pthread_mutex_unlock(&peers->lock);
    return count;
}

/* --- Open, close, another list ---------------------------------------------------------------- */

int weir_sticky_peers_open(struct weir_sticky_peers **out, struct weir_rules *rules,
                           struct weir_log *log, struct weir_reason *reason)
{
    struct weir_sticky_list *list;
    *out = NULL;
    int err = weir_sticky_list_read(&list, rules, reason);
    if (err < 0 || !list)
        return err;
    struct weir_sticky_peers *peers = calloc(1, sizeof *peers);
    if (peers)
        err = make_nodes(peers, list);
    if (!peers || err < 0) {
        free(peers);
        weir_sticky_list_unref(list);
        return WEIR_ERR_MEMORY;
    }
    mark_listed(peers, list);
    pthread_mutex_init(&peers->lock, NULL);
    peers->log = log;
    peers->newest = list;
    *out = peers;
    return 0;
}

void weir_sticky_peers_close(struct weir_sticky_peers *peers)
{
    if (!peers)
        return;
    for (struct node *next, *node = peers->nodes; node; node = next) {
        next = node->next;
        free(node);
    }
    weir_sticky_list_unref(peers->newest);
    pthread_mutex_destroy(&peers->lock);
    free(peers);
}

int weir_sticky_peers_set(struct weir_sticky_peers *peers, struct weir_sticky_list *list)
{
    struct weir_sticky_list *before = peers->newest;
    pthread_mutex_lock(&peers->lock);
    int err = make_nodes(peers, list);
    if (err == 0) {
        mark_listed(peers, list);
        peers->newest = list;
    }
    pthread_mutex_unlock(&peers->lock);
    if (err < 0)
        return err;
    log_change(peers, before, list);
    weir_sticky_list_unref(before);
    return 0;
}

/* --- Workers ---------------------------------------------------------------------------------- */

/* What the store of a worker is to ask by the newest list; `before` may be NULL. The list, which
 * becomes the caller's. */
static struct weir_sticky_list *plan(struct weir_sticky_peers *peers, unsigned index,
                                     const struct weir_sticky_list *before,
                                     struct sticky_peer out[STICKY_PEERS_MAX])
{
    pthread_mutex_lock(&peers->lock);
    struct weir_sticky_list *list = list_ref(peers->newest);
    for (uint32_t i = 0; i < list->settings->count; i++) {
        out[i] = (struct sticky_peer){.from = STICKY_NEW};
        if (is_self(list, i))
            continue;
        struct node *node = find_node(peers, list->settings->peers[i].name);
        out[i].url = &list->urls[i];
        out[i].stats = &node->stats[index].of;
        out[i].owner = node;
        out[i].from = before ? find_same(before, list, i) : STICKY_NEW;
        node->connections += out[i].from == STICKY_NEW;
    }
    pthread_mutex_unlock(&peers->lock);
    return list;
}

/* No connection was opened. */
static void undo_plan(struct weir_sticky_peers *peers, struct weir_sticky_list *list,
                      const struct sticky_peer planned[STICKY_PEERS_MAX])
{
    pthread_mutex_lock(&peers->lock);
    for (uint32_t i = 0; i < list->settings->count; i++) {
        struct node *node = planned[i].owner;
        if (node && planned[i].from == STICKY_NEW)
            node->connections--;
    }
    drop_unused(peers);
    pthread_mutex_unlock(&peers->lock);
    weir_sticky_list_unref(list);
}

int weir_sticky_peers_join(struct weir_sticky_peers *peers, unsigned index, uv_loop_t *loop,
                           struct weir_store *table, const uint64_t *table_secret,
                           struct weir_store **store, struct weir_reason *reason)
{
    struct sticky_peer list[STICKY_PEERS_MAX];
    struct member *member = &peers->members[index];
    *member = (struct member){.peers = peers, .index = index};
    member->list = plan(peers, index, NULL, list);
    const struct sticky_options options = {
        .loop = loop,
        .table = table,
        .table_secret = table_secret,
        .peers = list,
        .peer_count = member->list->settings->count,
        .tls = member->list->tls,
        .random_seed = weir_seed_draw(index),
        .home = home,
        .event = on_event,
        .refused = on_refused,
        .gone = on_gone,
        .context = member,
    };
    int err = weir_store_sticky_open(store, &options, reason);
    if (err < 0) {
        undo_plan(peers, member->list, list);
        member->list = NULL;
        return err;
    }
    pthread_mutex_lock(&peers->lock);
    peers->joined += index != WEIR_WORKERS_MAX;
    for (struct node *node = peers->nodes; node && index != WEIR_WORKERS_MAX; node = node->next)
        node->reach.joined++;
    pthread_mutex_unlock(&peers->lock);
    return 0;
}

/* Reports nothing more of peers that `list` lacks. */
static void forget_reach(struct weir_sticky_peers *peers, unsigned index,
                         const struct weir_sticky_list *list)
{
    pthread_mutex_lock(&peers->lock);
    for (struct node *node = peers->nodes; node && index != WEIR_WORKERS_MAX; node = node->next) {
        if (find_peer(list, node->name) >= 0)
            continue;
        weir_connectivity_set(&node->member[index].up, &node->reach.up, false);
        weir_connectivity_set(&node->member[index].down, &node->reach.down, false);
    }
    pthread_mutex_unlock(&peers->lock);
}

void weir_sticky_peers_take(struct weir_sticky_peers *peers, unsigned index,
                            struct weir_store *store)
{
    struct member *member = &peers->members[index];
    struct sticky_peer list[STICKY_PEERS_MAX];
    struct weir_reason reason = {{0}};
    struct weir_sticky_list *newest = plan(peers, index, member->list, list);
    int err =
        weir_store_sticky_set_peers(store, list, newest->settings->count, newest->tls, &reason);
    if (err < 0) {
        undo_plan(peers, newest, list);
        weir_log_event(peers->log, WEIR_LOG_ERROR, "peers_failed", "reason",
                       reason.text[0] ? reason.text : weir_error_text(err));
        return;
    }
    weir_sticky_list_unref(member->list);
    member->list = newest;
    forget_reach(peers, index, newest);
}

void weir_sticky_peers_leave(struct weir_sticky_peers *peers, unsigned index,
                             struct weir_store *store, void (*closed)(void *context), void *context)
{
    struct member *member = &peers->members[index];
    pthread_mutex_lock(&peers->lock);
    peers->joined -= index != WEIR_WORKERS_MAX;
    for (struct node *node = peers->nodes; node && index != WEIR_WORKERS_MAX; node = node->next) {
        redis_stats_set(&node->stats[index].of.up, 0);
        weir_connectivity_leave(&node->reach, &node->member[index]);
    }
    pthread_mutex_unlock(&peers->lock);
    weir_store_sticky_shutdown(store, closed, context);
    weir_sticky_list_unref(member->list);
    member->list = NULL;
}
