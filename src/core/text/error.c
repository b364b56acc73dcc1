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

enum weir_fault weir_error_fault(int err)
{
    switch (err) {
    case WEIR_ERR_SYNTAX:
    case WEIR_ERR_TOO_LARGE:
    case WEIR_ERR_RANGE:
        return WEIR_FAULT_REQUEST;
    case WEIR_ERR_IO:
    case WEIR_ERR_FORMAT:
    case WEIR_ERR_DAMAGED:
    case WEIR_ERR_BUSY:
    case WEIR_ERR_FULL:
    case WEIR_ERR_STORE:
    case WEIR_ERR_DEADLINE:
        return WEIR_FAULT_STATE;
    default:
        return WEIR_FAULT_PROGRAM;
    }
}
