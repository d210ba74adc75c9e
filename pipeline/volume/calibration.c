#include "pipeline/volume/calibration.h"

#include "pipeline/plan/geometry.h"
#include "pipeline/volume/hdf5_read.h"

#include <stdlib.h>

#define MAX_P2 (2u * OCT_MAX_SAMPLES) /* P1 is at most the largest N, a power of two */

/* A list (columns 1) or a table of pairs (columns 2); stays NULL where the file has none. */
static enum oct_err read_table(hid_t file, const char *path, const char *name, unsigned columns,
                               double **values, size_t *n_rows, struct oct_error *err)
{
    struct oct_hdf5_array a;
    enum oct_err e = oct_hdf5_array_open(&a, file, path, name, columns, err);
    if (e == OCT_OK && a.dataset >= 0) {
        if (a.dims[0] < 1 || a.dims[0] > MAX_P2 || (columns == 2 && a.dims[1] != 2))
            e = oct_fail(err, OCT_E_FORMAT, "%s: %s must be [n]%s with 1 to %u rows", path, name,
                         columns == 2 ? "[2]" : "", MAX_P2);
        else if (!(*values = calloc((size_t)(a.dims[0] * columns), sizeof(double))))
            e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
        else
            e = oct_hdf5_array_read(&a, H5T_NATIVE_DOUBLE, *values, err);
        if (e == OCT_OK)
            *n_rows = (size_t)a.dims[0];
    }
    oct_hdf5_array_close(&a);
    return e;
}

enum oct_err oct_volume_calibration_read(hid_t file, const char *path, struct oct_calibration *cal,
                                         struct oct_error *err)
{
    *cal = (struct oct_calibration){0};
    enum oct_err e = read_table(file, path, "/calibration/wavelengths_nm", 1, &cal->wavelengths_nm,
                                &cal->n_wavelengths, err);
    if (e == OCT_OK)
        e = read_table(file, path, "/calibration/kmap_px", 1, &cal->kmap_px, &cal->n_kmap, err);
    if (e == OCT_OK)
        e = read_table(file, path, "/calibration/dispersion", 2, &cal->dispersion,
                       &cal->n_dispersion, err);
    if (e == OCT_OK)
        e = read_table(file, path, "/calibration/background", 1, &cal->background,
                       &cal->n_background, err);
    if (e != OCT_OK)
        oct_calibration_finish(cal);
    return e;
}
