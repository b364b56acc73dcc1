/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files for the answers to URLs.
 *
 * A name is the host and the path, readable and at most 100 bytes, with everything but letters,
 * digits, '.', '-' and '=' as '_', then '-', 16 hexadecimal digits of a hash of the whole URL, and
 * the extension of the path, if it is a short one:
 * "api.example.com_things_1-0123456789abcdef.json". So no URL can name a file outside the folder, a
 * hidden file or a device, and two URLs do not share a name. The same URL always has the same name.
 * User names and passwords are left out.
 */
#ifndef WEIR_CLI_FETCH_FILE_NAME_H
#define WEIR_CLI_FETCH_FILE_NAME_H

#define FETCH_NAME_MAX 160 /* with its NUL */

void fetch_file_name(const char *url, char name[FETCH_NAME_MAX]);

#endif
