/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's configuration: any bytes load or are refused with a text; what loads can be asked for
 * every descriptor that the file's own words make, within the memory that was counted. */
#include "fuzz.h"

#include <string.h>

#include "feature/envoy/rules/envoy.h"
#include "feature/envoy/rules/plan.h"
#include "feature/envoy/rules/respond.h"

static const uint64_t secret[2] = {1, 2};

static const struct weir_limit *override_of(void *context, uint32_t requests, uint32_t seconds,
                                            struct weir_reason *reason)
{
    struct weir_limit *limit = context;
    const struct weir_limit_spec spec = {.rate = requests,
                                         .window_ns = seconds * UINT64_C(1000000000)};
    REQUIRE(weir_limit_init(limit, &spec, reason) == 0);
    return limit;
}

static void decide(struct weir_decision *decision)
{
    decision->now_ns = UINT64_C(1700000000) * 1000000000;
    for (uint16_t i = 0; i < decision->count; i++) {
        decision->outcomes[i] =
            (struct weir_outcome){.verdict = i % 2 ? WEIR_DENIED : WEIR_ALLOWED};
    }
}

static void ask(struct weir_envoy *envoy, const struct weir_envoy_request *request)
{
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_envoy_plan plan;
    struct weir_envoy_response response;
    struct weir_reason reason = {""};
    struct weir_limit limit;
    bool shadowed;
    if (weir_envoy_request_check(request, &reason) < 0) {
        REQUIRE(reason.text[0] != '\0');
        return;
    }
    size_t size = weir_envoy_plan_size(envoy, request);
    char *memory = malloc(size);
    REQUIRE(memory != NULL);
    if (weir_envoy_plan_make(&plan, envoy, request, memory, override_of, &limit, &reason) == 0) {
        long first;
        for (;;) {
            struct weir_decision decision = {.checks = checks, .outcomes = outcomes};
            first = weir_envoy_plan_fill(&plan, &decision, secret, 0);
            if (first < 0)
                break;
            decide(&decision);
            weir_envoy_plan_take(&plan, first, &decision);
        }
        REQUIRE(weir_envoy_respond(&plan, &response, &shadowed) == 0);
        REQUIRE(response.status_count == request->descriptor_count);
        for (uint32_t i = 0; i < response.status_count; i++) {
            struct weir_envoy_tally tally;
            weir_envoy_tally(&plan, i, &tally);
            REQUIRE(tally.over_limit <= tally.total_hits);
        }
        REQUIRE(plan.memory <= memory + size);
    }
    free(memory);
}

/* The words of the text, as keys and values of entries; the first is the domain. */
#define WORDS_MAX 48
static void ask_words(struct weir_envoy *envoy, const char *text, size_t size)
{
    struct weir_envoy_entry entries[WORDS_MAX];
    struct weir_envoy_descriptor descriptors[WORDS_MAX / 2] = {{0}};
    struct weir_bytes words[WORDS_MAX];
    uint32_t count = 0;
    for (size_t at = 0; at < size && count < WORDS_MAX;) {
        size_t end = at;
        while (end < size && strchr(" \t\r\n:{}[],'\"-&*", text[end]) == NULL)
            end++;
        if (end > at)
            words[count++] = (struct weir_bytes){text + at, end - at};
        at = end + 1;
    }
    if (count < 4)
        return;
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct weir_envoy_entry){words[i], words[(i + 2) % count]};
    for (uint32_t i = 0; i < count / 2; i++) {
        descriptors[i] = (struct weir_envoy_descriptor){
            .entries = entries + i,
            .entry_count = i % 3 + 1 <= count - i ? i % 3 + 1 : 1,
            .has_limit = i % 7 == 6,
            .unit = i % 8,
            .is_negative_hits = i % 5 == 4,
        };
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_envoy_request request = {
            .domain = words[i], .descriptors = descriptors, .descriptor_count = count / 2};
        ask(envoy, &request);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_envoy *envoy;
    struct weir_envoy_error error;
    char *text = fuzz_copy(data, size);
    const struct weir_envoy_file file = {"fuzz.yaml", text, size, NULL};
    const struct weir_envoy_options options = {.dynamic_metadata = true,
                                               .headers = true,
                                               .nodes = 3,
                                               .redis_compat = size % 2 == 1,
                                               .redis_prefix = "p:"};
    int err = weir_envoy_parse(&envoy, &file, 1, &options, &error);
    REQUIRE(err == 0 || err == WEIR_ERR_RULES);
    REQUIRE((err < 0) == (error.text[0] != '\0'));
    REQUIRE((err < 0) == (envoy == NULL));
    if (envoy != NULL) {
        char dump[256];
        weir_envoy_dump(envoy, dump, sizeof(dump));
        ask_words(envoy, text, size);
        weir_envoy_unref(envoy);
    }
    free(text);
    return 0;
}
