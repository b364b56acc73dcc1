/* SPDX-License-Identifier: Apache-2.0 */
/* see weir/error.h */
#include <weir/error.h>

const char *weir_error_text(int err)
{
    switch (err) {
#define WEIR_ERROR_TEXT(code, name, text)                                                          \
    case name:                                                                                     \
        return text;
        WEIR_ERRORS(WEIR_ERROR_TEXT)
#undef WEIR_ERROR_TEXT
    default:
        return "unknown error";
    }
}
