/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of the caller's own: what is taken has its bounds, and each host finds one that is. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "client/pace/own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t now_ns = UINT64_C(1000000000000), full_ns = 0;
    struct weir_own_rates rates;
    struct weir_reason reason;
    char *text = malloc(size + 1), origin[WEIR_OWN_HOST_SIZE + 16];

    REQUIRE(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    int error = weir_own_parse(&rates, text, &reason);
    free(text);
    if (error < 0)
        return 0;
    REQUIRE(rates.count >= 1 && rates.count <= WEIR_OWN_HOSTS_MAX);
    for (size_t i = 0; i < rates.count; i++) {
        const struct weir_own_rate *rate = &rates.hosts[i].rate;
        REQUIRE(memchr(rates.hosts[i].host, '\0', WEIR_OWN_HOST_SIZE) != NULL);
        REQUIRE(rate->interval_ns >= 1 && rate->interval_ns <= WEIR_OWN_PERIOD_MAX_NS);
        REQUIRE(rate->credit_ns <= WEIR_OWN_PERIOD_MAX_NS);
        snprintf(origin, sizeof origin, "https://%s", rates.hosts[i].host);
        REQUIRE(weir_own_of(&rates, origin).interval_ns == rate->interval_ns);
        for (int j = 0; j < 3; j++)
            full_ns = weir_own_send(rate, 0, now_ns);
        REQUIRE(weir_own_valid(full_ns, now_ns) && weir_own_when(rate, full_ns) <= full_ns);
    }
    return 0;
}
