/* SPDX-License-Identifier: Apache-2.0 */
/* see include/weir/version.h */
#include <weir/version.h>

/* Reads one number and the dot behind it. */
static unsigned next_number(const char **at)
{
    unsigned number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        number = number * 10 + (unsigned)(**at - '0');
    *at += **at == '.';
    return number;
}

bool weir_version_before(const char *a, const char *b)
{
    while ((*a >= '0' && *a <= '9') || (*b >= '0' && *b <= '9')) {
        unsigned x = next_number(&a), y = next_number(&b);
        if (x != y)
            return x < y;
    }
    return false;
}

bool weir_still_takes(const char *refused_from)
{
    return weir_version_before(WEIR_VERSION, refused_from);
}
