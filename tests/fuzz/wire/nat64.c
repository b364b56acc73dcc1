/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 within IPv6: a length of the prefix, the prefix, an address. What is found inside is a
 * global IPv4 address, and embedding it gives the address back; what was embedded is found. */
#include "fuzz.h"

#include <string.h>

#include "core/text/nat64.h"

static struct weir_address take(const uint8_t *data, size_t size, uint8_t family)
{
    struct weir_address address = {.family = family};
    size_t most = family == 4 ? 4 : 16;
    memcpy(address.bytes, data, size < most ? size : most);
    return address;
}

static void check_embedded(const struct weir_cidr *prefix, const struct weir_cidr *network)
{
    struct weir_cidr embedded;
    struct weir_address inside;
    weir_nat64_embed(prefix, network, &embedded);
    REQUIRE(embedded.address.family == 6 && embedded.bits <= 128);
    REQUIRE(embedded.bits >= prefix->bits);
    weir_nat64_inside(prefix, 1, &embedded.address, &inside);
    if (network->bits == 32 && weir_address_is_global4(&network->address))
        REQUIRE(inside.family == 4 && memcmp(inside.bytes, network->address.bytes, 4) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_cidr prefix = {.bits = size > 0 ? data[0] % 129 : 0};
    size_t at = size > 0 ? 1 : 0, half = at + (size - at) / 2;
    prefix.address = take(data + at, half - at, 6);
    weir_address_mask(&prefix.address, prefix.bits);
    if (!weir_nat64_is_prefix(&prefix))
        return 0;
    struct weir_address address = take(data + half, size - half, 6), inside;
    weir_nat64_inside(&prefix, 1, &address, &inside);
    if (inside.family == 6) {
        REQUIRE(memcmp(inside.bytes, address.bytes, sizeof inside.bytes) == 0);
    } else {
        struct weir_cidr whole = {inside, 32}, embedded;
        REQUIRE(inside.family == 4 && weir_address_is_global4(&inside));
        weir_nat64_embed(&prefix, &whole, &embedded);
        REQUIRE(memcmp(embedded.address.bytes, address.bytes, sizeof address.bytes) == 0);
    }
    for (uint8_t bits = 0; bits <= 32; bits++) {
        struct weir_cidr network = {take(data + half, size - half, 4), bits};
        weir_address_mask(&network.address, bits);
        check_embedded(&prefix, &network);
    }
    return 0;
}
