/* SPDX-License-Identifier: Apache-2.0 */
/* see admin_access.h */
#include "cli/admin_access.h"

#include <stdlib.h>

struct admin_access admin_access_default(void)
{
    return (struct admin_access){WEIR_ADMIN_ADDRESS_DEFAULT, getenv("WEIR_ADMIN_TOKEN")};
}

int admin_access_call(const struct admin_access *access,
                      int (*call)(struct admin_client *client, void *context,
                                  struct weir_reason *reason),
                      void *context)
{
    struct weir_reason reason = {{0}};
    struct admin_client *client;
    int error = admin_client_open(&client, access->address, access->token);
    if (error < 0) {
        cli_error("%s", weir_error_text(error));
        return EXIT_FAILURE;
    }
    error = call(client, context, &reason);
    admin_client_close(client);
    if (error < 0)
        cli_error("%s: %s", access->address, reason.text);
    return error < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
