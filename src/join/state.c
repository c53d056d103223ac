/* What is said of a join. */
#include "join/state.h"

#include "base/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gnomon_join_say(gnomon_join_state *join, const char *format, ...)
{
    char *why = join->result->why;
    size_t said = strlen(why);
    va_list arguments;
    if (said > 0 && said + 2 < sizeof join->result->why) {
        memcpy(why + said, "; ", 3);
        said += 2;
    }
    va_start(arguments, format);
    vsnprintf(why + said, sizeof join->result->why - said, format, arguments);
    va_end(arguments);
}

void gnomon_join_tell_result(const gnomon_join_state *join)
{
    gnomon_write_result(join->given, join->result, sizeof *join->result);
}
