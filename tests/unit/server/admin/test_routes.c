/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the services, and docs/http-api.md, which lists them. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/daemon/services/list.h"
#include "server/http/route.h"

/* A method and a path of an endpoint: "GET /v1/limits". */
#define ENDPOINT_MAX 96
#define ENDPOINTS_MAX 128

struct endpoints {
    char names[ENDPOINTS_MAX][ENDPOINT_MAX];
    const char *what[ENDPOINTS_MAX];
    size_t count;
};

static const char *page;

static bool endpoints_have(const struct endpoints *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->names[i], name))
            return true;
    return false;
}

/* HEAD goes without saying, where there is GET, and a slash at the end. */
static void endpoints_add(struct endpoints *list, const char *method, const char *path,
                          const char *what)
{
    char name[ENDPOINT_MAX];
    int size = snprintf(name, sizeof name, "%s %s", method, path);
    assert_in_range(size, 1, sizeof name - 1);
    if (path[0] && path[1] && name[size - 1] == '/')
        name[size - 1] = 0;
    if (!strcmp(method, "HEAD") || endpoints_have(list, name))
        return;
    assert_in_range(list->count, 0, ENDPOINTS_MAX - 1);
    memcpy(list->names[list->count], name, sizeof name);
    list->what[list->count++] = what;
}

static void read_row(struct endpoints *list, const struct weir_http_route *route)
{
    char methods[64], *rest = methods;
    snprintf(methods, sizeof methods, "%s", route->methods);
    for (const char *method; (method = strtok_r(rest, ", ", &rest));)
        endpoints_add(list, method, route->path, route->what);
}

static void read_tables(struct endpoints *list)
{
    for (size_t i = 0; weir_services[i]; i++)
        for (size_t j = 0; weir_services[i]->routes && weir_services[i]->routes[j]; j++)
            for (const struct weir_http_route *row = weir_services[i]->routes[j]; row->path; row++)
                if (row->what)
                    read_row(list, row);
}

/* The first cell of a line of the table: methods wait for the path that follows them. */
static void read_cell(struct endpoints *list, char *cell)
{
    char methods[8][16];
    size_t count = 0;
    bool used = false;
    char *rest = cell;
    for (char *word; (word = strtok_r(rest, "` ,|", &rest));) {
        word[strcspn(word, "?")] = 0;
        if (isupper((unsigned char)word[0])) {
            count = used ? 0 : count;
            used = false;
            assert_in_range(count, 0, 7);
            snprintf(methods[count++], sizeof methods[0], "%s", word);
        }
        for (size_t i = 0; word[0] == '/' && i < count; i++)
            endpoints_add(list, methods[i], word, NULL);
        used |= word[0] == '/';
    }
}

static void read_page(struct endpoints *list)
{
    char *line = NULL;
    size_t room = 0;
    bool inside = false;
    FILE *file = fopen(page, "r");
    assert_non_null(file);
    while (getline(&line, &room, file) > 0) {
        if (line[0] == '#')
            inside = !strcmp(line, "## The admin listener\n");
        if (!inside || strncmp(line, "| `", 3) != 0)
            continue;
        *strstr(line, " | ") = 0;
        read_cell(list, line);
    }
    free(line);
    fclose(file);
}

static void the_page_lists_every_endpoint_and_no_other(void **state)
{
    static struct endpoints tables, documented;
    unsigned wrong = 0;
    read_tables(&tables);
    read_page(&documented);
    assert_in_range(tables.count, 20, ENDPOINTS_MAX);
    for (size_t i = 0; i < tables.count; i++) {
        if (endpoints_have(&documented, tables.names[i]))
            continue;
        print_error("docs/http-api.md lacks: | `%s` | %s |\n", tables.names[i], tables.what[i]);
        wrong++;
    }
    for (size_t i = 0; i < documented.count; i++) {
        if (endpoints_have(&tables, documented.names[i]))
            continue;
        print_error("docs/http-api.md lists %s, which no service has\n", documented.names[i]);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void rows_of_one_path_stand_together_and_have_methods(void **state)
{
    for (size_t i = 0; weir_services[i]; i++) {
        for (size_t j = 0; weir_services[i]->routes && weir_services[i]->routes[j]; j++) {
            const struct weir_http_route *rows = weir_services[i]->routes[j];
            for (size_t k = 0; rows[k].path; k++) {
                assert_non_null(rows[k].handle);
                assert_non_null(rows[k].name);
                assert_true(rows[k].methods || !rows[k].what);
                for (size_t l = k + 1; rows[l].path; l++)
                    assert_true(strcmp(rows[k].path, rows[l].path) != 0 ||
                                !strcmp(rows[k].path, rows[l - 1].path));
            }
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_lists_every_endpoint_and_no_other),
        cmocka_unit_test(rows_of_one_path_stand_together_and_have_methods),
    };
    page = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
