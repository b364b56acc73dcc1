/* SPDX-License-Identifier: Apache-2.0 */
/* weir xdp in a build without clang or libbpf: xdp.c is compiled without WEIR_WITH_XDP here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <getopt.h>
#include <unistd.h>

#include "feature/xdp/cli/xdp.h"
#include "test.h"

#define TEXT_MAX 4096

/* Runs `weir xdp ARGUMENT`; `text` is what it writes to `stream`. */
static int run(const char *argument, int stream, char text[TEXT_MAX])
{
    char name[] = "xdp", *argv[3] = {name, NULL, NULL};
    FILE *file = tmpfile();
    int before = dup(stream), status;

    argv[1] = strdup(argument);
    assert_true(file && before >= 0 && argv[1]);
    fflush(NULL);
    dup2(fileno(file), stream);
    optind = 0; /* glibc: from the first argument on */
    status = weir_command_xdp(2, argv);
    fflush(NULL);
    dup2(before, stream);
    close(before);
    rewind(file);
    text[fread(text, 1, TEXT_MAX - 1, file)] = '\0';
    fclose(file);
    free(argv[1]);
    return status;
}

TEST("each command says what the build lacks")
{
    static const char *const commands[] = {"attach", "detach", "status", "top"};
    char text[TEXT_MAX];

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_int_equal(run(commands[i], STDERR_FILENO, text), EXIT_FAILURE);
        assert_non_null(strstr(text, "built without the filter for packets"));
        assert_non_null(strstr(text, "clang and libbpf (libbpf-dev)"));
    }
}

TEST("its help is there")
{
    char text[TEXT_MAX];

    assert_int_equal(run("--help", STDOUT_FILENO, text), EXIT_SUCCESS);
    assert_non_null(strstr(text, "weir xdp attach --config=FILE"));
}

RUN_TESTS()
