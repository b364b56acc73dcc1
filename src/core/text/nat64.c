/* SPDX-License-Identifier: Apache-2.0 */
/* see nat64.h */
#include "core/text/nat64.h"

#include "core/memory.h"

#define U_OCTET 8

/* The octet of the IPv6 address that has octet `i` of the IPv4 address. */
static size_t octet_at(unsigned prefix_bits, size_t i)
{
    size_t at = prefix_bits / 8 + i;
    return prefix_bits <= 64 && at >= U_OCTET ? at + 1 : at;
}

bool weir_nat64_is_prefix(const struct weir_cidr *network)
{
    unsigned bits = network->bits;
    bool length = bits == 96 || (bits >= 32 && bits <= 64 && bits % 8 == 0);
    return network->address.family == 6 && length && network->address.bytes[U_OCTET] == 0;
}

bool weir_address_is_global4(const struct weir_address *address)
{
    static const struct {
        uint8_t bytes[3], bits;
    } special[] = {
        {{0}, 8},
        {{10}, 8},
        {{100, 64}, 10},
        {{127}, 8},
        {{169, 254}, 16},
        {{172, 16}, 12},
        {{192, 0, 0}, 24},
        {{192, 0, 2}, 24},
        {{192, 88, 99}, 24},
        {{192, 168}, 16},
        {{198, 18}, 15},
        {{198, 51, 100}, 24},
        {{203, 0, 113}, 24},
        {{224}, 3}, /* multicast, reserved, broadcast */
    };
    if (address->family != 4)
        return false;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        struct weir_cidr network = {.address.family = 4, .bits = special[i].bits};
        memcpy(network.address.bytes, special[i].bytes, sizeof special[i].bytes);
        if (weir_cidr_contains(&network, address))
            return false;
    }
    return true;
}

static bool extract(unsigned bits, const struct weir_address *address, struct weir_address *inside)
{
    uint8_t rest = bits <= 64 ? address->bytes[U_OCTET] : 0;
    *inside = (struct weir_address){.family = 4};
    for (size_t i = 0; i < 4; i++)
        inside->bytes[i] = address->bytes[octet_at(bits, i)];
    for (size_t i = octet_at(bits, 3) + 1; i < 16; i++)
        rest |= address->bytes[i];
    return rest == 0 && weir_address_is_global4(inside);
}

void weir_nat64_inside(const struct weir_cidr *prefixes, size_t count,
                       const struct weir_address *address, struct weir_address *inside)
{
    for (size_t i = 0; address->family == 6 && i < count; i++)
        if (weir_cidr_contains(&prefixes[i], address) && extract(prefixes[i].bits, address, inside))
            return;
    *inside = *address;
}

void weir_nat64_embed(const struct weir_cidr *prefix, const struct weir_cidr *network,
                      struct weir_cidr *embedded)
{
    size_t whole = network->bits / 8;
    size_t end = 8 * (whole > 0 ? octet_at(prefix->bits, whole - 1) + 1 : prefix->bits / 8u);
    if (network->bits % 8 != 0)
        end = 8 * octet_at(prefix->bits, whole) + network->bits % 8;
    *embedded = *prefix;
    for (size_t i = 0; i < 4; i++)
        embedded->address.bytes[octet_at(prefix->bits, i)] = network->address.bytes[i];
    embedded->bits = (uint8_t)end;
}
