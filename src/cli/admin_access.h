/* SPDX-License-Identifier: Apache-2.0 */
/* How commands reach a running server's admin listener: their options `--admin`, `--token` and
 * `--token-file`, and one call with its errors printed.
 *
 * Threads: the main thread only.
 */
#ifndef WEIR_CLI_ADMIN_ACCESS_H
#define WEIR_CLI_ADMIN_ACCESS_H

#include "cli/admin_client.h"
#include "cli/options.h"
#include "server/daemon/server.h"

struct admin_access {
    const char *address, *token; /* token may be NULL */
    const char *token_file;      /* NULL: none; else it has the token */
};

/* The options, for the table of a command whose struct has an admin_access at `at_`. */
#define ADMIN_ACCESS_OPTIONS(at_)                                                                  \
    CLI_OPTION(0, "admin", "ADDRESS",                                                              \
               "its admin listener, HOST:PORT, [IPV6]:PORT or unix:/PATH\n"                        \
               "(" WEIR_ADMIN_ADDRESS_DEFAULT ")",                                                 \
               .kind = CLI_TEXT, .at = (at_) + offsetof(struct admin_access, address)),            \
        CLI_OPTION(0, "token", "TOKEN",                                                            \
                   "the admin token. WEIR_ADMIN_TOKEN in the environment does the\n"               \
                   "same and is not seen by other users",                                          \
                   .kind = CLI_TEXT, .at = (at_) + offsetof(struct admin_access, token)),          \
        CLI_OPTION(0, "token-file", "FILE", "takes the token from the first line of a file",       \
                   .kind = CLI_TEXT, .at = (at_) + offsetof(struct admin_access, token_file))

/* What counts where the command line says nothing. */
struct admin_access admin_access_default(void);

/* Opens a client, which the caller closes. An error is printed.
 * Errors: WEIR_ERR_IO where the file of the token cannot be read or has none; WEIR_ERR_MEMORY. */
int admin_access_open(struct admin_client **client, const struct admin_access *access)
    __attribute__((warn_unused_result));

/* Opens a client, makes one call with it, and closes it. `call` returns 0 or an error that *reason
 * explains. An error is printed. Returns the exit status. */
int admin_access_call(const struct admin_access *access,
                      int (*call)(struct admin_client *client, void *context,
                                  struct weir_reason *reason),
                      void *context) __attribute__((warn_unused_result));

#endif
