/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of settlements: whatever is read lies within the text, and is what was asked for. */
#include "fuzz.h"

#include "wire/json/settle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_settle_json settle;
    struct weir_reason reason;
    char *copy = fuzz_copy(data, size);
    if (weir_settle_json_parse(copy, size, &settle, &reason) == 0) {
        const char *token = settle.reservation.data;
        REQUIRE(token >= copy && token + settle.reservation.size <= copy + size);
        REQUIRE(settle.status == 0 || (settle.status >= 100 && settle.status <= 599));
        REQUIRE(settle.has_cost || settle.has_costs || settle.status != 0);
        REQUIRE(!settle.has_cost || !settle.has_costs);
        REQUIRE(settle.costs.count <= WEIR_JSON_COSTS_MAX);
        for (uint16_t i = 0; i < settle.costs.count; i++) {
            const struct weir_json_cost *cost = &settle.costs.of[i];
            REQUIRE(cost->name.data >= copy && cost->name.data + cost->name.size <= copy + size);
            REQUIRE(cost->text.data >= copy && cost->text.data + cost->text.size <= copy + size);
            REQUIRE(cost->text.size > 0);
        }
    }
    free(copy);
    return 0;
}
