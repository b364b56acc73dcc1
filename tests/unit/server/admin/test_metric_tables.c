/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of metrics of the services, and docs/metrics.md, which lists them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/admin/exposition.h"
#include "server/daemon/services/list.h"

/* A metric as the page has it: "weir_reloads_total{result}", and its type. */
#define ROW_MAX 128
#define ROWS_MAX 512

struct rows {
    char name[ROWS_MAX][ROW_MAX], type[ROWS_MAX][16];
    size_t count;
};

static const char *page;
static struct rows tables, documented;

static void add(struct rows *rows, const char *name, const char *type)
{
    assert_in_range(rows->count, 0, ROWS_MAX - 1);
    assert_in_range(strlen(name), 1, ROW_MAX - 1);
    snprintf(rows->name[rows->count], ROW_MAX, "%s", name);
    snprintf(rows->type[rows->count++], sizeof rows->type[0], "%s", type);
}

static const char *type_of(const struct rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++)
        if (!strcmp(rows->name[i], name))
            return rows->type[i];
    return NULL;
}

static void read_table(const struct weir_metric_table *table)
{
    char name[2 * ROW_MAX];
    assert_in_range(table->size, 0, WEIR_METRIC_NUMBERS_MAX);
    for (const struct weir_metric *row = table->rows; row->name; row++) {
        assert_true(row->put || (!row->labels && row->at + sizeof(uint64_t) <= table->size));
        assert_true(row->help[0] && row->help[strlen(row->help) - 1] == '.' &&
                    !strchr(row->help, '\n'));
        snprintf(name, sizeof name, "%s%s%s%s", row->name, row->labels ? "{" : "",
                 row->labels ? row->labels : "", row->labels ? "}" : "");
        assert_null(type_of(&tables, name));
        add(&tables, name, row->type);
    }
}

static void read_tables(void)
{
    for (size_t i = 0; weir_services[i]; i++)
        for (size_t j = 0; weir_services[i]->metrics && weir_services[i]->metrics[j].rows; j++)
            read_table(&weir_services[i]->metrics[j]);
}

/* "| `a{b}`, `c` | gauge | …": the names in the first cell, with the type of the second. */
static void read_line(char *line)
{
    char *bar = strstr(line, " | ");
    char *type = bar ? bar + 3 : NULL;
    char *end = type ? strstr(type, " | ") : NULL;
    if (!end)
        return;
    *bar = *end = 0;
    for (char *tick = strchr(line, '`'); tick; tick = strchr(tick + 1, '`')) {
        char *name = tick + 1;
        tick = strchr(name, '`');
        assert_non_null(tick);
        *tick = 0;
        add(&documented, name, type);
    }
}

static void read_page(void)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(page, "r");
    assert_non_null(file);
    while (getline(&line, &room, file) > 0)
        if (!strncmp(line, "| `weir_", 8))
            read_line(line);
    free(line);
    fclose(file);
}

static void the_page_lists_every_metric_with_its_type_and_labels(void **state)
{
    unsigned wrong = 0;
    assert_in_range(tables.count, 100, ROWS_MAX);
    for (size_t i = 0; i < tables.count; i++) {
        const char *type = type_of(&documented, tables.name[i]);
        if (type && !strcmp(type, tables.type[i]))
            continue;
        print_error("docs/metrics.md lacks: | `%s` | %s |\n", tables.name[i], tables.type[i]);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void the_page_lists_no_other(void **state)
{
    unsigned wrong = 0;
    assert_in_range(documented.count, 100, ROWS_MAX);
    for (size_t i = 0; i < documented.count; i++) {
        if (type_of(&tables, documented.name[i]))
            continue;
        print_error("docs/metrics.md lists %s, which no service has\n", documented.name[i]);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static int set_up(void **state)
{
    read_tables();
    read_page();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_lists_every_metric_with_its_type_and_labels),
        cmocka_unit_test(the_page_lists_no_other),
    };
    if (argc != 2)
        return 2;
    page = argv[1];
    return cmocka_run_group_tests(tests, set_up, NULL);
}
