/* SPDX-License-Identifier: Apache-2.0 */
/* see bans.h */
#include "feature/standing/server/bans.h"

#include <ifaddrs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "core/text/nat64.h"
#include "core/text/siphash.h"
#include "rules/rules.h"
#include "wire/socket_address.h"

/* 127.0.0.0/8 and ::1. */
#define LOOPBACKS 2

/* With 4,096 bans at the layer below, one of 64 others looks known: then all end, at worst. */
#define TAKEN_BITS (UINT64_C(1) << 18)

struct weir_bans {
    pthread_mutex_t lock;
    struct weir_cidr *kept; /* protected */
    size_t kept_count;
    struct weir_cidr nat64[WEIR_NAT64_MAX];
    size_t nat64_count;
    bool ready;
    struct weir_bans_counts counts;
    size_t first, count;
    bool reset;                      /* the end of all bans comes first */
    uint64_t taken[TAKEN_BITS / 64]; /* networks whose bans were taken since the last of those */
    struct weir_ban queue[WEIR_BANS_MAX];
};

int weir_bans_open(struct weir_bans **bans)
{
    *bans = calloc(1, sizeof **bans);
    if (!*bans)
        return WEIR_ERR_MEMORY;
    pthread_mutex_init(&(*bans)->lock, NULL);
    return 0;
}

void weir_bans_close(struct weir_bans *bans)
{
    if (!bans)
        return;
    pthread_mutex_destroy(&bans->lock);
    free(bans->kept);
    free(bans);
}

/* Appends what this machine is called, and returns the new count. */
static size_t add_own(struct weir_cidr *kept, size_t count, const struct ifaddrs *interfaces)
{
    for (; interfaces; interfaces = interfaces->ifa_next) {
        struct weir_address address = {.family = 0};

        if (interfaces->ifa_addr)
            weir_socket_address_read(&address, interfaces->ifa_addr);
        if (address.family != 0)
            kept[count++] = (struct weir_cidr){address, address.family == 4 ? 32 : 128};
    }
    return count;
}

int weir_bans_protect(struct weir_bans *bans, const struct weir_cidr *proxies, size_t count)
{
    struct ifaddrs *interfaces = NULL;
    size_t most = count + LOOPBACKS;
    struct weir_cidr *kept;

    if (getifaddrs(&interfaces) != 0)
        interfaces = NULL;
    for (const struct ifaddrs *one = interfaces; one; one = one->ifa_next)
        most++;
    kept = calloc(most, sizeof *kept);
    pthread_mutex_lock(&bans->lock);
    bans->ready = kept;
    if (kept) {
        free(bans->kept);
        bans->kept = kept;
        kept[0] = (struct weir_cidr){{.family = 4, .bytes = {127}}, 8};
        kept[1] = (struct weir_cidr){{.family = 6, .bytes = {[15] = 1}}, 128};
        if (count > 0)
            memcpy(kept + LOOPBACKS, proxies, count * sizeof *kept);
        bans->kept_count = add_own(kept, count + LOOPBACKS, interfaces);
    }
    pthread_mutex_unlock(&bans->lock);
    if (interfaces)
        freeifaddrs(interfaces);
    return kept ? 0 : WEIR_ERR_MEMORY;
}

/* Whether two networks have an address in common. */
static bool overlap(const struct weir_cidr *a, const struct weir_cidr *b)
{
    return a->bits < b->bits ? weir_cidr_contains(a, &b->address)
                             : weir_cidr_contains(b, &a->address);
}

static bool is_protected(const struct weir_bans *bans, const struct weir_cidr *network)
{
    for (size_t i = 0; i < bans->kept_count; i++)
        if (overlap(&bans->kept[i], network))
            return true;
    return !bans->ready;
}

void weir_bans_translate(struct weir_bans *bans, const struct weir_cidr *prefixes, size_t count)
{
    pthread_mutex_lock(&bans->lock);
    bans->nat64_count = count < WEIR_NAT64_MAX ? count : WEIR_NAT64_MAX;
    if (bans->nat64_count > 0)
        memcpy(bans->nat64, prefixes, bans->nat64_count * sizeof *prefixes);
    pthread_mutex_unlock(&bans->lock);
}

bool weir_bans_is_shared(struct weir_bans *bans, const struct weir_cidr *network)
{
    static const struct weir_cidr one = {.address.family = 4, .bits = 32};
    struct weir_cidr client;
    bool shared = false;

    pthread_mutex_lock(&bans->lock);
    for (size_t i = 0; i < bans->nat64_count; i++) {
        weir_nat64_embed(&bans->nat64[i], &one, &client);
        shared |= network->bits < client.bits && overlap(&bans->nat64[i], network);
    }
    pthread_mutex_unlock(&bans->lock);
    return shared;
}

static uint64_t taken_bit(const struct weir_cidr *network)
{
    static const uint64_t key[2] = {0, 0};
    struct weir_cidr whole = {.bits = network->bits};
    uint64_t hash[2];

    whole.address.family = network->address.family;
    memcpy(whole.address.bytes, network->address.bytes, network->address.family == 4 ? 4 : 16);
    weir_siphash128(key, &whole, sizeof whole, hash);
    return hash[0] % TAKEN_BITS;
}

static bool was_taken(const struct weir_bans *bans, const struct weir_cidr *network)
{
    uint64_t bit = taken_bit(network);

    return (bans->taken[bit / 64] >> bit % 64 & 1) != 0;
}

static bool is_same(const struct weir_cidr *a, const struct weir_cidr *b)
{
    return a->bits == b->bits && a->address.family == b->address.family &&
           memcmp(a->address.bytes, b->address.bytes, a->address.family == 4 ? 4 : 16) == 0;
}

static void reset(struct weir_bans *bans)
{
    bans->reset = true;
    bans->first = bans->count = 0;
    memset(bans->taken, 0, sizeof bans->taken);
}

static void append(struct weir_bans *bans, const struct weir_ban *ban)
{
    bans->queue[(bans->first + bans->count++) % WEIR_BANS_MAX] = *ban;
}

/* What is done where there is no room. False: the ban is dropped. */
static bool squeeze(struct weir_bans *bans, const struct weir_ban *ban)
{
    for (size_t i = bans->count; i > 0; i--) { /* the newest: it is the one that counts */
        struct weir_ban *other = &bans->queue[(bans->first + i - 1) % WEIR_BANS_MAX];

        if (is_same(&other->network, &ban->network)) {
            other->until_ns = ban->until_ns;
            return true;
        }
    }
    if (!was_taken(bans, &ban->network))
        return ban->until_ns == 0; /* the layer has nothing to end */
    reset(bans);
    bans->counts.full++;
    if (ban->until_ns > 0)
        append(bans, ban);
    return true;
}

static bool publish(struct weir_bans *bans, const struct weir_ban *ban, bool proven)
{
    bool ends = ban->until_ns == 0;

    if (!proven || (!ends && is_protected(bans, &ban->network))) {
        ++*(proven ? &bans->counts.kept : &bans->counts.unproven);
        return false;
    }
    if (bans->count < WEIR_BANS_MAX) {
        append(bans, ban);
    } else if (!squeeze(bans, ban)) {
        bans->counts.full++;
        return false;
    }
    bans->counts.published++;
    return true;
}

bool weir_bans_publish(struct weir_bans *bans, const struct weir_cidr *network, uint64_t until_ns,
                       bool proven)
{
    const struct weir_ban ban = {*network, until_ns};
    bool published;

    pthread_mutex_lock(&bans->lock);
    published = publish(bans, &ban, proven);
    pthread_mutex_unlock(&bans->lock);
    return published;
}

void weir_bans_reset(struct weir_bans *bans)
{
    pthread_mutex_lock(&bans->lock);
    reset(bans);
    pthread_mutex_unlock(&bans->lock);
}

bool weir_bans_take(struct weir_bans *bans, struct weir_ban *ban)
{
    bool taken;

    pthread_mutex_lock(&bans->lock);
    taken = bans->reset || bans->count > 0;
    if (bans->reset) {
        *ban = (struct weir_ban){.until_ns = 0};
        bans->reset = false;
    } else if (taken) {
        uint64_t bit;

        *ban = bans->queue[bans->first];
        bans->first = (bans->first + 1) % WEIR_BANS_MAX;
        bans->count--;
        bit = taken_bit(&ban->network);
        bans->taken[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    pthread_mutex_unlock(&bans->lock);
    return taken;
}

void weir_bans_each_protected(struct weir_bans *bans,
                              void (*take)(void *context, const struct weir_cidr *network),
                              void *context)
{
    pthread_mutex_lock(&bans->lock);
    for (size_t i = 0; i < bans->kept_count; i++)
        take(context, &bans->kept[i]);
    pthread_mutex_unlock(&bans->lock);
}

bool weir_bans_may_hold(struct weir_bans *bans, const struct weir_cidr *network)
{
    bool may;

    pthread_mutex_lock(&bans->lock);
    may = !is_protected(bans, network);
    pthread_mutex_unlock(&bans->lock);
    return may;
}

void weir_bans_counts(struct weir_bans *bans, struct weir_bans_counts *counts)
{
    pthread_mutex_lock(&bans->lock);
    *counts = bans->counts;
    pthread_mutex_unlock(&bans->lock);
}
