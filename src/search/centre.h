/* search/centre.h: the point that dense coordinates are taken from. */
#ifndef GNOMON_SEARCH_CENTRE_H
#define GNOMON_SEARCH_CENTRE_H

#include "search/state.h"

/* Estimates the centre from some of base's points. Errors: MEMORY. */
gnomon_status gnomon_centre_estimate(gnomon_search *search, const gnomon_matrix *base);

/* The same as another search of these points has estimated. Errors: MEMORY. */
gnomon_status gnomon_centre_take(gnomon_search *search, const gnomon_centre *centre);

#endif
