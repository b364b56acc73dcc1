/* SPDX-License-Identifier: Apache-2.0 */
/* What control planes hand over: the configuration of a filter, and of a route. What is read has
 * its rules file, bounded attributes with names, and whole places; what is not has a reason. */
#include "../fuzz.h"

#include <string.h>

#include "envoy/settings.h"

static void require_place(const struct weir_evy_place *place)
{
    REQUIRE(!place->key.data == !place->space.data);
}

static void require_whole(const struct weir_evy_settings *settings, bool route)
{
    REQUIRE(route == !settings->rules);
    REQUIRE(route || settings->rules[0] != '\0');
    REQUIRE(settings->attribute_count <= WEIR_EVY_ATTRIBUTES_MAX);
    require_place(&settings->cost_of);
    require_place(&settings->settle);
    for (unsigned i = 0; i < settings->attribute_count; i++) {
        REQUIRE(strlen(settings->attributes[i].name) > 0);
        require_place(&settings->attributes[i].of);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (unsigned route = 0; route < 2; route++) {
        char *copy = fuzz_copy(data, size);
        struct weir_evy_settings *settings;
        struct weir_reason reason;
        int err =
            weir_evy_settings_read(&settings, (struct weir_evy_text){copy, size}, route, &reason);
        free(copy);
        REQUIRE((err == 0) == (settings != NULL));
        REQUIRE((err == 0) == (reason.text[0] == '\0'));
        if (settings)
            require_whole(settings, route);
        weir_evy_settings_free(settings);
    }
    return 0;
}
