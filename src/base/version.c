/* The library's own version. */
#include <gnomon/base.h>

const char *gnomon_version(void)
{
    return GNOMON_VERSION_STRING;
}
