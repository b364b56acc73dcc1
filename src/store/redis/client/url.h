/* SPDX-License-Identifier: Apache-2.0 */
/* Where a Redis is, and how to speak to it.
 *
 *   redis://[[user]:password@]host[:6379][/db]          one server; rediss:// the same over TLS
 *   unix:/path/to/socket                                one server; ?db=N
 *   redis-sentinel://host[:26379][,host…]/group[/db]    the master of `group`; rediss-sentinel://
 *   redis-cluster://host[:6379][,host…]                 rediss-cluster://
 *
 * User and password are percent-decoded. They may also be given outside the URL (struct
 * redis_access), so that a rules file needs none.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_URL_H
#define WEIR_STORE_REDIS_CLIENT_URL_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/error.h>

#define REDIS_HOSTS_MAX 16
#define REDIS_HOST_MAX 254
#define REDIS_SECRET_MAX 513
#define REDIS_PATH_MAX 108

enum redis_kind { REDIS_SINGLE, REDIS_UNIX, REDIS_SENTINEL, REDIS_CLUSTER };

struct redis_host {
    char name[REDIS_HOST_MAX]; /* name or address without brackets */
    uint16_t port;
};

struct redis_url {
    enum redis_kind kind;
    bool tls;
    struct redis_host hosts[REDIS_HOSTS_MAX]; /* the server; sentinels; nodes to start from */
    uint32_t host_count;
    char path[REDIS_PATH_MAX]; /* of a Unix socket */
    char group[REDIS_HOST_MAX];
    uint32_t db;
    char user[REDIS_SECRET_MAX], password[REDIS_SECRET_MAX]; /* "": none */
    char sentinel_user[REDIS_SECRET_MAX], sentinel_password[REDIS_SECRET_MAX];
    /* TLS: files in PEM; NULL: the system's authorities; no certificate of our own */
    const char *ca_file, *cert_file, *key_file;
    const char *server_name; /* NULL: the host's name */
    bool insecure;           /* do not verify: the rules file asks for it explicitly */
};

/* Errors: WEIR_ERR_SYNTAX, with what and where in `reason` (never the password). */
int redis_url_parse(struct redis_url *url, const char *text, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
