/* SPDX-License-Identifier: Apache-2.0 */
/* Names that may go to the kernel, and into texts for nft. */
#ifndef WEIR_FEATURE_KERNEL_NAMES_H
#define WEIR_FEATURE_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A name of a table: a letter or `_`, then letters, digits and `_`; WEIR_KERNEL_TABLE_MAX bytes at
 * most. */
bool weir_kernel_table_valid(const char *name, size_t size);
/* A name of an interface: letters, digits and `_.-@`; WEIR_KERNEL_INTERFACE_MAX bytes at most;
 * not `.` or `..`. */
bool weir_kernel_interface_valid(const char *name, size_t size);

/* The name of a set of the table: "ban4_32". `set`: enum weir_kernel_set. */
#define WEIR_KERNEL_SET_NAME_MAX 16 /* "allow6_128" and its NUL */
void weir_kernel_set_name(char name[WEIR_KERNEL_SET_NAME_MAX], uint8_t set, uint8_t family,
                          uint8_t bits);

#endif
