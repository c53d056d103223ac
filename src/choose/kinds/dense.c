/* gaussian, rademacher and achlioptas: every entry is made, and multiplies. */
#include "choose/kinds/kinds.h"

static void gaussian_by_eps(const gnomon_asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)signs;
    const bool half = c->descriptor.precision == GNOMON_F16;
    if (half && !a->incoherent)
        gnomon_choose_say(c, false, exact,
                          "the exact law is that of normal entries, not of ones rounded to fp16");
    else
        gnomon_choose_say(c, true, exact, "exact chi-square law%s",
                          half ? ", the points taken to be incoherent" : ", any points");
}

static void gaussian_by_rows(const gnomon_asked *a, double k, gnomon_candidate *c)
{
    (void)a;
    gnomon_choose_say(c, true, k, "a dense kind: %s",
                      c->descriptor.precision == GNOMON_F16
                          ? "moments within 1e-5 of the normal law's"
                          : "the normal law, any points");
}

static void signs_by_eps(const gnomon_asked *a, double exact, double signs, gnomon_candidate *c)
{
    if (a->incoherent)
        gnomon_choose_say(c, true, exact, "chi-square law, the points taken to be incoherent");
    else
        gnomon_choose_say(c, true, signs, "Achlioptas 2003, any points");
}

static void signs_by_rows(const gnomon_asked *a, double k, gnomon_candidate *c)
{
    (void)a;
    gnomon_choose_say(c, true, k, "a dense kind: no moment above the normal law's, any points");
}

void gnomon_dense_count(const gnomon_work_sizes *s, bool sparse, gnomon_work *w)
{
    w->made = sparse ? s->columns * s->k : s->k * s->d;
    w->multiplied = sparse ? s->nonzeros * s->k : s->points * s->rows * s->d;
}

const gnomon_choose_row gnomon_choose_gaussian = {
    .kind = GNOMON_GAUSSIAN,
    .candidates = {{.precision = GNOMON_F32}, {.precision = GNOMON_F16}},
    .count = 2,
    .by_eps = gaussian_by_eps,
    .by_rows = gaussian_by_rows,
    .work = gnomon_dense_count,
};

const gnomon_choose_row gnomon_choose_rademacher = {
    .kind = GNOMON_RADEMACHER,
    .count = 1,
    .by_eps = signs_by_eps,
    .by_rows = signs_by_rows,
    .work = gnomon_dense_count,
};

const gnomon_choose_row gnomon_choose_achlioptas = {
    .kind = GNOMON_ACHLIOPTAS,
    .count = 1,
    .by_eps = signs_by_eps,
    .by_rows = signs_by_rows,
    .work = gnomon_dense_count,
};
