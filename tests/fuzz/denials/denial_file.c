/* SPDX-License-Identifier: Apache-2.0 */
/* A denial file that anybody may have written: any bytes are denials within their bounds, or are
 * skipped; and what was read is written and read again as the same. */
#include "../fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/answer.h"
#include "feature/standing/standing.h"
#include "feature/use/server/denial_file.h"

static void check_denial(void *context, const struct weir_denial *denial)
{
    struct weir_denial again;
    uint64_t *found = context;
    (*found)++;
    REQUIRE(denial->limit_size <= WEIR_DENIAL_LIMIT_MAX);
    REQUIRE(denial->key.size <= WEIR_SHOWN_MAX && denial->caller.size <= WEIR_SHOWN_MAX);
    REQUIRE(denial->route_size <= WEIR_DENIAL_ROUTE_MAX);
    REQUIRE(denial->plan_size <= WEIR_DENIAL_PLAN_MAX);
    REQUIRE(denial->node_size <= WEIR_DENIAL_NODE_MAX);
    REQUIRE(denial->action > WEIR_ACTION_NONE && denial->action < WEIR_ACTIONS);
    REQUIRE(denial->standing < WEIR_STANDING_LEVELS && denial->source <= WEIR_SOURCE_CLOSED);
    json_t *json = weir_denial_json(denial);
    char *line = json_dumps(json, JSON_COMPACT);
    REQUIRE(line && strlen(line) < WEIR_DENIAL_LINE_MAX && !strchr(line, '\n'));
    REQUIRE(weir_denial_read(&again, line, strlen(line)));
    REQUIRE(again.cost == denial->cost && again.key.size == denial->key.size);
    REQUIRE(memcmp(again.key.bytes, denial->key.bytes, again.key.size) == 0);
    REQUIRE(again.caller.size == denial->caller.size);
    REQUIRE(memcmp(again.caller.bytes, denial->caller.bytes, again.caller.size) == 0);
    free(line);
    json_decref(json);
}

/* The first line as the text of a search, too. */
static void ask_for(const char *copy, size_t size, uint64_t skipped)
{
    uint64_t found = 0;
    const char *end = size > 0 ? memchr(copy, '\n', size) : NULL;
    struct weir_denial_reading search = {.found = check_denial, .context = &found};
    struct weir_bytes text = {copy, end ? (size_t)(end - copy) : 0};
    bool whole = weir_asked_read(&search.filter.key, text);
    REQUIRE(whole || search.filter.key.each_count == 0);
    weir_denial_lines_read(copy, size, &search);
    REQUIRE(search.skipped == skipped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t found = 0, of_key = 0;
    char *copy = fuzz_copy(data, size);
    struct weir_denial_reading reading = {.found = check_denial, .context = &found};
    weir_denial_lines_read(copy, size, &reading);
    struct weir_denial_reading by_key = {
        .filter = {.limit = {"search", 6}, .since_ns = 1000, .until_ns = 2000},
        .found = check_denial,
        .context = &of_key};
    REQUIRE(weir_asked_read(&by_key.filter.key, (struct weir_bytes){"ann", 3}));
    weir_denial_lines_read(copy, size, &by_key);
    REQUIRE(of_key <= found && reading.skipped == by_key.skipped);
    ask_for(copy, size, reading.skipped);
    free(copy);
    return 0;
}
