/* SPDX-License-Identifier: Apache-2.0 */
/* What `nginx -t`, a start and a reload check before a worker runs: that the workers will be able
 * to decide.
 *
 * Mistakes of directives are noted while nginx reads them. When the whole configuration is read
 * (then the workers' user is known), the missing folders of the state are made, and a child that
 * has become the workers' user, with its groups, looks for what a worker will open. No state is
 * opened or made. nginx refuses the configuration where it says `weir_strict on`; otherwise weir
 * took it before WEIR_REFUSED_FROM, and takes it until then, with a line of the log each and a
 * metric.
 *
 * Memory: of the configuration's pool. Threads: the master's one.
 */
#ifndef WEIR_NGINX_CHECK_H
#define WEIR_NGINX_CHECK_H

#include "nginx/conf.h"

/* Notes one mistake: a format of ngx_vslprintf. A line that does not fit is cut. */
void weir_ngx_note(struct weir_ngx_main *conf, ngx_pool_t *pool, const char *format, ...);

/* Checks the rules while nginx reads its configuration: each mistake goes to nginx's log with file,
 * line and column, and what is deprecated becomes a note. Errors: NGX_ERROR (the rules are
 * refused). */
ngx_int_t weir_ngx_check_rules(ngx_conf_t *cf, struct weir_ngx_main *conf);

/* Notes each `weir_attribute` whose name the rules do not know; when these are read. Errors:
 * NGX_ERROR (memory; the rules have changed meanwhile). */
ngx_int_t weir_ngx_check_names(ngx_conf_t *cf, struct weir_ngx_main *conf);

/* Checks as described above; for the end of reading a configuration. Errors: NGX_ERROR (it is
 * refused, and the log says why). */
ngx_int_t weir_ngx_check(ngx_cycle_t *cycle, struct weir_ngx_main *conf);

/* Logs what was noted and taken, when nginx has opened its log. */
void weir_ngx_log_notes(ngx_cycle_t *cycle, const struct weir_ngx_main *conf);

#endif
