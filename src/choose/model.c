/* A cost model's end. Its beginnings are in model_json.c and shipped.c. */
#include "choose/choose.h"

#include <stdlib.h>

void gnomon_model_destroy(gnomon_model *model)
{
    free(model);
}
