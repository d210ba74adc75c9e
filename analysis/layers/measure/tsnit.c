#include "analysis/layers/measure/tsnit.h"

#include <math.h>

#define DEGREES (180 / 3.14159265358979323846)

const char *const oct_tsnit_names[OCT_TSNIT_N_SECTORS] = {"G", "T", "TS", "NS", "N", "NI", "TI"};

static unsigned sector_at(double deg)
{
    static const double ends[] = {45, 85, 125, 235, 275, 315};
    unsigned i = 0;

    while (i < sizeof(ends) / sizeof(ends[0]) && deg >= ends[i])
        i++;
    return i == 6 ? 1 : i + 1; /* temporal lies on both sides of 0 */
}

/* Of the first A-line. */
static double first_angle(const struct oct_tsnit_setup *setup)
{
    const double temporal = setup->nasal_is_right ? -setup->first[0] : setup->first[0];
    return fmod(atan2(setup->first[1], temporal) * DEGREES + 360, 360);
}

double oct_tsnit_angle(const struct oct_tsnit_setup *setup, uint32_t line)
{
    const double first = first_angle(setup), along = 360.0 / setup->n_lines * line;
    return fmod(setup->falls ? first - along + 360 : first + along, 360);
}

/* The A-line whose angle is the i-th smallest. */
static uint32_t line_of(const struct oct_tsnit_setup *setup, uint32_t i)
{
    const uint32_t m = setup->n_lines;
    const double step = 360.0 / m, first = first_angle(setup);
    if (setup->falls)
        return ((uint32_t)floor(first / step) + m - i) % m;
    return (i + (uint32_t)ceil((360 - first) / step)) % m;
}

void oct_tsnit_measure(const struct oct_tsnit_setup *setup, const float *thickness_um,
                       double *angle_deg, double *profile_um, struct oct_tsnit *tsnit)
{
    const uint32_t m = setup->n_lines;
    double known[OCT_TSNIT_N_SECTORS] = {0}, all[OCT_TSNIT_N_SECTORS] = {0};

    *tsnit = (struct oct_tsnit){.mean_um = {0}};
    for (uint32_t i = 0; i < m; i++) {
        const uint32_t j = line_of(setup, i);
        const double um = (double)thickness_um[j], deg = oct_tsnit_angle(setup, j);
        const unsigned sectors[2] = {0, sector_at(deg)};
        angle_deg[i] = deg;
        profile_um[i] = um;
        for (int k = 0; k < 2; k++) {
            all[sectors[k]]++;
            known[sectors[k]] += isfinite(um) != 0;
            tsnit->mean_um[sectors[k]] += isfinite(um) ? um : 0;
        }
    }
    for (unsigned k = 0; k < OCT_TSNIT_N_SECTORS; k++) {
        tsnit->mean_um[k] = known[k] > 0 ? tsnit->mean_um[k] / known[k] : NAN;
        tsnit->covered[k] = all[k] > 0 ? known[k] / all[k] : 0;
    }
}
