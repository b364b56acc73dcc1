/* SPDX-License-Identifier: Apache-2.0 */
/* see protobuf.h */
#include "wire/grpc/protobuf.h"

bool weir_pb_skip_group(struct weir_pb_reader *reader)
{
    uint32_t open[WEIR_PB_GROUPS_MAX]; /* the numbers of groups that have not ended */
    uint32_t depth = 0, number = reader->number;
    open[depth++] = number;
    while (depth > 0) {
        if (!weir_pb_take(reader))
            return weir_pb_fail(reader);
        if (reader->type == WEIR_PB_GROUP) {
            if (depth == WEIR_PB_GROUPS_MAX)
                return weir_pb_fail(reader);
            open[depth++] = reader->number;
        } else if (reader->type == WEIR_PB_GROUP_END && open[--depth] != reader->number) {
            return weir_pb_fail(reader);
        }
    }
    reader->number = number;
    reader->type = WEIR_PB_GROUP;
    return true;
}
