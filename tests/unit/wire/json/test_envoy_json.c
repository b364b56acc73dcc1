/* SPDX-License-Identifier: Apache-2.0 */
/* ShouldRateLimit as JSON: what is read, what is refused, what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test.h"
#include "wire/json/envoy_json.h"

struct read {
    struct weir_envoy_request request;
    struct weir_reason reason;
    char *text;
    void *room;
    int err;
};

static struct read read_text(const char *text)
{
    struct read read = {.text = strdup(text)};
    size_t size = strlen(text);
    read.room = malloc(weir_envoy_json_room(text, size) + 1);
    assert_non_null(read.room);
    read.err = weir_envoy_json_read(&read.request, read.text, size, read.room, &read.reason);
    return read;
}

static void read_free(struct read *read)
{
    free(read->text);
    free(read->room);
}

static void assert_bytes(struct weir_bytes bytes, const char *expected)
{
    assert_int_equal(bytes.size, strlen(expected));
    assert_memory_equal(bytes.data, expected, bytes.size);
}

TEST("every field is read")
{
    struct read read = read_text(
        " {\"domain\" : \"d\\u00e4\", \"descriptors\": [ {\"entries\": [ {\"key\":\"k\", "
        "\"value\":\"v{\"}, {\"value\":\"x\"} ], \"limit\": {\"requestsPerUnit\":\"5\",\"unit\":"
        "\"HOUR\"}, \"hitsAddend\":\"18446744073709551615\", \"isNegativeHits\": true}, {} ],"
        "\"hitsAddend\": 7} ");
    assert_int_equal(read.err, 0);
    const struct weir_envoy_request *request = &read.request;
    assert_bytes(request->domain, "d\xc3\xa4");
    assert_int_equal(request->hits_addend, 7);
    assert_int_equal(request->descriptor_count, 2);
    const struct weir_envoy_descriptor *of = &request->descriptors[0];
    assert_int_equal(of->entry_count, 2);
    assert_bytes(of->entries[0].key, "k");
    assert_bytes(of->entries[0].value, "v{");
    assert_bytes(of->entries[1].key, "");
    assert_bytes(of->entries[1].value, "x");
    assert_true(of->has_limit && of->has_hits_addend && of->is_negative_hits);
    assert_int_equal(of->requests_per_unit, 5);
    assert_int_equal(of->unit, WEIR_ENVOY_HOUR);
    assert_true(of->hits_addend == UINT64_MAX);
    assert_int_equal(request->descriptors[1].entry_count, 0);
    assert_false(request->descriptors[1].has_limit);
    read_free(&read);
}

TEST("names of the proto and null are taken")
{
    struct read read = read_text(
        "{\"domain\":null,\"descriptors\":[{\"entries\":null,\"limit\":{\"requests_per_unit\":3,"
        "\"unit\":4},\"hits_addend\":0,\"is_negative_hits\":false},{\"limit\":null,"
        "\"hitsAddend\":null}],\"hits_addend\":\"2\"}");
    assert_int_equal(read.err, 0);
    assert_bytes(read.request.domain, "");
    assert_int_equal(read.request.hits_addend, 2);
    assert_int_equal(read.request.descriptors[0].requests_per_unit, 3);
    assert_int_equal(read.request.descriptors[0].unit, WEIR_ENVOY_DAY);
    assert_true(read.request.descriptors[0].has_hits_addend);
    assert_false(read.request.descriptors[1].has_limit);
    assert_false(read.request.descriptors[1].has_hits_addend);
    read_free(&read);
}

/* As the original, by Go's protojson: each was sent to it. */
TEST("whole numbers are taken in every spelling")
{
    static const struct {
        const char *text;
        uint64_t value;
    } numbers[] = {
        {"2", 2},
        {"2.0", 2},
        {"1e0", 1},
        {"1E+0", 1},
        {"1e-0", 1},
        {"1e00", 1},
        {"20e-1", 2},
        {"10e-1", 1},
        {"0.2e1", 2},
        {"-0", 0},
        {"-0.0", 0},
        {"0.0", 0},
        {"0e999999999999", 0},
        {"\"2.0\"", 2},
        {"\"1.0e0\"", 1},
        {"\"\\u0032\"", 2},
        {"1e19", UINT64_C(10000000000000000000)},
        {"1.8446744073709551615e19", UINT64_MAX},
        {"184467440737095516150e-1", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "{\"descriptors\":[{\"hitsAddend\":%s}]}", numbers[i].text);
        struct read read = read_text(text);
        assert_int_equal(read.err, 0);
        assert_true(read.request.descriptors[0].hits_addend == numbers[i].value);
        read_free(&read);
    }
    struct read read = read_text("{\"hitsAddend\":4.294967295e9,\"descriptors\":[{\"limit\":"
                                 "{\"requestsPerUnit\":\"1e1\",\"unit\":30e-1}}]}");
    assert_int_equal(read.err, 0);
    assert_int_equal(read.request.hits_addend, UINT32_MAX);
    assert_int_equal(read.request.descriptors[0].requests_per_unit, 10);
    assert_int_equal(read.request.descriptors[0].unit, WEIR_ENVOY_HOUR);
    read_free(&read);
}

TEST("what is no request is refused")
{
    static const char *const texts[] = {
        "",
        "}",
        "[]",
        "null",
        "{",
        "{}x",
        "{\"domain\":1}",
        "{\"domain\":\"a\",\"domain\":\"b\"}",
        "{\"hitsAddend\":1,\"hits_addend\":1}",
        "{\"other\":1}",
        "{\"descriptors\":{}}",
        "{\"descriptors\":[1]}",
        "{\"descriptors\":[null]}",
        "{\"descriptors\":[{}",
        "{\"descriptors\":[{} {}]}",
        "{\"descriptors\":[{},]}",
        "{\"descriptors\":[{\"entries\":[{\"key\":\"a\",\"key\":\"b\"}]}]}",
        "{\"descriptors\":[{\"limit\":{\"unit\":\"WEEK\"}}]}",
        "{\"descriptors\":[{\"limit\":{\"unit\":-1}}]}",
        "{\"descriptors\":[{\"limit\":{\"requestsPerUnit\":4294967296}}]}",
        "{\"hitsAddend\":-1}",
        "{\"hitsAddend\":1.5}",
        "{\"hitsAddend\":\"1}",
        "{\"hitsAddend\":\"1 \"}",
        "{\"hitsAddend\":4294967296}",
        "{\"hitsAddend\":\" 1\"}",
        "{\"hitsAddend\":\"\"}",
        "{\"hitsAddend\":\"0x1\"}",
        "{\"hitsAddend\":01}",
        "{\"hitsAddend\":1.}",
        "{\"hitsAddend\":.5}",
        "{\"hitsAddend\":1e}",
        "{\"hitsAddend\":+1}",
        "{\"hitsAddend\":--1}",
        "{\"hitsAddend\":-1.0}",
        "{\"hitsAddend\":15e-1}",
        "{\"descriptors\":[{\"hitsAddend\":1e20}]}",
        "{\"descriptors\":[{\"hitsAddend\":1e400}]}",
        "{\"descriptors\":[{\"hitsAddend\":1e1000000000000000000000}]}",
        "{\"descriptors\":[{\"hitsAddend\":18446744073709551616}]}",
        "{\"descriptors\":[{\"hitsAddend\":18446744073709551615.5}]}",
        "{\"descriptors\":[{\"hitsAddend\":184467440737095516155e-1}]}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct read read = read_text(texts[i]);
        assert_true(read.err < 0);
        assert_true(read.reason.text[0] != '\0');
        read_free(&read);
    }
    struct read read = read_text("{\"descriptors\":[{\"limit\":{\"unit\":\"FORTNIGHT\"}}]}");
    assert_string_equal(read.reason.text, "unit: unknown unit of time, at byte 33");
    read_free(&read);
}

TEST("a response is written as protobuf would")
{
    char text[2048], shorter[16];
    const struct weir_envoy_status statuses[] = {
        {.code = WEIR_ENVOY_OK,
         .has_limit = true,
         .unit = WEIR_ENVOY_MINUTE,
         .requests_per_unit = 20,
         .limit_remaining = 19,
         .duration_until_reset_s = 26},
        {.code = WEIR_ENVOY_OVER_LIMIT,
         .has_limit = true,
         .unit = WEIR_ENVOY_WEEK,
         .name = {"n\"", 2},
         .duration_until_reset_s = 1},
        {.code = WEIR_ENVOY_OK},
        {.code = WEIR_ENVOY_OK, .limit_remaining = UINT32_MAX},
    };
    struct weir_envoy_response response = {.overall_code = WEIR_ENVOY_OVER_LIMIT,
                                           .statuses = statuses,
                                           .status_count = 4,
                                           .header_count = 1,
                                           .headers = {{{"A", 1}, {"10", 2}}}};
    size_t size = weir_envoy_json_write(&response, text, sizeof(text) - 1);
    text[size] = '\0';
    assert_string_equal(
        text, "{\"overallCode\":\"OVER_LIMIT\",\"statuses\":[{\"code\":\"OK\",\"currentLimit\":{"
              "\"requestsPerUnit\":20,\"unit\":\"MINUTE\"},\"limitRemaining\":19,"
              "\"durationUntilReset\":\"26s\"},{\"code\":\"OVER_LIMIT\",\"currentLimit\":{\"name\":"
              "\"n\\\"\",\"unit\":\"WEEK\"},\"durationUntilReset\":\"1s\"},{\"code\":\"OK\"},"
              "{\"code\":\"OK\",\"limitRemaining\":4294967295}],\"responseHeadersToAdd\":[{\"key\":"
              "\"A\",\"value\":\"10\"}]}");
    assert_int_equal(weir_envoy_json_write(&response, shorter, sizeof(shorter)), size);
    assert_memory_equal(shorter, text, sizeof(shorter));
    response.request_header = (struct weir_envoy_header){{"B", 1}, {"x", 1}};
    size_t more = weir_envoy_json_write(&response, text, sizeof(text) - 1);
    text[more] = '\0';
    assert_string_equal(text + size - 1,
                        ",\"requestHeadersToAdd\":[{\"key\":\"B\",\"value\":\"x\"}]}");
    response.request_header = (struct weir_envoy_header){{NULL, 0}, {NULL, 0}};
    assert_int_equal(weir_envoy_json_write(&response, NULL, 0), size);
}

TEST("metadata is written to any depth")
{
    char text[2048], longer[600];
    memset(longer, 'x', sizeof(longer));
    memcpy(longer + 126, "\xc3\xa4", 2);
    const struct weir_envoy_value items[] = {
        {.kind = WEIR_ENVOY_NULL},
        {.kind = WEIR_ENVOY_BOOL, .boolean = true},
        {.kind = WEIR_ENVOY_NUMBER, .number = -1.5},
        {.kind = WEIR_ENVOY_NUMBER, .number = 1.0 / 0.0},
        {.kind = WEIR_ENVOY_LIST},
        {.kind = WEIR_ENVOY_STRUCT},
        {.kind = WEIR_ENVOY_STRING, .text = {longer, 300}},
    };
    const struct weir_bytes names[] = {{"l", 1}, {"b\n", 2}};
    const struct weir_envoy_value fields[] = {
        {.kind = WEIR_ENVOY_LIST, .count = 7, .items = items},
        {.kind = WEIR_ENVOY_NUMBER, .number = 4294967295.0},
    };
    const struct weir_envoy_value root = {
        .kind = WEIR_ENVOY_STRUCT, .count = 2, .names = names, .items = fields};
    const struct weir_envoy_response response = {.overall_code = WEIR_ENVOY_OK,
                                                 .dynamic_metadata = &root};
    size_t size = weir_envoy_json_write(&response, text, sizeof(text) - 1);
    text[size] = '\0';
    char expected[2048];
    snprintf(expected, sizeof(expected),
             "{\"overallCode\":\"OK\",\"dynamicMetadata\":{\"l\":[null,true,-1.5,\"Infinity\",[],"
             "{},\"%.300s\"],\"b\\n\":4294967295}}",
             longer);
    assert_string_equal(text, expected);

    /* As deep as a value can be. */
    struct weir_envoy_value deep[WEIR_ENVOY_DEPTH_MAX];
    memset(deep, 0, sizeof(deep));
    for (int i = 0; i < WEIR_ENVOY_DEPTH_MAX; i++) {
        deep[i].kind = WEIR_ENVOY_LIST;
        deep[i].count = i + 1 < WEIR_ENVOY_DEPTH_MAX;
        deep[i].items = &deep[i + 1];
    }
    const struct weir_envoy_response deepest = {.overall_code = WEIR_ENVOY_OK,
                                                .dynamic_metadata = deep};
    size = weir_envoy_json_write(&deepest, text, sizeof(text));
    assert_int_equal(size, strlen("{\"overallCode\":\"OK\",\"dynamicMetadata\":}") +
                               (size_t)2 * WEIR_ENVOY_DEPTH_MAX);
}

RUN_TESTS()
