#include "pipeline/volume/hdf5_axes.h"

#include <hdf5.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <string.h>

static void note(struct oct_hdf5_reason *reason)
{
    oct_hdf5_reason(reason->text, sizeof(reason->text));
}

bool oct_hdf5_put_axes(int64_t object, unsigned rank, const char *const *names,
                       const double *spacing_um, struct oct_hdf5_reason *reason)
{
    const bool is_dataset = H5Iget_type(object) == H5I_DATASET;
    const hid_t f64 = H5T_IEEE_F64LE, from = H5T_NATIVE_DOUBLE;
    const hid_t text = oct_hdf5_make_text_type(reason);
    bool ok =
        text >= 0 &&
        oct_hdf5_put_attribute(object, "axis_names", text, text, rank, names, reason) &&
        oct_hdf5_put_attribute(object, "axis_spacing_um", f64, from, rank, spacing_um, reason);
    if (ok && is_dataset)
        ok = oct_hdf5_put_attribute(object, "DIMENSION_LABELS", text, text, rank, names, reason);
    if (ok && is_dataset && rank == 3)
        ok = oct_hdf5_put_attribute(object, "element_size_um", f64, from, rank, spacing_um, reason);
    OCT_HDF5_CLOSE(text);
    return ok;
}

/* ---- scales ---- */

static unsigned count_of_axis(const struct oct_hdf5_scales *scales, const char *axis)
{
    unsigned n = 0;
    for (unsigned i = 0; i < scales->n; i++)
        n += strcmp(scales->scale[i].axis, axis) == 0;
    return n;
}

static bool fill(hid_t dataset, const char *name, const double *positions_um, const char *long_name,
                 struct oct_hdf5_reason *reason)
{
    if (H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, positions_um) < 0 ||
        H5DSset_scale(dataset, name) < 0) {
        note(reason);
        return false;
    }
    return oct_hdf5_put_text(dataset, "units", "um", reason) &&
           oct_hdf5_put_text(dataset, "long_name", long_name, reason);
}

bool oct_hdf5_scale_make(struct oct_hdf5_scales *scales, int64_t file, int64_t properties,
                         const char *axis, uint64_t n, const double *positions_um,
                         double spacing_um, const char *long_name, struct oct_hdf5_reason *reason)
{
    struct oct_hdf5_scale *s = &scales->scale[scales->n];
    const unsigned nth = count_of_axis(scales, axis) + 1;
    char name[48];
    if (scales->n == OCT_HDF5_MOST_SCALES)
        return true; /* the axis goes without */
    *s = (struct oct_hdf5_scale){.n = n, .spacing_um = spacing_um, .dataset = H5I_INVALID_HID};
    snprintf(s->axis, sizeof(s->axis), "%s", axis);
    snprintf(name, sizeof(name), nth > 1 ? "%s_um_%u" : "%s_um", s->axis, nth);
    s->dataset =
        properties < 0
            ? oct_hdf5_make_dataset(file, name, H5T_IEEE_F64LE, 1, &n, NULL, reason)
            : oct_hdf5_make_dataset_with(file, name, H5T_IEEE_F64LE, 1, &n, properties, reason);
    scales->n += s->dataset >= 0;
    return s->dataset >= 0 && fill(s->dataset, name, positions_um, long_name, reason);
}

static bool attach(hid_t dataset, hid_t scale, unsigned axis, struct oct_hdf5_reason *reason)
{
    if (H5DSattach_scale(dataset, scale, axis) >= 0)
        return true;
    note(reason);
    return false;
}

bool oct_hdf5_scales_attach(const struct oct_hdf5_scales *scales, int64_t dataset, unsigned rank,
                            const char *const *names, const uint64_t *dims,
                            const double *spacing_um, struct oct_hdf5_reason *reason)
{
    for (unsigned i = 0; i < rank; i++)
        for (unsigned k = 0; k < scales->n; k++) {
            const struct oct_hdf5_scale *s = &scales->scale[k];
            const bool is_this =
                strcmp(s->axis, names[i]) == 0 && s->n == dims[i] && s->spacing_um == spacing_um[i];
            if (is_this && !attach(dataset, s->dataset, i, reason))
                return false;
            if (is_this)
                break;
        }
    return true;
}

bool oct_hdf5_scale_use(int64_t dataset, unsigned axis, int64_t scale, const char *name,
                        struct oct_hdf5_reason *reason)
{
    const htri_t is_one = H5DSis_scale(scale);
    if (is_one < 0 || (is_one == 0 && H5DSset_scale(scale, name) < 0)) {
        note(reason);
        return false;
    }
    return attach(dataset, scale, axis, reason);
}

void oct_hdf5_scales_close(struct oct_hdf5_scales *scales)
{
    for (unsigned i = 0; i < scales->n; i++)
        H5Dclose(scales->scale[i].dataset);
    scales->n = 0;
}
