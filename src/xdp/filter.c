/* SPDX-License-Identifier: Apache-2.0 */
/* see filter.h. The program that runs in the kernel for each frame (XDP), compiled for BPF. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "core/siphash.h"
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

/* Records a drop. Returns whether it is only a dry one. */
XDP_INLINE bool drops_dry(const struct xdp_filter *filter, const struct frame *frame,
                          uint32_t reason, uint32_t slot)
{
    bool dry = filter->dry_run;

    if (reason == XDP_DROP_LIMIT || reason == XDP_DROP_NO_ROOM) {
        count(XDP_REASON_COUNT + slot, frame);
        dry = dry || filter->limits[slot].dry_run;
    }
    reason += dry ? XDP_DRY_OFFSET : 0;
    count(reason, frame);
    sample(filter, frame, reason, slot);
    return dry;
}

XDP_INLINE int drop(const struct xdp_filter *filter, const struct frame *frame, uint32_t reason)
{
    return drops_dry(filter, frame, reason, 0) ? XDP_PASS : XDP_DROP;
}

/* --- Limits ------------------------------------------------------------------------------------
 */

XDP_INLINE bool limit_meets(const struct xdp_limit *limit, const struct xdp_packet *packet)
{
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
    const struct xdp_limit *limit = &filter->limits[slot];
    const struct xdp_packet *packet = &frame->packet;
    struct {
        uint64_t id;
        uint32_t source[4];
    } key = {.id = limit->id};
    uint64_t hash[2];

    for (int i = 0; i < 4; i++)
        key.source[i] =
            packet->source[i] & (packet->family == 4 ? limit->mask4[i] : limit->mask6[i]);
    siphash128(filter->secret, &key, sizeof key, hash);
    *take = (struct xdp_take){.limits = filter->limits,
                              .limit = limit,
                              .key = (hash[0] & ~(uint64_t)XDP_WAY_SLOT) | slot,
                              .now_ns = frame->now_ns};
    if (limit->bytes)
        take->time = bucket_cost(&limit->limit, frame->size_bytes);
    else
        take->time = (struct bucket_time){limit->limit.period_ns, limit->limit.period_rem};
    return (uint32_t)hash[1] & filter->sets_mask;
}

XDP_INLINE enum xdp_taken limit_take(const struct xdp_filter *filter, uint32_t slot,
                                     const struct frame *frame)
{
    struct xdp_take take;
    uint32_t index = limit_prepare(filter, slot, frame, &take);
    struct xdp_set *set = bpf_map_lookup_elem(&weir_sets, &index);

    if (!set)
        return XDP_NO_ROOM; /* not reached: the mask is below the number of sets */
    bpf_spin_lock(&set->lock);
    enum xdp_taken taken = ways_take(&take, set->ways);
    bpf_spin_unlock(&set->lock);
    return taken;
}

XDP_INLINE void limit_refund(const struct xdp_filter *filter, uint32_t slot,
                             const struct frame *frame)
{
    struct xdp_take take;
    uint32_t index = limit_prepare(filter, slot, frame, &take);
    struct xdp_set *set = bpf_map_lookup_elem(&weir_sets, &index);

    if (!set)
        return;
    bpf_spin_lock(&set->lock);
    ways_refund(&take, set->ways);
    bpf_spin_unlock(&set->lock);
}

/* All limits that the packet meets: charged to all, or to none. */
XDP_INLINE int limits_take(const struct xdp_filter *filter, const struct frame *frame)
{
    uint32_t charged = 0; /* a bit for each limit */

#pragma clang loop unroll(disable)
    for (uint32_t slot = 0; slot < XDP_LIMITS_MAX; slot++) {
        if (!filter->limits[slot].used || !limit_meets(&filter->limits[slot], &frame->packet))
            continue;
        enum xdp_taken taken = limit_take(filter, slot, frame);

        if (taken == XDP_ADMITTED) {
            charged |= 1u << slot;
            continue;
        }
        if (taken == XDP_NO_ROOM && filter->no_room_passes)
            continue;
        if (drops_dry(filter, frame, taken == XDP_DENIED ? XDP_DROP_LIMIT : XDP_DROP_NO_ROOM, slot))
            continue;
#pragma clang loop unroll(disable)
        for (uint32_t other = 0; other < XDP_LIMITS_MAX; other++)
            if (charged & 1u << other)
                limit_refund(filter, other, frame);
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

SEC("xdp")
int weir_filter(struct xdp_md *context)
{
    const struct xdp_filter *filter = filter_settings();
    const uint8_t *begin = (const uint8_t *)(long)context->data;
    const uint8_t *end = (const uint8_t *)(long)context->data_end;
    struct frame frame = {.size_bytes = (uint32_t)(context->data_end - context->data)};

    switch (packet_parse(&frame.packet, begin, end, filter->transport)) {
    case XDP_NO_IP:
        return pass(&frame, XDP_PASS_NO_IP);
    case XDP_MALFORMED:
        return pass(&frame, XDP_PASS_MALFORMED);
    case XDP_IP:
        break;
    }
    if (is_link_local(&frame.packet))
        return pass(&frame, XDP_PASS_LINK);
    if (!is_inside(filter, &frame.packet))
        return pass(&frame, XDP_PASS_OUTSIDE);
    if (filter->lists) {
        uint32_t verdict = lists_verdict(&frame.packet);

        if (verdict == XDP_LIST_ALLOW)
            return pass(&frame, XDP_PASS_ALLOWED);
        if (verdict == XDP_LIST_BAN)
            return drop(filter, &frame, XDP_DROP_BANNED);
    }
    if (filter->drop_fragments && frame.packet.fragment)
        return drop(filter, &frame, XDP_DROP_FRAGMENT);
    frame.now_ns = filter_now(filter);
    return limits_take(filter, &frame);
}
