/* What octctl surfaces computes: layers, their thickness, slabs. One thread. */
#ifndef OCT_TOOLS_SURFACES_RUN_H
#define OCT_TOOLS_SURFACES_RUN_H

#include "analysis/surface/denoise.h"
#include "analysis/surface/thickness.h"
#include "analysis/surface/volume.h"
#include "formats/pictures.h"
#include "tools/analyse/surfaces_options.h"
#include "tools/progress.h"

#include <signal.h>

struct oct_workers;

struct oct_surfaces_run {
    /* Filled in before begin. */
    const struct oct_surfaces_given *given;
    const char *const *inputs; /* [n_inputs] */
    unsigned n_inputs;
    struct oct_workers *workers;
    const char *backend, *gpus;
    const volatile sig_atomic_t *cancel; /* not 0: a signal has come */

    /* Filled by begin. */
    uint32_t n_bscans, n_lines, depth; /* V, M, D */
    double um[3];                      /* B-scan, A-line, depth pixel of tissue; NaN: unknown */
    enum oct_surfaces_eye eye;
    bool is_db; /* what is read */

    /* Filled by all. */
    struct oct_surfaces surfaces;      /* denoised */
    float *found[OCT_N_LAYERS];        /* [V][M] as they were found; NULL: not asked for */
    uint64_t n_known[OCT_N_LAYERS];    /* A-lines that have it, denoised */
    struct oct_levelset_params params; /* of the denoising */
    struct oct_denoise_report denoised[OCT_N_LAYERS];
    float *thickness;     /* [V][M] um, or px where the depth is unknown; NULL: one layer */
    uint64_t n_thickness; /* known */
    bool has_fovea;
    double fovea_px[2]; /* B-scan, A-line */
    bool has_etdrs;
    struct oct_etdrs etdrs;
    float *slab[OCT_SURFACES_MOST_SLABS]; /* [V][M] */
    double seconds;

    /* Private. */
    struct oct_pictures *pictures;
    bool is_turned; /* pictures are [D][M] */
    bool is_linear; /* values are counts^2 */
    uint8_t *skip;
    struct oct_progress progress;
};

/* Opens the volume. OCT_E_CONFIG: what was asked for does not fit it; else as oct_pictures_open. */
enum oct_err oct_surfaces_run_begin(struct oct_surfaces_run *run, struct oct_error *err);

/* OCT_E_STATE: a signal came. */
enum oct_err oct_surfaces_run_all(struct oct_surfaces_run *run, struct oct_error *err);

/* B-scan b as [A-line][depth]; the caller finishes it. */
enum oct_err oct_surfaces_run_read(struct oct_surfaces_run *run, uint32_t b,
                                   struct oct_picture *picture, struct oct_error *err);

void oct_surfaces_run_finish(struct oct_surfaces_run *run);

/* The layer of the heights that stand first, for /phi and for NAME_um. */
enum oct_layer oct_surfaces_run_first(const struct oct_surfaces_run *run);

/* Whether um of all three axes are known. */
bool oct_surfaces_run_has_um(const struct oct_surfaces_run *run);

/* As denoise.h wants it, for the layers of this run. */
void oct_surfaces_run_denoise_setup(const struct oct_surfaces_run *run,
                                    struct oct_denoise_setup *setup);

#endif
