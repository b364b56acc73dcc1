/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of an access log in Apache's common and combined formats (also nginx's default).
 *
 *   host ident user [07/Mar/2004:16:05:49 -0800] "GET /path HTTP/1.1" 401 12846 "referer" "agent"
 *
 * Sources: Apache 2.4, mod_log_config; nginx, ngx_http_log_module. Quoted fields are unescaped as
 * either server escapes them: \" \\ \b \f \n \r \t \v \xHH; any other backslash is literal.
 * What follows the agent is skipped (nginx's packages add "$http_x_forwarded_for"). A request that
 * was none ("-", or the bytes of a TLS client) has neither method nor target.
 */
#ifndef WEIR_WIRE_LOG_ACCESS_LOG_H
#define WEIR_WIRE_LOG_ACCESS_LOG_H

#include <stdbool.h>

#include <weir/bytes.h>
#include <weir/error.h>

struct weir_access_line {
    struct weir_bytes host, user;     /* user.data == NULL for "-" */
    struct weir_bytes method, target; /* data == NULL when the request was no request line */
    struct weir_bytes referer, agent; /* data == NULL when absent or "-" */
    bool combined;                    /* the line has both fields, be they "-" */
    uint64_t t_ns;
    uint32_t status;
    uint64_t bytes; /* 0 for "-" */
};

/* Parses one line; its line end (LF or CR LF) and white space before it are skipped. Quoted fields
 * are unescaped in place, so that the line's fields point into `text`. Returns 0 or
 * WEIR_ERR_SYNTAX, which leaves *line undefined. */
int weir_access_line_parse(struct weir_access_line *line, char *text, size_t size)
    __attribute__((warn_unused_result));

#endif
