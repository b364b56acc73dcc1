/* SPDX-License-Identifier: Apache-2.0 */
/* see home.h */
#include "server/explain/home.h"

#include "core/bytes.h"
#include "feature/region/rules/region.h"
#include "feature/sticky/rules/sticky.h"
#include "server/text/durations.h"

static void print_part(FILE *out, const char *what, struct rules_fraction part)
{
    if (RULES_FRACTION_MAX % part.denominator == 0)
        fprintf(out, ", %s %g%%", what, 100.0 * part.numerator / part.denominator);
    else
        fprintf(out, ", %s %u/%u", what, part.numerator, part.denominator);
}

/* Where a limit that regions share has the key's home, and what it is here. */
static void print_region(FILE *out, const struct weir_rules *rules, const struct weir_check *check)
{
    struct weir_region_info info;
    if (!weir_rules_region(rules, check->rule, check->key, &info))
        return;
    bool home = !info.equal && !info.moving && weir_bytes_equal(info.home, info.self);
    fprintf(out, "\n    region %.*s", (int)info.self.size, info.self.data);
    if (!info.equal)
        fprintf(out, ", home %.*s", (int)info.home.size, info.home.data);
    const char *part = home ? "home_share" : "floor";
    print_part(out, info.equal ? "an equal part in all regions" : part,
               home ? info.home_share : info.floor);
    fprintf(out, "%s", info.moving ? ", moving: floors only" : "");
    if (!home && info.lends)
        fprintf(out, ", then what %.*s lends", (int)info.home.size, info.home.data);
    if (!home && info.wait_ns > 0)
        fprintf(out, ", then %.*s decides, waited for %s", (int)info.home.size, info.home.data,
                weir_duration_exact((char[WEIR_DURATION_MAX]){0}, info.wait_ns));
}

/* The node of a fleet that counts this key. */
static void print_node(FILE *out, const struct weir_rules *rules, const struct weir_check *check)
{
    const struct weir_sticky_settings *sticky = &weir_rules_settings(rules)->sticky;
    if (sticky->by && check->tag != 0)
        fprintf(out, "\n    node %s",
                sticky->peers[weir_rules_sticky_home(rules, check->tag)].name);
}

void weir_explain_home(FILE *out, const struct weir_rules *rules, const struct weir_check *check)
{
    print_region(out, rules, check);
    print_node(out, rules, check);
}
