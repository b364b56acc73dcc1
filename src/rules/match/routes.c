/* SPDX-License-Identifier: Apache-2.0 */
/* see routes.h */
#include "rules/match/routes.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/compiled.h"
#include "rules/match/evaluate.h"

struct weir_bytes weir_rules_route_text(const struct weir_rules *rules, uint32_t route)
{
    const struct rules_routes *routes = &rules->routes;
    uint32_t low = 0, high = routes->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (routes->list[middle].atom < route)
            low = middle + 1;
        else
            high = middle;
    }
    return low < routes->count && routes->list[low].atom == route ? routes->list[low].text
                                                                  : (struct weir_bytes){NULL, 0};
}

struct weir_bytes weir_rules_plan_name(const struct weir_rules *rules, uint32_t plan)
{
    if (plan >= rules->plan_count)
        return (struct weir_bytes){NULL, 0};
    return weir_bytes_of(rules->plan_names[plan]);
}

int rules_routes_add(struct rules_routes *routes, uint32_t atom, struct weir_bytes text)
{
    if (routes->count == routes->room) {
        uint32_t room = routes->room > 0 ? 2 * routes->room : 64;
        struct rules_named_route *list = realloc(routes->list, room * sizeof *list);
        if (!list)
            return WEIR_ERR_MEMORY;
        routes->list = list;
        routes->room = room;
    }
    routes->list[routes->count++] = (struct rules_named_route){atom, text};
    return 0;
}

void rules_routes_free(struct rules_routes *routes)
{
    free(routes->list);
    *routes = (struct rules_routes){0};
}

void rules_place_of(const struct rules_evaluation *evaluation, struct weir_request_place *place)
{
    uint32_t count = evaluation->path_count;
    place->route = WEIR_NO_ROUTE;
    /* The walk of the trie takes the general patterns first. */
    if (evaluation->paths_known && count > 0 && count <= RULES_PATH_ATOMS_MAX)
        place->route = evaluation->path_atoms[count - 1];
    place->plan = evaluation->caller_known ? evaluation->plan : WEIR_NO_PLAN;
}
