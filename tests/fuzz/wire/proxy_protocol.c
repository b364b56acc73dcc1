/* SPDX-License-Identifier: Apache-2.0 */
/* The PROXY protocol: any bytes give the same header or error however they come. */
#include "fuzz.h"

#include <string.h>

#include "wire/http/proxy_protocol.h"

static long header_parse(const uint8_t *data, size_t size, struct weir_address *client)
{
    char *copy = fuzz_copy(data, size);
    *client = (struct weir_address){.family = 4, .bytes = {198, 51, 100, 1}};
    long taken = weir_proxy_header_parse(client, copy, size);
    REQUIRE(taken <= (long)size && taken <= WEIR_PROXY_HEADER_MAX);
    REQUIRE(client->family == 4 || client->family == 6);
    free(copy);
    return taken;
}

void weir_fuzz_split(const uint8_t *data, size_t size, size_t at)
{
    struct weir_address client, early_client;
    long taken = header_parse(data, size, &client), early = header_parse(data, at, &early_client);
    if (early != 0)
        REQUIRE(early == taken && memcmp(&client, &early_client, sizeof client) == 0);
    else
        REQUIRE(taken <= 0 || (size_t)taken > at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t at = 0; at <= size; at += 1 + size / 64)
        weir_fuzz_split(data, size, at);
    return 0;
}
