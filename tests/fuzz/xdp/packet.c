/* SPDX-License-Identifier: Apache-2.0 */
/* Frames for the filter: whatever they hold, nothing behind their end is read, a source is there
 * only with a whole header, and what a frame is cut off by never changes its source. */
#include "fuzz.h"

#include <string.h>

#include "feature/xdp/packet.h"

static enum xdp_parsed parse(const uint8_t *data, size_t size, bool transport,
                             struct xdp_packet *packet)
{
    uint8_t *copy = (uint8_t *)fuzz_copy(data, size);
    enum xdp_parsed parsed = packet_parse(packet, copy, copy + size, transport);

    free(copy);
    return parsed;
}

static void check(enum xdp_parsed parsed, const struct xdp_packet *packet)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    REQUIRE(parsed == XDP_IP || parsed == XDP_NO_IP || parsed == XDP_MALFORMED);
    REQUIRE((parsed == XDP_IP) == (packet->family != 0));
    REQUIRE(packet->family == 0 || packet->family == 4 || packet->family == 6);
    REQUIRE(packet->family == 0 ||
            (packet->family == 4) == (memcmp(packet->source, mapped, sizeof mapped) == 0));
    REQUIRE(packet->port == 0 || packet->transport == XDP_TCP || packet->transport == XDP_UDP);
    REQUIRE(!packet->syn || packet->transport == XDP_TCP);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xdp_packet whole, plain, part;
    enum xdp_parsed parsed = parse(data, size, true, &whole);

    check(parsed, &whole);
    REQUIRE(parse(data, size, false, &plain) == parsed);
    check(parsed, &plain);
    REQUIRE(memcmp(whole.source, plain.source, sizeof whole.source) == 0);
    for (size_t cut = 0; cut < size && cut < 128; cut++) {
        enum xdp_parsed less = parse(data, cut, true, &part);

        check(less, &part);
        REQUIRE(less == parsed || less == XDP_MALFORMED);
        REQUIRE(less != XDP_IP || memcmp(whole.source, part.source, sizeof part.source) == 0);
        REQUIRE(part.port == 0 || part.port == whole.port);
        REQUIRE(part.syn || !whole.syn || part.transport != XDP_TCP);
    }
    return 0;
}
