/* SPDX-License-Identifier: Apache-2.0 */
/* see compile.h */
#include "feature/xdp/compile.h"

#include <string.h>

#include "core/text/siphash.h"
#include "feature/xdp/packet.h"

_Static_assert(WEIR_XDP_LIMITS_MAX == XDP_LIMITS_MAX, "every limit has a slot");
_Static_assert(sizeof(((struct xdp_limit *)0)->name) == WEIR_XDP_NAME_MAX + 1, "names fit");

/* A frame of Ethernet's usual size: a state of a limit in bytes that has no room for it denies. */
#define FRAME_BYTES 1514

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static void put_mask(uint32_t mask[4], uint32_t bits)
{
    struct weir_address ones;

    weir_address_ones(&ones, 6, (uint8_t)bits);
    memcpy(mask, ones.bytes, sizeof ones.bytes);
}

/* What makes two limits the same: states of one mean the same to the other. */
static uint64_t limit_id(const struct weir_xdp_limit *limit)
{
    static const uint64_t no_secret[2] = {0, 0};
    struct {
        char name[WEIR_XDP_NAME_MAX + 1];
        uint64_t rate, window_ns, burst;
        uint8_t bits4, bits6, protocol, syn, bytes, unused[3];
        struct weir_xdp_ports ports[WEIR_XDP_PORTS_MAX];
    } text;
    uint64_t hash[2];

    memset(&text, 0, sizeof text);
    strncpy(text.name, limit->name, WEIR_XDP_NAME_MAX);
    text.rate = limit->limit.spec.rate;
    text.window_ns = limit->limit.spec.window_ns;
    text.burst = limit->limit.spec.burst;
    text.bits4 = limit->bits4;
    text.bits6 = limit->bits6;
    text.protocol = limit->protocol;
    text.syn = limit->syn;
    text.bytes = limit->bytes;
    memcpy(text.ports, limit->ports, limit->ports_count * sizeof *limit->ports);
    weir_siphash128(no_secret, &text, sizeof text, hash);
    return hash[0];
}

static uint8_t transport_of(const struct weir_xdp_limit *limit)
{
    static const uint8_t transports[] = {
        [WEIR_XDP_ANY] = 0,
        [WEIR_XDP_TCP] = XDP_TCP,
        [WEIR_XDP_UDP] = XDP_UDP,
        [WEIR_XDP_ICMP] = XDP_ICMP,
    };

    return transports[limit->protocol];
}

/* owed_ns >> shift is below 2^16 for every state that does not owe more than the depth. */
static uint8_t score_shift(const struct weir_limit *limit)
{
    uint8_t shift = 0;

    while (shift < 63 && limit->depth_ns >> shift >> 16 != 0)
        shift++;
    return shift;
}

static void compile_limit(struct xdp_limit *out, const struct weir_xdp_limit *limit,
                          const uint64_t secret[2])
{
    struct bucket_time depth = {limit->limit.depth_ns, limit->limit.depth_rem};
    struct bucket_time least = bucket_cost(&limit->limit, limit->bytes ? FRAME_BYTES : 1);

    *out = (struct xdp_limit){.limit = limit->limit,
                              .id = limit_id(limit),
                              .used = 1,
                              .bytes = limit->bytes,
                              .dry_run = limit->dry_run,
                              .transport = transport_of(limit),
                              .syn = limit->syn,
                              .score_shift = score_shift(&limit->limit),
                              .long6 = limit->bits6 > 64};
    weir_siphash128(secret, &out->id, sizeof out->id, out->secret);
    strncpy(out->name, limit->name, sizeof out->name - 1);
    memcpy(out->ports, limit->ports, limit->ports_count * sizeof *limit->ports);
    out->limit.name = NULL;
    out->limit.local = NULL;
    out->limit.spec.bounds = NULL;
    if (!bucket_time_less(depth, least))
        out->slack = bucket_time_subtract(&limit->limit, depth, least);
    put_mask(out->mask[0], 96u + limit->bits4);
    put_mask(out->mask[1], limit->bits6);
}

static int slot_with(const struct xdp_filter *filter, uint64_t id)
{
    for (int slot = 0; filter && slot < XDP_LIMITS_MAX; slot++)
        if (filter->limits[slot].used && filter->limits[slot].id == id)
            return slot;
    return -1;
}

static int slot_unused(const struct xdp_filter *filter)
{
    int slot = 0;

    while (slot < XDP_LIMITS_MAX - 1 && filter->limits[slot].used)
        slot++;
    return slot;
}

/* Unchanged limits first, each in its old place; then the others, where there is room. */
static void compile_limits(struct xdp_filter *filter, const struct weir_xdp_settings *settings,
                           const struct xdp_filter *before)
{
    for (int fresh = 0; fresh < 2; fresh++) {
        for (uint32_t i = 0; i < settings->limits_count; i++) {
            const struct weir_xdp_limit *limit = &settings->limits[i];
            int slot = slot_with(before, limit_id(limit));

            if ((slot < 0) != (fresh == 1))
                continue;
            if (slot < 0)
                slot = slot_unused(filter);
            compile_limit(&filter->limits[slot], limit, filter->secret);
            filter->only = settings->limits_count == 1 ? (uint8_t)slot : XDP_LIMITS_MAX;
            filter->remainders |= !limit->limit.plain;
            filter->transport |=
                limit->protocol != WEIR_XDP_ANY || limit->syn || limit->ports_count > 0;
        }
    }
}

/* States of a slot whose limit was replaced or left out count no more. */
static void number_slots(struct xdp_filter *filter, const struct xdp_filter *before)
{
    for (int slot = 0; slot < XDP_LIMITS_MAX; slot++) {
        const struct xdp_limit *old = &before->limits[slot];
        struct xdp_limit *now = &filter->limits[slot];
        bool same = now->used == old->used && now->id == old->id;

        now->generation = (uint8_t)(old->generation + (same ? 0 : 1));
    }
}

void weir_xdp_compile(struct xdp_filter *filter, const struct weir_xdp_settings *settings,
                      const uint64_t secret[2], const struct xdp_filter *before)
{
    /* Also what lies between the members: two filters are compared as bytes. */
    memset(filter, 0, sizeof *filter);
    memcpy(filter->secret, before ? before->secret : secret, sizeof filter->secret);
    filter->sets_mask = weir_xdp_sets(settings) - 1;
    filter->share = settings->percent * (XDP_SHARE_ALL / 100);
    filter->sample = settings->sample;
    filter->sample_last = UINT32_MAX / settings->sample;
    filter->dry_run = settings->dry_run;
    filter->lists = settings->allow_count > 0 || settings->ban_count > 0;
    filter->transport = settings->drop_fragments;
    filter->drop_fragments = settings->drop_fragments;
    filter->no_room_passes = settings->no_room_passes;
    filter->format = XDP_FORMAT;
    filter->only = XDP_LIMITS_MAX;
    compile_limits(filter, settings, before);
    if (before)
        number_slots(filter, before);
}

uint32_t weir_xdp_slot(const struct xdp_filter *filter, const struct weir_xdp_settings *settings,
                       uint32_t index)
{
    int slot = slot_with(filter, limit_id(&settings->limits[index]));

    return slot < 0 ? 0 : (uint32_t)slot;
}

void weir_xdp_list_key(struct xdp_list_key *key, const struct weir_cidr *cidr)
{
    uint8_t bytes[16];

    if (cidr->address.family == 4) {
        memcpy(bytes, mapped, sizeof mapped);
        memcpy(bytes + sizeof mapped, cidr->address.bytes, 4);
        key->bits = 96u + cidr->bits;
    } else {
        memcpy(bytes, cidr->address.bytes, sizeof bytes);
        key->bits = cidr->bits;
    }
    memcpy(key->address, bytes, sizeof bytes);
}

bool weir_xdp_ban_is_void(const struct weir_xdp_settings *settings, uint32_t index)
{
    const struct weir_cidr *ban = &settings->ban[index];

    for (uint32_t i = 0; i < settings->allow_count; i++)
        if (settings->allow[i].bits <= ban->bits &&
            weir_cidr_contains(&settings->allow[i], &ban->address))
            return true;
    return false;
}

uint32_t weir_xdp_sets(const struct weir_xdp_settings *settings)
{
    return settings->states / XDP_WAYS;
}
