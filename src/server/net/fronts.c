/* SPDX-License-Identifier: Apache-2.0 */
/* see fronts.h */
#include "server/net/fronts.h"

const struct weir_listener_settings *weir_front_settings(const struct weir_front *front,
                                                         const struct weir_settings *settings)
{
    const char *start = (const char *)settings;
    return (const struct weir_listener_settings *)(const void *)(start + front->settings);
}

const char *weir_front_address(const struct weir_front *front, const struct weir_settings *settings)
{
    const char *address = weir_front_settings(front, settings)->address;
    return address ? address : front->otherwise ? front->otherwise : "off";
}
