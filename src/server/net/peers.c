/* SPDX-License-Identifier: Apache-2.0 */
/* see peers.h */
#include "server/net/peers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "core/bucket.h"
#include "core/text/siphash.h"

/* An address or a prefix. Indexes are into weir_peers.list; 0 is none. */
struct peer {
    uint64_t hash;
    struct weir_cell pace; /* of its new connections */
    uint32_t open;         /* connections */
    uint32_t next;         /* of its bucket, or of the free ones */
    uint32_t older, newer; /* of those that are without a connection, and kept for their pace */
};

struct weir_peers {
    pthread_mutex_t mutex;
    uint64_t secret[2];
    struct peer *list;
    uint32_t *buckets;
    uint32_t mask;           /* of a hash, its bucket */
    uint32_t size, used;     /* entries of the list that there are, and that were used ever */
    uint32_t free;           /* the first free one of those */
    uint32_t oldest, newest; /* that are kept without a connection */
    uint32_t kept;
};

uint64_t weir_peer_hash(const uint64_t secret[2], const struct weir_address *peer,
                        enum weir_peer_part part)
{
    static const uint8_t sizes[][2] = {
        [WEIR_PEER_HASH_ADDRESS] = {4, 8}, [WEIR_PEER_HASH_PREFIX] = {3, 6}};
    unsigned char bytes[10] = {peer->family, (unsigned char)part};
    uint64_t hash[2];
    if (peer->family != 0)
        memcpy(bytes + 2, peer->bytes, sizes[part][peer->family == 6]);
    weir_siphash128(secret, bytes, sizeof bytes, hash);
    return hash[0];
}

static uint32_t power_of_two(uint32_t least)
{
    uint32_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}

int weir_peers_open(struct weir_peers **peers, const uint64_t secret[2], uint32_t connections)
{
    struct weir_peers *p = calloc(1, sizeof *p);
    if (!p)
        return WEIR_ERR_MEMORY;
    p->size = 1 + 2 * connections + WEIR_PEERS_KEPT;
    p->mask = power_of_two(2 * connections) - 1;
    /* Zeroed memory of this size takes no room until it is used. */
    p->list = calloc(p->size, sizeof *p->list);
    p->buckets = calloc((size_t)p->mask + 1, sizeof *p->buckets);
    p->used = 1;
    memcpy(p->secret, secret, sizeof p->secret);
    pthread_mutex_init(&p->mutex, NULL);
    *peers = p;
    if (p->list && p->buckets)
        return 0;
    weir_peers_close(p);
    *peers = NULL;
    return WEIR_ERR_MEMORY;
}

void weir_peers_close(struct weir_peers *peers)
{
    if (!peers)
        return;
    pthread_mutex_destroy(&peers->mutex);
    free(peers->list);
    free(peers->buckets);
    free(peers);
}

/* --- Entries ---------------------------------------------------------------------------------- */

static uint32_t find(const struct weir_peers *peers, uint64_t hash)
{
    uint32_t at = peers->buckets[hash & peers->mask];
    while (at != 0 && peers->list[at].hash != hash)
        at = peers->list[at].next;
    return at;
}

/* Takes an entry off those that are kept without a connection. */
static void use(struct weir_peers *peers, uint32_t at)
{
    struct peer *peer = &peers->list[at];
    *(peer->older ? &peers->list[peer->older].newer : &peers->oldest) = peer->newer;
    *(peer->newer ? &peers->list[peer->newer].older : &peers->newest) = peer->older;
    peer->older = peer->newer = 0;
    peers->kept--;
}

static void forget(struct weir_peers *peers, uint32_t at)
{
    struct peer *peer = &peers->list[at];
    uint32_t *link = &peers->buckets[peer->hash & peers->mask];
    while (*link != at)
        link = &peers->list[*link].next;
    *link = peer->next;
    *peer = (struct peer){.next = peers->free};
    peers->free = at;
}

/* Keeps an entry that has a pace and no connection; the oldest makes room. */
static void keep(struct weir_peers *peers, uint32_t at)
{
    struct peer *peer = &peers->list[at];
    peer->older = peers->newest;
    *(peers->newest ? &peers->list[peers->newest].newer : &peers->oldest) = at;
    peers->newest = at;
    if (++peers->kept <= WEIR_PEERS_KEPT)
        return;
    uint32_t oldest = peers->oldest;
    use(peers, oldest);
    forget(peers, oldest);
}

/* A new entry; 0: there is none, which takes more connections than `connections`. */
static uint32_t make(struct weir_peers *peers, uint64_t hash)
{
    uint32_t at = peers->free;
    if (at != 0)
        peers->free = peers->list[at].next;
    else if (peers->used < peers->size)
        at = peers->used++;
    else
        return 0;
    uint32_t *bucket = &peers->buckets[hash & peers->mask];
    peers->list[at] = (struct peer){.hash = hash, .next = *bucket};
    *bucket = at;
    return at;
}

/* Counts a connection. Returns the entry. */
static uint32_t count(struct weir_peers *peers, uint32_t at, uint64_t hash)
{
    if (at == 0)
        at = make(peers, hash);
    else if (peers->list[at].open == 0)
        use(peers, at);
    if (at != 0)
        peers->list[at].open++;
    return at;
}

static void discount(struct weir_peers *peers, uint32_t at)
{
    if (at == 0 || --peers->list[at].open > 0)
        return;
    if (peers->list[at].pace.a != 0)
        keep(peers, at);
    else
        forget(peers, at);
}

/* --- Connections ------------------------------------------------------------------------------ */

static enum weir_peer_verdict judge(const struct weir_peers *peers,
                                    const struct weir_peer_settings *settings, uint32_t address,
                                    uint32_t prefix, uint64_t now_ns)
{
    /* Entry 0 is always zeros: no connection, and a fresh pace. */
    uint64_t delay_ns;
    if (settings->per_address && peers->list[address].open >= settings->per_address)
        return WEIR_PEER_ADDRESS;
    if (settings->per_prefix && peers->list[prefix].open >= settings->per_prefix)
        return WEIR_PEER_PREFIX;
    if (settings->paced &&
        !bucket_test(&settings->pace, &peers->list[address].pace, now_ns, 1, &delay_ns))
        return WEIR_PEER_RATE;
    return WEIR_PEER_ADMITTED;
}

enum weir_peer_verdict weir_peers_take(struct weir_peers *peers,
                                       const struct weir_peer_settings *settings,
                                       const struct weir_address *peer, uint64_t now_ns,
                                       struct weir_peer_places *places)
{
    uint64_t address_hash = weir_peer_hash(peers->secret, peer, WEIR_PEER_HASH_ADDRESS);
    uint64_t prefix_hash = weir_peer_hash(peers->secret, peer, WEIR_PEER_HASH_PREFIX);
    *places = (struct weir_peer_places){0, 0};
    pthread_mutex_lock(&peers->mutex);
    uint32_t address = find(peers, address_hash), prefix = find(peers, prefix_hash);
    enum weir_peer_verdict verdict = judge(peers, settings, address, prefix, now_ns);
    if (verdict == WEIR_PEER_ADMITTED) {
        places->address = count(peers, address, address_hash);
        places->prefix = count(peers, prefix, prefix_hash);
        if (settings->paced && places->address != 0)
            bucket_charge(&settings->pace, &peers->list[places->address].pace, now_ns, 1);
    }
    pthread_mutex_unlock(&peers->mutex);
    return verdict;
}

void weir_peers_give(struct weir_peers *peers, struct weir_peer_places *places)
{
    if (places->address == 0 && places->prefix == 0)
        return;
    pthread_mutex_lock(&peers->mutex);
    discount(peers, places->address);
    discount(peers, places->prefix);
    pthread_mutex_unlock(&peers->mutex);
    *places = (struct weir_peer_places){0, 0};
}
