/* Serves the functions of docs/reference/operators.md, sections 2 to 4, to test_vectors.py: each
 * line on standard input names one and its arguments, and is answered by a line of results; fp32
 * numbers as their bits. */
#include "operator/kinds/kinds.h"
#include "operator/philox.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static int answer(const char *line)
{
    uint32_t n[7];
    uint64_t x;
    int b;
    double p;
    if (sscanf(line, "philox %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32,
               &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]) == 6) {
        const gnomon_words w = gnomon_philox(n[0], n[1], n[2], n[3], n[4], n[5]);
        printf("%" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", w.w[0], w.w[1], w.w[2], w.w[3]);
    } else if (sscanf(line, "nl %" SCNu32, &n[0]) == 1) {
        printf("%" PRIu32 "\n", bits_of(gnomon_neglog(n[0])));
    } else if (sscanf(line,
                      "perm %" SCNu64 " %d %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32
                      " %" SCNu32,
                      &x, &b, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]) == 8) {
        const uint64_t to = gnomon_perm(x, b, n);
        printf("%" PRIu64 "\n", gnomon_perm_inverse(to, b, n) == x ? to : UINT64_MAX);
    } else if (sscanf(line, "fp16 body %" SCNu32, &n[0]) == 1) {
        printf("%" PRIu32 "\n", bits_of(gnomon_gaussian16_table()[n[0]]));
    } else if (sscanf(line, "fp16 tail %" SCNu32, &n[0]) == 1) {
        printf("%" PRIu32 "\n", bits_of(gnomon_gaussian16_tail(n[0])));
    } else if (sscanf(line, "jump %la", &p) == 1) {
        printf("%" PRIu32 "\n", bits_of(gnomon_jump_scale(p)));
    } else {
        fprintf(stderr, "not a question: %s\n", line);
        return 1;
    }
    return 0;
}

int main(void)
{
    char line[256];
    int failed = 0;
    while (!failed && fgets(line, sizeof line, stdin))
        failed = answer(line);
    return failed;
}
