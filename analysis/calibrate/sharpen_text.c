#include "analysis/calibrate/sharpen_text.h"

#include <math.h>
#include <stdio.h>

#include <cjson/cJSON.h>

static const char *const state_names[] = {[OCT_SHARPEN_FOUND] = "found",
                                          [OCT_SHARPEN_NOTHING] = "nothing",
                                          [OCT_SHARPEN_AT_BOUND] = "at_bound"};

const char *oct_sharpen_why(enum oct_sharpen_state state)
{
    switch (state) {
    case OCT_SHARPEN_NOTHING:
        return "nothing to sharpen: parts of the A-lines do not agree on a dispersion, as with "
               "noise, or a sample that is the same in all A-lines of a B-scan (which dc=bscan "
               "removes); put a sample with an edge or a layer there, tilted or rough";
    case OCT_SHARPEN_AT_BOUND:
        return "ambiguous: the sharpest lies at the end of the search range; begin with better "
               "coefficients, or search farther";
    case OCT_SHARPEN_FOUND:
        break;
    }
    return "";
}

static void add_number(cJSON *object, const char *key, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(object, key, value);
    else
        cJSON_AddNullToObject(object, key);
}

/* Six digits behind the point: a microradian. */
static double rounded(double value)
{
    return round(value * 1e6) / 1e6;
}

static void add_coefficients(cJSON *object, const char *key, const double *coefficient)
{
    cJSON *array = cJSON_AddArrayToObject(object, key);
    for (int m = 2; m <= OCT_MAX_DISPERSION_ORDER; m++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(rounded(coefficient[m])));
}

void oct_sharpen_describe(const struct oct_sharpen_result *r,
                          const struct oct_sharpen_dispersion *whole, cJSON *object)
{
    char line[OCT_SHARPEN_INI_BYTES];
    cJSON_AddStringToObject(object, "state", state_names[r->state]);
    cJSON_AddStringToObject(object, "why", oct_sharpen_why(r->state));
    add_number(object, "a2", rounded(r->remaining[0]));
    add_number(object, "a3", rounded(r->remaining[1]));
    add_number(object, "a2_error", rounded(r->error[0]));
    add_number(object, "a3_error", rounded(r->error[1]));
    add_number(object, "agreement", rounded(r->agreement));
    add_number(object, "sharpness_before", rounded(r->before));
    add_number(object, "sharpness_after", rounded(r->after));
    add_number(object, "width_before_px", rounded(r->width_before_px));
    add_number(object, "width_after_px", rounded(r->width_after_px));
    add_number(object, "widths", r->n_widths);
    add_number(object, "lines", r->n_lines);
    add_number(object, "lines_saturated", r->n_saturated);
    cJSON_AddBoolToObject(object, "is_table", whole->is_table);
    if (r->state != OCT_SHARPEN_FOUND || whole->is_table)
        return;
    add_coefficients(object, "over_spectrum", whole->over_spectrum);
    add_coefficients(object, "over_grid", whole->over_grid);
    cJSON *ini = cJSON_AddArrayToObject(object, "ini");
    for (unsigned i = 0; oct_sharpen_ini(whole, i, line); i++)
        cJSON_AddItemToArray(ini, cJSON_CreateString(line));
}

bool oct_sharpen_ini(const struct oct_sharpen_dispersion *whole, unsigned i,
                     char line[OCT_SHARPEN_INI_BYTES])
{
    if (i == 0)
        snprintf(line, OCT_SHARPEN_INI_BYTES, "dispersion_over = spectrum");
    else if (i < OCT_MAX_DISPERSION_ORDER)
        snprintf(line, OCT_SHARPEN_INI_BYTES, "dispersion_a%u = %.6f", i + 1,
                 whole->over_spectrum[i + 1]);
    return i < OCT_MAX_DISPERSION_ORDER;
}
