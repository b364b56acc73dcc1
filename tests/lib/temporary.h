/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders of a test's own, below TMPDIR. What a test leaves, also by failing, is removed
 * when the process ends that made it. Include it in one source of a program. Threads: one. */
#ifndef TEMPORARY_H
#define TEMPORARY_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With its end. A TMPDIR that is longer than 60 bytes, or relative, is ignored, and /tmp is used:
 * paths of sockets have 107 bytes at most. */
#define TEMPORARY_MAX 80
#define TEMPORARY_COUNT 8 /* at one time */

static struct {
    pid_t maker;
    char paths[TEMPORARY_COUNT][TEMPORARY_MAX];
} temporary;

static inline int temporary_remove_one(const char *path, const struct stat *status, int kind,
                                       struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

/* Removes a file, or a folder and all that is in it; it may be gone already. */
static inline void temporary_remove(const char *path)
{
    (void)nftw(path, temporary_remove_one, 8, FTW_DEPTH | FTW_PHYS);
    for (int i = 0; i < TEMPORARY_COUNT; i++)
        if (strcmp(temporary.paths[i], path) == 0)
            temporary.paths[i][0] = '\0';
}

static inline void temporary_remove_all(void)
{
    for (int i = 0; i < TEMPORARY_COUNT && getpid() == temporary.maker; i++)
        if (temporary.paths[i][0] != '\0')
            temporary_remove(temporary.paths[i]);
}

/* A failure ends the program: no test can go on without. */
static inline void temporary_check(int good, const char *path)
{
    if (good)
        return;
    perror(path);
    abort();
}

static inline void temporary_note(const char *path)
{
    int i = 0;
    if (temporary.maker == 0)
        temporary_check(atexit(temporary_remove_all) == 0, "atexit");
    temporary.maker = getpid();
    while (i < TEMPORARY_COUNT - 1 && temporary.paths[i][0] != '\0')
        i++;
    strcpy(temporary.paths[i], path);
}

static inline void temporary_name(char path[TEMPORARY_MAX])
{
    char name[TEMPORARY_MAX]; /* GCC 14 warns of snprintf to a path that could be NULL */
    const char *parent = getenv("TMPDIR");
    if (!parent || parent[0] != '/' || strlen(parent) > 60)
        parent = "/tmp";
    snprintf(name, sizeof name, "%.60s/weir-test-XXXXXX", parent);
    memcpy(path, name, sizeof name);
}

/* `text` with the path for each @; it lasts until the next call. */
static inline const char *temporary_in_text(const char *text, const char *path)
{
    static char whole[8192];
    size_t used = 0;
    for (; *text != '\0'; text++)
        if (*text == '@')
            used += (size_t)snprintf(whole + used, sizeof whole - used, "%s", path);
        else
            whole[used++] = *text;
    whole[used] = '\0';
    return whole;
}

/* Makes an empty folder and writes its path. */
static inline void temporary_folder(char path[TEMPORARY_MAX])
{
    temporary_name(path);
    temporary_check(mkdtemp(path) != NULL, path);
    temporary_note(path);
}

/* Makes an empty file and writes its path. Returns its descriptor, for the caller to close. */
static inline int temporary_file(char path[TEMPORARY_MAX])
{
    temporary_name(path);
    int file = mkstemp(path);
    temporary_check(file >= 0, path);
    temporary_note(path);
    return file;
}

/* Writes the path of a file that does not exist, for the test to make. */
static inline void temporary_path(char path[TEMPORARY_MAX])
{
    close(temporary_file(path));
    unlink(path);
}

#endif
