#include "formats/input/octview_meta.h"

#include "pipeline/plan/plan.h"

#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

/* A number of the object or of entry `at` of an array there; NaN: there is none. */
static double number_of(const cJSON *object, const char *name, int at)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (at >= 0)
        item = cJSON_IsArray(item) ? cJSON_GetArrayItem(item, at) : NULL;
    return item && cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : NAN;
}

/* 0: not said, or no count. */
static uint64_t count_of(const cJSON *object, const char *name)
{
    const double n = number_of(object, name, -1);
    return n >= 1 && n <= (double)(1u << 30) && n == floor(n) ? (uint64_t)n : 0;
}

static bool says(const cJSON *object, const char *name, const char *text)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static double above_0(double value)
{
    return value > 0 ? value : NAN;
}

/* A frame has A-lines * A-line-repeat lines a B-scan and B-lines * B-line-repeat B-scans, or these
 * numbers have the repeats already: the size of a frame shows which. */
static void read_geometry(struct oct_octview_meta *meta, const cJSON *object)
{
    const uint64_t n = count_of(object, "Spectrometer-bins");
    const uint64_t all = count_of(object, "Frame-size-voxels");
    const uint64_t lines = count_of(object, "A-lines"), bscans = count_of(object, "B-lines");
    const uint64_t line_repeat = count_of(object, "A-line-repeat");
    const uint64_t bscan_repeat = count_of(object, "B-line-repeat");
    const uint64_t ways[][2] = {
        {lines * (line_repeat ? line_repeat : 1), bscans * (bscan_repeat ? bscan_repeat : 1)},
        {lines, bscans},
    };
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        /* Each count is below 2^60, and so are the products that are compared. */
        if (n > 0 && ways[i][0] > 0 && ways[i][1] > 0 && all % n == 0 &&
            (all / n) % ways[i][0] == 0 && all / n / ways[i][0] == ways[i][1]) {
            meta->n_samples = n;
            meta->n_lines = ways[i][0];
            meta->n_bscans = ways[i][1];
            return;
        }
}

static void read_band(struct oct_octview_meta *meta, const cJSON *object)
{
    const double low = number_of(object, "Spectrometer-bandwidth-nm", 0);
    const double high = number_of(object, "Spectrometer-bandwidth-nm", 1);
    if (!(low >= OCT_MIN_WAVELENGTH_NM) || !(low < high) || !(high <= OCT_MAX_WAVELENGTH_NM))
        return;
    meta->band_nm[0] = low;
    meta->band_nm[1] = high;
}

void oct_octview_meta_read(struct oct_octview_meta *meta, const char *json, size_t n_bytes)
{
    *meta = (struct oct_octview_meta){.line_rate_hz = NAN,
                                      .width_um = NAN,
                                      .height_um = NAN,
                                      .axial_um = NAN,
                                      .band_nm = {NAN, NAN}};
    cJSON *object = cJSON_ParseWithLength(json, n_bytes);
    if (cJSON_IsObject(object) &&
        cJSON_GetObjectItemCaseSensitive(object, "OCTview version") != NULL) {
        meta->is_octview = true;
        meta->is_spectra =
            says(object, "Data-type", "UINT16") && !says(object, "Processed", "True");
        read_geometry(meta, object);
        meta->line_rate_hz = above_0(number_of(object, "Line-camera-trigger-rate-hz", -1));
        meta->width_um = above_0(number_of(object, "XY-ROI-mm", 0) * 1000);
        meta->height_um = above_0(number_of(object, "XY-ROI-mm", 1) * 1000);
        read_band(meta, object);
        meta->axial_um = above_0(number_of(object, "Axial-voxel-size-mm", -1) * 1000);
    }
    cJSON_Delete(object);
}
