/* SPDX-License-Identifier: Apache-2.0 */
/* see home.h */
#include "cli/explain/home.h"

#include <stdio.h>

#include "cli/durations.h"
#include "core/bytes.h"
#include "feature/region/rules/region.h"
#include "feature/sticky/rules/sticky.h"

static void print_part(const char *what, struct rules_fraction part)
{
    if (RULES_FRACTION_MAX % part.denominator == 0)
        printf(", %s %g%%", what, 100.0 * part.numerator / part.denominator);
    else
        printf(", %s %u/%u", what, part.numerator, part.denominator);
}

/* Where a limit that regions share has the key's home, and what it is here. */
static void print_region(const struct weir_rules *rules, const struct weir_check *check)
{
    struct weir_region_info info;
    if (!weir_rules_region(rules, check->rule, check->key, &info))
        return;
    bool home = !info.equal && !info.moving && weir_bytes_equal(info.home, info.self);
    printf("\n    region %.*s", (int)info.self.size, info.self.data);
    if (!info.equal)
        printf(", home %.*s", (int)info.home.size, info.home.data);
    const char *part = home ? "home_share" : "floor";
    print_part(info.equal ? "an equal part in all regions" : part,
               home ? info.home_share : info.floor);
    printf("%s", info.moving ? ", moving: floors only" : "");
    if (!home && info.lends)
        printf(", then what %.*s lends", (int)info.home.size, info.home.data);
    if (!home && info.wait_ns > 0)
        printf(", then %.*s decides, waited for %s", (int)info.home.size, info.home.data,
               cli_duration_exact((char[CLI_DURATION_MAX]){0}, info.wait_ns));
}

/* The node of a fleet that counts this key. */
static void print_node(const struct weir_rules *rules, const struct weir_check *check)
{
    const struct weir_sticky_settings *sticky = &weir_rules_settings(rules)->sticky;
    if (sticky->by && check->tag != 0)
        printf("\n    node %s", sticky->peers[weir_rules_sticky_home(rules, check->tag)].name);
}

void cli_explain_home(const struct weir_rules *rules, const struct weir_check *check)
{
    print_region(rules, check);
    print_node(rules, check);
}
