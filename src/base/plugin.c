#include "base/plugin.h"

#include "base/context.h"
#include "base/error.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char prefix[] = "libgnomon_", suffix[] = ".so";

/* ---- what a caller says ---- */

/* How long a NAME text begins with: a letter, then letters, digits and underscores, all lower case.
 */
static size_t name_length(const char *text)
{
    size_t length = 0;
    while ((text[length] >= 'a' && text[length] <= 'z') ||
           (length > 0 && ((text[length] >= '0' && text[length] <= '9') || text[length] == '_')))
        length++;
    return length;
}

/* An index at *at, which is put behind it; -1 when there is none. */
static int read_index(const char **at)
{
    int index = 0, digits = 0;
    for (; **at >= '0' && **at <= '9' && digits < 7; ++*at, digits++)
        index = 10 * index + (**at - '0');
    return digits > 0 && digits < 7 ? index : -1;
}

/* "0,2": indices with commas between. */
static gnomon_status read_indices(const char *text, const char *at, gnomon_device_spec *spec)
{
    for (bool more = true; more;) {
        const int index = read_index(&at);
        GNOMON_FAIL_IF(index < 0 || (*at != 0 && *at != ','), NULL, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("options.device") " is \"%.64s\"; behind the colon come indices, "
                                                    "0 or more, with commas between, or all",
                       text);
        for (int i = 0; i < spec->count; i++)
            GNOMON_FAIL_IF(spec->index[i] == index, NULL, GNOMON_ERROR_ARGUMENT,
                           GNOMON_ARG("options.device") " is \"%.64s\"; it names device %d twice",
                           text, index);
        GNOMON_FAIL_IF(spec->count == GNOMON_DEVICES_MOST, NULL, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("options.device") " is \"%.64s\"; it names more than %d devices",
                       text, (int)GNOMON_DEVICES_MOST);
        spec->index[spec->count++] = index;
        more = *at == ',';
        at += more;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_device_read(const char *text, gnomon_device_spec *spec)
{
    static const char allowed[] = "it must be auto, cpu, or a device's name, as cuda, with "
                                  "indices behind a colon or without";
    *spec = (gnomon_device_spec){.kind = GNOMON_DEVICE_AUTO};
    if (text == NULL || strcmp(text, "auto") == 0) return GNOMON_OK;
    spec->all = strcmp(text, "auto:all") == 0;
    if (spec->all) return GNOMON_OK;
    spec->kind = GNOMON_DEVICE_CPU;
    if (strcmp(text, "cpu") == 0) return GNOMON_OK;
    spec->kind = GNOMON_DEVICE_PLUGIN;
    const size_t length = name_length(text);
    GNOMON_FAIL_IF(length == 0 || length >= sizeof spec->name ||
                       (text[length] != 0 && text[length] != ':'),
                   NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("options.device") " is \"%.64s\"; %s",
                   text, allowed);
    memcpy(spec->name, text, length);
    GNOMON_FAIL_IF(strcmp(spec->name, "cpu") == 0 || strcmp(spec->name, "auto") == 0, NULL,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.device") " is \"%.64s\"; %s has no index", text, spec->name);
    if (text[length] == 0) return GNOMON_OK;
    spec->all = strcmp(text + length, ":all") == 0;
    return spec->all ? GNOMON_OK : read_indices(text, text + length + 1, spec);
}

/* ---- finding ---- */

/* Adds to the reason. */
__attribute__((format(printf, 2, 3))) static void say(gnomon_plugins *plugins, const char *format,
                                                      ...)
{
    const size_t used = strlen(plugins->reason);
    const char *between = used > 0 ? "; " : "";
    char text[640];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(plugins->reason + used, sizeof plugins->reason - used, "%s%s", between, text);
}

/* The folder of the file that holds this code, without the final slash; false when it
 * can't be told as an absolute path. */
static bool own_folder(char folder[PATH_MAX])
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1((void *)&gnomon_version, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    if (map->l_name && map->l_name[0]) {
        if (strlen(map->l_name) >= PATH_MAX) return false;
        strcpy(folder, map->l_name);
    } else { /* the main program, which has no name in the link map */
        const ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
        if (length <= 0) return false;
        folder[length] = 0;
    }
    char *slash = strrchr(folder, '/');
    if (folder[0] != '/' || !slash) return false;
    *slash = 0;
    return true;
}

/* Which devices are wanted: true, and none where it is the current one. */
static bool list_devices(const gnomon_device_spec *spec, const gnomon_device_table *table,
                         int index[GNOMON_DEVICES_MOST], int *count, char *why, size_t why_size)
{
    memcpy(index, spec->index, sizeof spec->index);
    *count = spec->count;
    if (!spec->all) return true;
    const int there = table->count ? table->count() : spec->kind == GNOMON_DEVICE_AUTO ? 0 : -1;
    if (there < 0) {
        snprintf(why, why_size, "it does not tell how many devices it has: name them");
        return false;
    }
    *count = there < GNOMON_DEVICES_MOST ? there : GNOMON_DEVICES_MOST;
    for (int i = 0; i < *count; i++)
        index[i] = i;
    return true;
}

/* Opens the devices that are wanted; under auto without those that can't be, which the reason
 * tells. why: what they are, or why they can't be had, and then none is held. */
static bool open_devices(gnomon_plugins *plugins, gnomon_plugin *plugin, const char *path,
                         char *why, size_t why_size)
{
    const gnomon_device_spec *spec = &plugins->spec;
    const gnomon_device_table *table = plugin->table;
    int index[GNOMON_DEVICES_MOST], count, opened = 0;
    void *state[GNOMON_DEVICES_MOST] = {NULL};
    if (!list_devices(spec, table, index, &count, why, why_size)) return false;
    if (count == 0) {
        const gnomon_status status = table->open(-1, &plugin->state, why, why_size);
        return status == GNOMON_OK;
    }
    char first[256] = "", said[256] = "";
    bool sound = true;
    for (int i = 0; i < count && sound; i++) {
        said[0] = 0;
        if (table->open(index[i], &state[opened], said, sizeof said) == GNOMON_OK) {
            if (opened == 0) memcpy(first, said, sizeof first);
            index[opened++] = index[i];
            continue;
        }
        if (said[0] == 0) snprintf(said, sizeof said, "it gave no reason");
        sound = spec->kind == GNOMON_DEVICE_AUTO && count > 1;
        if (sound)
            say(plugins, "%s: device %d is left out: %.200s", path, index[i], said);
        else if (count > 1)
            snprintf(why, why_size, "device %d: %s", index[i], said);
        else
            snprintf(why, why_size, "%s", said);
    }
    if (sound && opened == 0) {
        snprintf(why, why_size, "no device can be opened");
        sound = false;
    }
    plugin->state = state[0];
    if (sound && opened > 1)
        sound = gnomon_devices_make(table, index, state, opened, &plugin->table, &plugin->state,
                                    why, why_size);
    if (sound && opened > 1)
        snprintf(why, why_size, "%d x %s", opened, first);
    else if (sound)
        snprintf(why, why_size, "%s", first);
    for (int i = 0; i < opened && !sound; i++)
        table->close(state[i]);
    return sound;
}

/* Checks and opens what the library offers; the reason says what is wrong with it. */
static bool take(gnomon_plugins *plugins, const char *kind, void *library, const char *path)
{
    gnomon_plugin_entry_fn entry;
    void *symbol = dlsym(library, GNOMON_PLUGIN_ENTRY);
    if (!symbol) {
        say(plugins, "%s does not export %s", path, GNOMON_PLUGIN_ENTRY);
        return false;
    }
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from object to function */
    const gnomon_device_table *table = entry();
    if (!table) {
        say(plugins, "%s offers no device", path);
        return false;
    }
    if (table->interface_version != GNOMON_DEVICE_INTERFACE) {
        say(plugins, "%s has interface version %d, this library needs %d", path,
            table->interface_version, (int)GNOMON_DEVICE_INTERFACE);
        return false;
    }
    gnomon_plugin *plugin = &plugins->open[plugins->count];
    *plugin = (gnomon_plugin){.library = library, .table = table};
    snprintf(plugin->kind, sizeof plugin->kind, "%s", kind);
    char why[384] = "";
    if (!open_devices(plugins, plugin, path, why, sizeof why)) {
        say(plugins, "%s declined: %s", path, why[0] ? why : "it gave no reason");
        return false;
    }
    plugins->count++;
    snprintf(plugin->name, sizeof plugin->name, "%s", why);
    say(plugins, "%s: %s", path, why[0] ? why : "in use");
    return true;
}

/* True when the file is there, whether it could be used or not. */
static bool try_file(gnomon_plugins *plugins, const char *folder, const char *kind)
{
    char path[PATH_MAX + GNOMON_DEVICE_NAME + sizeof prefix + sizeof suffix];
    snprintf(path, sizeof path, "%s/%s%s%s", folder, prefix, kind, suffix);
    if (access(path, F_OK) != 0) return false;
    if (plugins->count == GNOMON_DEVICES) return true;
    /* A GPU runtime's exit handlers must still be mapped when the process ends. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *error = dlerror();
        say(plugins, "%s can't be loaded: %s", path, error ? error : "no reason given");
        return true;
    }
    if (!take(plugins, kind, library, path)) dlclose(library);
    return true;
}

/* Whether a file is a plugin's by its name; the part between prefix and suffix. */
static bool kind_of(const char *file, char kind[GNOMON_DEVICE_NAME])
{
    if (strncmp(file, prefix, sizeof prefix - 1) != 0) return false;
    file += sizeof prefix - 1;
    if (strncmp(file, "comm_", 5) == 0) return false; /* an engine's: comm/open.c */
    const size_t length = name_length(file);
    if (length == 0 || length >= GNOMON_DEVICE_NAME || strcmp(file + length, suffix) != 0)
        return false;
    memcpy(kind, file, length);
    kind[length] = 0;
    return true;
}

static int is_plugin(const struct dirent *entry)
{
    char kind[GNOMON_DEVICE_NAME];
    return kind_of(entry->d_name, kind);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The plugins in a folder; true when there is a file. */
static bool try_folder(gnomon_plugins *plugins, const char *folder)
{
    struct dirent **entries = NULL;
    if (plugins->spec.kind == GNOMON_DEVICE_PLUGIN)
        return try_file(plugins, folder, plugins->spec.name);
    const int count = scandir(folder, &entries, is_plugin, by_name);
    for (int i = 0; i < count; i++) {
        char kind[GNOMON_DEVICE_NAME];
        if (kind_of(entries[i]->d_name, kind)) try_file(plugins, folder, kind);
        free(entries[i]);
    }
    free(entries);
    return count > 0;
}

void gnomon_plugins_find(gnomon_plugins *plugins)
{
    if (plugins->looked_for) return;
    plugins->looked_for = true;
    plugins->process = getpid();
    const char *kind = plugins->spec.kind == GNOMON_DEVICE_PLUGIN ? plugins->spec.name : "NAME";

    const char *named = secure_getenv("GNOMON_PLUGIN_DIR");
    if (named && *named) {
        if (named[0] != '/')
            say(plugins, "GNOMON_PLUGIN_DIR is \"%.256s\", which is not an absolute path", named);
        else if (strlen(named) >= PATH_MAX)
            say(plugins, "GNOMON_PLUGIN_DIR is longer than a path may be");
        else if (!try_folder(plugins, named))
            say(plugins, "no %s%s%s in %.512s (GNOMON_PLUGIN_DIR)", prefix, kind, suffix, named);
        return;
    }

    char folder[PATH_MAX + sizeof "/gnomon"];
    if (!own_folder(folder)) {
        say(plugins, "the library's own folder is unknown, and GNOMON_PLUGIN_DIR is not set");
        return;
    }
    if (try_folder(plugins, folder)) return;
    const size_t length = strlen(folder);
    strcpy(folder + length, "/gnomon");
    if (try_folder(plugins, folder)) return;
    folder[length] = 0;
    say(plugins, "no %s%s%s in %.256s or %.256s/gnomon", prefix, kind, suffix, folder, folder);
}

bool gnomon_plugin_path(const char *name, char *path, size_t room, char *why, size_t why_room)
{
    const char *named = secure_getenv("GNOMON_PLUGIN_DIR");
    const bool is_named = named != NULL && *named != 0;
    char own[PATH_MAX] = "";
    if (is_named && named[0] != '/') {
        snprintf(why, why_room, "GNOMON_PLUGIN_DIR is \"%.256s\", which is not an absolute path",
                 named);
        return false;
    }
    if (!is_named && !own_folder(own)) {
        snprintf(why, why_room,
                 "the library's own folder is unknown, and GNOMON_PLUGIN_DIR is "
                 "not set");
        return false;
    }
    const char *folder = is_named ? named : own;
    for (int below = 0; below < 2 - is_named; below++) {
        const int length = snprintf(path, room, "%s%s/%s%s%s", folder, below ? "/gnomon" : "",
                                    prefix, name, suffix);
        if (length > 0 && (size_t)length < room && access(path, F_OK) == 0) return true;
    }
    snprintf(why, why_room, "no %s%s%s in %.256s%s", prefix, name, suffix, folder,
             is_named ? " (GNOMON_PLUGIN_DIR)" : " or its folder gnomon");
    return false;
}

/* A device belongs to the process that opened it: a child of fork can neither use nor close it. */
static void leave_to_parent(gnomon_plugins *plugins)
{
    if (plugins->count == 0 || plugins->process == getpid()) return;
    plugins->count = 0;
    plugins->reason[0] = 0;
    say(plugins, "a device that was opened before fork can't be used in the child");
}

void gnomon_plugins_close(gnomon_plugins *plugins)
{
    leave_to_parent(plugins);
    for (int i = 0; i < plugins->count; i++) {
        plugins->open[i].table->close(plugins->open[i].state);
        dlclose(plugins->open[i].library);
    }
    plugins->count = 0;
}

const gnomon_plugin *gnomon_context_plugin(gnomon_context *ctx, int i)
{
    if (ctx->plugins.spec.kind == GNOMON_DEVICE_CPU) return NULL;
    gnomon_plugins_find(&ctx->plugins);
    leave_to_parent(&ctx->plugins);
    return i < ctx->plugins.count ? &ctx->plugins.open[i] : NULL;
}

const char *gnomon_context_device_reason(const gnomon_context *ctx)
{
    if (ctx == NULL) return "";
    if (ctx->plugins.spec.kind == GNOMON_DEVICE_CPU)
        return "not loaded: the context's device is the CPU";
    /* Looking is put off until somebody asks; a context is one thread's at a time. */
    gnomon_plugins *plugins = (gnomon_plugins *)&ctx->plugins;
    gnomon_plugins_find(plugins);
    return plugins->reason;
}

/* The device that the last job ran on, or would be offered the next one first. */
static const gnomon_plugin *in_use(const gnomon_context *ctx)
{
    if (ctx->worked_plugin) return ctx->worked_plugin;
    return ctx->plugins.count > 0 ? &ctx->plugins.open[0] : NULL;
}

const char *gnomon_context_device_name(const gnomon_context *ctx)
{
    const gnomon_plugin *plugin = ctx ? in_use(ctx) : NULL;
    return plugin ? plugin->name : "";
}

const char *gnomon_context_device_found(const gnomon_context *ctx, int index)
{
    if (ctx == NULL || index < 0) return NULL;
    /* as for the reason */
    const gnomon_plugin *plugin = gnomon_context_plugin((gnomon_context *)ctx, index);
    return plugin ? plugin->kind : NULL;
}

const char *gnomon_context_device_kind(const gnomon_context *ctx)
{
    const gnomon_plugin *plugin = ctx ? in_use(ctx) : NULL;
    return plugin ? plugin->kind : "";
}
