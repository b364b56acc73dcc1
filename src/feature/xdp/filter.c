/* SPDX-License-Identifier: Apache-2.0 */
/* see filter.h. The program that runs in the kernel for each frame (XDP), compiled for BPF. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "core/text/siphash.h"
#include "feature/xdp/filter.h"
#include "feature/xdp/packet.h"
#include "feature/xdp/take.h"

char LICENSE[] SEC("license") = "Apache-2.0";

const volatile struct xdp_filter settings;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE); /* which begins at a page */
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

/* 2^64 divided by the golden ratio. */
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

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

/* Returns how many packets of this CPU the counter has now. */
XDP_INLINE uint64_t count(uint32_t index, const struct frame *frame)
{
    struct xdp_count *counter = bpf_map_lookup_elem(&weir_counts, &index);

    if (!counter)
        return 0;
    counter->bytes += frame->size_bytes;
    return ++counter->packets;
}

/* Whether the drop of this number is sampled: one in filter->sample. Multiples of the golden ratio
 * spread evenly whatever order the sources of a flood come in, and cost less than a random number.
 */
XDP_INLINE bool is_sampled(const struct xdp_filter *filter, uint64_t number)
{
    return (uint32_t)(number * GOLDEN >> 32) <= filter->sample_last;
}

XDP_INLINE void sample(const struct frame *frame, uint32_t reason, uint32_t slot)
{
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
int weir_limit_run(uint32_t slot, bool refund, const struct frame *frame);
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
    if (is_sampled(filter, count(reason, frame)))
        sample(frame, reason, slot);
    return dry;
}

XDP_INLINE int drop(const struct frame *frame, uint32_t reason)
{
    return weir_record(reason, 0, frame) ? XDP_PASS : XDP_DROP;
}

/* --- A set's lock ------------------------------------------------------------------------------
 */

XDP_INLINE uint64_t set_exchange(struct xdp_set *set, uint64_t key)
{
    return __sync_lock_test_and_set(&set->keys[0], key);
}

XDP_INLINE uint64_t set_try(struct xdp_set *set)
{
    return set_exchange(set, XDP_LOCKED);
}

/* A function that calls `try` up to XDP_LOCK_TURNS times, until it has locked the set. It returns
 * the first key, or XDP_LOCKED. The verifier looks at each round of a function's loop, but only
 * once at the function: so the rounds are spread over nested ones. */
#define XDP_LOCK_LOOP(name, try)                                                                   \
    uint64_t name(struct xdp_set *set);                                                            \
    XDP_GLOBAL uint64_t name(struct xdp_set *set)                                                  \
    {                                                                                              \
        uint64_t first = XDP_LOCKED;                                                               \
                                                                                                   \
        if (!set)                                                                                  \
            return XDP_LOCKED;                                                                     \
        _Pragma("clang loop unroll(disable)") for (int i = 0;                                      \
                                                   i < XDP_LOCK_TURNS && first == XDP_LOCKED; i++) \
            first = try(set);                                                                      \
        return first;                                                                              \
    }

XDP_LOCK_LOOP(weir_lock_1, set_try)
XDP_LOCK_LOOP(weir_lock_2, weir_lock_1)
XDP_LOCK_LOOP(weir_lock_3, weir_lock_2)
XDP_LOCK_LOOP(weir_lock_4, weir_lock_3)

/* Returns the set's first key, or XDP_LOCKED if it stayed locked. */
XDP_INLINE uint64_t set_lock(struct xdp_set *set)
{
    uint64_t first = set_try(set);

    return first == XDP_LOCKED ? weir_lock_4(set) : first;
}

/* By an exchange, too: it is a barrier on every processor, and took no more time than a write. */
XDP_INLINE void set_unlock(struct xdp_set *set, uint64_t first)
{
    set_exchange(set, first);
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

/* What a decision of one limit needs, computed before the set is locked. Returns the set. */
XDP_INLINE struct xdp_set *limit_prepare(const struct xdp_filter *filter, uint32_t slot,
                                         const struct frame *frame, struct xdp_take *take)
{
    const struct xdp_limit *limit = filter_limit(filter, slot);
    uint64_t hash = source_hash(limit, &frame->packet);
    uint32_t index = (uint32_t)hash & filter->sets_mask;
    uint32_t behind = filter->sets_mask + 1 + index / 2;

    *take = (struct xdp_take){.limits = filter->limits,
                              .limit = limit,
                              .key = way_key(hash, limit, slot),
                              .now_ns = frame->now_ns};
    if (filter->remainders) {
        struct xdp_rems *rems = bpf_map_lookup_elem(&weir_sets, &behind);

        if (!rems)
            return NULL; /* not reached, as below */
        take->rems = rems->of[index & 1];
    }
    if (limit->bytes)
        take->time = bucket_cost_small(&limit->limit, frame->size_bytes & 0xffffff);
    else
        take->time = (struct bucket_time){limit->limit.period_ns, limit->limit.period_rem};
    return bpf_map_lookup_elem(&weir_sets, &index);
}

/* Decides by one limit, if the packet meets it; or gives back what it has charged. */
XDP_INLINE enum xdp_taken limit_run(const struct xdp_filter *filter, uint32_t slot, bool refund,
                                    const struct frame *frame)
{
    enum xdp_taken taken = XDP_NOT_MET;
    struct xdp_take take;

    if (!refund && !limit_meets(filter_limit(filter, slot), &frame->packet))
        return XDP_NOT_MET;

    struct xdp_set *set = limit_prepare(filter, slot, frame, &take);

    if (!set)
        return XDP_NO_ROOM; /* not reached: the mask is below the number of sets */
    uint64_t first = set_lock(set);

    __asm__("" : "+r"(first)); /* else clang 19 compiles what follows twice */
    if (first == XDP_LOCKED)
        return XDP_NO_ROOM;
    if (refund)
        set_refund(&take, set, first);
    else
        taken = set_take(&take, set, &first);
    set_unlock(set, first);
    return taken;
}

/* The same. Returns enum xdp_taken. */
XDP_GLOBAL int weir_limit_run(uint32_t slot, bool refund, const struct frame *frame)
{
    if (!frame || slot >= XDP_LIMITS_MAX)
        return XDP_NOT_MET;
    return (int)limit_run(filter_settings(), slot, refund, frame);
}

/* Whether a packet is dropped for what a limit returned. */
XDP_INLINE bool limit_drops(const struct xdp_filter *filter, uint32_t slot, uint32_t taken,
                            const struct frame *frame)
{
    if ((taken & (XDP_DENIED | XDP_NO_ROOM)) == 0 ||
        ((taken & XDP_NO_ROOM) && filter->no_room_passes))
        return false;
    return !weir_record(taken & XDP_DENIED ? XDP_DROP_LIMIT : XDP_DROP_NO_ROOM, slot, frame);
}

/* All limits that the packet meets: charged to all, or to none. */
XDP_INLINE int limits_take(const struct xdp_filter *filter, const struct frame *frame)
{
    uint32_t charged = 0; /* a bit for each limit */

    /* The verifier knows the slot, and removes what the limit's constants rule out. */
    if (filter->only < XDP_LIMITS_MAX) {
        uint32_t taken = limit_run(filter, filter->only, false, frame);

        return limit_drops(filter, filter->only, taken, frame) ? XDP_DROP
                                                               : pass(frame, XDP_PASS_LIMITS);
    }
#pragma clang loop unroll(disable)
    for (uint32_t slot = 0; slot < XDP_LIMITS_MAX; slot++) {
        if (!filter->limits[slot].used)
            continue;
        uint32_t taken = (uint32_t)weir_limit_run(slot, false, frame);

        charged |= (taken & XDP_ADMITTED) << slot;
        if (!limit_drops(filter, slot, taken, frame))
            continue;
#pragma clang loop unroll(disable)
        for (uint32_t other = 0; other < slot; other++)
            if (charged >> other & 1)
                weir_limit_run(other, true, frame);
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

/* Fills the frame's packet. Returns enum xdp_parsed. */
XDP_GLOBAL int weir_parse(struct xdp_md *context, struct frame *frame)
{
    const uint8_t *begin = (const uint8_t *)(long)context->data;
    const uint8_t *end = (const uint8_t *)(long)context->data_end;

    if (!frame)
        return XDP_MALFORMED;
    return (int)packet_parse(&frame->packet, begin, end, true);
}

SEC("xdp")
int weir_filter(struct xdp_md *context)
{
    const struct xdp_filter *filter = filter_settings();
    struct frame frame;

    __builtin_memset(&frame, 0, sizeof frame);
    frame.size_bytes = (uint32_t)(context->data_end - context->data);
    int parsed;

    if (filter->transport)
        parsed = weir_parse(context, &frame);
    else
        parsed = (int)packet_parse(&frame.packet, (const uint8_t *)(long)context->data,
                                   (const uint8_t *)(long)context->data_end, false);

    if (parsed == XDP_NO_IP)
        return pass(&frame, XDP_PASS_NO_IP);
    if (parsed != XDP_IP)
        return pass(&frame, XDP_PASS_MALFORMED);
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
    if (filter->spread != 0)
        frame.packet.source[3] ^= (uint32_t)(frame.now_ns * GOLDEN >> 32) & filter->spread;
    return limits_take(filter, &frame);
}
