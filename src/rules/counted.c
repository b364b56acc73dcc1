/* SPDX-License-Identifier: Apache-2.0 */
/* see counted.h */
#include "rules/counted.h"

#include "core/text/nat64.h"
#include "rules/compiled.h"

const struct weir_address *weir_rules_counted_by(const struct weir_rules *rules,
                                                 const struct weir_address *client,
                                                 struct weir_address *inside)
{
    const struct weir_settings *settings = &rules->settings;
    if (client->family != 6 || settings->nat64_count == 0)
        return client;
    weir_nat64_inside(settings->nat64, settings->nat64_count, client, inside);
    return inside;
}
