/* SPDX-License-Identifier: Apache-2.0 */
/* The playground on the admin listener: a page that lets people try the algorithms in a browser
 * (docs/playground.md). Its sources are in playground/; script/build/embed_pages.py makes the
 * table of files below. The table is empty where the build had no compiler for WebAssembly.
 *
 * The files are the same for everybody and say nothing about this server, so that the route is
 * public. The page loads its own files only, and its Content-Security-Policy lets it send nothing:
 * it is of one origin with the rest of the admin listener.
 *
 * Threads: pure.
 */
#ifndef WEIR_SERVER_ADMIN_PLAYGROUND_H
#define WEIR_SERVER_ADMIN_PLAYGROUND_H

#include "server/admin/page_files.h"
#include "server/http/route.h"

extern const struct weir_page_files weir_playground_files;

/* /playground/NAME */
extern const struct weir_http_route weir_playground_routes[];

#endif
