#include "pipeline/volume/describe.h"

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- places ---- */

struct places {
    const char *axis, *meaning;
    uint64_t n, first, block; /* `block` neighbours share a place */
    double um;
};

static bool make_places(struct oct_hdf5_scales *scales, int64_t file, int64_t properties,
                        const struct places *p, struct oct_hdf5_reason *reason)
{
    if (!isfinite(p->um))
        return true;
    double *um = malloc((size_t)p->n * sizeof(*um));
    if (!um) {
        snprintf(reason->text, sizeof(reason->text), "out of memory");
        return false;
    }
    for (uint64_t i = 0; i < p->n; i++)
        um[i] = (double)(p->first + i / p->block * p->block) * p->um;
    const bool ok =
        oct_hdf5_scale_make(scales, file, properties, p->axis, p->n, um, p->um, p->meaning, reason);
    free(um);
    return ok;
}

bool oct_volume_describe_places(struct oct_hdf5_scales *scales, int64_t file, int64_t properties,
                                const struct oct_geometry *g, const struct oct_volume_about *about,
                                const struct oct_spacing *spacing, struct oct_hdf5_reason *reason)
{
    const bool is_field = about->field_bscans == 0 || about->field_bscans == g->n_bscans;
    const struct places places[] = {
        {"bscan", "place of the B-scan in the field", g->n_bscans, 0,
         about->repeats > 1 ? about->repeats : 1, is_field ? spacing->bscan_um : NAN},
        {"line", "place of the A-line in the B-scan", g->n_lines, 0, 1, spacing->line_um},
        {"depth", "depth of the pixel below zero path difference, by the refractive index",
         g->depth, g->crop_first, 1, spacing->depth_um},
    };
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (!make_places(scales, file, properties, &places[i], reason))
            return false;
    return true;
}

uint64_t oct_volume_describe_bytes(const struct oct_geometry *g)
{
    return sizeof(double) * ((uint64_t)g->n_bscans + g->n_lines + g->depth);
}

/* ---- greys ---- */

static bool put_number(int64_t object, const char *name, double value,
                       struct oct_hdf5_reason *reason)
{
    return oct_hdf5_put_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 0, &value,
                                  reason);
}

static const char *meaning_of(enum oct_sample_type type, const struct oct_volume_about *about)
{
    static const char *const u8[2] = {
        "Row v: grey 0 is /frames/lo[v] and grey 255 is /frames/hi[v], linear between, in units; "
        "what lies beyond is cut off.",
        "Grey 0 is grey_lo and grey 255 is grey_hi, linear between, in units; what lies beyond is "
        "cut off."};
    return type == OCT_SAMPLE_F32 ? "Each value is in units, not cut off."
                                  : u8[about->limits_are_common];
}

bool oct_volume_describe_grey(int64_t bscans, enum oct_sample_type type,
                              const struct oct_volume_about *about, struct oct_hdf5_reason *reason)
{
    const enum oct_quantity quantity =
        about->is_log ? OCT_QUANTITY_INTENSITY_DB : OCT_QUANTITY_INTENSITY;
    const bool is_common = type == OCT_SAMPLE_U8 && about->limits_are_common;
    const char *limits = type == OCT_SAMPLE_F32 ? "none"
                         : is_common            ? "common"
                                                : "per B-scan: /frames/lo, /frames/hi";
    return oct_hdf5_put_text(bscans, "quantity", oct_quantity_name(quantity), reason) &&
           oct_hdf5_put_text(bscans, "units", oct_quantity_unit(quantity), reason) &&
           oct_hdf5_put_text(bscans, "grey_quantity",
                             about->is_log ? "intensity, log: 10 log10 of counts^2"
                                           : "intensity, linear: counts^2",
                             reason) &&
           oct_hdf5_put_text(bscans, "grey_limits", limits, reason) &&
           oct_hdf5_put_text(bscans, "grey_meaning", meaning_of(type, about), reason) &&
           (!is_common || (put_number(bscans, "grey_lo", about->lo, reason) &&
                           put_number(bscans, "grey_hi", about->hi, reason)));
}
