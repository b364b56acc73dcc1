/* SPDX-License-Identifier: Apache-2.0 */
/* see object.h */
#include "feature/xdp/object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "feature/xdp/compile.h"
#include "feature/xdp/embedded.h"

#define PROGRAM_NAME "weir_filter"
#define PROGRAM_MAPS_MAX 16

/* As the kernel cuts them: 15 bytes. libbpf makes the last one from the object's name. */
static const char *const map_names[WEIR_XDP_MAPS] = {
    [WEIR_XDP_MAP_SETS] = "weir_sets",     [WEIR_XDP_MAP_LISTS] = "weir_lists",
    [WEIR_XDP_MAP_COUNTS] = "weir_counts", [WEIR_XDP_MAP_DROPS] = "weir_drops",
    [WEIR_XDP_MAP_CLOCK] = "weir_clock",   [WEIR_XDP_MAP_SETTINGS] = "weir_xdp.rodata",
};

struct weir_xdp_object {
    struct bpf_object *object;
    struct bpf_program *program;
    struct bpf_map *maps[WEIR_XDP_MAPS];
};

int weir_xdp_failed(struct weir_reason *reason, const char *cannot, int error)
{
    const char *hint = "";

    error = abs(error);
    if (error == EPERM)
        hint = "; run it as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON";
    else if (error == EACCES)
        hint = "; the kernel's verifier refuses it";
    else if (error == ENOSYS || error == EINVAL)
        hint = "; weir needs a kernel of version 5.12 or newer with CONFIG_BPF_SYSCALL";
    snprintf(reason->text, sizeof reason->text, "%s: %s%s", cannot, strerror(error), hint);
    return WEIR_ERR_IO;
}

/* The reason carries what libbpf would print. */
static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level;
    (void)format;
    (void)arguments;
    return 0;
}

static int find_parts(struct weir_xdp_object *object)
{
    struct bpf_map *map;

    object->program = bpf_object__find_program_by_name(object->object, PROGRAM_NAME);
    bpf_object__for_each_map(map, object->object)
    {
        for (int i = 0; i < WEIR_XDP_MAPS; i++)
            if (!strcmp(bpf_map__name(map), map_names[i]))
                object->maps[i] = map;
    }
    for (int i = 0; i < WEIR_XDP_MAPS; i++)
        if (!object->maps[i])
            return -ENOENT;
    return object->program ? 0 : -ENOENT;
}

/* Sizes, constants and shared maps, before loading. */
static int prepare(struct weir_xdp_object *object, const struct xdp_filter *filter,
                   const struct weir_xdp_settings *settings, const struct weir_xdp_maps *shared)
{
    struct bpf_map *const *maps = object->maps;
    /* One more: see fill_lists. */
    uint32_t entries = settings->allow_count + settings->ban_count + 1;
    uint32_t sets = filter->sets_mask + 1;
    int error = bpf_map__set_max_entries(maps[WEIR_XDP_MAP_SETS], sets + sets / 2);

    if (error == 0)
        error = bpf_map__set_max_entries(maps[WEIR_XDP_MAP_LISTS], entries);
    if (error == 0)
        error = bpf_map__set_initial_value(maps[WEIR_XDP_MAP_SETTINGS], filter, sizeof *filter);
    for (int i = 0; shared && error == 0 && i <= WEIR_XDP_MAP_DROPS; i++)
        if (i != WEIR_XDP_MAP_LISTS && shared->fds[i] >= 0)
            error = bpf_map__reuse_fd(maps[i], shared->fds[i]);
    return error;
}

static int put_entry(int fd, const struct xdp_list_key *key, uint32_t verdict)
{
    return bpf_map_update_elem(fd, key, &verdict, BPF_ANY);
}

/* ::/0 is no prefix of an IPv4 address, but the trie has those below ::ffff:0:0/96: this entry
 * keeps shorter prefixes from them. */
static int fill_lists(int fd, const struct weir_xdp_settings *settings)
{
    const struct weir_cidr ipv4 = {{4, {0}}, 0};
    struct xdp_list_key key;
    int error;

    weir_xdp_list_key(&key, &ipv4);
    error = put_entry(fd, &key, XDP_LIST_NONE);
    for (uint32_t i = 0; error == 0 && i < settings->ban_count; i++) {
        weir_xdp_list_key(&key, &settings->ban[i]);
        if (!weir_xdp_ban_is_void(settings, i))
            error = put_entry(fd, &key, XDP_LIST_BAN);
    }
    for (uint32_t i = 0; error == 0 && i < settings->allow_count; i++) {
        weir_xdp_list_key(&key, &settings->allow[i]);
        error = put_entry(fd, &key, XDP_LIST_ALLOW);
    }
    return error;
}

int weir_xdp_object_load(struct weir_xdp_object **out, const struct xdp_filter *filter,
                         const struct weir_xdp_settings *settings,
                         const struct weir_xdp_maps *shared, struct weir_reason *reason)
{
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "weir_xdp");
    struct weir_xdp_object *object = calloc(1, sizeof *object);
    const char *cannot = "cannot open the program for the kernel";
    int error;

    *out = NULL;
    if (!object)
        return WEIR_ERR_MEMORY;
    libbpf_set_print(print_nothing);
    object->object = bpf_object__open_mem(weir_xdp_embedded, weir_xdp_embedded_size, &options);
    error = object->object ? find_parts(object) : -errno;
    if (error == 0)
        error = prepare(object, filter, settings, shared);
    if (error == 0) {
        cannot = "cannot load the program into the kernel";
        error = bpf_object__load(object->object);
    }
    if (error == 0) {
        cannot = "cannot fill the lists `allow` and `ban`";
        error = fill_lists(bpf_map__fd(object->maps[WEIR_XDP_MAP_LISTS]), settings);
    }
    if (error < 0) {
        weir_xdp_object_free(object);
        return weir_xdp_failed(reason, cannot, error);
    }
    *out = object;
    return 0;
}

void weir_xdp_object_free(struct weir_xdp_object *object)
{
    if (!object)
        return;
    bpf_object__close(object->object);
    free(object);
}

int weir_xdp_object_program(const struct weir_xdp_object *object)
{
    return bpf_program__fd(object->program);
}

int weir_xdp_object_map(const struct weir_xdp_object *object, enum weir_xdp_map map)
{
    return bpf_map__fd(object->maps[map]);
}

/* --- A running program -------------------------------------------------------------------------
 */

/* Keeps a map if it is one of the filter's, else closes it. */
static void keep_map(struct weir_xdp_maps *maps, int fd)
{
    struct bpf_map_info info;
    uint32_t size = sizeof info;

    memset(&info, 0, sizeof info);
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
        for (int i = 0; i < WEIR_XDP_MAPS; i++) {
            if (maps->fds[i] < 0 && !strncmp(info.name, map_names[i], sizeof info.name - 1)) {
                maps->fds[i] = fd;
                return;
            }
        }
    }
    close(fd);
}

int weir_xdp_maps_open(struct weir_xdp_maps *maps, int program_fd, struct weir_reason *reason)
{
    struct bpf_prog_info info;
    uint32_t ids[PROGRAM_MAPS_MAX] = {0}, size = sizeof info;

    for (int i = 0; i < WEIR_XDP_MAPS; i++)
        maps->fds[i] = -1;
    memset(&info, 0, sizeof info);
    info.nr_map_ids = PROGRAM_MAPS_MAX;
    info.map_ids = (uint64_t)(uintptr_t)ids;
    if (bpf_obj_get_info_by_fd(program_fd, &info, &size) < 0)
        return weir_xdp_failed(reason, "cannot read about the program that runs", errno);
    for (uint32_t i = 0; i < info.nr_map_ids && i < PROGRAM_MAPS_MAX; i++) {
        int fd = bpf_map_get_fd_by_id(ids[i]);

        if (fd >= 0)
            keep_map(maps, fd);
    }
    return 0;
}

void weir_xdp_maps_close(struct weir_xdp_maps *maps)
{
    for (int i = 0; i < WEIR_XDP_MAPS; i++) {
        if (maps->fds[i] >= 0)
            close(maps->fds[i]);
        maps->fds[i] = -1;
    }
}

int weir_xdp_maps_filter(const struct weir_xdp_maps *maps, struct xdp_filter *filter)
{
    struct bpf_map_info info;
    uint32_t size = sizeof info, first = 0;
    int fd = maps->fds[WEIR_XDP_MAP_SETTINGS];

    memset(&info, 0, sizeof info);
    if (fd < 0)
        return WEIR_ERR_FORMAT;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
        return WEIR_ERR_IO;
    if (info.value_size != sizeof *filter)
        return WEIR_ERR_FORMAT;
    if (bpf_map_lookup_elem(fd, &first, filter) < 0)
        return WEIR_ERR_IO;
    return filter->format == XDP_FORMAT ? 0 : WEIR_ERR_FORMAT;
}
