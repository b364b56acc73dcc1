/* SPDX-License-Identifier: Apache-2.0 */
/* A response of a control plane: any bytes are a configuration or are refused with a text. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "feature/envoy/server/xds/message.h"
#include "rules/arena.h"
#include "wire/grpc/discovery.h"

static void parse(const struct weir_envoy_file *files, uint32_t count)
{
    static const struct weir_envoy_options options = {.dynamic_metadata = true};
    struct weir_envoy *envoy;
    struct weir_envoy_error error;
    int err = weir_envoy_parse(&envoy, files, count, &options, &error);
    REQUIRE(err == 0 || err == WEIR_ERR_RULES);
    REQUIRE((err < 0) == (error.text[0] != '\0') && (err < 0) == (envoy == NULL));
    weir_envoy_unref(envoy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    struct weir_bytes message = {text, size};
    struct rules_arena arena = {0};
    struct weir_envoy_file *files;
    struct weir_reason reason = {""};
    struct weir_discovery_response response;
    uint32_t count;
    int err = weir_xds_files(&files, &count, &arena, message, &reason);
    REQUIRE(err == 0 || err == WEIR_ERR_SYNTAX);
    REQUIRE((err < 0) == (reason.text[0] != '\0'));
    if (err == 0) {
        REQUIRE(weir_discovery_response_read(&response, message) == 0 && response.count == count);
        parse(files, count);
    }
    const struct weir_envoy_file whole = {"fuzz", text, size, weir_xds_tree};
    parse(&whole, 1);
    rules_arena_free(&arena);
    free(text);
    return 0;
}
