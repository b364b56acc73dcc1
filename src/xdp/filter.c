/* SPDX-License-Identifier: Apache-2.0 */
/* see filter.h. The program that runs in the kernel for each frame (XDP), compiled for BPF. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "core/text/siphash.h"
#include "xdp/filter.h"
#include "xdp/packet.h"
#include "xdp/take.h"

char LICENSE[] SEC("license") = "Apache-2.0";

const volatile struct xdp_filter settings;

/* A set of states; the kernel finds the lock by its type. */
struct xdp_set {
    struct bpf_spin_lock lock;
    uint32_t unused;
    struct xdp_way ways[XDP_WAYS];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct xdp_set);
} weir_sets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, struct xdp_list_key);
    __type(value, uint32_t);
} weir_lists SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, XDP_COUNTS);
    __type(key, uint32_t);
    __type(value, struct xdp_count);
} weir_counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 65536);
} weir_drops SEC(".maps");

/* Only with `virtual_clock`. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, uint64_t);
} weir_clock SEC(".maps");

/* A frame under decision. */
struct frame {
    struct xdp_packet packet;
    uint32_t size_bytes;
    uint64_t now_ns;
};

/* The settings as plain constants. The compiler must not take them for the zeros of this file. */
XDP_INLINE const struct xdp_filter *filter_settings(void)
{
    const struct xdp_filter *filter = (const struct xdp_filter *)&settings;

    __asm__ volatile("" : "+r"(filter));
    return filter;
}

/* The verifier must see the bound of the slot beside its use. */
XDP_INLINE const struct xdp_limit *filter_limit(const struct xdp_filter *filter, uint32_t slot)
{
    uint64_t place = slot;

    __asm__ volatile("" : "+r"(place)); /* else the compiler leaves the mask out where it knows */
    return &filter->limits[place & XDP_WAY_SLOT];
}

XDP_INLINE uint64_t filter_now(const struct xdp_filter *filter)
{
    uint32_t first = 0;

    if (!filter->virtual_clock)
        return bpf_ktime_get_ns();
    uint64_t *now_ns = bpf_map_lookup_elem(&weir_clock, &first);

    return now_ns ? *now_ns : 0;
}

XDP_INLINE void count(uint32_t index, const struct frame *frame)
{
    struct xdp_count *counter = bpf_map_lookup_elem(&weir_counts, &index);

    if (counter) {
        counter->packets++;
        counter->bytes += frame->size_bytes;
    }
}

XDP_INLINE void sample(const struct xdp_filter *filter, const struct frame *frame, uint32_t reason,
                       uint32_t slot)
{
    if (filter->sample_mask != 0 && (bpf_get_prandom_u32() & filter->sample_mask) != 0)
        return;
    struct xdp_sample *sample = bpf_ringbuf_reserve(&weir_drops, sizeof *sample, 0);

    if (!sample)
        return;
    *sample = (struct xdp_sample){.time_ns = bpf_ktime_get_ns(),
                                  .size_bytes = frame->size_bytes,
                                  .port = frame->packet.port,
                                  .reason = (uint8_t)reason,
                                  .slot = (uint8_t)slot,
                                  .family = frame->packet.family,
                                  .transport = frame->packet.transport};
    for (int i = 0; i < 4; i++)
        sample->source[i] = frame->packet.source[i];
    bpf_ringbuf_submit(sample, 0);
}

XDP_INLINE int pass(const struct frame *frame, uint32_t reason)
{
    count(reason, frame);
    return XDP_PASS;
}

/* The verifier looks at a function with external linkage once, and not for each call. So these keep
 * what it has to look at small; they find their settings again, and check what they are given, as
 * they would for any caller. */
#define XDP_GLOBAL __attribute__((noinline))

int weir_record(uint32_t reason, uint32_t slot, const struct frame *frame);
int weir_limit_take(uint32_t slot, const struct frame *frame);
int weir_limit_refund(uint32_t slot, const struct frame *frame);
int weir_parse(struct xdp_md *context, struct frame *frame);

/* Records a drop. Returns whether it is only a dry one. */
XDP_GLOBAL int weir_record(uint32_t reason, uint32_t slot, const struct frame *frame)
{
    const struct xdp_filter *filter = filter_settings();
    bool dry = filter->dry_run;

    if (!frame || slot >= XDP_LIMITS_MAX)
        return 0;
    if (reason == XDP_DROP_LIMIT || reason == XDP_DROP_NO_ROOM) {
        count(XDP_REASON_COUNT + slot, frame);
        dry = dry || filter_limit(filter, slot)->dry_run;
    }
    reason += dry ? XDP_DRY_OFFSET : 0;
    count(reason, frame);
    sample(filter, frame, reason, slot);
    return dry;
}

XDP_INLINE int drop(const struct frame *frame, uint32_t reason)
{
    return weir_record(reason, 0, frame) ? XDP_PASS : XDP_DROP;
}

/* --- Limits ------------------------------------------------------------------------------------
 */

XDP_INLINE bool limit_meets(const struct xdp_limit *limit, const struct xdp_packet *packet)
{
    if (packet->transport == XDP_TRANSPORT_UNKNOWN)
        return true;
    if (limit->transport != 0 && packet->transport != limit->transport &&
        !(limit->transport == XDP_ICMP && packet->transport == XDP_ICMP6))
        return false;
    if (limit->syn && !packet->syn)
        return false;
    if (limit->ports[0].first == 0)
        return true;
    for (int i = 0; i < WEIR_XDP_PORTS_MAX; i++)
        if (packet->port >= limit->ports[i].first && packet->port <= limit->ports[i].last)
            return packet->port != 0; /* an unused entry is 0..0 */
    return false;
}

/* What a decision of one limit needs, computed outside the lock. Returns the set. */
XDP_INLINE uint32_t limit_prepare(const struct xdp_filter *filter, uint32_t slot,
                                  const struct frame *frame, struct xdp_take *take)
{
    const struct xdp_limit *limit = filter_limit(filter, slot);
    const struct xdp_packet *packet = &frame->packet;
    struct {
        uint64_t id;
        uint32_t source[4];
    } key = {.id = limit->id};
    uint64_t hash[2];

    const uint32_t *mask = limit->mask[packet->family >> 1 & 1]; /* 4 or 6 */

    for (int i = 0; i < 4; i++)
        key.source[i] = packet->source[i] & mask[i];
    siphash128(filter->secret, &key, sizeof key, hash);
    *take = (struct xdp_take){.limits = filter->limits,
                              .limit = limit,
                              .key = way_key(hash[0], limit, slot),
                              .now_ns = frame->now_ns};
    if (limit->bytes)
        take->time = bucket_cost_small(&limit->limit, frame->size_bytes & 0xffffff);
    else
        take->time = (struct bucket_time){limit->limit.period_ns, limit->limit.period_rem};
    /* The half of the hash alone: the compiler leaves out the rounds of the other one. */
    return (uint32_t)hash[0] & filter->sets_mask;
}

/* Decides by one limit, if the packet meets it. Returns enum xdp_taken. */
XDP_GLOBAL int weir_limit_take(uint32_t slot, const struct frame *frame)
{
    const struct xdp_filter *filter = filter_settings();
    struct xdp_take take;

    if (!frame || slot >= XDP_LIMITS_MAX)
        return XDP_NOT_MET;
    if (!limit_meets(filter_limit(filter, slot), &frame->packet))
        return XDP_NOT_MET;

    uint32_t index = limit_prepare(filter, slot, frame, &take);
    struct xdp_set *set = bpf_map_lookup_elem(&weir_sets, &index);

    if (!set)
        return XDP_NO_ROOM; /* not reached: the mask is below the number of sets */
    bpf_spin_lock(&set->lock);
    enum xdp_taken taken = ways_take(&take, set->ways);
    bpf_spin_unlock(&set->lock);
    return (int)taken;
}

/* Gives back what a limit has charged. */
XDP_GLOBAL int weir_limit_refund(uint32_t slot, const struct frame *frame)
{
    struct xdp_take take;

    if (!frame || slot >= XDP_LIMITS_MAX)
        return 0;
    uint32_t index = limit_prepare(filter_settings(), slot, frame, &take);
    struct xdp_set *set = bpf_map_lookup_elem(&weir_sets, &index);

    if (!set)
        return 0;
    bpf_spin_lock(&set->lock);
    ways_refund(&take, set->ways);
    bpf_spin_unlock(&set->lock);
    return 0;
}

/* All limits that the packet meets: charged to all, or to none. */
XDP_INLINE int limits_take(const struct xdp_filter *filter, const struct frame *frame)
{
    uint32_t charged = 0; /* a bit for each limit */

#pragma clang loop unroll(disable)
    for (uint32_t slot = 0; slot < XDP_LIMITS_MAX; slot++) {
        if (!filter->limits[slot].used)
            continue;
        uint32_t taken = (uint32_t)weir_limit_take(slot, frame);

        charged |= (taken & XDP_ADMITTED) << slot;
        if ((taken & (XDP_DENIED | XDP_NO_ROOM)) == 0 ||
            ((taken & XDP_NO_ROOM) && filter->no_room_passes))
            continue;
        if (weir_record(taken & XDP_DENIED ? XDP_DROP_LIMIT : XDP_DROP_NO_ROOM, slot, frame))
            continue;
#pragma clang loop unroll(disable)
        for (uint32_t other = 0; other < slot; other++)
            if (charged >> other & 1)
                weir_limit_refund(other, frame);
        return XDP_DROP;
    }
    return pass(frame, XDP_PASS_LIMITS);
}

/* --- The program --------------------------------------------------------------------------------
 */

XDP_INLINE uint32_t lists_verdict(const struct xdp_packet *packet)
{
    struct xdp_list_key key = {.bits = 128};

    for (int i = 0; i < 4; i++)
        key.address[i] = packet->source[i];
    uint32_t *verdict = bpf_map_lookup_elem(&weir_lists, &key);

    return verdict ? *verdict : 0;
}

/* fe80::/10, the unspecified addresses: neighbours, and hosts that ask for an address. */
XDP_INLINE bool is_link_local(const struct xdp_packet *packet)
{
    const uint8_t *first = (const uint8_t *)packet->source;

    if (packet->family == 4)
        return packet->source[3] == 0;
    return (first[0] == 0xfe && (first[1] & 0xc0) == 0x80) ||
           (packet->source[0] | packet->source[1] | packet->source[2] | packet->source[3]) == 0;
}

/* Whether a source is in the share that the filter applies to. */
XDP_INLINE bool is_inside(const struct xdp_filter *filter, const struct xdp_packet *packet)
{
    uint32_t source[4];
    uint64_t hash[2];

    if (filter->share >= XDP_SHARE_ALL)
        return true;
    for (int i = 0; i < 4; i++)
        source[i] = packet->family == 4 || i < 2 ? packet->source[i] : 0;
    siphash128(filter->secret, source, sizeof source, hash);
    return (uint32_t)hash[0] % XDP_SHARE_ALL < filter->share;
}

/* Fills the frame's packet and size. Returns enum xdp_parsed. */
XDP_GLOBAL int weir_parse(struct xdp_md *context, struct frame *frame)
{
    const uint8_t *begin = (const uint8_t *)(long)context->data;
    const uint8_t *end = (const uint8_t *)(long)context->data_end;

    if (!frame)
        return XDP_MALFORMED;
    frame->size_bytes = (uint32_t)(context->data_end - context->data);
    return (int)packet_parse(&frame->packet, begin, end, filter_settings()->transport);
}

SEC("xdp")
int weir_filter(struct xdp_md *context)
{
    const struct xdp_filter *filter = filter_settings();
    struct frame frame;

    __builtin_memset(&frame, 0, sizeof frame);
    int parsed = weir_parse(context, &frame);

    if (parsed == XDP_NO_IP)
        return pass(&frame, XDP_PASS_NO_IP);
    if (parsed != XDP_IP)
        return pass(&frame, XDP_PASS_MALFORMED);
    if (filter->spread != 0)
        frame.packet.source[3] ^= bpf_get_prandom_u32() & filter->spread;
    if (is_link_local(&frame.packet))
        return pass(&frame, XDP_PASS_LINK);
    if (!is_inside(filter, &frame.packet))
        return pass(&frame, XDP_PASS_OUTSIDE);
    if (filter->lists) {
        uint32_t verdict = lists_verdict(&frame.packet);

        if (verdict == XDP_LIST_ALLOW)
            return pass(&frame, XDP_PASS_ALLOWED);
        if (verdict == XDP_LIST_BAN)
            return drop(&frame, XDP_DROP_BANNED);
    }
    if (filter->drop_fragments && frame.packet.fragment)
        return drop(&frame, XDP_DROP_FRAGMENT);
    frame.now_ns = filter_now(filter);
    return limits_take(filter, &frame);
}
