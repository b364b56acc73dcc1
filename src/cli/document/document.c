/* SPDX-License-Identifier: Apache-2.0 */
/* see document.h */
#include "cli/document/document.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/document/model.h"
#include "cli/document/openapi.h"
#include "cli/document/page.h"
#include "cli/options.h"
#include "cli/rules_file.h"

enum document_form { FORM_MARKDOWN, FORM_HTML, FORM_OPENAPI, FORM_JSON };

struct document_options {
    const char *config, *title;
    enum document_form form;
};

static bool take_form(void *field, char *value, struct weir_reason *reason)
{
    static const char *const names[] = {"markdown", "html", "openapi", "json"};

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(value, names[i])) {
            *(enum document_form *)field = (enum document_form)i;
            return true;
        }
    return cli_refuse(reason, "markdown, html, openapi or json", value);
}

#define AT(field) .at = offsetof(struct document_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('c', "config", "FILE", "rules file", .kind = CLI_TEXT, AT(config)),
    CLI_OPTION('f', "format", "FORM",
               "markdown (the default), html, openapi (a fragment, in JSON) or\n"
               "json (what the others are made of)",
               .kind = CLI_TAKEN, .take = take_form, AT(form)),
    CLI_OPTION(0, "title", "TEXT", "of the page (Rate limits)", .kind = CLI_TEXT, AT(title)),
};

static const struct cli_syntax syntax = {
    .command = "document",
    .usage = "Usage: weir document --config=FILE [OPTION]...\n"
             "Write the limits of a rules file down for those whom they limit: requests, costs, "
             "what\n"
             "each plan affords, the fields of answers, and denials. Limits in shadow and secrets "
             "are\n"
             "left out.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

/* Returns the exit status. */
static int print_json(json_t *made)
{
    int error = made ? json_dumpf(made, stdout, JSON_INDENT(1)) : -1;

    putchar('\n');
    json_decref(made);
    return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print(const struct document_options *options, json_t *model)
{
    struct document_labels labels = {options->title, options->form == FORM_HTML};

    if (options->form == FORM_JSON)
        return print_json(json_incref(model));
    if (options->form == FORM_OPENAPI)
        return print_json(document_openapi(model));
    document_page(stdout, &labels, model);
    return EXIT_SUCCESS;
}

int weir_command_document(int argc, char **argv)
{
    struct document_options options = {.title = "Rate limits"};
    struct weir_rules *rules;
    int status;

    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    if (!options.config)
        return cli_usage_error("document", "--config is required");
    if (cli_load_rules(&rules, options.config) < 0)
        return EXIT_FAILURE;
    json_t *model = document_model(rules);
    weir_rules_unref(rules);
    if (!model) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return EXIT_FAILURE;
    }
    status = print(&options, model);
    json_decref(model);
    return cli_finish(status);
}
