/* SPDX-License-Identifier: Apache-2.0 */
/* see admin_access.h */
#include "cli/admin_access.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define TOKEN_MAX 512 /* as of a token_file of the rules: RULES_SECRET_MAX */

struct admin_access admin_access_default(void)
{
    return (struct admin_access){.address = WEIR_ADMIN_ADDRESS_DEFAULT,
                                 .token = getenv("WEIR_ADMIN_TOKEN")};
}

/* The first line of a file, NUL-terminated, in `token`. */
static int read_token(const char *path, char token[TOKEN_MAX + 2])
{
    struct weir_reason reason = {{0}};
    long size = weir_file_read(path, token, TOKEN_MAX + 1, &reason);
    if (size < 0) {
        cli_error("%s: %s", path, reason.text);
        return WEIR_ERR_IO;
    }
    token[size] = '\0';
    size_t length = strcspn(token, "\r\n");
    if (length == 0 || length > TOKEN_MAX) {
        cli_error("%s: the first line must be a token of 1 to %d bytes", path, TOKEN_MAX);
        return WEIR_ERR_IO;
    }
    token[length] = '\0';
    return 0;
}

int admin_access_open(struct admin_client **client, const struct admin_access *access)
{
    char room[TOKEN_MAX + 2];
    const char *token = access->token;
    if (access->token_file) {
        int error = read_token(access->token_file, room);
        if (error < 0)
            return error;
        token = room;
    }
    int error = admin_client_open(client, access->address, token);
    if (error < 0)
        cli_error("%s", weir_error_text(error));
    return error;
}

int admin_access_call(const struct admin_access *access,
                      int (*call)(struct admin_client *client, void *context,
                                  struct weir_reason *reason),
                      void *context)
{
    struct weir_reason reason = {{0}};
    struct admin_client *client;
    int error = admin_access_open(&client, access);
    if (error < 0)
        return EXIT_FAILURE;
    error = call(client, context, &reason);
    admin_client_close(client);
    if (error < 0)
        cli_error("%s: %s", access->address, reason.text);
    return error < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
