/* SPDX-License-Identifier: Apache-2.0 */
/* Names that may go to the kernel, and into texts for nft. */
#ifndef WEIR_KERNEL_NAMES_H
#define WEIR_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* A name of a table: a letter or `_`, then letters, digits and `_`; WEIR_KERNEL_TABLE_MAX bytes at
 * most. */
bool weir_kernel_table_valid(const char *name, size_t size);
/* A name of an interface: letters, digits and `_.-@`; WEIR_KERNEL_INTERFACE_MAX bytes at most;
 * not `.` or `..`. */
bool weir_kernel_interface_valid(const char *name, size_t size);

#endif
