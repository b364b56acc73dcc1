/* SPDX-License-Identifier: Apache-2.0 */
/* A RateLimitConfig means what the same tree means as YAML: random trees are written both ways, and
 * everything that either says is compared. SEED=n TREES=n repeat a run, or make a longer one. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/envoy/rules/match.h"
#include "feature/envoy/rules/plan.h"
#include "feature/envoy/server/xds/message.h"
#include "rules/arena.h"
#include "wire/grpc/protobuf.h"

#define TREES 3000
#define SIZE_MAX_ 65536

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

/* --- Both texts of a tree --------------------------------------------------------------------- */

struct both {
    char yaml[SIZE_MAX_];
    size_t yaml_size;
    char message[SIZE_MAX_];
    size_t message_size;
};

static void yaml(struct both *both, const char *text)
{
    size_t size = strlen(text);
    assert_true(both->yaml_size + size < SIZE_MAX_);
    memcpy(both->yaml + both->yaml_size, text, size + 1);
    both->yaml_size += size;
}

/* A message under construction: what is put in it goes into its parent when it ends. */
struct part {
    char *data;
    size_t size;
};

static void part_bytes(struct part *part, unsigned number, const char *data, size_t size)
{
    part->data = realloc(part->data, part->size + size + 16);
    assert_non_null(part->data);
    char *end = weir_pb_put_bytes(part->data + part->size, number, (struct weir_bytes){data, size});
    part->size = (size_t)(end - part->data);
}

static void part_text(struct part *part, unsigned number, const char *text)
{
    part_bytes(part, number, text, strlen(text));
}

static void part_number(struct part *part, unsigned number, uint64_t value)
{
    part->data = realloc(part->data, part->size + 16);
    assert_non_null(part->data);
    char *end = weir_pb_put_number(part->data + part->size, number, value);
    part->size = (size_t)(end - part->data);
}

static void part_end(struct part *part, struct part *into, unsigned number)
{
    part_bytes(into, number, part->data ? part->data : "", part->size);
    free(part->data);
}

static const char *const keys[] = {"user", "path", "a_b", "", "true", "7", "ключ", "x y"};
static const char *const values[] = {"", "v", "*", "v*", "ann", "null", "0x10", "~", "é"};
static const char *const units[] = {"unknown", "second", "minute", "hour",
                                    "day",     "month",  "year",   "week"};

static void draw_limit(struct both *both, struct part *descriptor)
{
    struct part limit = {NULL, 0};
    uint32_t unit = draw(8), requests = draw(3) ? draw(100) : UINT32_MAX - draw(2);
    bool unlimited = draw(5) == 0, named = draw(3) == 0;
    char text[160];
    if (unlimited && draw(8))
        unit = 0;
    else if (!unlimited && unit == 0 && draw(8))
        unit = 1;
    snprintf(text, sizeof text, "\"rate_limit\":{\"unit\":\"%s\",\"requests_per_unit\":%u,",
             units[unit], requests);
    yaml(both, text);
    snprintf(text, sizeof text, "\"unlimited\":%s,\"name\":\"%s\"", unlimited ? "true" : "false",
             named ? "n1" : "");
    yaml(both, text);
    part_number(&limit, 1, unit);
    part_number(&limit, 2, requests);
    part_number(&limit, 3, unlimited);
    if (named)
        part_text(&limit, 4, "n1");
    if (draw(6) == 0) {
        struct part replace = {NULL, 0};
        yaml(both, ",\"replaces\":[{\"name\":\"n2\"}]");
        part_text(&replace, 1, "n2");
        part_end(&replace, &limit, 5);
    }
    yaml(both, "},");
    part_end(&limit, descriptor, 3);
}

static void draw_metadata(struct both *both, struct part *descriptor)
{
    static const struct {
        const char *yaml;
        const char *value; /* of google.protobuf.Value */
        size_t size;
    } some[] = {{"null", "\x08\x00", 2},
                {"-1.5", "\x11\x00\x00\x00\x00\x00\x00\xf8\xbf", 9},
                {"\"text\"", "\x1a\x04text", 6},
                {"true", "\x20\x01", 2},
                {"[true,\"a\"]",
                 "\x32\x09\x0a\x02\x20\x01\x0a\x03\x1a\x01"
                 "a",
                 11},
                {"{\"k\":\"v\"}", "\x2a\x0a\x0a\x08\x0a\x01k\x12\x03\x1a\x01v", 12}};
    struct part map = {NULL, 0}, entry = {NULL, 0};
    uint32_t which = draw(sizeof some / sizeof *some);
    yaml(both, "\"metadata\":{\"m\":");
    yaml(both, some[which].yaml);
    yaml(both, "},");
    part_text(&entry, 1, "m");
    part_bytes(&entry, 2, some[which].value, some[which].size);
    part_end(&entry, &map, 1);
    part_end(&map, descriptor, 8);
}

static void draw_descriptors(struct both *both, struct part *parent, unsigned number,
                             unsigned depth)
{
    uint32_t count = draw(depth == 0 ? 5 : 3);
    yaml(both, "\"descriptors\":[");
    for (uint32_t i = 0; i < count; i++) {
        struct part one = {NULL, 0};
        const char *key = keys[draw(draw(8) ? 3 : 8)], *value = values[draw(9)];
        static const char *const flags[] = {"shadow_mode", "detailed_metric", "quota_mode"};
        yaml(both, i ? ",{\"key\":\"" : "{\"key\":\"");
        yaml(both, key);
        yaml(both, "\",\"value\":\"");
        yaml(both, value);
        yaml(both, "\",");
        part_text(&one, 1, key);
        part_text(&one, 2, value);
        if (draw(4))
            draw_limit(both, &one);
        for (unsigned j = 0; j < 3; j++) {
            if (draw(4))
                continue;
            yaml(both, "\"");
            yaml(both, flags[j]);
            yaml(both, "\":true,");
            part_number(&one, 5 + j, 1);
        }
        if (draw(5) == 0)
            draw_metadata(both, &one);
        if (depth < 3 && draw(2))
            draw_descriptors(both, &one, 4, depth + 1);
        else
            yaml(both, "\"descriptors\":[]");
        yaml(both, "}");
        part_end(&one, parent, number);
    }
    yaml(both, "]");
}

static void draw_both(struct both *both)
{
    struct part config = {NULL, 0};
    const char *domain = draw(20) ? "shop" : "";
    both->yaml_size = 0;
    yaml(both, "{\"domain\":\"");
    yaml(both, domain);
    yaml(both, "\",");
    part_text(&config, 1, "name");
    part_text(&config, 2, domain);
    draw_descriptors(both, &config, 3, 0);
    yaml(both, "}");
    assert_true(config.size <= SIZE_MAX_);
    memcpy(both->message, config.data, config.size);
    both->message_size = config.size;
    free(config.data);
}

/* --- What both mean --------------------------------------------------------------------------- */

static const struct weir_limit *no_override(void *context, uint32_t requests, uint32_t seconds,
                                            struct weir_reason *reason)
{
    (void)context;
    (void)requests;
    (void)seconds;
    (void)reason;
    return NULL;
}

/* A text of what is decided for a request: keys and limits of its checks. */
static void plan_text(const struct weir_envoy *envoy, const struct weir_envoy_request *request,
                      char *out, size_t size)
{
    static const uint64_t secret[2] = {1, 2};
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_envoy_plan plan;
    struct weir_reason reason = {""};
    size_t used = 0;
    char *memory = malloc(weir_envoy_plan_size(envoy, request));
    assert_non_null(memory);
    memset(out, 0, size);
    assert_int_equal(
        weir_envoy_plan_make(&plan, envoy, request, memory, no_override, NULL, &reason), 0);
    for (;;) {
        struct weir_decision decision = {.checks = checks, .outcomes = outcomes};
        long first = weir_envoy_plan_fill(&plan, &decision, secret, 0);
        if (first < 0)
            break;
        for (uint16_t i = 0; i < decision.count; i++) {
            int more =
                snprintf(out + used, size - used, "%016llx %llu %llu/%llu;",
                         (unsigned long long)checks[i].hash[0], (unsigned long long)checks[i].cost,
                         (unsigned long long)checks[i].limit->capacity,
                         (unsigned long long)checks[i].limit->segment_ns);
            used += more > 0 && used + (size_t)more < size ? (size_t)more : 0;
            outcomes[i] = (struct weir_outcome){.verdict = WEIR_ALLOWED};
        }
        weir_envoy_plan_take(&plan, first, &decision);
    }
    free(memory);
}

static void compare_requests(const struct weir_envoy *a, const struct weir_envoy *b)
{
    for (unsigned round = 0; round < 8; round++) {
        struct weir_envoy_entry entries[3];
        char first[4096], second[4096];
        uint32_t count = 1 + draw(3);
        for (uint32_t i = 0; i < count; i++) {
            const char *key = keys[draw(3)], *value = values[draw(9)];
            entries[i] = (struct weir_envoy_entry){{key, strlen(key)}, {value, strlen(value)}};
        }
        struct weir_envoy_descriptor descriptor = {.entries = entries, .entry_count = count};
        const struct weir_envoy_request request = {
            .domain = {"shop", 4}, .descriptors = &descriptor, .descriptor_count = 1};
        plan_text(a, &request, first, sizeof first);
        plan_text(b, &request, second, sizeof second);
        assert_string_equal(first, second);
    }
}

TEST("random trees mean the same as messages and as YAML")
{
    const struct weir_envoy_options options = {.dynamic_metadata = true};
    static struct both both;
    const char *seed = getenv("SEED"), *trees = getenv("TREES");
    unsigned long wanted = trees ? strtoul(trees, NULL, 10) : TREES, good = 0, bad = 0;
    random_state = seed ? strtoull(seed, NULL, 10) : 1;
    for (unsigned long i = 0; i < wanted; i++) {
        static char dumps[2][SIZE_MAX_];
        struct weir_envoy *from_yaml, *from_message;
        struct weir_envoy_error errors[2];
        draw_both(&both);
        const struct weir_envoy_file file = {"name", both.yaml, both.yaml_size, NULL};
        const struct weir_envoy_file message = {"name", both.message, both.message_size,
                                                weir_xds_tree};
        int err = weir_envoy_parse(&from_yaml, &file, 1, &options, &errors[0]);
        assert_int_equal(weir_envoy_parse(&from_message, &message, 1, &options, &errors[1]), err);
        if (err < 0) {
            bad++;
            if (strcasecmp(errors[0].text, errors[1].text) != 0)
                fail_msg("%s\n%s\n%s", both.yaml, errors[0].text, errors[1].text);
            continue;
        }
        good++;
        weir_envoy_dump(from_yaml, dumps[0], sizeof dumps[0]);
        weir_envoy_dump(from_message, dumps[1], sizeof dumps[1]);
        assert_string_equal(dumps[0], dumps[1]);
        compare_requests(from_yaml, from_message);
        weir_envoy_unref(from_yaml);
        weir_envoy_unref(from_message);
    }
    assert_true(good > wanted / 10 && bad > wanted / 10);
}

/* --- Bad bytes -------------------------------------------------------------------------------- */

TEST("messages too deep in each other are refused")
{
    static char nested[200000];
    size_t size = 0;
    char out[200000];
    for (unsigned i = 0; i < 5000; i++) {
        struct weir_bytes inside = {nested, size};
        size_t more = (size_t)(weir_pb_put_bytes(out, i == 4999 ? 3 : 4, inside) - out);
        memcpy(nested, out, more);
        size = more;
    }
    struct weir_envoy *envoy;
    struct weir_envoy_error error;
    const struct weir_envoy_options options = {0};
    const struct weir_envoy_file file = {"deep", nested, size, weir_xds_tree};
    assert_int_equal(weir_envoy_parse(&envoy, &file, 1, &options, &error), WEIR_ERR_RULES);
    assert_non_null(strstr(error.text, "nested too deep"));
}

TEST("a response names what is wrong with its resources")
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *reason; /* NULL: none is wrong */
        uint32_t count;
    } cases[] = {
        {"", 0, NULL, 0},
        {"\xff", 1, "a DiscoveryResponse is malformed", 0},
        {"\x12\x03\x0a\x01x", 5, "a resource of type 'x'", 1},
        {"\x12\x00", 2, "a resource of type ''", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rules_arena arena = {0};
        struct weir_envoy_file *files;
        struct weir_reason reason = {""};
        uint32_t count;
        int err = weir_xds_files(&files, &count, &arena,
                                 (struct weir_bytes){cases[i].bytes, cases[i].size}, &reason);
        assert_int_equal(err, cases[i].reason ? WEIR_ERR_SYNTAX : 0);
        assert_string_equal(reason.text, cases[i].reason ? cases[i].reason : "");
        assert_int_equal(count, cases[i].count);
        rules_arena_free(&arena);
    }
}

RUN_TESTS()
