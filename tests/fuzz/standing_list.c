/* SPDX-License-Identifier: Apache-2.0 */
/* List files of standing: the first byte says of which kind. Whatever comes, what is taken is
 * inside the text, and its lines grow. */
#include "fuzz.h"

#include <string.h>

#include "feature/standing/list.h"

struct taken {
    struct weir_bytes text;
    uint32_t line;
};

static int take(void *context, const struct weir_list_item *item, struct weir_reason *reason)
{
    struct taken *taken = context;

    if (item->line <= taken->line || item->value.size == 0 ||
        item->value.size > WEIR_LIST_VALUE_MAX || item->value.data < taken->text.data ||
        item->value.data + item->value.size > taken->text.data + taken->text.size)
        __builtin_trap();
    taken->line = item->line;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_standing_kind kind = {.bits4 = 32, .bits6 = 64};
    struct weir_reason reason = {""};
    struct taken taken;

    if (size == 0)
        return 0;
    kind.address = data[0] % 2 == 0;
    taken = (struct taken){.text = {(const char *)data, size}};
    if (weir_list_parse(&kind, "list", taken.text, take, &taken, &reason) < 0 &&
        memcmp(reason.text, "list:", 5) != 0)
        __builtin_trap();
    return 0;
}
