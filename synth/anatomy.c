/* The layers of the macula: where they lie and how strongly they scatter. */
#include "synth/model.h"

#include <string.h>

const char *const oct_surface_names[OCT_N_SURFACES] = {
    "ilm",  "nfl_gcl", "ipl_inl", "inl_opl", "opl_onl",        "elm",
    "isos", "cost",    "rpe",     "bruch",   "choroid_sclera",
};

float oct_noise2(uint64_t seed, int64_t plane, double x, double y)
{
    double fx = floor(x), fy = floor(y), u = x - fx, v = y - fy;
    int64_t i = (int64_t)fx, j = (int64_t)fy;
    uint64_t s = seed + (uint64_t)plane * UINT64_C(0x632be59bd9b4e019);
    double a = oct_uniform(oct_hash(s, OCT_STREAM_TEXTURE, i, j));
    double b = oct_uniform(oct_hash(s, OCT_STREAM_TEXTURE, i + 1, j));
    double c = oct_uniform(oct_hash(s, OCT_STREAM_TEXTURE, i, j + 1));
    double d = oct_uniform(oct_hash(s, OCT_STREAM_TEXTURE, i + 1, j + 1));
    u = u * u * (3.0 - 2.0 * u);
    v = v * v * (3.0 - 2.0 * v);
    return (float)(2.0 * ((1 - v) * ((1 - u) * a + u * b) + v * ((1 - u) * c + u * d)) - 1.0);
}

/* Anywhere in the field, a tenth of it from its edges. */
static void add_drusen(struct oct_eye *eye, unsigned n, double width_um, double height_um)
{
    eye->n_drusen = n < OCT_RETINA_MOST_DRUSEN ? n : OCT_RETINA_MOST_DRUSEN;
    for (unsigned i = 0; i < eye->n_drusen; i++) {
        double u[4];
        for (int k = 0; k < 4; k++)
            u[k] = oct_uniform(oct_hash(eye->seed, OCT_STREAM_DRUSEN, i, k));
        eye->drusen[i] = (struct oct_druse){.x_um = (0.1 + 0.8 * u[0]) * width_um,
                                            .y_um = (0.1 + 0.8 * u[1]) * height_um,
                                            .radius_um = 20.0 + 40.0 * u[2],
                                            .lift_um = 15.0 + 45.0 * u[3]};
    }
}

/* How far drusen lift the RPE, um of tissue: domes, of several the highest. */
static double lifted(const struct oct_eye *eye, double x_um, double y_um)
{
    double most = 0;
    for (unsigned i = 0; i < eye->n_drusen; i++) {
        const struct oct_druse *d = &eye->drusen[i];
        double r = hypot(x_um - d->x_um, y_um - d->y_um) / (2.0 * d->radius_um);
        if (r < 1.0)
            most = fmax(most, d->lift_um * (0.5 + 0.5 * cos(OCT_PI * r)));
    }
    return most;
}

/* Varies the eye by the seed: tilt, pit and thickness, within the usual limits. */
void oct_eye_init(struct oct_eye *eye, const struct oct_retina_params *params, double width_um,
                  double height_um)
{
    double u[5];
    for (int i = 0; i < 5; i++)
        u[i] = 2.0 * oct_uniform(oct_hash(params->seed, OCT_STREAM_EYE, i, 0)) - 1.0;
    eye->seed = params->seed;
    eye->index = params->refractive_index > 0 ? params->refractive_index : 1.36;
    eye->fovea_um[0] = (params->has_fovea ? params->fovea[0] : 0.24) * width_um;
    eye->fovea_um[1] = (params->has_fovea ? params->fovea[1] : 0.42) * height_um;
    eye->centre_um[0] = 0.5 * width_um;
    eye->centre_um[1] = 0.5 * height_um;
    eye->rpe_um = 615.0;
    /* Limits the tilt of a wide field, so that its ends stay within the depth range. */
    eye->tilt_x = 0.045 * u[0] * fmin(1.0, 1000.0 / width_um);
    eye->tilt_y = 0.030 * u[1] * fmin(1.0, 1000.0 / height_um);
    eye->bowl =
        -1.0 / 24000.0 * fmin(1.0, 4e6 / fmax(width_um * width_um + height_um * height_um, 1.0));
    eye->pit_um = 230.0 * (1.0 + 0.08 * u[2]);
    eye->rim_gain = 1.0 + 0.06 * u[3];
    add_drusen(eye, params->n_drusen, width_um, height_um);
}

/* 0 at the fovea, 1 far from it: how far a layer has come back, `scale` pit radii wide. */
static double regained(const struct oct_eye *eye, double e_um, double scale)
{
    double u = e_um / (scale * eye->pit_um);
    return 1.0 - exp(-u * u);
}

/* The RPE and the photoreceptors on it go up; Bruch's membrane and the choroid stay, and of the
 * layers above most stays too: the outer nuclear layer gives way. */
static void lift(struct oct_tissue *tissue, double lift_um)
{
    double *s = tissue->surface_um;
    for (int i = OCT_SURFACE_ILM; i <= OCT_SURFACE_OPL_ONL; i++)
        s[i] += 0.8 * lift_um;
    s[OCT_SURFACE_BRUCH] += lift_um;
    s[OCT_SURFACE_CHOROID_SCLERA] += lift_um;
    tissue->rpe_um -= lift_um;
    tissue->lift_um = lift_um;
}

/* Layer thickness, um of tissue, after the usual thickness maps of normal maculae: the inner layers
 * are pushed aside at the fovea, the outer ones are longest there. */
void oct_tissue_at(const struct oct_eye *eye, double x_um, double y_um, struct oct_tissue *tissue)
{
    double dx = x_um - eye->fovea_um[0], dy = y_um - eye->fovea_um[1], e = hypot(dx, dy);
    double nasal = e > 1.0 ? dx / e : 0.0, n = eye->index, g = eye->rim_gain;
    double cx = x_um - eye->centre_um[0], cy = y_um - eye->centre_um[1];
    double wave[4], *s = tissue->surface_um;
    for (int i = 0; i < 4; i++)
        wave[i] = 1.0 + 0.05 * oct_noise2(eye->seed, i, x_um / 130.0, y_um / 130.0);
    double nfl = (3.0 + (19.0 + 11.0 * nasal) * regained(eye, e, 1.75)) * wave[0];
    double ganglion = g * (5.0 + 84.0 * regained(eye, e, 1.35)) * wave[1];
    double inl = g * (4.0 + 36.0 * regained(eye, e, 1.05)) * wave[2];
    double opl = (5.0 + 19.0 * regained(eye, e, 0.9)) * wave[3];
    double onl = 66.0 + 40.0 * (1.0 - regained(eye, e, 1.3));
    double inner = 24.0 + 6.0 * (1.0 - regained(eye, e, 1.0));
    double outer = 23.0 + 15.0 * (1.0 - regained(eye, e, 0.9));
    double choroid = 170.0 + 15.0 * oct_noise2(eye->seed, 5, x_um / 260.0, y_um / 260.0);
    s[OCT_SURFACE_RPE] = 0;
    s[OCT_SURFACE_COST] = -15.0 * n;
    s[OCT_SURFACE_ISOS] = s[OCT_SURFACE_COST] - outer * n;
    s[OCT_SURFACE_ELM] = s[OCT_SURFACE_ISOS] - inner * n;
    s[OCT_SURFACE_OPL_ONL] = s[OCT_SURFACE_ELM] - onl * n;
    s[OCT_SURFACE_INL_OPL] = s[OCT_SURFACE_OPL_ONL] - opl * n;
    s[OCT_SURFACE_IPL_INL] = s[OCT_SURFACE_INL_OPL] - inl * n;
    s[OCT_SURFACE_NFL_GCL] = s[OCT_SURFACE_IPL_INL] - ganglion * n;
    s[OCT_SURFACE_ILM] = s[OCT_SURFACE_NFL_GCL] - nfl * n;
    s[OCT_SURFACE_BRUCH] = 11.0 * n;
    s[OCT_SURFACE_CHOROID_SCLERA] = s[OCT_SURFACE_BRUCH] + choroid * n;
    tissue->nfl_gain =
        0.85 + 0.15 * nasal + 0.12 * oct_noise2(eye->seed, 6, x_um / 220.0, y_um / 14.0);
    tissue->rpe_um = eye->rpe_um + eye->tilt_x * cx + eye->tilt_y * cy +
                     eye->bowl * n * (cx * cx + cy * cy) +
                     1.5 * oct_noise2(eye->seed, 4, x_um / 180.0, y_um / 180.0);
    lift(tissue, n * lifted(eye, x_um, y_um));
}

static float field_of_db(double db)
{
    return (float)pow(10.0, db / 20.0);
}

/* Lays a slab between two depths with the field running from a to b; cells at its ends count by
 * the part of them that it covers. */
static void lay(float *cells, double from_um, double to_um, float a, float b)
{
    double from = from_um / OCT_CELL_UM + OCT_CELL_RPE, to = to_um / OCT_CELL_UM + OCT_CELL_RPE;
    double first = fmax(floor(from), 0.0), end = fmin(ceil(to), OCT_N_CELLS);
    float slope = to > from ? (b - a) / (float)(to - from) : 0.0f;
    for (int i = (int)first; i < (int)end; i++) {
        float cover = (float)(fmin(to, i + 1.0) - fmax(from, i));
        cells[i] += cover * (a + slope * ((float)i + 0.5f - (float)from));
    }
}

/* A thin band with a Gaussian profile. */
static void lay_band(float *cells, double centre_um, double sigma_um, float a)
{
    double centre = centre_um / OCT_CELL_UM + OCT_CELL_RPE - 0.5, sigma = sigma_um / OCT_CELL_UM;
    int first = (int)fmax(ceil(centre - 3.0 * sigma), 0.0);
    int last = (int)fmin(floor(centre + 3.0 * sigma), OCT_N_CELLS - 1.0);
    for (int i = first; i <= last; i++) {
        float d = (float)((i - centre) / sigma);
        cells[i] += a * expf(-0.5f * d * d);
    }
}

/* Choriocapillaris, then vessels of growing size: dark lumina in a bright stroma that fades. */
static void lay_choroid(const struct oct_eye *eye, const struct oct_tissue *tissue, double x_um,
                        double y_um, float *cells)
{
    double top = tissue->surface_um[OCT_SURFACE_BRUCH];
    double bottom = tissue->surface_um[OCT_SURFACE_CHOROID_SCLERA], layer_um = 34.0;
    int n_layers = (int)((bottom - top) / layer_um) + 1;
    float lumen = oct_noise2(eye->seed, 100, x_um / 22.0, y_um / 22.0);
    lay(cells, top, top + 10.0, field_of_db(-2.0), field_of_db(-5.0));
    for (int l = 0; l < n_layers; l++) {
        double size = 30.0 + 13.0 * l;
        float next = oct_noise2(eye->seed, 101 + l, x_um / size, y_um / (1.6 * size));
        double from = fmax(top + 10.0, top + layer_um * l);
        double to = fmin(bottom, top + layer_um * (l + 1));
        int n_steps = 4;
        for (int i = 0; i < n_steps; i++) {
            double u = (i + 0.5) / n_steps, a = from + (to - from) * i / n_steps;
            double b = from + (to - from) * (i + 1) / n_steps;
            double open = (1.0 - u) * lumen + u * next; /* > 0: inside a vessel */
            double dark = 1.0 / (1.0 + exp(-16.0 * (open - 0.10)));
            float f = field_of_db(-5.5 - 0.036 * (a - top) - 11.0 * dark);
            if (b > a)
                lay(cells, a, b, f, f);
        }
        lumen = next;
    }
    lay(cells, bottom, (OCT_N_CELLS - OCT_CELL_RPE) * OCT_CELL_UM,
        field_of_db(-8.0 - 0.035 * (bottom - top)), 0.0f);
}

void oct_tissue_profile(const struct oct_eye *eye, const struct oct_tissue *tissue, double x_um,
                        double y_um, float *amplitude, float *mirror)
{
    const double *s = tissue->surface_um;
    double gcl_ipl =
        s[OCT_SURFACE_NFL_GCL] + 0.5 * (s[OCT_SURFACE_IPL_INL] - s[OCT_SURFACE_NFL_GCL]);
    double henle = s[OCT_SURFACE_OPL_ONL] + 0.3 * (s[OCT_SURFACE_ELM] - s[OCT_SURFACE_OPL_ONL]);
    float glint = 0.9f + 0.35f * oct_noise2(eye->seed, 7, x_um / 70.0, y_um / 70.0);
    float nfl = (float)tissue->nfl_gain * field_of_db(-4.0);
    memset(amplitude, 0, OCT_N_CELLS * sizeof(*amplitude));
    memset(mirror, 0, OCT_N_CELLS * sizeof(*mirror));
    lay_band(mirror, s[OCT_SURFACE_ILM], 1.5, glint * field_of_db(3.0));
    lay(amplitude, s[OCT_SURFACE_ILM], s[OCT_SURFACE_NFL_GCL], nfl, 0.9f * nfl);
    lay(amplitude, s[OCT_SURFACE_NFL_GCL], gcl_ipl, field_of_db(-13.5), field_of_db(-12.5));
    lay(amplitude, gcl_ipl, s[OCT_SURFACE_IPL_INL], field_of_db(-10.5), field_of_db(-10.5));
    lay(amplitude, s[OCT_SURFACE_IPL_INL], s[OCT_SURFACE_INL_OPL], field_of_db(-18.0),
        field_of_db(-19.0));
    lay(amplitude, s[OCT_SURFACE_INL_OPL], s[OCT_SURFACE_OPL_ONL], field_of_db(-9.5),
        field_of_db(-11.0));
    lay(amplitude, s[OCT_SURFACE_OPL_ONL], henle, field_of_db(-18.5), field_of_db(-23.0));
    lay(amplitude, henle, s[OCT_SURFACE_ELM], field_of_db(-24.0), field_of_db(-24.0));
    lay_band(amplitude, s[OCT_SURFACE_ELM], 2.2, field_of_db(-9.5));
    lay(amplitude, s[OCT_SURFACE_ELM], s[OCT_SURFACE_ISOS], field_of_db(-20.0), field_of_db(-17.0));
    lay(amplitude, s[OCT_SURFACE_ISOS], s[OCT_SURFACE_COST], field_of_db(-18.0),
        field_of_db(-17.0));
    lay(amplitude, s[OCT_SURFACE_COST], s[OCT_SURFACE_RPE], field_of_db(-15.0), field_of_db(-10.0));
    lay_band(amplitude, s[OCT_SURFACE_ISOS], 3.0, field_of_db(-7.0));
    lay_band(amplitude, s[OCT_SURFACE_COST], 3.0, field_of_db(-10.0));
    lay_band(amplitude, s[OCT_SURFACE_RPE], 6.5, field_of_db(5.5));
    if (tissue->lift_um > 0) /* what drusen are made of, between the RPE and Bruch's membrane */
        lay(amplitude, s[OCT_SURFACE_BRUCH] - tissue->lift_um, s[OCT_SURFACE_BRUCH],
            field_of_db(-12.0), field_of_db(-12.0));
    lay_choroid(eye, tissue, x_um, y_um, amplitude);
}
