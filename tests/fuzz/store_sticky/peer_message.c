/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between nodes: the first byte chooses. A message that is taken is written again as it
 * was; an answer leaves outcomes that can be reported. */
#include "fuzz.h"

#include <string.h>

#include "feature/sticky/store/peer_message.h"

static void try_message(struct weir_bytes bytes)
{
    static struct weir_check checks[WEIR_CHECKS_MAX];
    static struct sticky_check read[WEIR_CHECKS_MAX];
    static struct weir_limit limits[WEIR_CHECKS_MAX];
    static char names[WEIR_CHECKS_MAX][STICKY_NAME_MAX + 1];
    static char out[STICKY_MESSAGE_MAX];
    unsigned char digests[WEIR_CHECKS_MAX][STICKY_DIGEST];
    struct weir_decision decision = {.checks = checks};
    bool plain = true;
    if (sticky_message_read(bytes, &decision, read) < 0)
        return;
    REQUIRE(decision.count <= WEIR_CHECKS_MAX);
    for (uint16_t i = 0; i < decision.count; i++) {
        memcpy(digests[i], read[i].digest, STICKY_DIGEST);
        memset(names[i], 0, sizeof names[i]);
        memcpy(names[i], read[i].name.data, read[i].name.size);
        limits[i] = (struct weir_limit){.spec = read[i].spec, .name = names[i]};
        checks[i].limit = &limits[i];
        /* without a state, no limit is written; a NUL ends a name */
        plain = plain && strlen(names[i]) == read[i].name.size &&
                !(checks[i].flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY));
    }
    if (!plain)
        return;
    REQUIRE(sticky_message_fits(&decision));
    size_t size =
        sticky_message_write(out, &decision, (const unsigned char(*)[STICKY_DIGEST])digests);
    REQUIRE(size == bytes.size && memcmp(out, bytes.data, size) == 0);
}

static void try_answer(struct weir_bytes bytes)
{
    struct weir_limit bucket, window;
    const struct weir_limit_spec a = {
        .algorithm = WEIR_GCRA, .rate = 3, .window_ns = UINT64_C(60000000000), .burst = 7};
    const struct weir_limit_spec b = {
        .algorithm = WEIR_SLIDING_WINDOW, .rate = 100, .window_ns = UINT64_C(60000000000)};
    REQUIRE(weir_limit_init(&bucket, &a, NULL) == 0 && weir_limit_init(&window, &b, NULL) == 0);
    struct weir_check checks[] = {{.limit = &bucket, .cost = 2},
                                  {.limit = &window, .cost = 1, .scale = 50},
                                  {.flags = WEIR_CHECK_UNLIMITED, .cost = 1}};
    struct weir_outcome outcomes[3];
    struct weir_decision decision = {.checks = checks, .outcomes = outcomes, .count = 3};
    if (sticky_answer_read(bytes, &decision) < 0) {
        REQUIRE(decision.verdict == WEIR_PENDING);
        return;
    }
    REQUIRE(decision.verdict == WEIR_ALLOWED || decision.verdict == WEIR_DENIED);
    for (uint16_t i = 0; i < 3; i++) {
        struct weir_report report;
        weir_decision_report(&decision, i, &report);
        weir_decision_report_whole(&decision, i, &report);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = fuzz_copy(data + (size > 0), size - (size > 0));
    struct weir_bytes bytes = {copy, size - (size > 0)};
    if (size > 0 && data[0] == 'm')
        try_message(bytes);
    else if (size > 0)
        try_answer(bytes);
    free(copy);
    return 0;
}
