/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a query: what is found lies in the target, the last one not before the first, only
 * what is found can differ, and decoding never grows. An input is a name, a newline and a target.
 */
#include "fuzz.h"

#include <string.h>

#include "rules/match/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size), room[WEIR_QUERY_VALUE_MAX];
    const char *end = memchr(text, '\n', size);
    struct weir_bytes name = {text, end ? (size_t)(end - text) : 0}, value, decoded;
    struct weir_bytes target = {end ? end + 1 : text, size - name.size - (end != NULL)};
    struct weir_bytes last;
    bool found = weir_query_find(target, name, &value);
    REQUIRE(weir_query_find_last(target, name, &last) == found);
    REQUIRE(found ? last.data >= value.data : !weir_query_differs(target, name));
    if (found) {
        REQUIRE(value.data >= target.data && value.data + value.size <= target.data + target.size);
        long used = weir_query_decode(value, &decoded, room, sizeof room);
        REQUIRE(used >= -1 && used <= (long)sizeof room);
        REQUIRE(used < 0 || decoded.size <= value.size);
        REQUIRE(used <= 0 || decoded.data == room);
        REQUIRE(value.size > WEIR_QUERY_VALUE_MAX || used >= 0);
    }
    free(text);
    return 0;
}
