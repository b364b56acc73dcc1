/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the last good response. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "feature/envoy/server/xds/cache.h"
#include "temporary.h"

static char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 16];

static int open_folder(void **state)
{
    (void)state;
    temporary_folder(folder);
    snprintf(path, sizeof path, "%s/cache", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_text(const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

TEST("what is written is read, and nobody else may read it")
{
    static char text[] = "a message \0 of any bytes";
    struct weir_xds_response in = {text, sizeof text, 7}, out = {NULL, 0, 9};
    struct weir_reason reason = {""};
    struct stat what;
    assert_int_equal(weir_xds_cache_read(path, 100, &out, &reason), WEIR_ERR_NOT_FOUND);
    assert_string_equal(reason.text, "");
    assert_int_equal(weir_xds_cache_write(path, &in, &reason), 0);
    assert_int_equal(weir_xds_cache_read(path, sizeof text, &out, &reason), 0);
    assert_int_equal(out.size, sizeof text);
    assert_memory_equal(out.data, text, sizeof text);
    assert_int_equal(out.number, 0);
    free(out.data);
    assert_int_equal(stat(path, &what), 0);
    assert_int_equal(what.st_mode & 0777, 0600);
    assert_int_equal(weir_xds_cache_read(path, sizeof text - 1, &out, &reason), WEIR_ERR_IO);
    assert_non_null(strstr(reason.text, "larger"));
}

TEST("a byte that is changed or missing is found")
{
    static char text[] = "12345678";
    struct weir_xds_response in = {text, sizeof text, 0}, out = {NULL, 0, 0};
    struct weir_reason reason = {""};
    char whole[256];
    assert_int_equal(weir_xds_cache_write(path, &in, &reason), 0);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    assert_true(size > sizeof text);
    for (size_t i = 0; i < size; i++) {
        whole[i] ^= 0x10;
        write_text(whole, size);
        assert_int_equal(weir_xds_cache_read(path, 1000, &out, &reason), WEIR_ERR_IO);
        whole[i] ^= 0x10;
        write_text(whole, i);
        assert_int_equal(weir_xds_cache_read(path, 1000, &out, &reason), WEIR_ERR_IO);
    }
    write_text(whole, size);
    assert_int_equal(weir_xds_cache_read(path, 1000, &out, &reason), 0);
    free(out.data);
}

TEST("a place that cannot be written says so and leaves nothing")
{
    static char text[] = "1";
    struct weir_xds_response in = {text, 1, 0};
    struct weir_reason reason = {""};
    char no_folder[sizeof path + 8];
    snprintf(no_folder, sizeof no_folder, "%s/none/x", folder);
    assert_int_equal(weir_xds_cache_write(no_folder, &in, &reason), WEIR_ERR_IO);
    assert_non_null(strstr(reason.text, "No such file"));
}

RUN_TESTS_WITH(open_folder, remove_folder)
