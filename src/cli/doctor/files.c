/* SPDX-License-Identifier: Apache-2.0 */
/* see files.h */
#include "cli/doctor/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <linux/magic.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "cli/times.h"
#include "feature/region/rules/region.h"
#include "server/daemon/services/list.h"
#include "server/daemon/services/services.h"
#include "server/net/fronts.h"
#include "server/net/listener.h"

#define DAY_S 86400
#define EXPIRES_SOON_DAYS 14 /* Let's Encrypt's clients renew 30 days before the end */
#define STATE_BYTES_DEFAULT (UINT64_C(64) << 20)
#define RULES_BYTES_MAX ((size_t)4 << 20)
#define FUSE_MAGIC 0x65735546 /* linux/magic.h of Debian 12 has no name for these two */
#define CIFS_MAGIC 0xff534d42

/* --- State ------------------------------------------------------------------------------------ */

/* Where locks and mappings are not those of one machine. */
static const char *network_file_system(const char *folder)
{
    static const struct {
        uint32_t magic;
        const char *name;
    } known[] = {{NFS_SUPER_MAGIC, "NFS"},
                 {CIFS_MAGIC, "CIFS"},
                 {SMB_SUPER_MAGIC, "SMB"},
                 {FUSE_MAGIC, "FUSE"},
                 {V9FS_MAGIC, "9P"}};
    struct statfs system;
    if (statfs(folder, &system) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((uint32_t)system.f_type == known[i].magic)
            return known[i].name;
    return NULL;
}

static void judge_owner(struct findings *findings, const char *path, const struct stat *file)
{
    const struct passwd *owner = getpwuid(file->st_uid);
    if (geteuid() != 0 || file->st_uid == 0)
        return;
    findings_add(
        findings, FINDING_WARNING, "other_user",
        "run weir doctor as the user of the service: sudo -u USER weir doctor --config FILE",
        "%s belongs to %s, and this is root: permissions were judged for root", path,
        owner ? owner->pw_name : "another user");
}

static void judge_state_file(struct findings *findings, const char *path, const struct stat *file)
{
    if (!S_ISREG(file->st_mode)) {
        findings_add(findings, FINDING_ERROR, "state_file", "remove it, or choose another path",
                     "state.file: %s is no regular file", path);
        return;
    }
    if (access(path, R_OK | W_OK) < 0)
        findings_add(findings, FINDING_ERROR, "state_file",
                     "chown it to the user of weir, or run weir doctor as that user",
                     "state.file: this user may not read and write %s", path);
    if (file->st_mode & (S_IROTH | S_IWOTH))
        findings_add(findings, FINDING_WARNING, "state_public",
                     "chmod o-rwx the file, and set state.mode to 0600 or 0660",
                     "state.file: every user may %s %s, which holds the secret of the keys' hashes",
                     file->st_mode & S_IWOTH ? "change" : "read", path);
    judge_owner(findings, path, file);
}

static void judge_room(struct findings *findings, const char *folder, uint64_t bytes)
{
    struct statvfs system;
    if (statvfs(folder, &system) < 0)
        return;
    uint64_t room = (uint64_t)system.f_bavail * system.f_frsize;
    if (room < bytes)
        findings_add(findings, FINDING_ERROR, "disk_space",
                     "free some room, lower state.size, or choose another file system",
                     "state.file: %s has room for %" PRIu64 " MiB, and a new file takes %" PRIu64
                     " MiB",
                     folder, room >> 20, bytes >> 20);
}

static void judge_state(struct findings *findings, const struct weir_settings *settings)
{
    const char *path = settings->state_file;
    struct stat folder, file;
    char *copy = path ? strdup(path) : NULL;
    if (!copy)
        return;
    const char *parent = dirname(copy);
    bool there = stat(path, &file) == 0;
    if (stat(parent, &folder) < 0 || !S_ISDIR(folder.st_mode)) {
        findings_add(findings, FINDING_ERROR, "state_folder",
                     strncmp(parent, "/run/", 5) == 0
                         ? "a folder in /run ends with each boot: name it in tmpfiles.d, as the "
                           "packages do for /run/weir-state, and run systemd-tmpfiles --create"
                         : "create it for the user of weir: install -d -m 0700 -o weir FOLDER",
                     "state.file: there is no folder %s", parent);
        free(copy);
        return;
    }
    if (access(parent, there ? X_OK : W_OK | X_OK) < 0)
        findings_add(findings, FINDING_ERROR, "state_folder",
                     "chown it to the user of weir, or run weir doctor as that user",
                     "state.file: this user may not %s files in %s", there ? "open" : "create",
                     parent);
    if ((folder.st_mode & S_IWOTH) && !(folder.st_mode & S_ISVTX))
        findings_add(findings, FINDING_WARNING, "state_folder_public", "chmod o-w the folder",
                     "state.file: every user may replace files in %s", parent);
    const char *network = network_file_system(parent);
    if (network)
        findings_add(findings, FINDING_WARNING, "state_file_system",
                     "use a local file system; several machines share counts in Redis "
                     "(docs/distributed.md)",
                     "state.file: %s is on %s, where locks and mappings are not safe", parent,
                     network);
    if (there)
        judge_state_file(findings, path, &file);
    else
        judge_room(findings, parent,
                   settings->state_bytes > 0 ? settings->state_bytes : STATE_BYTES_DEFAULT);
    free(copy);
}

/* --- Secrets and certificates ----------------------------------------------------------------- */

static void judge_secret(struct findings *findings, const char *what, const char *path)
{
    struct stat file;
    if (path && stat(path, &file) == 0 && (file.st_mode & (S_IROTH | S_IWOTH)))
        findings_add(findings, FINDING_WARNING, "secret_public",
                     "chmod 0640 the file, with a group that weir is in",
                     "%s: every user may read %s", what, path);
}

/* The end of a certificate's term, in the zone of all times. */
static const char *end_text(const ASN1_TIME *end, char text[WEIR_MOMENT_MAX])
{
    struct tm parts;
    if (ASN1_TIME_to_tm(end, &parts) != 1)
        return "an unreadable time";
    return cli_time_text(text, (uint64_t)timegm(&parts) * UINT64_C(1000000000));
}

static void judge_term(struct findings *findings, const char *what, const char *path,
                       uint64_t now_s)
{
    time_t now = (time_t)now_s, soon = (time_t)(now_s + (uint64_t)EXPIRES_SOON_DAYS * DAY_S);
    FILE *file = path ? fopen(path, "re") : NULL;
    X509 *certificate = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
    if (file)
        fclose(file);
    if (!certificate)
        return; /* weir_server_check says why */
    const ASN1_TIME *end = X509_get0_notAfter(certificate);
    char text[WEIR_MOMENT_MAX];
    if (X509_cmp_time(end, &now) < 0)
        findings_add(findings, FINDING_ERROR, "certificate_expired",
                     "renew it; weir takes the new files by itself", "%s: %s expired at %s", what,
                     path, end_text(end, text));
    else if (X509_cmp_time(end, &soon) < 0)
        findings_add(findings, FINDING_WARNING, "certificate_expires",
                     "renew it; weir takes the new files by itself",
                     "%s: %s expires at %s, within %d days", what, path, end_text(end, text),
                     EXPIRES_SOON_DAYS);
    X509_free(certificate);
}

/* Whether the rules file itself has this secret, not the name of a file with it. */
static bool is_inline(const char *rules, size_t size, const char *secret)
{
    return secret && secret[0] && memmem(rules, size, secret, strlen(secret));
}

/* Of a URL of Redis: scheme://user:password@host. */
static bool has_password(const char *url)
{
    const char *user = url ? strstr(url, "://") : NULL;
    const char *at = user ? strchr(user + 3, '@') : NULL;
    return at && memchr(user + 3, ':', (size_t)(at - user - 3));
}

/* Whether the rules file has a password of this Redis. */
static bool has_inline(const char *text, size_t size, const struct weir_redis_access *access)
{
    return (has_password(access->url) && is_inline(text, size, access->url)) ||
           is_inline(text, size, access->password) ||
           is_inline(text, size, access->sentinel_password);
}

static bool has_secret(const char *text, size_t size, const struct weir_rules *rules)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    const char *const tokens[] = {settings->http.token, settings->redis.token, settings->grpc.token,
                                  settings->admin.token};
    bool found = settings->webhook.secret_inline ||
                 has_inline(text, size, &settings->store.redis) ||
                 has_inline(text, size, &settings->identities.redis) ||
                 has_inline(text, size, &settings->sticky.access);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        found = found || is_inline(text, size, tokens[i]);
    for (uint32_t i = 0; i < RULES_REGIONS_MAX; i++) {
        struct weir_bytes name;
        const struct weir_store_settings *store = weir_rules_region_store(rules, i, &name);
        found = found || (store && has_inline(text, size, &store->redis));
    }
    return found;
}

static void judge_rules_file(struct findings *findings, const char *path,
                             const struct weir_rules *rules)
{
    struct stat status;
    char *text = malloc(RULES_BYTES_MAX);
    int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t size = fd >= 0 && fstat(fd, &status) == 0 ? read(fd, text, RULES_BYTES_MAX) : -1;
    bool found = size > 0 && has_secret(text, (size_t)size, rules);
    if (fd >= 0)
        close(fd);
    free(text);
    if (found && (status.st_mode & (S_IROTH | S_IWOTH)))
        findings_add(
            findings, FINDING_WARNING, "secret_public",
            "move each secret to a file of its own (token_file, password_file, secret_file), or "
            "chmod 0640 the rules file, with a group that weir is in",
            "every user may read %s, which has a token or a password", path);
}

static void judge_region_keys(struct findings *findings, const struct weir_rules *rules)
{
    for (uint32_t i = 0; i < RULES_REGIONS_MAX; i++) {
        struct weir_bytes name;
        char section[sizeof "regions..redis" + RULES_NAME_MAX];
        const struct weir_store_settings *store = weir_rules_region_store(rules, i, &name);
        if (!store)
            continue;
        snprintf(section, sizeof section, "regions.%.*s.redis", (int)name.size, name.data);
        judge_secret(findings, section, store->redis.key_file);
    }
}

void files_judge(struct findings *findings, const char *config, const struct weir_rules *rules,
                 uint64_t now_s)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    judge_state(findings, settings);
    struct weir_fronts fronts;
    weir_services_fronts(weir_services, &fronts);
    for (unsigned i = 0; i < fronts.count; i++) {
        const struct weir_front *front = fronts.list[i];
        const struct weir_listener_settings *listener = weir_front_settings(front, settings);
        if (front->address)
            continue; /* these settings are another front's */
        judge_secret(findings, front->name, listener->tls.key_file);
        judge_term(findings, front->name, listener->tls.cert_file, now_s);
    }
    judge_secret(findings, "store.redis", settings->store.redis.key_file);
    judge_secret(findings, "identities.redis", settings->identities.redis.key_file);
    judge_secret(findings, "sticky", settings->sticky.access.key_file);
    judge_region_keys(findings, rules);
    for (const struct weir_secret_file *file = settings->secret_files; file; file = file->next)
        judge_secret(findings, file->key, file->path);
    judge_rules_file(findings, config, rules);
}
