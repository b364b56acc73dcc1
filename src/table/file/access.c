/* SPDX-License-Identifier: Apache-2.0 */
/* see access.h */
#include "table/file/access.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shared_file.h"
#include "core/text/reason.h"

#define NAMES_MAX 65536 /* of one entry, the members of a group included */
#define MODE_DEFAULT 0600
#define MODE_SHARED 0660
#define MODE_BITS 0666u
#define MODE_OF_GROUP 0060u

/* Where a lookup fails, the number is shown alone. */
static void put_user(struct weir_reason *reason, uid_t uid)
{
    struct passwd entry, *found = NULL;
    char names[NAMES_MAX], text[64];

    if (getpwuid_r(uid, &entry, names, sizeof names, &found) == 0 && found)
        snprintf(text, sizeof text, "user %.32s (%u)", found->pw_name, (unsigned)uid);
    else
        snprintf(text, sizeof text, "user %u", (unsigned)uid);
    reason_text(reason, text);
}

static void put_group(struct weir_reason *reason, gid_t gid)
{
    struct group entry, *found = NULL;
    char names[NAMES_MAX], text[64];

    if (getgrgid_r(gid, &entry, names, sizeof names, &found) == 0 && found)
        snprintf(text, sizeof text, "group %.32s (%u)", found->gr_name, (unsigned)gid);
    else
        snprintf(text, sizeof text, "group %u", (unsigned)gid);
    reason_text(reason, text);
}

void access_explain(const char *path, struct weir_reason *reason)
{
    struct stat status;
    char mode[24];

    if (stat(path, &status) != 0) {
        reason_text(reason, "; this process is ");
        put_user(reason, geteuid());
        reason_text(reason, ", who may not write to the folder");
        return;
    }
    snprintf(mode, sizeof mode, "; it has mode %04o, ", (unsigned)status.st_mode & 07777u);
    reason_text(reason, mode);
    put_user(reason, status.st_uid);
    reason_text(reason, ", ");
    put_group(reason, status.st_gid);
    reason_text(reason, "; this process is ");
    put_user(reason, geteuid());
}

static int refuse(struct weir_reason *reason, const char *path, const char *what, const char *name,
                  int number)
{
    char text[64] = "";

    reason_text(reason, path);
    reason_text(reason, what);
    reason_text(reason, name);
    if (number != 0) {
        reason_text(reason, ": ");
        reason_text(reason, strerror_r(number, text, sizeof text));
        reason_text(reason, "; this process is ");
        put_user(reason, geteuid());
    }
    return WEIR_ERR_IO;
}

static int find_user(const char *path, const char *name, uid_t *uid, struct weir_reason *reason)
{
    struct passwd entry, *found = NULL;
    char names[NAMES_MAX];
    int number = getpwnam_r(name, &entry, names, sizeof names, &found);

    if (number != 0)
        return refuse(reason, path, ": cannot look up user ", name, number);
    if (!found) {
        (void)refuse(reason, path, ": there is no user ", name, 0);
        return WEIR_ERR_NOT_FOUND;
    }
    *uid = found->pw_uid;
    return 0;
}

static int find_group(const char *path, const char *name, gid_t *gid, struct weir_reason *reason)
{
    struct group entry, *found = NULL;
    char names[NAMES_MAX];
    int number = getgrnam_r(name, &entry, names, sizeof names, &found);

    if (number != 0)
        return refuse(reason, path, ": cannot look up group ", name, number);
    if (!found) {
        (void)refuse(reason, path, ": there is no group ", name, 0);
        return WEIR_ERR_NOT_FOUND;
    }
    *gid = found->gr_gid;
    return 0;
}

/* Gives the file to a user or a group, unless it is theirs. */
static int give(int fd, const char *path, uid_t uid, gid_t gid, struct weir_reason *reason)
{
    struct stat status;

    if (fstat(fd, &status) == 0 && (uid == (uid_t)-1 || uid == status.st_uid) &&
        (gid == (gid_t)-1 || gid == status.st_gid))
        return 0;
    if (fchown(fd, uid, gid) == 0)
        return 0;
    return refuse(reason, path, ": cannot give the state file to another ",
                  uid != (uid_t)-1 ? "user" : "group", errno);
}

/* Gives the new file to the owner and group of the one that it replaces, where this process may.
 * Where it may not set the group, the group that the file has gets no rights. Returns the mode. */
static mode_t inherit(int fd, const struct stat *old)
{
    mode_t mode = old->st_mode & MODE_BITS;

    if (!weir_file_give(fd, old))
        mode &= ~MODE_OF_GROUP;
    return mode;
}

int access_set(int fd, const char *path, const struct weir_table_options *options, int old,
               struct weir_reason *reason)
{
    struct stat status;
    mode_t mode = weir_file_is_in_shared_folder(path) ? MODE_SHARED : MODE_DEFAULT;
    uid_t uid = (uid_t)-1;
    gid_t gid = (gid_t)-1;
    int err = 0;

    if (old >= 0 && fstat(old, &status) == 0)
        mode = inherit(fd, &status);
    if (options->mode != 0)
        mode = options->mode & MODE_BITS;
    if (options->owner)
        err = find_user(path, options->owner, &uid, reason);
    if (err == 0 && options->group)
        err = find_group(path, options->group, &gid, reason);
    if (err == 0)
        err = give(fd, path, uid, gid, reason);
    if (err < 0)
        return err;
    if (fchmod(fd, mode) != 0)
        return refuse(reason, path, ": cannot set the mode of the state file", "", errno);
    return 0;
}

/* --- Asking beforehand ------------------------------------------------------------------------ */

static bool is_in_group(gid_t gid)
{
    gid_t groups[NGROUPS_MAX];
    int count = getgroups(NGROUPS_MAX, groups);

    for (int i = 0; i < count; i++)
        if (groups[i] == gid)
            return true;
    return getegid() == gid;
}

/* What access_set will be asked for. `folder`: where the new file will be. */
static int check_gift(const struct weir_table_options *options, const struct stat *folder,
                      uid_t uid, gid_t gid, struct weir_reason *reason)
{
    bool is_folders = (folder->st_mode & S_ISGID) != 0 && folder->st_gid == gid;

    if (geteuid() == 0)
        return 0;
    if (options->owner && uid != geteuid())
        return refuse(reason, options->path, ": only root can give the state file to user ",
                      options->owner, EPERM);
    if (options->group && !is_folders && !is_in_group(gid))
        return refuse(reason, options->path, ": only a member can give the state file to group ",
                      options->group, EPERM);
    return 0;
}

static int check_folder(const struct weir_table_options *options, uid_t uid, gid_t gid,
                        struct weir_reason *reason)
{
    struct stat status;
    char room[PATH_MAX], *folder;

    snprintf(room, sizeof room, "%s", options->path);
    folder = dirname(room);
    if (stat(folder, &status) != 0 || faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        return refuse(reason, options->path, ": cannot create it in the folder ", folder, errno);
    return check_gift(options, &status, uid, gid, reason);
}

int weir_table_check_access(const struct weir_table_options *options, struct weir_reason *reason)
{
    struct stat status;
    uid_t uid = (uid_t)-1;
    gid_t gid = (gid_t)-1;
    int err = 0;

    if (!options->path)
        return 0;
    if (options->owner)
        err = find_user(options->path, options->owner, &uid, reason);
    if (err == 0 && options->group)
        err = find_group(options->path, options->group, &gid, reason);
    if (err < 0)
        return err;
    if (stat(options->path, &status) != 0)
        return check_folder(options, uid, gid, reason);
    if (faccessat(AT_FDCWD, options->path, R_OK | W_OK, AT_EACCESS) == 0)
        return 0;
    (void)refuse(reason, options->path, ": cannot open it: ",
                 errno == EACCES ? "Permission denied" : "it cannot be written to", 0);
    access_explain(options->path, reason);
    return WEIR_ERR_IO;
}
