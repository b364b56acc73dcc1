/* SPDX-License-Identifier: Apache-2.0 */
/* Header fields of answers, "Name: value" lines: whatever they say, what is read lies within its
 * bounds, and a host that learns it stays valid and never waits beyond the horizon. */
#include "fuzz.h"

#include <string.h>

#include "client/host.h"
#include "client/instant.h"

#define NOW_NS (UINT64_C(1000000) * 1000000000)

static void check_advice(const struct weir_advice *advice)
{
    REQUIRE(advice->count <= WEIR_ADVICE_MAX);
    REQUIRE(!advice->has_retry_after || advice->retry_after_ns <= WEIR_INSTANT_HORIZON_NS);
    for (uint32_t i = 0; i < advice->count; i++) {
        const struct weir_advice_policy *stated = &advice->policies[i];
        REQUIRE(memchr(stated->name, '\0', sizeof stated->name) != NULL);
        REQUIRE(stated->limit <= WEIR_ADVICE_UNITS_MAX || stated->limit == WEIR_ADVICE_UNKNOWN);
        REQUIRE(stated->remaining <= WEIR_ADVICE_UNITS_MAX ||
                stated->remaining == WEIR_ADVICE_UNKNOWN);
        REQUIRE(stated->window_ns <= WEIR_INSTANT_HORIZON_NS ||
                stated->window_ns == WEIR_ADVICE_UNKNOWN);
        REQUIRE(stated->reset_ns <= WEIR_INSTANT_HORIZON_NS ||
                stated->reset_ns == WEIR_ADVICE_UNKNOWN);
        REQUIRE(!stated->ignored);
        REQUIRE(!stated->tokens ||
                (stated->remaining == 0 && stated->reset_ns != WEIR_ADVICE_UNKNOWN));
        REQUIRE(stated->limit != WEIR_ADVICE_UNKNOWN || stated->remaining != WEIR_ADVICE_UNKNOWN);
    }
}

static void learn(const struct weir_advice *advice)
{
    static const struct weir_backoff_spec backoff = {WEIR_CLIENT_JITTER_FULL, 100000000,
                                                     20000000000, 2};
    struct weir_host host = {.used_ns = NOW_NS};
    struct weir_client_limit limit;
    uint64_t seed = 1, now_ns = NOW_NS;

    static const int statuses[] = {200, 200, 403, 200, 529, 404, 429};

    for (int i = 0; i < 40; i++) {
        uint64_t number = weir_host_send(&host, now_ns);
        struct weir_host_result result = {statuses[i % 7], number, now_ns, now_ns + 20000000,
                                          advice};
        now_ns += 20000000;
        weir_host_learn(&host, &result, &backoff, &seed);
        uint64_t when = weir_host_when(&host, UINT64_MAX, UINT64_MAX, now_ns);
        REQUIRE(when <= now_ns + 2 * WEIR_INSTANT_HORIZON_NS);
        REQUIRE(host.pace_count <= WEIR_ADVICE_MAX);
        for (uint32_t j = 0; j < host.pace_count; j++)
            REQUIRE(weir_pace_valid(&host.paces[j], now_ns));
        REQUIRE(weir_learned_valid(&host.learned, now_ns));
        REQUIRE(weir_window_valid(&host.window, now_ns));
        (void)weir_host_known(&host, now_ns, &limit);
        now_ns = when > now_ns && i % 3 > 0 ? when : now_ns;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_advice advice;
    char *copy = fuzz_copy(data, size), *at = copy, *end = copy + size;

    weir_advice_begin(&advice);
    while (at < end) {
        char *line = memchr(at, '\n', (size_t)(end - at));
        size_t length = line ? (size_t)(line - at) : (size_t)(end - at);
        char *colon = memchr(at, ':', length);
        size_t name = colon ? (size_t)(colon - at) : length;
        /* Blocks of exactly their sizes, so that a read beyond them is found. */
        char *value = fuzz_copy((const uint8_t *)at + name + (colon != NULL),
                                length - name - (colon != NULL));
        weir_advice_field(&advice, (struct weir_bytes){at, name},
                          (struct weir_bytes){value, length - name - (colon != NULL)});
        free(value);
        at += length + (line != NULL);
    }
    weir_advice_finish(&advice, 1800000000);
    check_advice(&advice);
    learn(&advice);
    free(copy);
    return 0;
}
