/* SPDX-License-Identifier: Apache-2.0 */
/* see redis_access.h */
#include "server/daemon/redis_access.h"

#include <stdio.h>
#include <string.h>

static void set_text(char room[REDIS_SECRET_MAX], const char *text)
{
    if (text)
        snprintf(room, REDIS_SECRET_MAX, "%s", text);
}

int weir_redis_access_url(struct redis_url *url, const struct weir_redis_access *access,
                          const char *name, struct weir_reason *reason)
{
    struct weir_reason why = {{0}};
    int err = redis_url_parse(url, access->url, &why);
    if (err < 0) {
        snprintf(reason->text, sizeof reason->text, "%.40s: %.200s", name, why.text);
        return WEIR_ERR_RULES;
    }
    set_text(url->user, access->user);
    set_text(url->password, access->password);
    set_text(url->sentinel_user, access->sentinel_user);
    set_text(url->sentinel_password, access->sentinel_password);
    url->ca_file = access->ca_file;
    url->cert_file = access->cert_file;
    url->key_file = access->key_file;
    url->server_name = access->server_name;
    url->insecure = access->insecure;
    return 0;
}

bool weir_setting_differs(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) != 0 : a != b;
}

bool weir_redis_access_differs(const struct weir_redis_access *a, const struct weir_redis_access *b)
{
    return weir_setting_differs(a->url, b->url) || weir_setting_differs(a->user, b->user) ||
           weir_setting_differs(a->password, b->password) ||
           weir_setting_differs(a->sentinel_user, b->sentinel_user) ||
           weir_setting_differs(a->sentinel_password, b->sentinel_password) ||
           weir_setting_differs(a->ca_file, b->ca_file) ||
           weir_setting_differs(a->cert_file, b->cert_file) ||
           weir_setting_differs(a->key_file, b->key_file) ||
           weir_setting_differs(a->server_name, b->server_name) || a->insecure != b->insecure;
}
