/* SPDX-License-Identifier: Apache-2.0 */
/* see struct.h */
#include "wire/grpc/struct.h"

#include "wire/grpc/message.h"

static Google__Protobuf__Value *value_make(const struct weir_envoy_value *value,
                                           struct weir_grpc_arena *arena, unsigned depth);

static Google__Protobuf__Struct *struct_make(const struct weir_envoy_value *value,
                                             struct weir_grpc_arena *arena, unsigned depth)
{
    Google__Protobuf__Struct *made = weir_grpc_arena_take(arena, sizeof *made);
    Google__Protobuf__ValuePair *pairs = weir_grpc_arena_take(arena, value->count * sizeof *pairs);
    Google__Protobuf__ValuePair **fields =
        weir_grpc_arena_take(arena, value->count * sizeof(void *));
    if (!made || !pairs || !fields)
        return NULL;
    *made = (Google__Protobuf__Struct)GOOGLE__PROTOBUF__STRUCT__INIT;
    made->fields = fields;
    made->n_fields = value->count;
    for (uint32_t i = 0; i < value->count; i++) {
        pairs[i] = (Google__Protobuf__ValuePair)GOOGLE__PROTOBUF__VALUE_PAIR__INIT;
        pairs[i].key = weir_grpc_data(value->names[i]);
        pairs[i].value = value_make(&value->items[i], arena, depth + 1);
        if (!pairs[i].value)
            return NULL;
        fields[i] = &pairs[i];
    }
    return made;
}

static Google__Protobuf__ListValue *list_make(const struct weir_envoy_value *value,
                                              struct weir_grpc_arena *arena, unsigned depth)
{
    Google__Protobuf__ListValue *made = weir_grpc_arena_take(arena, sizeof *made);
    Google__Protobuf__Value **values = weir_grpc_arena_take(arena, value->count * sizeof(void *));
    if (!made || !values)
        return NULL;
    *made = (Google__Protobuf__ListValue)GOOGLE__PROTOBUF__LIST_VALUE__INIT;
    made->values = values;
    made->n_values = value->count;
    for (uint32_t i = 0; i < value->count; i++) {
        values[i] = value_make(&value->items[i], arena, depth + 1);
        if (!values[i])
            return NULL;
    }
    return made;
}

static Google__Protobuf__Value *value_make(const struct weir_envoy_value *value,
                                           struct weir_grpc_arena *arena, unsigned depth)
{
    Google__Protobuf__Value *made = weir_grpc_arena_take(arena, sizeof *made);
    if (!made || depth > WEIR_ENVOY_DEPTH_MAX)
        return NULL;
    *made = (Google__Protobuf__Value)GOOGLE__PROTOBUF__VALUE__INIT;
    switch ((enum weir_envoy_kind)value->kind) {
    case WEIR_ENVOY_NULL:
        made->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_NULL_VALUE;
        break;
    case WEIR_ENVOY_BOOL:
        made->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE;
        made->bool_value = value->boolean;
        break;
    case WEIR_ENVOY_NUMBER:
        made->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE;
        made->number_value = value->number;
        break;
    case WEIR_ENVOY_STRING:
        made->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE;
        made->string_value = weir_grpc_data(value->text);
        break;
    case WEIR_ENVOY_LIST:
        made->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE;
        made->list_value = list_make(value, arena, depth);
        return made->list_value ? made : NULL;
    case WEIR_ENVOY_STRUCT:
        made->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE;
        made->struct_value = struct_make(value, arena, depth);
        return made->struct_value ? made : NULL;
    }
    return made;
}

Google__Protobuf__Struct *weir_grpc_struct(const struct weir_envoy_value *value,
                                           struct weir_grpc_arena *arena)
{
    return struct_make(value, arena, 0);
}
