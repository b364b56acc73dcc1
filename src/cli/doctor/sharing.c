/* SPDX-License-Identifier: Apache-2.0 */
/* see sharing.h */
#include "cli/doctor/sharing.h"

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shared_file.h"
#include "feature/standing/settings.h"

#define GROUP_USES (S_IRGRP | S_IWGRP)
#define NAME_MAX_BYTES 64

/* A group by its name, else by its number. */
struct group_name {
    char text[NAME_MAX_BYTES];
};

static struct group_name name_of(gid_t gid)
{
    struct group_name name;
    const struct group *group = getgrgid(gid);
    if (group)
        snprintf(name.text, sizeof name.text, "%s", group->gr_name);
    else
        snprintf(name.text, sizeof name.text, "%u", (unsigned)gid);
    return name;
}

static const char *folder_of(const char *path, char room[PATH_MAX])
{
    snprintf(room, PATH_MAX, "%s", path);
    return dirname(room);
}

/* --- The group -------------------------------------------------------------------------------- */

static bool is_primary(gid_t gid)
{
    const struct passwd *user;
    bool found = false;
    setpwent();
    while (!found && (user = getpwent()))
        found = user->pw_gid == gid;
    endpwent();
    return found;
}

static bool is_member(gid_t gid)
{
    gid_t groups[NGROUPS_MAX];
    int count = getgroups(NGROUPS_MAX, groups);
    for (int i = 0; i < count; i++)
        if (groups[i] == gid)
            return true;
    return geteuid() == 0 || getegid() == gid;
}

static void judge_group(struct findings *findings, const char *folder, gid_t gid)
{
    const struct group *group = getgrgid(gid);
    if (!is_member(gid))
        findings_add(findings, FINDING_ERROR, "state_group_member",
                     "add the user to the group (usermod -aG GROUP USER), and start the service "
                     "anew",
                     "state.file: this user is not in the group %s, which shares %s",
                     name_of(gid).text, folder);
    else if (group && !group->gr_mem[0] && !is_primary(gid))
        findings_add(findings, FINDING_WARNING, "state_group_empty",
                     "add the users of weir and of nginx: usermod -aG GROUP USER; then start them "
                     "anew",
                     "state.file: the group %s shares %s, and nobody is in it", group->gr_name,
                     folder);
}

/* --- The files -------------------------------------------------------------------------------- */

static void judge_file(struct findings *findings, const char *path, const struct stat *file,
                       gid_t gid)
{
    if (file->st_gid == gid && (file->st_mode & GROUP_USES) == GROUP_USES)
        return;
    findings_add(findings, FINDING_WARNING, "state_group",
                 "chgrp the file to the group of its folder, and chmod 0660",
                 "state.file: the group %s shares the folder, but not %s (group %s, mode %04o): "
                 "nginx and other programs of the group cannot open it",
                 name_of(gid).text, path, name_of(file->st_gid).text,
                 (unsigned)file->st_mode & 07777u);
}

static bool may_enter(const struct stat *folder, gid_t gid)
{
    return (folder->st_gid == gid && (folder->st_mode & S_IXGRP)) || (folder->st_mode & S_IXOTH);
}

static bool may_read(const struct stat *file, gid_t gid)
{
    return (file->st_gid == gid && (file->st_mode & S_IRGRP)) || (file->st_mode & S_IROTH);
}

/* `gid`: the group that counts on the state, too. */
static void judge_map(struct findings *findings, const char *path, gid_t gid)
{
    char room[PATH_MAX];
    const char *parent = folder_of(path, room);
    struct stat folder, file;
    if (stat(parent, &folder) != 0)
        return; /* judge_map_folder says so */
    if (!may_enter(&folder, gid))
        findings_add(
            findings, FINDING_WARNING, "standing_map",
            "name a map in the folder of the state: standing: { map: FOLDER/standing.map }",
            "standing: the group %s shares the state, but may not enter %s, where the map "
            "is: nginx and programs of the group cannot see who is banned",
            name_of(gid).text, parent);
    else if (stat(path, &file) == 0 && !may_read(&file, gid))
        findings_add(findings, FINDING_WARNING, "standing_map",
                     "chgrp the file to the group of the state, and chmod 0640; weir keeps both",
                     "standing: the group %s shares the state, but may not read %s (group %s, mode "
                     "%04o): nginx and programs of the group cannot see who is banned",
                     name_of(gid).text, path, name_of(file.st_gid).text,
                     (unsigned)file.st_mode & 07777u);
}

/* weir writes the map, beside it and over it. */
static void judge_map_folder(struct findings *findings, const char *path)
{
    char room[PATH_MAX];
    const char *parent = folder_of(path, room);
    struct stat folder;
    if (stat(parent, &folder) != 0)
        findings_add(findings, FINDING_ERROR, "standing_folder",
                     "create it for the user of weir; in /run by systemd-tmpfiles --create",
                     "standing: there is no folder %s for the map", parent);
    else if (access(parent, W_OK | X_OK) != 0)
        findings_add(findings, FINDING_ERROR, "standing_folder",
                     "chown it to the user of weir, or let a group that weir is in write there",
                     "standing: this user may not write the map in %s", parent);
}

void sharing_judge(struct findings *findings, const struct weir_rules *rules)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    const char *state = settings->state_file, *map = settings->standing->map;
    char room[PATH_MAX];
    struct stat folder, file;
    if (map)
        judge_map_folder(findings, map);
    if (!state || stat(folder_of(state, room), &folder) != 0)
        return;
    bool there = stat(state, &file) == 0, shared = weir_folder_is_shared(folder.st_mode);
    if (shared)
        judge_group(findings, room, folder.st_gid);
    if (shared && there)
        judge_file(findings, state, &file, folder.st_gid);
    if (map && shared)
        judge_map(findings, map, folder.st_gid);
    else if (map && there && (file.st_mode & GROUP_USES) == GROUP_USES)
        judge_map(findings, map, file.st_gid);
}
