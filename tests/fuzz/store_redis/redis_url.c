/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of Redis: any text is taken or refused with a reason, and what is taken is within bounds. */
#include "fuzz.h"

#include <string.h>

#include "store/redis/client/url.h"

static int is_text(const char *text, size_t room)
{
    return memchr(text, '\0', room) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct redis_url url;
    struct weir_reason reason = {""};
    char *text = malloc(size + 1);

    REQUIRE(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    int error = redis_url_parse(&url, text, &reason);
    if (error != 0) {
        REQUIRE(error == WEIR_ERR_SYNTAX);
        REQUIRE(strncmp(reason.text, "Redis URL, character ", 21) == 0);
        REQUIRE(is_text(reason.text, sizeof reason.text));
    } else {
        REQUIRE(url.host_count <= REDIS_HOSTS_MAX);
        REQUIRE((url.host_count > 0) == (url.kind != REDIS_UNIX));
        REQUIRE((url.path[0] == '/') == (url.kind == REDIS_UNIX));
        REQUIRE((url.group[0] != '\0') == (url.kind == REDIS_SENTINEL));
        for (uint32_t i = 0; i < url.host_count; i++) {
            REQUIRE(is_text(url.hosts[i].name, sizeof url.hosts[i].name));
            REQUIRE(url.hosts[i].name[0] != '\0' && url.hosts[i].port != 0);
        }
        REQUIRE(is_text(url.path, sizeof url.path) && is_text(url.group, sizeof url.group));
        REQUIRE(is_text(url.user, sizeof url.user) && is_text(url.password, sizeof url.password));
    }
    free(text);
    return 0;
}
