/* SPDX-License-Identifier: Apache-2.0 */
/* see values.h */
#include "values.h"

#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

static const char *name_of(int err)
{
    switch (err) {
#define NAME(code, name, text)                                                                     \
    case name:                                                                                     \
        return #name;
        WEIR_ERRORS(NAME)
#undef NAME
    }
    return "WEIR_ERR_UNKNOWN";
}

int values_error(const char *name)
{
#define CODE(code, error, text)                                                                    \
    if (!strcmp(name, #error))                                                                     \
        return error;
    WEIR_ERRORS(CODE)
#undef CODE
    return WEIR_ERR_UNSUPPORTED;
}

napi_value values_fail(napi_env env, int err, const char *reason)
{
    napi_throw_error(env, name_of(err), reason && *reason ? reason : weir_error_text(err));
    return NULL;
}

napi_value values_misused(napi_env env)
{
    napi_throw_type_error(env, NULL, "an addon of weir: use its module");
    return NULL;
}

bool values_text(napi_env env, napi_value value, char *text, size_t room)
{
    napi_valuetype type;
    size_t size = 0;
    text[0] = '\0';
    if (napi_typeof(env, value, &type) != napi_ok)
        return false;
    if (type != napi_string)
        return type == napi_null || type == napi_undefined;
    return napi_get_value_string_utf8(env, value, NULL, 0, &size) == napi_ok && size < room &&
           napi_get_value_string_utf8(env, value, text, room, &size) == napi_ok &&
           strlen(text) == size;
}

int values_text_copy(napi_env env, napi_value value, char **text)
{
    napi_valuetype type;
    size_t size = 0;
    *text = NULL;
    if (napi_typeof(env, value, &type) != napi_ok)
        return WEIR_ERR_SYNTAX;
    if (type == napi_null)
        return 0;
    if (napi_get_value_string_utf8(env, value, NULL, 0, &size) != napi_ok)
        return WEIR_ERR_SYNTAX;
    char *copy = malloc(size + 1);
    if (!copy)
        return WEIR_ERR_MEMORY;
    if (!values_text(env, value, copy, size + 1)) {
        free(copy);
        return WEIR_ERR_SYNTAX;
    }
    *text = copy;
    return 0;
}

bool values_number(napi_env env, napi_value value, uint64_t *result)
{
    double number;
    if (napi_get_value_double(env, value, &number) != napi_ok || !(number >= 0))
        return false;
    *result = number < 0x1p63 ? (uint64_t)number : UINT64_MAX;
    return true;
}
