/* SPDX-License-Identifier: Apache-2.0 */
/* `weir fetch`: fetches URLs by libweir-client's parts. Its own files: the command line
 * (options.h), the list of URLs (urls.h), where answers go (output.h, file_name.h), the line of
 * progress. */
#ifndef WEIR_CLI_FETCH_FETCH_H
#define WEIR_CLI_FETCH_FETCH_H

int weir_command_fetch(int argc, char **argv);

#endif
