/* What the command says of file formats, from the library's own list of them. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

int cli_format_info(int index, gnomon_format_info *info)
{
    memset(info, 0, sizeof *info);
    info->struct_size = sizeof *info;
    return gnomon_format_describe(index, info) == GNOMON_OK;
}

const char *cli_formats(char text[CLI_FORMATS_TEXT], int holds, int takes, int written)
{
    gnomon_format_info info;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; cli_format_info(i, &info); ++i) {
        if ((info.holds & holds) != holds || (info.takes & takes) != takes) continue;
        if (written && info.writes == 0) continue;
        if (used < CLI_FORMATS_TEXT)
            used += (size_t)snprintf(text + used, CLI_FORMATS_TEXT - used, "%s%s",
                                     used > 0 ? ", " : "", info.name);
    }
    return text;
}

int cli_format_is(const char *name, int holds, int takes)
{
    gnomon_format_info info;
    for (int i = 0; name != NULL && cli_format_info(i, &info); ++i) {
        if (strcmp(info.name, name) == 0)
            return (info.holds & holds) == holds && (info.takes & takes) == takes;
    }
    return 0;
}

gnomon_dtype cli_format_type(const char *name, gnomon_dtype best, gnomon_dtype next)
{
    gnomon_format_info info;
    for (int i = 0; name != NULL && cli_format_info(i, &info); ++i) {
        if (strcmp(info.name, name) == 0)
            return (info.writes & 1u << best) == 0 && (info.writes & 1u << next) != 0 ? next : best;
    }
    return best;
}

const char *cli_format_taking(int takes)
{
    gnomon_format_info info;
    for (int i = 0; cli_format_info(i, &info); ++i) {
        if ((info.takes & takes) == takes) return info.name;
    }
    return NULL;
}

const char *cli_format_members(char text[CLI_FORMATS_TEXT])
{
    gnomon_format_info info;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; cli_format_info(i, &info); ++i) {
        if (info.member[0] == '\0' || used >= CLI_FORMATS_TEXT) continue;
        used += (size_t)snprintf(text + used, CLI_FORMATS_TEXT - used, "%sfile%.*s:%s",
                                 used > 0 ? ", " : "", (int)strcspn(info.endings, " "),
                                 info.endings, info.member);
    }
    return text;
}
