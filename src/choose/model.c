/* Which cost model, and a model's end. Its beginnings are in model_json.c and shipped.c. */
#include "choose/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gnomon_model *gnomon_model_for(const gnomon_model *list, gnomon_device device,
                                     const char *gpu, char *note, size_t note_size)
{
    const gnomon_model *first = NULL;
    const size_t length = strcspn(gpu, ",");
    note[0] = '\0';
    for (const gnomon_model *m = list; m->count > 0; m++) {
        if (m->device != device) continue;
        if (device == GNOMON_DEVICE_CPU ||
            (strlen(m->name) == length && memcmp(m->name, gpu, length) == 0))
            return m;
        if (first == NULL) first = m;
    }
    if (device == GNOMON_DEVICE_CPU) return NULL;
    if (first == NULL && list->count > 0) first = list;
    if (first != NULL)
        snprintf(note, note_size, "no costs were measured on %.*s: those of %s are taken",
                 length > 0 && length < 64 ? (int)length : 8,
                 length > 0 && length < 64 ? gpu : "this GPU", first->name);
    return first;
}

void gnomon_model_destroy(gnomon_model *model)
{
    free(model);
}
