/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis front end, whole: any bytes get the same replies however they come, no decision is lost
 * or kept, and the table stays sound. Time stands still. */
#include "fuzz.h"

#include <string.h>

#include "redis_harness.h"
#include "table/table.h"

#define BYTEWISE_MAX 512     /* beyond it, byte by byte would slow the fuzzer down */
#define INPUT_MAX (64 << 10) /* what the harness takes at once is four times that */

static const char rules[] = "version: 1\n"
                            "server: { redis: { address: 127.0.0.1:6380 } }\n"
                            "limits:\n"
                            "  - { name: all, key: [client.ip], rate: 3/min, algorithm: gcra }\n"
                            "  - { name: log, match: { path: /log }, key: [user],\n"
                            "      rate: 5/min, algorithm: sliding_log }\n"
                            "  - { name: seats, match: { path: /seat }, key: [header.room],\n"
                            "      limit: 2, life: 30s, algorithm: concurrency }\n";

/* All replies to bytes that come `first` at once and then `step` at a time. */
static char *replies(const uint8_t *data, size_t size, size_t first, size_t step)
{
    struct redis_harness *harness = redis_harness_open(rules, 8);
    char *text = NULL;
    size_t text_size = 0;
    FILE *out = open_memstream(&text, &text_size);

    REQUIRE(out != NULL);
    for (size_t at = 0, more = first; at < size && !harness->closed; at += more, more = step) {
        more = size - at < more ? size - at : more;
        redis_harness_send(harness, (const char *)data + at, more);
        fwrite(harness->raw, 1, harness->raw_size, out);
    }
    REQUIRE(harness->state.taken == 0);
    REQUIRE(weir_table_validate(harness->worker->table, NULL) == 0);
    REQUIRE(fclose(out) == 0);
    redis_harness_close(harness);
    return text;
}

static void require_same(const uint8_t *data, size_t size, size_t first, size_t step)
{
    char *whole = replies(data, size, size, size), *parts = replies(data, size, first, step);

    REQUIRE(strcmp(whole, parts) == 0);
    free(whole);
    free(parts);
}

void weir_fuzz_split(const uint8_t *data, size_t size, size_t at)
{
    if (size <= INPUT_MAX && size > 0)
        require_same(data, size, at > 0 ? at : 1, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX)
        return 0;
    if (size <= BYTEWISE_MAX)
        require_same(data, size, 1, 1);
    else
        require_same(data, size, size / 2, size);
    return 0;
}
