/* SPDX-License-Identifier: Apache-2.0 */
/* List files of standing: read whole, regular files only, and put into a map at one instant. */
#include <sys/stat.h>
#include <unistd.h>

#include "core/bytes.h"
#include "feature/standing/rules/lists.h"
#include "rules_test.h"
#include "temporary.h"
#include "test.h"

static char folder[TEMPORARY_MAX];

static int in_a_folder(void **state)
{
    temporary_folder(folder);
    return 0;
}

static int remove_folder(void **state)
{
    temporary_remove(folder);
    return 0;
}

static const char *in(const char *name)
{
    static char path[TEMPORARY_MAX + 32];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static FILE *open_list(const char *name)
{
    FILE *file = fopen(in(name), "w");
    assert_non_null(file);
    return file;
}

static const struct weir_standing_kind users = {.name = {"user", 4}};

struct seen {
    uint32_t count, line;
    char last[16];
};

static int note(void *context, const struct weir_list_item *item, struct weir_reason *reason)
{
    struct seen *seen = context;
    assert_true(item->value.size < sizeof(seen->last));
    memcpy(seen->last, item->value.data, item->value.size);
    seen->last[item->value.size] = '\0';
    seen->line = item->line;
    seen->count++;
    return 0;
}

TEST("a file of any size is read to its end")
{
    struct weir_reason reason = {{0}};
    struct seen seen = {0};
    FILE *file = open_list("users");
    for (int i = 0; i < 40000; i++)
        fprintf(file, "# %d\n", i);
    fprintf(file, "ada");
    assert_int_equal(fclose(file), 0);
    assert_int_equal(weir_list_read(&users, in("users"), note, &seen, &reason), 0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.line, 40001);
    assert_string_equal(seen.last, "ada");
}

TEST("what is not a regular file is refused and not waited for")
{
    struct weir_reason reason = {{0}};
    char wanted[WEIR_REASON_MAX];
    struct seen seen = {0};
    assert_int_equal(mkfifo(in("pipe"), 0600), 0); /* nobody will ever write to it */
    assert_int_equal(weir_list_read(&users, in("pipe"), note, &seen, &reason), WEIR_ERR_IO);
    snprintf(wanted, sizeof(wanted), "%s: it is a FIFO; give a regular file", in("pipe"));
    assert_string_equal(reason.text, wanted);
    assert_int_equal(weir_list_read(&users, folder, note, &seen, &reason), WEIR_ERR_IO);
    assert_int_equal(weir_list_read(&users, in("none"), note, &seen, &reason), WEIR_ERR_NOT_FOUND);
    snprintf(wanted, sizeof(wanted), "%s: No such file or directory", in("none"));
    assert_string_equal(reason.text, wanted);
    assert_int_equal(seen.count, 0);
}

static char networks_path[TEMPORARY_MAX + 32], users_path[TEMPORARY_MAX + 32];

/* Settings with one list of networks and one of users. */
static void settings_of(struct weir_standing_settings *settings)
{
    snprintf(networks_path, sizeof(networks_path), "%s/networks", folder);
    snprintf(users_path, sizeof(users_path), "%s/users", folder);
    *settings = (struct weir_standing_settings){
        .kinds_count = 2,
        .kinds = {{.name = {"client.ip", 9}, .address = true, .bits4 = 32, .bits6 = 64}, users},
        .lists_count = 2,
        .lists = {{networks_path, 0, WEIR_STANDING_SUSPENDED, {"bad", 3}},
                  {users_path, 1, WEIR_STANDING_TRUSTED, {NULL, 0}}},
    };
}

static struct weir_standing *map_of(size_t entries_max)
{
    const struct weir_standing_options options = {.entries_max = entries_max};
    struct weir_standing *map;
    assert_int_equal(weir_standing_create(&map, &options, NULL), 0);
    return map;
}

static int level_of_user(const struct weir_standing *map, const char *user)
{
    struct weir_standing_entry found;
    uint64_t id[2];
    weir_standing_id(map, users.name, weir_bytes_of(user), id);
    return weir_standing_find(map, id, 1, &found) ? found.level : -1;
}

static void write_list(const char *name, const char *text)
{
    FILE *file = open_list(name);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

TEST("lists replace those that were in force")
{
    struct weir_standing *map = map_of(100);
    struct weir_standing_settings settings;
    struct weir_standing_entry found;
    struct weir_address address;
    struct weir_reason reason = {{0}};
    write_list("networks", "192.0.2.0/24\n");
    write_list("users", "ada\nbob\n");
    settings_of(&settings);
    assert_int_equal(weir_standing_fill_lists(map, &settings, 7, &reason), 0);
    assert_int_equal(level_of_user(map, "bob"), WEIR_STANDING_TRUSTED);
    assert_int_equal(weir_address_parse(&address, "192.0.2.9", 9), 0);
    assert_true(weir_standing_find_address(map, &address, 8, &found));
    assert_int_equal(found.level, WEIR_STANDING_SUSPENDED);
    assert_int_equal(found.since_ns, 7);
    assert_memory_equal(found.reason, "bad", found.reason_size);
    write_list("users", "ada\n");
    write_list("networks", "");
    assert_int_equal(weir_standing_fill_lists(map, &settings, 9, &reason), 0);
    assert_int_equal(level_of_user(map, "ada"), WEIR_STANDING_TRUSTED);
    assert_int_equal(level_of_user(map, "bob"), -1);
    assert_false(weir_standing_find_address(map, &address, 10, &found));
    weir_standing_close(map);
}

TEST("a list that cannot be read leaves what is in force")
{
    struct weir_standing *map = map_of(100);
    struct weir_standing_settings settings;
    struct weir_reason reason = {{0}};
    write_list("networks", "");
    write_list("users", "ada\n");
    settings_of(&settings);
    assert_int_equal(weir_standing_fill_lists(map, &settings, 1, &reason), 0);
    write_list("networks", "no network\n");
    assert_int_equal(weir_standing_fill_lists(map, &settings, 2, &reason), WEIR_ERR_SYNTAX);
    assert_non_null(strstr(reason.text, "networks:1: not a network"));
    assert_int_equal(level_of_user(map, "ada"), WEIR_STANDING_TRUSTED);
    weir_standing_close(map);
}

TEST("the first value without room is named")
{
    struct weir_standing *map = map_of(WEIR_STANDING_ENTRIES_MIN);
    struct weir_standing_entry kept = {
        .until_ns = WEIR_NEVER, .level = WEIR_STANDING_WARNED, .origin = WEIR_STANDING_BY_OPERATOR};
    struct weir_standing_settings settings;
    struct weir_reason reason = {{0}};
    for (uint64_t i = 1; i < WEIR_STANDING_ENTRIES_MIN; i++)
        assert_int_equal(weir_standing_set(map, (uint64_t[2]){i, i}, &kept), 0);
    write_list("networks", "");
    write_list("users", "ada\n# none\n");
    settings_of(&settings);
    assert_int_equal(weir_standing_fill_lists(map, &settings, 1, &reason), 0);
    assert_int_equal(weir_standing_set(map, (uint64_t[2]){99, 99}, &kept), 0); /* for ada */
    write_list("users", "\nada\nbob\n");
    assert_int_equal(weir_standing_fill_lists(map, &settings, 1, &reason), WEIR_ERR_FULL);
    assert_non_null(strstr(reason.text, "users:2: no room for this entry and 1 more: raise"));
    weir_standing_close(map);
}

/* All end never, so each of the last ones takes the place of one before it. */
TEST("values that had to go for others of the lists are lost, and counted by file")
{
    struct weir_standing *map = map_of(WEIR_STANDING_ENTRIES_MIN);
    struct weir_standing_settings settings;
    struct weir_standing_lists *lists;
    struct weir_reason reason = {{0}};
    FILE *file = open_list("users");
    for (unsigned i = 0; i < WEIR_STANDING_ENTRIES_MIN + 3; i++)
        fprintf(file, "user%u\n", i);
    assert_int_equal(fclose(file), 0);
    write_list("networks", "192.0.2.0/24\n");
    settings_of(&settings);
    settings.lists[1].level = WEIR_STANDING_WARNED;
    assert_int_equal(weir_standing_lists_read(&lists, &settings, &reason), 0);
    struct weir_standing_lost lost = weir_standing_lists_set(lists, map, 1);
    const struct weir_list_file *networks = weir_standing_lists_file(lists, 0);
    const struct weir_list_file *users_file = weir_standing_lists_file(lists, 1);
    assert_int_equal(networks->entries, 1);
    assert_int_equal(users_file->entries, WEIR_STANDING_ENTRIES_MIN + 3);
    assert_int_equal(lost.count, 4);
    assert_int_equal(networks->lost + users_file->lost, lost.count);
    uint64_t there = 0;
    char name[16];
    for (unsigned i = 0; i < WEIR_STANDING_ENTRIES_MIN + 3; i++) {
        snprintf(name, sizeof name, "user%u", i);
        there += level_of_user(map, name) == WEIR_STANDING_WARNED;
    }
    assert_int_equal(there, users_file->entries - users_file->lost);
    weir_standing_lists_free(lists);
    assert_int_equal(weir_standing_fill_lists(map, &settings, 2, &reason), WEIR_ERR_FULL);
    assert_non_null(strstr(reason.text, "no room for this entry and 3 more"));
    weir_standing_close(map);
}

RUN_TESTS_WITH(in_a_folder, remove_folder)
