/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the files that rules name: regular files, and nothing that could be waited for. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "feature/envoy/rules/envoy.h"
#include "rules_test.h"
#include "temporary.h"

static char folder[TEMPORARY_MAX];

static const char *in(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void make_file(const char *name, const char *text)
{
    FILE *file = fopen(in(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void expect_text(const char *name, const char *text)
{
    struct weir_reason reason = {{0}};
    char got[64] = "";
    int file = weir_file_open(in(name), &reason);
    assert_string_equal(reason.text, "");
    assert_true(file >= 0);
    assert_true(fcntl(file, F_GETFD) & FD_CLOEXEC);
    assert_true(read(file, got, sizeof(got) - 1) >= 0);
    assert_string_equal(got, text);
    assert_int_equal(close(file), 0);
}

static void expect_refused(const char *path, int err, const char *why)
{
    struct weir_reason reason = {{0}};
    char full[WEIR_REASON_MAX];
    assert_int_equal(weir_file_open(path, &reason), err);
    assert_string_equal(reason.text, why);
    assert_int_equal(weir_file_check(path, &reason), err);
    snprintf(full, sizeof(full), "%s: %s", path, why);
    assert_string_equal(reason.text, full);
}

static void a_regular_file_is_opened_also_through_links(void **state)
{
    make_file("plain", "words");
    expect_text("plain", "words");
    assert_int_equal(symlink("plain", in("link")), 0);
    expect_text("link", "words");
    assert_int_equal(weir_file_check(in("link"), NULL), 0);
}

static void links_that_kubernetes_swaps_lead_to_the_new_file(void **state)
{
    assert_int_equal(mkdir(in("..1"), 0700), 0);
    assert_int_equal(mkdir(in("..2"), 0700), 0);
    make_file("..1/keys", "old");
    make_file("..2/keys", "new");
    assert_int_equal(symlink("..1", in("..data")), 0);
    assert_int_equal(symlink("..data/keys", in("keys")), 0);
    expect_text("keys", "old");
    assert_int_equal(symlink("..2", in("..data_tmp")), 0);
    char from[128];
    snprintf(from, sizeof(from), "%s", in("..data_tmp"));
    assert_int_equal(rename(from, in("..data")), 0);
    expect_text("keys", "new");
}

static void what_is_no_regular_file_is_refused_by_its_kind(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(mkfifo(in("pipe"), 0600), 0); /* nobody will ever write to it */
    expect_refused(in("pipe"), WEIR_ERR_IO, "it is a FIFO; give a regular file");
    assert_int_equal(symlink("pipe", in("pipe-link")), 0);
    expect_refused(in("pipe-link"), WEIR_ERR_IO, "it is a FIFO; give a regular file");
    expect_refused(folder, WEIR_ERR_IO, "it is a directory; give a regular file");
    expect_refused("/dev/zero", WEIR_ERR_IO, "it is a device; give a regular file");
    snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", in("socket"));
    assert_int_equal(bind(sock, (const struct sockaddr *)&address, sizeof(address)), 0);
    expect_refused(in("socket"), WEIR_ERR_IO, "it is a socket; give a regular file");
    close(sock);
}

static void what_is_not_there_is_not_found(void **state)
{
    expect_refused(in("none"), WEIR_ERR_NOT_FOUND, "No such file or directory");
    assert_int_equal(symlink("none", in("dangling")), 0);
    expect_refused(in("dangling"), WEIR_ERR_NOT_FOUND, "No such file or directory");
    make_file("file", "x");
    expect_refused(in("file/below"), WEIR_ERR_NOT_FOUND, "Not a directory");
    assert_int_equal(symlink("loop", in("loop")), 0);
    expect_refused(in("loop"), WEIR_ERR_IO, "Too many levels of symbolic links");
}

static volatile sig_atomic_t leased = -1, broken;

static void on_lease_break(int number)
{
    broken = 1;
    fcntl((int)leased, F_SETLEASE, F_UNLCK);
}

/* File servers take leases: an open that does not wait fails then, and one that waits gets the
 * file when the lease's holder lets go. */
static void a_file_with_a_lease_is_opened_when_the_lease_ends(void **state)
{
    const struct sigaction act = {.sa_handler = on_lease_break, .sa_flags = SA_RESTART};
    assert_int_equal(sigaction(SIGIO, &act, NULL), 0);
    make_file("leased", "shared");
    leased = open(in("leased"), O_RDWR | O_CLOEXEC);
    assert_true(leased >= 0);
    if (fcntl((int)leased, F_SETLEASE, F_WRLCK) < 0) {
        close((int)leased);
        skip(); /* a file system without leases */
    }
    expect_text("leased", "shared");
    assert_int_equal(broken, 1);
    close((int)leased);
}

static void every_file_of_a_rules_file_is_a_regular_one(void **state)
{
    static const char *const texts[][2] = {
        {"version: 1\nkeys: ", "\nlimits: []\n"},
        {"version: 1\njwt: {keys: [", "], audience: a, issuer: b}\nlimits: []\n"},
        {"version: 1\njwt: {keys: [{secret_file: ", "}], audience: a, issuer: b}\nlimits: []\n"},
        {"version: 1\nstore: {redis: {url: 'redis://h', password_file: ", "}}\nlimits: []\n"},
        {"version: 1\nwebhook: {url: 'https://h/', secret_file: ", "}\nlimits: []\n"},
    };
    char pipe[128];
    snprintf(pipe, sizeof(pipe), "%s", in("fifo"));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        static char problems[TEST_PROBLEMS_MAX];
        char text[512], expected[256];
        snprintf(text, sizeof(text), "%s%s%s", texts[i][0], pipe, texts[i][1]);
        snprintf(expected, sizeof(expected), "cannot read %s: it is a FIFO; give a regular file\n",
                 pipe);
        assert_null(test_parse(text, problems));
        if (strstr(problems, expected) == NULL)
            fail_msg("of %s: %s", text, problems);
    }
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    assert_int_equal(weir_rules_load(&rules, pipe, &problems), WEIR_ERR_RULES);
    assert_string_equal(problems.list[0].message,
                        "cannot read the file: it is a FIFO; give a regular file");
    weir_problems_free(&problems);
}

static void a_folder_of_envoy_configuration_has_no_pipe(void **state)
{
    struct weir_envoy *envoy;
    struct weir_envoy_error error;
    const struct weir_envoy_options options = {.ignore_dot_files = true};
    char pipe[128], expected[256];
    make_file("1.yaml", "domain: d\n");
    assert_int_equal(weir_envoy_load(&envoy, folder, &options, &error), 0);
    weir_envoy_unref(envoy);
    snprintf(pipe, sizeof(pipe), "%s", in("2.yaml"));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(weir_envoy_load(&envoy, folder, &options, &error), WEIR_ERR_RULES);
    snprintf(expected, sizeof(expected), "cannot read %s: it is a FIFO; give a regular file", pipe);
    assert_string_equal(error.text, expected);
}

static int make_folder(void **state)
{
    temporary_folder(folder);
    return 0;
}

static int remove_folder(void **state)
{
    temporary_remove(folder);
    return 0;
}

static void a_whole_file_is_read_up_to_one_byte_too_many(void **state)
{
    struct weir_reason reason = {{0}};
    static char text[200001];
    char *bytes;
    size_t size;

    memset(text, 'x', sizeof(text) - 1);
    make_file("large", text);
    assert_int_equal(weir_file_read_whole(in("large"), 200000, &bytes, &size, &reason), 0);
    assert_int_equal(size, 200000);
    assert_memory_equal(bytes, text, size);
    free(bytes);
    assert_int_equal(weir_file_read_whole(in("large"), 199999, &bytes, &size, &reason), 0);
    assert_int_equal(size, 200000);
    free(bytes);
    assert_int_equal(weir_file_read_whole(in("large"), 1000, &bytes, &size, &reason), 0);
    assert_int_equal(size, 1001);
    free(bytes);
    make_file("empty", "");
    assert_int_equal(weir_file_read_whole(in("empty"), 10, &bytes, &size, &reason), 0);
    assert_int_equal(size, 0);
    free(bytes);
    assert_int_equal(weir_file_read_whole(in("none"), 10, &bytes, &size, &reason),
                     WEIR_ERR_NOT_FOUND);
    assert_null(bytes);
    assert_string_equal(reason.text, "No such file or directory");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_regular_file_is_opened_also_through_links),
        CASE(links_that_kubernetes_swaps_lead_to_the_new_file),
        CASE(what_is_no_regular_file_is_refused_by_its_kind),
        CASE(what_is_not_there_is_not_found),
        CASE(a_whole_file_is_read_up_to_one_byte_too_many),
        CASE(a_file_with_a_lease_is_opened_when_the_lease_ends),
        CASE(every_file_of_a_rules_file_is_a_regular_one),
        CASE(a_folder_of_envoy_configuration_has_no_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
