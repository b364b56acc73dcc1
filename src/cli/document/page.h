/* SPDX-License-Identifier: Apache-2.0 */
/* The model as a page: Markdown, or a whole HTML file. What comes from the rules is escaped
 * for either.
 *
 * Threads: the main thread.
 */
#ifndef WEIR_CLI_DOCUMENT_PAGE_H
#define WEIR_CLI_DOCUMENT_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct document_labels {
    const char *title; /* of the page */
    bool html;
};

/* Writes the page of a model (model.h). */
void document_page(FILE *out, const struct document_labels *labels, const json_t *model);

#endif
