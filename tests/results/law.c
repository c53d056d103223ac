/* Prints what bench/papers/law.c finds of a format, for low_precision.py to hold against SciPy.
 * usage: law X Y [finite] */
#include "../../bench/papers/law.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    const format f = {"", atoi(argv[1]), atoi(argv[2]), argc > 3};
    const law l = law_of(&f);
    printf("{\"largest\": %.17g, \"log10_overflow\": %.17g, \"underflow\": %.17g, "
           "\"subnormal\": %.17g, \"paper_underflow\": %.17g, \"paper_not_normal\": %.17g, "
           "\"values\": [%.17g, %.17g, %.17g]",
           law_largest(&f), l.log10_overflow, l.underflow, l.subnormal, l.paper_underflow,
           l.paper_not_normal, l.values[0], l.values[1], l.values[2]);
    if (f.mantissa <= 10)
        printf(", \"variance_excess\": %.17g, \"entropy\": %.17g, \"rounded\": [",
               law_variance_excess(&f), law_entropy(&f));
    else
        printf(", \"rounded\": [");
    for (int i = 0; i < 64; i++) {
        const double g = (i - 32 + 0.37) * (i % 3 == 0 ? 1e-5 : i % 3 == 1 ? 0.0625 : 0.1);
        printf("%s%.17g", i ? ", " : "", law_round(&f, g));
    }
    printf("]}\n");
    return 0;
}
