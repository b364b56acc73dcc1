/* SPDX-License-Identifier: Apache-2.0 */
/* Files that processes share: locks, names, access, and what a refusal says. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/shared_file.h"
#include "temporary.h"
#include "test.h"

static char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 8], other[TEMPORARY_MAX + 8];

static int open_path(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

TEST("a byte is locked by one open file at a time, and freed when that is closed")
{
    int one = open_path(path), two = open_path(path);

    assert_true(weir_file_lock(one, 7, F_WRLCK));
    assert_false(weir_file_lock(two, 7, F_WRLCK));
    assert_true(errno == EAGAIN || errno == EACCES);
    assert_true(weir_file_lock(two, 8, F_WRLCK));
    assert_true(weir_file_lock(one, 7, F_RDLCK));
    assert_true(weir_file_lock(two, 7, F_RDLCK));
    assert_false(weir_file_lock(two, 7, F_WRLCK));
    close(one);
    assert_true(weir_file_lock(two, 7, F_WRLCK));
    close(two);
}

TEST("a wait for a lock ends, with it or without")
{
    int one = open_path(path), two = open_path(path);

    assert_int_equal(weir_file_lock_within(one, 0, 0, 1000), 0);
    assert_int_equal(weir_file_lock_within(two, 0, 0, 1000), WEIR_ERR_BUSY);
    assert_int_equal(weir_file_lock_within(two, 0, 5000, 1000), WEIR_ERR_BUSY);
    assert_true(weir_file_lock(one, 0, F_UNLCK));
    assert_int_equal(weir_file_lock_within(two, 0, 5000, 1000), 0);
    assert_int_equal(weir_file_lock_within(two, 0, UINT64_MAX, 1000), 0); /* its own */
    assert_int_equal(weir_file_lock_within(-1, 0, 5000, 1000), WEIR_ERR_IO);
    assert_int_equal(errno, EBADF);
    close(one);
    close(two);
}

TEST("the second writer of a file is refused with the words of its user")
{
    struct weir_reason reason = {"what was here before"};
    char expected[WEIR_REASON_MAX];
    int one = open_path(path), two = open_path(path);

    assert_int_equal(weir_file_lock_writer(one, path, "taken", &reason), 0);
    assert_string_equal(reason.text, "what was here before");
    assert_int_equal(weir_file_lock_writer(two, path, "taken", &reason), WEIR_ERR_BUSY);
    snprintf(expected, sizeof expected, "%s: taken", path);
    assert_string_equal(reason.text, expected);
    assert_int_equal(weir_file_lock_writer(-1, "x", "taken", &reason), WEIR_ERR_IO);
    assert_string_equal(reason.text, "x: cannot lock it: Bad file descriptor");
    close(one);
    close(two);
}

TEST("a path names the open file until another one has its place")
{
    int one = open_path(path), two = open_path(other);

    assert_true(weir_file_is_at(one, path, true));
    assert_true(weir_file_is_at(one, path, false));
    assert_false(weir_file_is_same(one, two));
    assert_false(weir_file_is_same(one, -1));
    assert_int_equal(rename(other, path), 0);
    assert_false(weir_file_is_at(one, path, true));
    assert_true(weir_file_is_at(two, path, true));
    assert_false(weir_file_is_at(two, other, true)); /* none there */
    assert_int_equal(symlink(path, other), 0);
    assert_true(weir_file_is_at(two, other, true));
    assert_false(weir_file_is_at(two, other, false)); /* the link is another file */
    assert_int_equal(unlink(other), 0);
    close(one);
    close(two);
}

TEST("a new file takes owner, group and mode of another, without execution")
{
    struct stat status;
    int one = open_path(path), two = open_path(other);

    assert_int_equal(fchmod(one, 0751), 0);
    weir_file_take_access(two, path);
    assert_int_equal(fstat(two, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    assert_int_equal(unlink(path), 0);
    weir_file_take_access(two, path); /* none there: as before */
    assert_int_equal(fstat(two, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    close(one);
    close(two);
}

TEST("a folder is shared when its group may write and new files get that group")
{
    assert_true(weir_folder_is_shared(S_IFDIR | 02770));
    assert_false(weir_folder_is_shared(S_IFDIR | 0770));
    assert_false(weir_folder_is_shared(S_IFDIR | 02750));
    assert_false(weir_file_is_in_shared_folder(path));
    assert_int_equal(chmod(folder, 02770), 0);
    assert_true(weir_file_is_in_shared_folder(path));
    assert_int_equal(chmod(folder, 0700), 0);
    assert_false(weir_file_is_in_shared_folder("/no/such/folder/file"));
}

TEST("a refusal names the path and what failed")
{
    struct weir_reason reason = {"x"};

    assert_int_equal(weir_file_fail(&reason, WEIR_ERR_FORMAT, "/a", "no state file"),
                     WEIR_ERR_FORMAT);
    assert_string_equal(reason.text, "/a: no state file");
    assert_int_equal(weir_file_fail(NULL, WEIR_ERR_FORMAT, "/a", "b"), WEIR_ERR_FORMAT);
    errno = ENOENT;
    assert_int_equal(weir_file_fail_errno(&reason, "/a", "open it"), WEIR_ERR_NOT_FOUND);
    assert_string_equal(reason.text, "/a: cannot open it: No such file or directory");
    errno = ENOMEM;
    assert_int_equal(weir_file_fail_errno(&reason, "/a", NULL), WEIR_ERR_MEMORY);
    assert_string_equal(reason.text, "/a: Cannot allocate memory");
    errno = EIO;
    assert_int_equal(weir_file_fail_errno(NULL, "/a", NULL), WEIR_ERR_IO);
}

TEST("a long path leaves room for what is wrong, and its end is kept")
{
    struct weir_reason reason = {""};
    char name[600], what[200];

    memset(name, 'd', sizeof name - 1);
    memcpy(name + sizeof name - 6, "/file", 6);
    memset(what, 'w', sizeof what - 1);
    what[sizeof what - 1] = '\0';
    (void)weir_file_fail(&reason, 0, name, "it is damaged");
    assert_memory_equal(reason.text, "...ddd", 6);
    assert_non_null(strstr(reason.text, "d/file: it is damaged"));
    assert_true(strlen(reason.text) >= WEIR_REASON_MAX - 8);
    (void)weir_file_fail(&reason, 0, name, what);
    assert_non_null(strstr(reason.text, "ddd/file: www"));
}

TEST("all bytes are written and read back, and a short file is noticed")
{
    char text[] = "some bytes", got[sizeof text] = "";
    int fd = open_path(path);

    assert_int_equal(weir_file_write_all(fd, text, sizeof text), sizeof text);
    assert_true(weir_file_pread_all(fd, got, sizeof text));
    assert_string_equal(got, text);
    assert_true(weir_file_pread_all(fd, got, 0));
    assert_false(weir_file_pread_all(fd, got, sizeof text + 1));
    assert_int_equal(weir_file_write_all(-1, text, sizeof text), 0);
    close(fd);
}

static int make_folder(void **state)
{
    temporary_folder(folder);
    snprintf(path, sizeof path, "%s/one", folder);
    snprintf(other, sizeof other, "%s/two", folder);
    return 0;
}

static int remove_folder(void **state)
{
    temporary_remove(folder);
    return 0;
}

RUN_TESTS_WITH(make_folder, remove_folder)
