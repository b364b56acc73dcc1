/* SPDX-License-Identifier: Apache-2.0 */
/* see nft.h
 *
 * What is loaded is compared with what nft makes of the same text: the text is loaded into a
 * network namespace of its own, where it touches no packet, and both are listed by the same nft.
 */
#include "feature/kernel/cli/nft.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/rules_file.h"
#include "feature/kernel/ruleset.h"

#define CONFIG_DEFAULT "weir.yaml"

struct nft_options {
    const char *config;
    bool apply, check, remove;
};

#define AT(field) .at = offsetof(struct nft_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('c', "config", "FILE", "the rules file (" CONFIG_DEFAULT ")", .kind = CLI_TEXT,
               AT(config)),
    CLI_OPTION(0, "apply", NULL, "load the rules into the kernel, in one transaction",
               .kind = CLI_FLAG, AT(apply)),
    CLI_OPTION(0, "check", NULL, "show how what is loaded differs; then the exit status is 1",
               .kind = CLI_FLAG, AT(check)),
    CLI_OPTION(0, "remove", NULL, "remove the rules from the kernel", .kind = CLI_FLAG, AT(remove)),
};

static const struct cli_syntax syntax = {
    .command = "nft",
    .usage =
        "Usage: weir nft [OPTION]...\n"
        "Print the `limits` of `kernel` in a rules file as rules for nft, or load, compare or\n"
        "remove them. --apply, --check and --remove need root and the program nft.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

/* --- nft as a process ------------------------------------------------------------------------- */

/* Runs nft with `input` (NULL: none) in this namespace. Its output goes to *output, the caller's to
 * free, or with NULL to stdout. Returns its exit status, or -1: it could not be run. */
static int run_nft(char *const arguments[], const char *input, char **output)
{
    FILE *in = tmpfile(), *out = tmpfile();
    size_t room = 0;
    int status = -1;
    pid_t pid = -1;

    if (in && out && (!input || fputs(input, in) >= 0) && fflush(in) == 0) {
        rewind(in);
        pid = fork();
    }
    if (pid == 0) {
        if (dup2(fileno(in), 0) == 0 && (!output || dup2(fileno(out), 1) == 1))
            execvp(arguments[0], arguments);
        cli_error("cannot run nft: %s; install nftables", strerror(errno));
        _exit(127);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid)
        status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (output && out) {
        *output = NULL;
        rewind(out);
        if (getdelim(output, &room, '\0', out) < 0) {
            free(*output);
            *output = strdup("");
        }
    }
    if (in)
        fclose(in);
    if (out)
        fclose(out);
    return status;
}

static int load(const char *text)
{
    char nft[] = "nft", file[] = "-f", dash[] = "-";
    char *const arguments[] = {nft, file, dash, NULL};

    return run_nft(arguments, text, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The table as nft lists it, without what packets have changed; empty: there is none. */
static char *list_table(char *name)
{
    char nft[] = "nft", terse[] = "-t", stateless[] = "-s", list[] = "list", ruleset[] = "ruleset";
    char *const arguments[] = {nft, terse, stateless, list, ruleset, NULL};
    char *all = NULL, *begin, *end = NULL, start[WEIR_KERNEL_RULESET_NAME_MAX + 16];

    snprintf(start, sizeof start, "table inet %s {\n", name);
    if (run_nft(arguments, NULL, &all) != 0 || !all) {
        free(all);
        return NULL;
    }
    begin = strstr(all, start);
    if (begin)
        end = strstr(begin, "\n}\n");
    if (begin && end)
        end[1] = '\0';
    memmove(all, begin && end ? begin : "", strlen(begin && end ? begin : "") + 1);
    return all;
}

/* --- Comparing -------------------------------------------------------------------------------- */

/* The same text as it would be listed: a child loads it where nothing else is. NULL: it failed. */
static char *list_wanted(const char *text, char *name)
{
    FILE *out = tmpfile();
    char *wanted = NULL;
    size_t room = 0;
    int status = -1;
    pid_t pid = out ? fork() : -1;

    if (pid == 0) {
        char *listed;

        if (unshare(CLONE_NEWNET) < 0) {
            cli_error("cannot make a network namespace: %s; run this as root", strerror(errno));
            _exit(1);
        }
        listed = load(text) == EXIT_SUCCESS ? list_table(name) : NULL;
        _exit(listed && fputs(listed, out) >= 0 && fflush(out) == 0 ? 0 : 1);
    }
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    if (pid > 0 && status == 0) {
        rewind(out);
        if (getdelim(&wanted, &room, '\0', out) < 0) {
            free(wanted);
            wanted = NULL;
        }
    }
    if (out)
        fclose(out);
    return wanted;
}

/* Prints the lines of `text` that `other` lacks. Returns how many. */
static unsigned print_missing(const char *text, const char *other, char sign)
{
    unsigned count = 0;

    while (*text) {
        size_t size = strcspn(text, "\n");
        bool found = size == 0;

        for (const char *at = other; !found && *at;) {
            size_t other_size = strcspn(at, "\n");

            found = other_size == size && memcmp(at, text, size) == 0;
            at += other_size + (at[other_size] == '\n');
        }
        if (!found) {
            printf("%c %.*s\n", sign, (int)size, text);
            count++;
        }
        text += size + (text[size] == '\n');
    }
    return count;
}

static int compare(const char *text, char *name)
{
    char *wanted = list_wanted(text, name), *loaded = wanted ? list_table(name) : NULL;
    int status = EXIT_FAILURE;

    if (wanted && loaded && !*loaded) {
        printf("the table inet %s is not loaded; run `weir nft --apply`\n", name);
    } else if (wanted && loaded) {
        unsigned lines = print_missing(wanted, loaded, '-') + print_missing(loaded, wanted, '+');

        if (lines == 0 && strcmp(wanted, loaded) != 0)
            puts("the same lines are loaded in another order");
        else if (lines == 0)
            status = EXIT_SUCCESS;
    }
    free(wanted);
    free(loaded);
    return status;
}

/* --- The command ------------------------------------------------------------------------------ */

static int remove_loaded(const char *name)
{
    char text[2 * WEIR_KERNEL_RULESET_NAME_MAX + 64];

    snprintf(text, sizeof text, "add table inet %s\ndelete table inet %s\n", name, name);
    return load(text);
}

static int run(const struct weir_settings *settings, const struct nft_options *options)
{
    char name[WEIR_KERNEL_RULESET_NAME_MAX], *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int status;

    if (!out) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return EXIT_FAILURE;
    }
    weir_kernel_ruleset_name(name, settings->kernel);
    weir_kernel_ruleset_write(out, settings->kernel, settings->trusted_proxies,
                              settings->trusted_proxy_count);
    if (fclose(out) != 0) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        status = EXIT_FAILURE;
    } else if (options->apply) {
        status = load(text);
    } else if (options->remove) {
        status = remove_loaded(name);
    } else if (options->check) {
        status = compare(text, name);
    } else {
        fputs(text, stdout);
        status = EXIT_SUCCESS;
    }
    free(text);
    return status;
}

int weir_command_nft(int argc, char **argv)
{
    struct nft_options options = {.config = CONFIG_DEFAULT};
    struct weir_rules *rules;
    int status;

    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    if (options.apply + options.check + options.remove > 1)
        return cli_usage_error("nft", "give one of --apply, --check and --remove");
    if (cli_load_rules(&rules, options.config) < 0)
        return EXIT_FAILURE;
    if (weir_rules_settings(rules)->kernel->limits_count == 0 && !options.remove) {
        cli_error("%s has no `limits` in `kernel`", options.config);
        status = EXIT_FAILURE;
    } else {
        status = run(weir_rules_settings(rules), &options);
    }
    weir_rules_unref(rules);
    return cli_finish(status);
}
