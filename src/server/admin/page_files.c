/* SPDX-License-Identifier: Apache-2.0 */
/* see page_files.h */
#include "server/admin/page_files.h"

#include "core/bytes.h"
#include "server/http/reply.h"
#include "server/http/request.h"

void weir_page_files_reply(struct weir_http_call *call, const struct weir_page_files *files,
                           struct weir_bytes name, const char *fields)
{
    for (unsigned i = 0; i < files->count; i++) {
        const struct weir_page_file *file = &files->files[i];
        if (!weir_bytes_are(name, file->name))
            continue;
        weir_http_reply(call, WEIR_HTTP_200, fields, file->type, file->data, file->size);
        return;
    }
    weir_http_problem(call, WEIR_HTTP_404, NULL, NULL);
}
