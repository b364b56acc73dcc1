/* SPDX-License-Identifier: Apache-2.0 */
/* `weir document`: a rules file as a page for those whom it limits. */
#ifndef WEIR_CLI_DOCUMENT_DOCUMENT_H
#define WEIR_CLI_DOCUMENT_DOCUMENT_H

int weir_command_document(int argc, char **argv);

#endif
