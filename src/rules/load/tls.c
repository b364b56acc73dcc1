/* SPDX-License-Identifier: Apache-2.0 */
/* `tls` of a listener; see loader.h */
#include "rules/load/loader.h"

#define NAMES_MAX 1000

/* A file beside the rules; NULL after a problem. Whether it is what it should be, only the server
 * can say: it reads the file at start and whenever it changes. */
static const char *read_file_name(struct rules_loader *loader, const struct rules_field *field)
{
    struct weir_bytes text;
    if (field->value == NULL || !rules_read_text(loader, field->value, field->name, &text))
        return NULL;
    if (text.size == 0) {
        rules_problem(loader, field->value, "`%s` is empty", field->name);
        return NULL;
    }
    return rules_path_of(loader, text);
}

static void load_names(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_listener_tls *tls)
{
    struct rules_items items = rules_items_of(&node);
    if (items.count > NAMES_MAX) {
        rules_problem(loader, node, "`client_names` has more than %d entries", NAMES_MAX);
        return;
    }
    const char **names = rules_keep(loader, (items.count + 1) * sizeof(*names));
    tls->client_names = names;
    for (uint32_t i = 0; i < items.count && names != NULL; i++) {
        struct weir_bytes text;
        if (!rules_read_text(loader, items.items[i], "client_names", &text))
            continue;
        bool wild = text.size > 0 && text.data[0] == '*';
        if (text.size == 0 || (wild && (text.size < 3 || text.data[1] != '.'))) {
            rules_problem(loader, items.items[i],
                          "a client name is a name in a certificate, or `*.` and a domain");
            continue;
        }
        names[tls->client_name_count++] = rules_keep_text(loader, text.data, text.size);
    }
}

void rules_load_tls(struct rules_loader *loader, const struct rules_node *node,
                    struct weir_listener_tls *tls)
{
    enum { CERT, KEY, CLIENT_CA, CLIENT_NAMES, COUNT };
    struct rules_field fields[COUNT] = {{"cert", NULL, NULL},
                                        {"key", NULL, NULL},
                                        {"client_ca", NULL, NULL},
                                        {"client_names", NULL, NULL}};
    if (!rules_fields(loader, node, "tls", fields, COUNT))
        return;
    if (fields[CERT].value == NULL || fields[KEY].value == NULL)
        rules_problem(loader, node, "`tls` needs `cert` and `key`, files in PEM");
    tls->cert_file = read_file_name(loader, &fields[CERT]);
    tls->key_file = read_file_name(loader, &fields[KEY]);
    tls->client_ca_file = read_file_name(loader, &fields[CLIENT_CA]);
    if (fields[CLIENT_NAMES].value == NULL)
        return;
    if (fields[CLIENT_CA].value == NULL) {
        rules_problem(loader, fields[CLIENT_NAMES].key,
                      "`client_names` needs a `client_ca` that signs their certificates");
    }
    load_names(loader, fields[CLIENT_NAMES].value, tls);
    if (tls->client_name_count == 0) {
        rules_problem(loader, fields[CLIENT_NAMES].value,
                      "`client_names` is empty; leave it out to let all of `client_ca` in");
    }
}
