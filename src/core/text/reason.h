/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a struct weir_reason without stdio: texts and decimal numbers, cut at its end. */
#ifndef WEIR_CORE_TEXT_REASON_H
#define WEIR_CORE_TEXT_REASON_H

#include <stdint.h>

#include <weir/error.h>

/* Both append to what is there and do nothing for NULL. */
void reason_text(struct weir_reason *reason, const char *text);
void reason_number(struct weir_reason *reason, uint64_t number);

#endif
