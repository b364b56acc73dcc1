/* SPDX-License-Identifier: Apache-2.0 */
/* see unknown_names.h */
#include "rules/unknown_names.h"

int rules_unknown_name(const struct weir_rules *rules, const char *name, size_t size)
{
    return 0;
}
