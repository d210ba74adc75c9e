/* Calibration files: the first byte says which, the rest is the file; what is read goes into a
 * plan, as at the daemon's start. */
#include "pipeline/plan/calibration.h"
#include "pipeline/plan/plan.h"
#include "test/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { N = 16, M = 2, V = 1 };

static void plan_with(const struct oct_calibration *cal)
{
    struct oct_geometry geometry;
    struct oct_plan *plan = NULL;
    struct oct_error err = {0};
    fuzz_must(!oct_geometry_init(&geometry, N, M, V, 0, 0, OCT_SAMPLE_U8, &err));
    const struct oct_chain chain = {.dc = cal->n_background ? OCT_DC_FILE : OCT_DC_BSCAN};
    enum oct_err e = oct_plan_create(&plan, &geometry, cal, &chain, &err);
    fuzz_must((e == OCT_OK) == (plan != NULL) && (e == OCT_OK || err.text[0]));
    oct_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct oct_calibration cal = {0}, copy;
    struct oct_error err = {0};
    double pixels[] = {0, N - 1}, *values, *spare = NULL;
    const char *path = fuzz_path(0, "table.txt");
    size_t n;

    const uint32_t kind = fuzz_below(&in, 4);
    const unsigned columns = kind == 2 ? 2 : 1;
    fuzz_write_file(path, in.data, in.left);
    enum oct_err e = oct_calibration_read_table(path, columns, &values, &n, &err);
    fuzz_must((e == OCT_OK) == (values != NULL));
    if (e) {
        fuzz_must(err.code == e && strncmp(err.text, path, strlen(path)) == 0);
        return 0;
    }
    for (size_t i = 0; i < n * columns; i++)
        fuzz_must(isfinite(values[i]));
    if (kind == 0) {
        cal.wavelengths_nm = values, cal.n_wavelengths = n;
    } else if (kind == 1) {
        cal.kmap_px = values, cal.n_kmap = n;
    } else {
        spare = pixels; /* a k map of ours to go with the rest */
        if (kind == 2)
            cal.dispersion = values, cal.n_dispersion = n;
        else
            cal.background = values, cal.n_background = n;
    }
    if (spare)
        cal.kmap_px = spare, cal.n_kmap = 2;
    fuzz_must(!oct_calibration_copy(&copy, &cal));
    plan_with(&copy);
    oct_calibration_finish(&copy);
    if (spare)
        cal.kmap_px = NULL;
    oct_calibration_finish(&cal);
    return 0;
}
