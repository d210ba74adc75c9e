/* Signal lost and ghosts by depth, of every interpolation beside the exact sum: prints the table of
 * docs/reconstruction.md and draws its plot.
 *
 *     make depth-table
 *
 * One reflector at a time is seen by a camera of 832 samples, whose wavelengths are bent, with a
 * Gaussian source. Each B-scan has four lines that differ by a quarter of a fringe, so that their
 * mean is what the reflector does not modulate. The CPU engine computes linear, cubic and nufft;
 * the oracle of the tests computes the exact sum in double precision. */
#include "kernels/engines.h"
#include "pipeline/plan/grid.h"
#include "plot/plot.h"
#include "test/rig/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define N 832u
#define LINES 4u
#define DEPTH 1024u /* P2/4 */
#define NEAR_PX 20  /* what belongs to the reflector itself */
#define SHALLOW 700
#define STEP 25u
#define N_DEPTHS (DEPTH / STEP - 1) /* 50, 75, .. 1000 */

enum way { LINEAR, CUBIC, NUFFT, EXACT, N_WAYS };
static const char *const names[N_WAYS] = {"linear", "cubic", "nufft", "exact sum"};

static double wavelengths[N];
static uint16_t spectra[LINES * N];

struct measured {
    double peak;     /* amplitude at the reflector */
    double ghost[2]; /* the largest away from it, at depths below 700 and at all */
};

static void make_wavelengths(void)
{
    for (uint32_t i = 0; i < N; i++) {
        double t = (double)i / (N - 1);
        wavelengths[i] = 790 + 83.2 * (t + 0.08 * t * (1 - t));
    }
}

static void make_spectra(const struct oct_k_grid *grid, const struct oct_geometry *g, double depth)
{
    for (uint32_t j = 0; j < LINES; j++)
        for (uint32_t i = 0; i < N; i++) {
            double t = (double)i / (N - 1), source = exp(-pow((t - 0.5) / 0.22, 2));
            double turn = 2 * PI * depth * oct_k_grid_place(grid, 2 * (g->left + i)) / g->upsampled;
            spectra[j * N + i] = (uint16_t)lround(32768 + 32000 * source * cos(turn + PI / 2 * j));
        }
}

static struct measured look_at(const double *intensity, uint32_t depth)
{
    struct measured m = {0, {0, 0}};
    for (uint32_t j = 0; j < LINES; j++)
        for (uint32_t d = 0; d < DEPTH; d++) {
            double amplitude = sqrt(intensity[j * DEPTH + d]);
            if (labs((long)d - (long)depth) <= NEAR_PX) {
                m.peak = fmax(m.peak, amplitude);
                continue;
            }
            m.ghost[1] = fmax(m.ghost[1], amplitude);
            if (d < SHALLOW)
                m.ghost[0] = fmax(m.ghost[0], amplitude);
        }
    return m;
}

static bool ask_oracle(double *intensity)
{
    static const uint8_t valid[LINES] = {1, 1, 1, 1};
    const struct oct_oracle_setup setup = {.n_samples = N,
                                           .n_lines = LINES,
                                           .crop_last = DEPTH,
                                           .wavelengths_nm = wavelengths,
                                           .n_wavelengths = N,
                                           .nufft = true};
    return oct_oracle_intensity(&setup, spectra, valid, intensity);
}

static bool ask_engine(struct oct_engine *engine, double *intensity)
{
    static uint8_t valid[LINES] = {1, 1, 1, 1};
    static float pixels[LINES * DEPTH];
    const struct oct_raw_frame in = {.spectra = spectra, .line_valid = valid};
    struct oct_image_frame out = {.pixels = pixels}, *done = NULL;
    const struct oct_engine_job job = {&in, &out, {.range = OCT_RANGE_AUTO}};
    if (oct_engine_cpu.submit(engine, &job, 1) || oct_engine_cpu.collect(engine, 60000000, &done) ||
        done->status)
        return false;
    for (uint32_t i = 0; i < LINES * DEPTH; i++)
        intensity[i] = (double)pixels[i];
    return true;
}

static bool measure(struct oct_engine *const *engines, const struct oct_k_grid *grid,
                    const struct oct_geometry *g, uint32_t depth, struct measured *of)
{
    static double intensity[LINES * DEPTH];
    make_spectra(grid, g, depth);
    for (int way = 0; way < N_WAYS; way++) {
        if (!(way == EXACT ? ask_oracle(intensity) : ask_engine(engines[way], intensity)))
            return false;
        of[way] = look_at(intensity, depth);
    }
    return true;
}

static double loss_db(const struct measured *of, int way)
{
    return 20 * log10(of[EXACT].peak / of[way].peak);
}

static double ghost_db(const struct measured *of, int way, int where)
{
    return 20 * log10(of[way].ghost[where] / of[way].peak);
}

static void print_row(uint32_t depth, const struct measured *of)
{
    printf("| %u |", depth);
    for (int way = 0; way < EXACT; way++)
        printf(" %.2f |", fabs(loss_db(of, way)) < 5e-3 ? 0 : loss_db(of, way));
    for (int where = 0; where < 2; where++)
        for (int way = 0; way < N_WAYS; way++)
            printf(" %.1f |", ghost_db(of, way, where));
    printf("\n");
}

/* The worst of reflectors at all depths. */
static void print_worst(struct measured all[][N_WAYS])
{
    printf("| worst of 50 .. 1000 |");
    for (int kind = 0; kind < 3; kind++)
        for (int way = 0; way < (kind ? N_WAYS : EXACT); way++) {
            double worst = kind ? -999 : 0;
            for (uint32_t i = 0; i < N_DEPTHS; i++)
                worst = fmax(worst,
                             kind ? ghost_db(all[i], way, kind - 1) : fabs(loss_db(all[i], way)));
            printf(kind ? " %.1f |" : " %.2f |", worst);
        }
    printf("\n");
}

static enum oct_err draw(const char *path, bool is_loss, struct measured all[][N_WAYS],
                         struct oct_error *err)
{
    static double x[N_DEPTHS], y[N_WAYS][N_DEPTHS];
    struct oct_plot_series series[N_WAYS];
    for (int way = 0; way < N_WAYS; way++) {
        for (uint32_t i = 0; i < N_DEPTHS; i++) {
            x[i] = (i + 2) * STEP;
            y[way][i] = is_loss ? loss_db(all[i], way) : ghost_db(all[i], way, 0);
        }
        series[way] = (struct oct_plot_series){x, y[way], N_DEPTHS, names[way],
                                               way == EXACT ? OCT_PLOT_DASHES : OCT_PLOT_LINE};
    }
    const struct oct_plot_lines plot = {
        .title = is_loss ? "Signal lost of one reflector" : "Largest ghost at depths below 700",
        .x_label = "depth of the reflector (pixels; P2/4 = 1024)",
        .y_label = is_loss ? "lost against the exact sum (dB)" : "against the reflector (dB)",
        .series = series,
        .n_series = is_loss ? EXACT : N_WAYS,
    };
    return oct_plot_write_lines(path, true, &plot, err);
}

static enum oct_err make_engines(const struct oct_geometry *g, const struct oct_calibration *cal,
                                 struct oct_plan **plans, struct oct_engine **engines,
                                 struct oct_error *err)
{
    const struct oct_engine_options options = {.n_threads = 1, .simd = "auto"};
    enum oct_err e = OCT_OK;
    for (int way = 0; way < EXACT && e == OCT_OK; way++) {
        const struct oct_chain chain = {.interpolation = (enum oct_interpolation)way};
        e = oct_plan_create(&plans[way], g, cal, &chain, err);
        if (e == OCT_OK)
            e = oct_engine_cpu.create(&engines[way], plans[way], &options, err);
    }
    return e;
}

static enum oct_err run(char **paths, const struct oct_k_grid *grid, const struct oct_geometry *g,
                        struct oct_engine *const *engines, struct oct_error *err)
{
    static const uint32_t depths[] = {200, 400, 600, 800, 950};
    static struct measured all[N_DEPTHS][N_WAYS];
    struct measured of[N_WAYS];
    printf("| depth | lost: linear | cubic | nufft | ghosts below 700: linear | cubic | nufft | "
           "exact | ghosts anywhere: linear | cubic | nufft | exact |\n| --- |%s\n",
           " --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        if (!measure(engines, grid, g, depths[i], of))
            return oct_fail(err, OCT_E_BACKEND, "a B-scan could not be reconstructed");
        print_row(depths[i], of);
    }
    for (uint32_t i = 0; i < N_DEPTHS; i++)
        if (!measure(engines, grid, g, (i + 2) * STEP, all[i]))
            return oct_fail(err, OCT_E_BACKEND, "a B-scan could not be reconstructed");
    print_worst(all);
    enum oct_err e = draw(paths[0], true, all, err);
    return e ? e : draw(paths[1], false, all, err);
}

int main(int argc, char **argv)
{
    const struct oct_calibration cal = {.wavelengths_nm = wavelengths, .n_wavelengths = N};
    struct oct_geometry g;
    struct oct_k_grid grid = {0};
    struct oct_plan *plans[N_WAYS] = {NULL};
    struct oct_engine *engines[N_WAYS] = {NULL};
    struct oct_error err = {.text = ""};
    if (argc != 3) {
        fprintf(stderr, "usage: %s LOSS.png GHOSTS.png\n", argv[0]);
        return 2;
    }
    make_wavelengths();
    enum oct_err e = oct_geometry_init(&g, N, LINES, 1, 0, DEPTH, OCT_SAMPLE_F32, &err);
    if (e == OCT_OK)
        e = oct_k_grid_init(&grid, &g, &cal, &err);
    if (e == OCT_OK)
        e = make_engines(&g, &cal, plans, engines, &err);
    if (e == OCT_OK)
        e = run(argv + 1, &grid, &g, engines, &err);
    if (e)
        fprintf(stderr, "%s\n", err.text);
    for (int way = 0; way < EXACT; way++) {
        oct_engine_cpu.destroy(engines[way]);
        oct_plan_destroy(plans[way]);
    }
    oct_k_grid_finish(&grid);
    return e != OCT_OK;
}
