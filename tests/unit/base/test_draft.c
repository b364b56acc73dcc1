/* SPDX-License-Identifier: Apache-2.0 */
/* Files that replace others whole: what is there afterwards, and that a failure leaves the old one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/draft.h"
#include "core/bytes.h"
#include "temporary.h"
#include "test.h"

static char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 8], draft[TEMPORARY_MAX + 16];

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_has(const char *name, const char *text)
{
    char got[64] = "";
    FILE *file = fopen(name, "re");

    assert_non_null(file);
    (void)!fread(got, 1, sizeof got - 1, file);
    fclose(file);
    assert_string_equal(got, text);
}

static int replace(const char *name, const char *one, const char *two)
{
    const struct weir_bytes parts[] = {weir_bytes_of(one), weir_bytes_of(two)};

    return weir_draft_replace(name, parts, 2);
}

TEST("a file is made, and replaced by all parts, for its owner alone")
{
    struct stat status;

    assert_int_equal(replace(path, "one ", "two"), 0);
    assert_has(path, "one two");
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(replace(path, "", "three"), 0);
    assert_has(path, "three");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(access(draft, F_OK), -1);
}

TEST("what a process left that died is replaced, and a link there is not followed")
{
    char target[TEMPORARY_MAX + 8];

    snprintf(target, sizeof target, "%s/target", folder);
    put(draft, "half of somethi");
    assert_int_equal(replace(path, "whole", ""), 0);
    assert_has(path, "whole");
    put(target, "kept");
    assert_int_equal(symlink(target, draft), 0);
    assert_int_equal(replace(path, "again", ""), 0);
    assert_has(path, "again");
    assert_has(target, "kept");
}

TEST("a replacement that fails says why and leaves the file as it was")
{
    char missing[TEMPORARY_MAX + 24], name[PATH_MAX];

    put(path, "before");
    assert_int_equal(mkdir(draft, 0700), 0); /* it cannot be unlinked */
    assert_int_equal(replace(path, "after", ""), WEIR_ERR_IO);
    assert_int_equal(errno, EEXIST);
    assert_has(path, "before");
    assert_int_equal(rmdir(draft), 0);
    snprintf(missing, sizeof missing, "%s/missing/file", folder);
    assert_int_equal(replace(missing, "after", ""), WEIR_ERR_IO);
    assert_int_equal(errno, ENOENT);
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(replace(name, "after", ""), WEIR_ERR_IO);
    assert_int_equal(errno, ENAMETOOLONG);
}

TEST("a file that cannot be put in its place leaves no draft behind")
{
    char inside[TEMPORARY_MAX + 16];

    (void)unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(inside, sizeof inside, "%s/in", path);
    put(inside, "");
    assert_int_equal(replace(path, "after", ""), WEIR_ERR_IO);
    assert_int_equal(access(draft, F_OK), -1);
}

TEST("the longest name of a draft differs from one that is too long")
{
    char name[PATH_MAX], long_path[PATH_MAX];

    memset(long_path, 'a', sizeof long_path);
    long_path[PATH_MAX - 5] = '\0';
    assert_true(weir_draft_name(name, long_path));
    assert_int_equal(strlen(name), PATH_MAX - 1);
    long_path[PATH_MAX - 5] = 'a';
    long_path[PATH_MAX - 4] = '\0';
    assert_false(weir_draft_name(name, long_path));
    assert_int_equal(errno, ENAMETOOLONG);
}

static int make_folder(void **state)
{
    temporary_folder(folder);
    snprintf(path, sizeof path, "%s/one", folder);
    snprintf(draft, sizeof draft, "%s.new", path);
    return 0;
}

static int remove_folder(void **state)
{
    temporary_remove(folder);
    return 0;
}

RUN_TESTS_WITH(make_folder, remove_folder)
