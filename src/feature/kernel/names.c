/* SPDX-License-Identifier: Apache-2.0 */
/* see names.h */
#include "feature/kernel/names.h"

#include <stdio.h>
#include <string.h>

#include "feature/kernel/message.h"
#include "feature/kernel/settings.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define DIGITS "0123456789"

static bool of_letters(const char *name, size_t size, const char *letters)
{
    for (size_t i = 0; i < size; i++)
        if (name[i] == '\0' || !strchr(letters, name[i]))
            return false;
    return size > 0;
}

bool weir_kernel_table_valid(const char *name, size_t size)
{
    return size <= WEIR_KERNEL_TABLE_MAX && of_letters(name, size, LETTERS DIGITS) &&
           !strchr(DIGITS, name[0]);
}

bool weir_kernel_interface_valid(const char *name, size_t size)
{
    bool folder = name[0] == '.' && (size == 1 || (size == 2 && name[1] == '.'));
    return size <= WEIR_KERNEL_INTERFACE_MAX && of_letters(name, size, LETTERS DIGITS ".-@") &&
           !folder;
}

void weir_kernel_set_name(char name[WEIR_KERNEL_SET_NAME_MAX], uint8_t set, uint8_t family,
                          uint8_t bits)
{
    snprintf(name, WEIR_KERNEL_SET_NAME_MAX, "%s%u_%u", set == WEIR_KERNEL_BAN ? "ban" : "allow",
             (unsigned)family, (unsigned)bits);
}
