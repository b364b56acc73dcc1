/* Lines of an access log in Apache's common and combined formats (also nginx's default).
 *
 *   host ident user [07/Mar/2004:16:05:49 -0800] "GET /path HTTP/1.1" 401 12846 "referer" "agent"
 */
#ifndef WEIR_WIRE_ACCESS_LOG_H
#define WEIR_WIRE_ACCESS_LOG_H

#include <weir/bytes.h>

struct weir_access_line {
    struct weir_bytes host, user; /* user.data == NULL for "-" */
    struct weir_bytes method, target;
    struct weir_bytes referer, agent; /* data == NULL when absent or "-" */
    uint64_t t_ns;
    uint32_t status;
    uint64_t bytes;
};

/* Parses one line (no line end). Quoted fields are unescaped in place. Returns 0 or
 * WEIR_ERR_SYNTAX. */
int weir_access_line_parse(struct weir_access_line *line, char *text, size_t size)
    __attribute__((warn_unused_result));

#endif
