/* SPDX-License-Identifier: Apache-2.0 */
/* see caller.h */
#include "engine/token/caller.h"

#include "core/text/siphash.h"

/* Tell these uses of the secret from others. */
#define USER_DOMAIN UINT64_C(0x7265737577)    /* "wuser" */
#define ADDRESS_DOMAIN UINT64_C(0x7264646177) /* "waddr" */
#define MAC_DOMAIN UINT64_C(0x63616d77)       /* "wmac" */

#define NETWORK_BITS6 64 /* what one subscriber has at least */

static uint64_t hash_of(const uint64_t secret[2], uint64_t domain, const void *data, size_t size)
{
    const uint64_t key[2] = {secret[0] ^ domain, secret[1]};
    uint64_t hash[2];
    weir_siphash128(key, data, size, hash);
    return hash[0];
}

static uint32_t mac_of(const uint64_t secret[2], uint32_t caller)
{
    return (uint32_t)hash_of(secret, MAC_DOMAIN, &caller, sizeof caller);
}

uint64_t weir_caller_number(const uint64_t secret[2], struct weir_bytes user,
                            const struct weir_address *client)
{
    struct weir_address network = *client;
    uint32_t caller;
    if (user.data) {
        caller = (uint32_t)hash_of(secret, USER_DOMAIN, user.data, user.size);
    } else if (client->family != 0) {
        if (client->family == 6)
            weir_address_mask(&network, NETWORK_BITS6);
        caller = (uint32_t)hash_of(secret, ADDRESS_DOMAIN, network.bytes,
                                   network.family == 4 ? 4 : sizeof network.bytes);
    } else {
        return 0;
    }
    return (uint64_t)caller << 32 | mac_of(secret, caller);
}

bool weir_caller_number_holds(const uint64_t secret[2], uint64_t number)
{
    return (uint32_t)number == mac_of(secret, (uint32_t)(number >> 32));
}
