/* SPDX-License-Identifier: Apache-2.0 */
/* see lane.h */
#include "client/lane.h"

/* A server that serves one at a time quickly is served well; below, latency says little. */
static struct weir_gradient2_spec spec_of(const struct weir_host_lane *lane)
{
    return (struct weir_gradient2_spec){lane->most < 2 ? lane->most : 2, lane->most};
}

void weir_lane_init(struct weir_host_lane *lane, uint32_t most, bool adaptive)
{
    *lane = (struct weir_host_lane){.most = most, .ramp = 1, .adaptive = adaptive};
    struct weir_gradient2_spec spec = spec_of(lane);
    weir_gradient2_init(&lane->gradient, &spec);
}

bool weir_lane_open(const struct weir_host_lane *lane, uint32_t server_most, bool probing)
{
    uint32_t most = lane->ramp < lane->most ? lane->ramp : lane->most;

    if (server_most > 0 && server_most < most)
        most = server_most;
    if (lane->adaptive && weir_gradient2_limit(&lane->gradient) < most)
        most = weir_gradient2_limit(&lane->gradient);
    uint64_t all = (uint64_t)lane->in_flight + lane->streams;
    return lane->in_flight < (probing ? 1 : most) && all < lane->most &&
           (server_most == 0 || all < server_most);
}

bool weir_lane_full(const struct weir_host_lane *lane)
{
    return (uint64_t)lane->in_flight + lane->streams >= lane->most;
}

void weir_lane_send(struct weir_host_lane *lane)
{
    lane->in_flight++;
}

void weir_lane_end(struct weir_host_lane *lane, bool good, uint64_t latency_ns, uint64_t now_ns)
{
    if (lane->adaptive) {
        struct weir_gradient2_spec spec = spec_of(lane);
        struct weir_result result = {now_ns, latency_ns, lane->in_flight, !good};
        weir_gradient2_update(&lane->gradient, &spec, &result, 0);
    }
    lane->in_flight--;
    if (!good)
        lane->ramp = 1;
    else if (lane->ramp < lane->most)
        lane->ramp++;
}

void weir_lane_answer(struct weir_host_lane *lane, bool good, uint64_t latency_ns, uint64_t now_ns)
{
    weir_lane_end(lane, good, latency_ns, now_ns);
    lane->streams++;
}

void weir_lane_end_stream(struct weir_host_lane *lane)
{
    lane->streams--;
}
