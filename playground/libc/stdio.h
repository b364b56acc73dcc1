/* SPDX-License-Identifier: Apache-2.0 */
/* see string.h. Messages of malformed lines are not shown on the page: snprintf writes none, and
 * the module does without their texts. */
#ifndef PLAYGROUND_STDIO_H
#define PLAYGROUND_STDIO_H

#define snprintf(text, ...) ((text)[0] = '\0', 0)

#endif
