#include "test/rig/layered_eye.h"

#include <math.h>

double oct_layered_uniform(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = *state;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return ((double)((x ^ x >> 31) >> 11) + 1) / 9007199254740993.0;
}

/* dB over the noise, um below the ILM and above the RPE's border; -100: none. */
static double level(double below, double above)
{
    double thick = below + above;

    if (below < -6)
        return -100;
    if (below < 3)
        return 27 - 0.7 * below * below;
    if (above < 0) /* the choroid */
        return 13 + 0.045 * above > 0 ? 13 + 0.045 * above : -100;
    if (below < 20)
        return 19;
    if (above < 20)
        return 26;
    if (above > 45 && above < 56)
        return 22;
    if (above < 70)
        return 9;
    return below < 0.55 * thick ? 12 : 5;
}

void oct_layered_draw(const struct oct_layered_eye *eye, const double *ilm, const double *rpe,
                      float *pixels)
{
    uint64_t random = eye->seed * 7919 + 1;

    for (uint32_t j = 0; j < eye->n_lines; j++)
        for (uint32_t d = 0; d < eye->depth; d++) {
            double below = (d - ilm[j]) * eye->depth_um, above = (rpe[j] - d) * eye->depth_um;
            double power = isnan(ilm[j]) ? 1 : 1 + pow(10, level(below, above) / 10);
            *pixels++ = (float)(10 * log10(-power * log(oct_layered_uniform(&random)) + 1e-9));
        }
}

void oct_layered_pit(const struct oct_layered_eye *eye, double shift_px, double *ilm, double *rpe)
{
    for (uint32_t j = 0; j < eye->n_lines; j++) {
        double u = (double)j / eye->n_lines - 0.4, pit = 90 * exp(-u * u / 0.03);
        double top = 0.25 * eye->depth * eye->depth_um;
        ilm[j] = (top + pit + 30 * u) / eye->depth_um + shift_px;
        rpe[j] = (top + 300 + 40 * u * u + 20 * u) / eye->depth_um + shift_px;
    }
}
