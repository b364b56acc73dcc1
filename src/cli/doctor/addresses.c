/* SPDX-License-Identifier: Apache-2.0 */
/* see addresses.h */
#include "cli/doctor/addresses.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "server/daemon/services/list.h"
#include "server/daemon/services/services.h"
#include "server/net/fronts.h"
#include "server/net/listener.h"

#define ANSWER_SECONDS 2 /* for a server that runs; it answers in a millisecond */
#define ANSWER_MAX 512

struct place {
    const char *front, *address;
    const struct weir_listener_settings *settings;
};

/* What the rules say of each listener; the admin's is the first. Returns how many there are. */
static unsigned places_fill(struct place places[WEIR_FRONTS_MAX], const struct weir_rules *rules)
{
    static const struct weir_settings empty;
    const struct weir_settings *settings = rules ? weir_rules_settings(rules) : &empty;
    struct weir_fronts fronts;
    unsigned count = 1;
    weir_services_fronts(weir_services, &fronts);
    for (unsigned i = 0; i < fronts.count; i++) {
        const struct weir_front *front = fronts.list[i];
        if (front->address)
            continue; /* only the server knows it */
        places[front->kind == WEIR_LISTENER_ADMIN ? 0 : count++] = (struct place){
            front->name, weir_front_address(front, settings), weir_front_settings(front, settings)};
    }
    return count;
}

static int connect_to(const struct weir_endpoint *endpoint)
{
    const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
    int fd = socket(endpoint->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, &endpoint->any, endpoint->size) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Whether what answers on the admin address is a weir: the body of /healthz is "ok\n". A listener
 * with TLS is taken for one that is ours when it accepts a connection. */
static bool answers_as_weir(const struct place *admin)
{
    static const char question[] = "GET /healthz HTTP/1.0\r\n\r\n";
    struct weir_endpoint endpoint;
    struct weir_reason reason;
    char answer[ANSWER_MAX] = {0};
    size_t size = 0;
    if (!admin->address || weir_endpoint_parse(&endpoint, admin->address, &reason) < 0 ||
        endpoint.kind == WEIR_ENDPOINT_OFF)
        return false;
    int fd = connect_to(&endpoint);
    if (fd < 0)
        return false;
    bool sent = send(fd, question, sizeof question - 1, MSG_NOSIGNAL) > 0;
    while (sent && size < sizeof answer - 1) {
        ssize_t more = recv(fd, answer + size, sizeof answer - 1 - size, 0);
        if (more <= 0)
            break;
        size += (size_t)more;
    }
    close(fd);
    return admin->settings->tls.cert_file ||
           (strncmp(answer, "HTTP/1.", 7) == 0 && strstr(answer, " 200 ") &&
            strstr(answer, "\r\n\r\nok\n"));
}

static void judge_tcp(struct findings *findings, const struct place *place,
                      const struct weir_endpoint *endpoint, bool running)
{
    int on = 1, fd = socket(endpoint->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int why = fd >= 0 && bind(fd, &endpoint->any, endpoint->size) == 0 ? 0 : errno;
    if (fd >= 0)
        close(fd);
    if (why == 0 || (why == EADDRINUSE && running))
        return;
    if (why == EADDRINUSE)
        findings_add(findings, FINDING_ERROR, "address_in_use",
                     "find the other program (ss -ltnp), stop it or choose another port under "
                     "`server:`",
                     "%s: another program listens on %s", place->front, place->address);
    else if (why == EACCES)
        findings_add(findings, FINDING_ERROR, "address_forbidden",
                     "choose a port from 1024 on, or give the unit "
                     "AmbientCapabilities=CAP_NET_BIND_SERVICE",
                     "%s: this user may not listen on %s", place->front, place->address);
    else
        findings_add(
            findings, FINDING_ERROR, "address_unavailable",
            "use an address of this machine (ip addr), or 0.0.0.0 and [::] for all of them",
            "%s: cannot listen on %s: %s", place->front, place->address, strerror(why));
}

static void judge_unix(struct findings *findings, const struct place *place,
                       const struct weir_endpoint *endpoint, bool running)
{
    const char *path = endpoint->un.sun_path;
    char copy[sizeof endpoint->un.sun_path + 1];
    struct stat folder, file;
    snprintf(copy, sizeof copy, "%s", path);
    const char *parent = dirname(copy);
    if (stat(parent, &folder) < 0 || !S_ISDIR(folder.st_mode) || access(parent, W_OK | X_OK) < 0) {
        findings_add(
            findings, FINDING_ERROR, "socket_folder",
            "create it for the user of weir (systemd-tmpfiles --create, or RuntimeDirectory= "
            "of the unit), or run weir doctor as that user",
            "%s: this user may not create sockets in %s: %s", place->front, parent,
            strerror(errno));
        return;
    }
    if ((folder.st_mode & S_IWOTH) && !(folder.st_mode & S_ISVTX))
        findings_add(findings, FINDING_WARNING, "socket_folder_public",
                     "put sockets into a folder that only weir may write to, such as /run/weir",
                     "%s: every user may replace sockets in %s", place->front, parent);
    if (stat(path, &file) < 0)
        return;
    if (!S_ISSOCK(file.st_mode)) {
        findings_add(findings, FINDING_ERROR, "socket_path",
                     "remove the file, or choose another path", "%s: %s exists and is no socket",
                     place->front, path);
        return;
    }
    int fd = connect_to(endpoint);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !running)
        findings_add(findings, FINDING_ERROR, "address_in_use",
                     "find the other program (ss -lxp), stop it or choose another path",
                     "%s: another program listens on %s", place->front, place->address);
}

static void judge_reach(struct findings *findings, const struct place *place,
                        const struct weir_endpoint *endpoint)
{
    const struct weir_listener_settings *settings = place->settings;
    if (endpoint->local)
        return;
    if (settings->open && !strcmp(place->front, "admin"))
        findings_add(
            findings, FINDING_WARNING, "admin_exposed",
            "listen on 127.0.0.1 or a Unix socket, or set a `token` in place of `open: true`",
            "admin: %s is open to other machines, which may read metrics and keys", place->address);
    if (settings->token && !settings->tls.cert_file)
        findings_add(findings, FINDING_WARNING, "token_in_clear",
                     "add `tls:` to the listener, or listen on 127.0.0.1 behind a proxy with TLS",
                     "%s: tokens travel unencrypted to %s", place->front, place->address);
}

void addresses_judge(struct findings *findings, const struct weir_rules *rules)
{
    struct place places[WEIR_FRONTS_MAX] = {0};
    unsigned count = places_fill(places, rules);
    bool running = answers_as_weir(&places[0]);
    for (size_t i = 0; i < count; i++) {
        struct weir_endpoint endpoint;
        struct weir_reason reason;
        if (!places[i].address || weir_endpoint_parse(&endpoint, places[i].address, &reason) < 0 ||
            endpoint.kind == WEIR_ENDPOINT_OFF)
            continue; /* weir_server_check reports the former */
        if (endpoint.kind == WEIR_ENDPOINT_UNIX)
            judge_unix(findings, &places[i], &endpoint, running);
        else
            judge_tcp(findings, &places[i], &endpoint, running);
        judge_reach(findings, &places[i], &endpoint);
    }
}
