/* SPDX-License-Identifier: Apache-2.0 */
/* Text files that tests make. */
#ifndef TEXT_FILE_H
#define TEXT_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Makes the file, or writes it anew. */
static inline void text_file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#endif
