/* What the static C++ library of a newer system takes from glibc and glibc 2.28 lacks. The
 * plugin's own code uses neither: they come with parts of that library that CUDA's headers pull in.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

char __libc_single_threaded = 0; /* never assume that there is one thread */

uint32_t arc4random(void)
{
    uint32_t word;
    if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word) abort();
    return word;
}
