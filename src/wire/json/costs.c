/* SPDX-License-Identifier: Apache-2.0 */
/* see costs.h */
#include "wire/json/costs.h"

#include "core/bytes.h"

static bool has_name(const struct weir_json_costs *costs, struct weir_bytes name)
{
    for (uint16_t i = 0; i < costs->count; i++)
        if (weir_bytes_equal(costs->of[i].name, name))
            return true;
    return false;
}

static int cost_read(struct json_scan *scan, struct weir_json_cost *cost)
{
    (void)json_scan_peek(scan); /* past spaces */
    const char *at = scan->at;
    int err = json_scan_unsigned(scan, &cost->amount);
    cost->text = (struct weir_bytes){at, (size_t)(scan->at - at)};
    return err;
}

int weir_json_costs_read(struct json_scan *scan, struct weir_json_costs *costs)
{
    struct weir_bytes name;
    int more = json_scan_object(scan);
    costs->count = 0;
    while (more == 0) {
        more = json_scan_member(scan, costs->count, &name);
        if (more <= 0)
            break;
        if (costs->count == WEIR_JSON_COSTS_MAX)
            return json_scan_fail(scan, WEIR_ERR_TOO_LARGE, name.data - 1, "more than 8");
        if (name.size == 0 || has_name(costs, name))
            return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, name.data - 1,
                                       name.size == 0 ? "empty name" : "repeated name", name);
        costs->of[costs->count].name = name;
        more = cost_read(scan, &costs->of[costs->count]);
        costs->count++;
    }
    return more;
}
