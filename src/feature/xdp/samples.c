/* SPDX-License-Identifier: Apache-2.0 */
/* see samples.h */
#include "feature/xdp/samples.h"

#include <errno.h>
#include <time.h>

#include <bpf/libbpf.h>

struct reader {
    weir_xdp_sample_fn take;
    void *context;
};

static int take_sample(void *context, void *data, size_t size)
{
    const struct reader *reader = context;

    if (size >= sizeof(struct xdp_sample))
        reader->take(reader->context, data);
    return 0;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int weir_xdp_samples(const struct weir_xdp_running *running, uint32_t wait_ms,
                     weir_xdp_sample_fn take, void *context, struct weir_reason *reason)
{
    struct reader reader = {take, context};
    struct ring_buffer *ring =
        ring_buffer__new(running->maps.fds[WEIR_XDP_MAP_DROPS], take_sample, &reader, NULL);
    int64_t end_ms = now_ms() + wait_ms, left_ms = wait_ms;
    int got = 0;

    if (!ring)
        return weir_xdp_failed(reason, "cannot read the samples", errno);
    do {
        got = ring_buffer__poll(ring, (int)left_ms);
        left_ms = end_ms - now_ms();
    } while (left_ms > 0 && (got >= 0 || got == -EINTR));
    ring_buffer__free(ring);
    if (got < 0 && got != -EINTR)
        return weir_xdp_failed(reason, "cannot read the samples", got);
    return 0;
}
