/* What the shares of neighbours found tell of their mean. */
#include "lsh/tune/tune.h"

#include <math.h>

enum { BETS = 5 };

/* A stake of the largest is bet most on what the spread expected calls for. */
static const double times[BETS] = {0.25, 0.5, 1, 2, 4}, part[BETS] = {0.05, 0.1, 0.7, 0.1, 0.05};

void gnomon_bet_open(gnomon_bet *b, double mean, double spread, double doubt, int64_t expected,
                     int64_t population)
{
    const double variance = spread * spread + 1 / (double)expected / (double)expected;
    const double stake = mean * sqrt(2 * log(1 / doubt) / ((double)expected * variance));
    *b = (gnomon_bet){.mean = mean, .stake = stake, .doubt = doubt, .population = population};
    for (int i = 0; i < BETS; i++)
        b->capital[i] = part[i];
}

bool gnomon_bet_on(gnomon_bet *b, double share)
{
    double mean = b->mean, capital = 0;
    /* Were the whole population's mean this one, that of the rest follows; it is used where it is
     * the harder to beat. */
    if (b->population > 0) {
        const double rest = ((double)b->population * b->mean - b->sum) /
                            (double)(b->population > b->count ? b->population - b->count : 1);
        if (rest > mean) mean = rest;
    }
    for (int i = 0; i < BETS; i++) {
        const double stake = b->stake * times[i] < 0.95 ? b->stake * times[i] : 0.95;
        b->capital[i] *= 1 + stake * (share / mean - 1);
        capital += b->capital[i];
    }
    b->sum += share;
    b->count++;
    if (capital * b->doubt >= 1) b->won = true;
    return b->won;
}

double gnomon_bet_bound(const gnomon_bet *as, const float *shares, int64_t count)
{
    double low = 0, high = 1;
    for (int i = 0; i < 40; i++) {
        gnomon_bet b = *as;
        b.mean = 0.5 * (low + high);
        b.sum = 0;
        b.count = 0;
        b.won = false;
        for (int j = 0; j < BETS; j++)
            b.capital[j] = part[j];
        for (int64_t q = 0; q < count && !b.won; q++)
            gnomon_bet_on(&b, (double)shares[q]);
        if (b.won)
            low = b.mean;
        else
            high = b.mean;
    }
    return low;
}
