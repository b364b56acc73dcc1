/* SPDX-License-Identifier: Apache-2.0 */
/* see check.h */
#include "feature/envoy/cli/check.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/options.h"
#include "feature/envoy/rules/envoy.h"

#define PREFIX_MAX 4096 /* of a path; a longer one cannot be read */

/* Files are called by their path there: the folder, a slash, the name. */
static void write_prefix(const char *folder, char *prefix, size_t size)
{
    while (folder[0] == '.' && folder[1] == '/')
        folder += 1 + strspn(folder + 1, "/");
    size_t used = strlen(folder);
    while (used > 0 && folder[used - 1] == '/')
        used--;
    bool here = used == 0 ? *folder == '\0' : used == 1 && *folder == '.';
    snprintf(prefix, size, "%.*s%s", here ? 0 : (int)used, folder, here ? "" : "/");
}

bool cli_envoy_is_config(const char *path)
{
    char line[256];
    bool domain = false, descriptors = false;
    struct weir_reason reason;
    int descriptor = weir_file_open(path, &reason);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;

    while (file && fgets(line, sizeof line, file)) {
        domain |= !strncmp(line, "domain:", 7);
        descriptors |= !strncmp(line, "descriptors:", 12);
    }
    if (file)
        fclose(file);
    else if (descriptor >= 0)
        close(descriptor);
    return domain && descriptors;
}

static void print_opening(const char *name)
{
    printf("opening config file: %s\n", name);
}

int cli_envoy_check(const char *folder, bool merge_domains, bool quiet)
{
    char prefix[PREFIX_MAX];
    const struct weir_envoy_options options = {.merge_domains = merge_domains,
                                               .ignore_dot_files = true,
                                               .name_prefix = prefix,
                                               .opening = quiet ? NULL : print_opening};
    struct weir_envoy *envoy;
    struct weir_envoy_error error;
    if (!quiet)
        printf("checking rate limit configs...\nloading config directory: %s\n", folder);
    write_prefix(folder, prefix, sizeof prefix);
    int err = weir_envoy_load(&envoy, folder, &options, &error);
    if (err < 0) {
        const char *text = error.text[0] ? error.text : weir_error_text(err);
        if (quiet)
            cli_error("%s", text);
        else
            printf("error loading rate limit configs: %s\n", text);
        return EXIT_FAILURE;
    }
    for (uint32_t i = 0; weir_envoy_warning(envoy, i); i++)
        cli_error("warning: %s", weir_envoy_warning(envoy, i));
    if (!quiet)
        puts("all rate limit configs ok");
    weir_envoy_unref(envoy);
    return EXIT_SUCCESS;
}

int weir_command_config_check(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"config_dir", required_argument, NULL, 'd'},
        {"merge_domain_configs", no_argument, NULL, 'm'},
        {NULL, 0, NULL, 0},
    };
    const char *folder = "";
    bool merge = false;
    int option;
    while ((option = getopt_long_only(argc, argv, "", long_options, NULL)) != -1)
        if (option == 'd')
            folder = optarg;
        else if (option == 'm')
            merge = true;
        else
            return WEIR_EXIT_USAGE;
    return cli_finish(cli_envoy_check(folder, merge, false));
}
