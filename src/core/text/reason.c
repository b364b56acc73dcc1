/* SPDX-License-Identifier: Apache-2.0 */
/* see reason.h */
#include "core/text/reason.h"

#include <stddef.h>

void reason_text(struct weir_reason *reason, const char *text)
{
    uint32_t at = 0;

    if (!reason)
        return;
    while (at < WEIR_REASON_MAX - 1 && reason->text[at] != '\0')
        at++;
    while (at < WEIR_REASON_MAX - 1 && *text != '\0')
        reason->text[at++] = *text++;
    reason->text[at] = '\0';
}

void reason_number(struct weir_reason *reason, uint64_t number)
{
    char digits[21]; /* 2^64 has 20 */
    uint32_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    reason_text(reason, digits + at);
}
