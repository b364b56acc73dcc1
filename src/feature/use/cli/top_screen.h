/* SPDX-License-Identifier: Apache-2.0 */
/* `weir top` on a terminal: limits and keys that can be sorted and filtered, redrawn in place.
 *
 *   weir top 127.0.0.1:9090        120 req/s   25% denied   p99 500us 14:03:07+01:00
 *   requests ▁▁▂▃▅▇█
 *   LIMIT                ALGORITHM      ALLOWED/s  DENIED/s  429%  LAST 20 S
 *   KEY …                               what each key uses, by window and order
 *
 * Keys: q ends; s and S choose the order of limits and of keys; w the window of keys; / filters by
 * a part of a limit's name or a key's text, Enter or Escape ends the filter's input; j and k scroll
 * the keys; p pauses.
 *
 * Lines are cut at the width of the terminal, 80 at least. Colours are left out with NO_COLOR in
 * the environment, and blocks of sparklines where the locale is not UTF-8. What came from outside
 * is printed as weir_print_text does.
 *
 * Threads: the main thread. The terminal's settings are restored at the end.
 */
#ifndef WEIR_FEATURE_USE_CLI_TOP_SCREEN_H
#define WEIR_FEATURE_USE_CLI_TOP_SCREEN_H

#include "cli/admin_client.h"

struct top_screen_options {
    const char *address; /* as shown */
    uint64_t interval_s;
    bool utc; /* the time on top */
};

/* Runs until the user ends it. Errors: those of admin_client_call, which `reason` explains;
 * WEIR_ERR_NOT_FOUND: nothing was shown, because the server does not have what this shows. */
int top_screen_run(struct admin_client *client, const struct top_screen_options *options,
                   struct weir_reason *reason) __attribute__((warn_unused_result));

/* Writes a sparkline of `count` numbers, the largest of which is a full block. `out` has room for 3
 * bytes each, and one. */
void top_sparkline(char *out, const double *values, size_t count, bool utf8);

#endif
