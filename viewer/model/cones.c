#include "viewer/model/overlay.h"

#include <math.h>
#include <stdio.h>

#define LEAST_UM 1.0
#define MOST_UM 1000.0
#define MOST_PER_MM2 2e6 /* of LEAST_UM it is 1.15e6 */

enum oct_err oct_view_cones_check(const struct oct_image_header *header, struct oct_error *err)
{
    uint32_t n_columns =
        header->rank >= 1 && header->rank <= 2 ? header->dims[header->rank - 1] : 0;

    if (header->type != OCT_SAMPLE_F32 || n_columns == 0 || header->n_labels != n_columns ||
        (header->rank == 2 && header->dims[0] > 1))
        return oct_fail(err, OCT_E_FORMAT,
                        "%.40s: a cone spacing is one row of labelled f32 numbers",
                        header->dataset);
    return OCT_OK;
}

void oct_view_cones_set(struct oct_view_cones *cones, const struct oct_view_image *row)
{
    const struct oct_image_header *h = &row->header;

    if (oct_view_cones_check(h, NULL) || oct_view_image_bytes(h) == 0)
        return;
    double um = oct_image_header_value(h, row->values, "spacing_um");
    double per_mm2 = oct_image_header_value(h, row->values, "cells_per_mm2");
    double strength = oct_image_header_value(h, row->values, "strength");
    *cones = (struct oct_view_cones){.known = true, .volume = h->volume};
    /* A number that is none compares false. */
    cones->has_ring = um >= LEAST_UM && um <= MOST_UM && per_mm2 > 0 && per_mm2 < MOST_PER_MM2 &&
                      strength > 0 && strength <= 1;
    if (cones->has_ring) {
        cones->spacing_um = um;
        cones->per_mm2 = per_mm2;
        cones->strength = strength;
    }
    snprintf(cones->acquisition_id, sizeof(cones->acquisition_id), "%s", h->acquisition_id);
}
