/* SPDX-License-Identifier: Apache-2.0 */
/* What processes share in a state file: a host in a crowd, of which anything may have been written
 * over, and then answers of any content. What is repaired is valid and stays so, and never waits
 * beyond the horizon.
 *
 *     patches: a count, then for each an offset (2 bytes) and 8 bytes
 *     events of 6 bytes: kind, how much of the limit is used, the reset, a pause (2), how many wait
 */
#include "fuzz.h"

#include <string.h>

#include "client/host.h"
#include "client/instant.h"

#define S UINT64_C(1000000000)
#define NOW_NS (UINT64_C(1000000) * S)
#define EVENT 6
#define PATCH 10
#define PATCHES_MAX 16

static const struct weir_backoff_spec backoff = {WEIR_CLIENT_JITTER_FULL, S / 10, 20 * S, 2};

static void field(struct weir_advice *advice, const char *name, const char *value)
{
    weir_advice_field(advice, (struct weir_bytes){name, strlen(name)},
                      (struct weir_bytes){value, strlen(value)});
}

static void require_valid(struct weir_host *host, uint64_t waiting, uint64_t now_ns)
{
    struct weir_client_limit limit;
    uint64_t when = weir_host_when(host, waiting, waiting, now_ns);

    REQUIRE(when <= now_ns + 2 * WEIR_INSTANT_HORIZON_NS);
    REQUIRE(host->pace_count <= WEIR_ADVICE_MAX);
    for (uint32_t i = 0; i < host->pace_count; i++)
        REQUIRE(weir_pace_valid(&host->paces[i], now_ns));
    REQUIRE(weir_learned_valid(&host->learned, now_ns));
    REQUIRE(weir_window_valid(&host->window, now_ns));
    (void)weir_host_known(host, now_ns, &limit);
}

static void answer(struct weir_host *host, const uint8_t *event, uint64_t *now_ns, uint64_t *seed)
{
    static const int statuses[] = {200, 429, 503, 0, 200, 200, 403, 200};
    static const unsigned long long limits[] = {100, 600, 1, 1000000000000};
    unsigned long long limit = limits[event[0] >> 6];
    struct weir_advice advice;
    char text[100];
    uint64_t number = weir_host_send(host, *now_ns), sent_ns = *now_ns;

    *now_ns += S / 100;
    weir_advice_begin(&advice);
    snprintf(text, sizeof text, "\"x\";q=%llu;w=%u", limit, (event[0] & 8) != 0 ? 60u : 10u);
    field(&advice, "RateLimit-Policy", text);
    snprintf(text, sizeof text, "\"x\";r=%llu;t=%u", limit - limit * event[1] / 255, event[2]);
    field(&advice, "RateLimit", text);
    weir_advice_finish(&advice, 1800000000);
    struct weir_host_result result = {statuses[event[0] & 7], number, sent_ns, *now_ns, &advice};
    weir_host_learn(host, &result, &backoff, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_host host = {.used_ns = NOW_NS};
    uint64_t now_ns = NOW_NS, seed = 1;
    size_t patches = size > 0 ? data[0] % PATCHES_MAX : 0, at = size > 0;
    static const uint8_t crowd[][EVENT] = {{0, 50, 10}, {0, 120, 9}, {0, 130, 8}, {1, 255, 7}};

    for (size_t i = 0; i < sizeof crowd / sizeof *crowd; i++)
        answer(&host, crowd[i], &now_ns, &seed);
    for (; patches > 0 && at + PATCH <= size; patches--, at += PATCH) {
        size_t offset = ((size_t)data[at] << 8 | data[at + 1]) % (sizeof host - 7);
        memcpy((char *)&host + offset, data + at + 2, 8);
    }
    weir_host_repair(&host, now_ns);
    require_valid(&host, UINT64_MAX, now_ns);
    for (; at + EVENT <= size; at += EVENT) {
        answer(&host, data + at, &now_ns, &seed);
        require_valid(&host, data[at + 5], now_ns);
        now_ns += ((uint64_t)data[at + 3] << 8 | data[at + 4]) * S / 100;
    }
    return 0;
}
