/* SPDX-License-Identifier: Apache-2.0 */
/* Rules with the section `challenge:`, for tests of steps that challenge. Include it in one source
 * of a program, once. Threads: one. */
#ifndef CHALLENGE_TEST_H
#define CHALLENGE_TEST_H

#include "temporary.h"

/* The rules, and behind them the section, so that their lines keep their numbers. What it returns
 * counts until the next call. */
static inline const char *challenge_rules(const char *rules)
{
    static const char key[] = "0123456789abcdef0123456789abcdef\n";
    static char path[TEMPORARY_MAX], text[4096];
    if (path[0] == '\0') {
        int file = temporary_file(path);
        temporary_check(write(file, key, sizeof key - 1) == sizeof key - 1, path);
        close(file);
    }
    int size = snprintf(text, sizeof text, "%schallenge: {secret_file: %s}\n", rules, path);
    temporary_check(size > 0 && (size_t)size < sizeof text, "rules");
    return text;
}

#endif
