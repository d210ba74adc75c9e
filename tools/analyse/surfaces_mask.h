/* octctl surfaces --mask: the boundary of a binary volume, or of one of signed distances, denoised
 * (analysis/surface/levelset.h). One thread. */
#ifndef OCT_TOOLS_SURFACES_MASK_H
#define OCT_TOOLS_SURFACES_MASK_H

#include "analysis/surface/levelset.h"

#include <signal.h>

struct oct_workers;

struct oct_surfaces_mask {
    /* Filled in before. */
    const char *path;
    struct oct_levelset_params params;
    struct oct_workers *workers;
    const char *backend, *gpus;
    const volatile sig_atomic_t *cancel;

    /* Filled by run. */
    uint32_t dims[3];
    bool is_distance;     /* given as signed distances */
    float *before, *phi;  /* [dims] px */
    uint64_t n_before, n; /* voxels of the tissue, before and after */
    struct oct_levelset_report report;
    const char *running;
    double seconds;
};

/* OCT_E_FORMAT: no volume, values that are not finite, or a mask without a boundary; else as
 * formats/pictures.h and levelset.h. */
enum oct_err oct_surfaces_mask_run(struct oct_surfaces_mask *mask, struct oct_error *err);
void oct_surfaces_mask_finish(struct oct_surfaces_mask *mask);

/* Writes /mask and /phi; context: struct oct_surfaces_mask. */
enum oct_err oct_surfaces_mask_h5(void *context, const char *path, bool force,
                                  struct oct_error *err);

/* One line, or JSON. */
void oct_surfaces_mask_print(const struct oct_surfaces_mask *mask, const char *out);
enum oct_err oct_surfaces_mask_json(const struct oct_surfaces_mask *mask, const char *out,
                                    struct oct_error *err);

#endif
