/* What finds the flow of groups of B-scans (group.h), behind one table for the CPU and the CUDA
 * engine: the B-scans of a group as they come, then its places, one after another.
 *
 *     create -> { put ... -> find ... -> clear } -> destroy
 *
 * The CPU's engine is place.h. The CUDA engine has method `complex` alone; it takes B-scans that
 * lie in a device's memory there (frame->complex_device), and uploads others. d of both agrees to
 * 1e-4, where it is far from 0..1 to 1e-5 of itself.
 * A GPU that fails takes the B-scans with it that it had: places of that group have the pairs that
 * come after (oct_flow_group_check), and the CPU goes on. One thread uses an engine at a time. */
#ifndef OCT_ANALYSIS_FLOW_ENGINE_H
#define OCT_ANALYSIS_FLOW_ENGINE_H

#include "analysis/flow/place.h"

struct oct_flow_engine;
struct oct_image_frame;

struct oct_flow_engine_setup {
    struct oct_flow_place_setup place; /* `show` is the engine's; what it points at outlives it */
    unsigned n_places;                 /* K of a group */
    bool shows;                        /* find shows places; else it keeps their maps */
    bool keeps;                        /* complex values that are put stay as they are until clear:
                                          those in a GPU's memory are read there */
    const char *gpus;                  /* as pipeline.gpus */
    unsigned deadline_ms;              /* of a GPU; 0: 2000 */
};

/* d where z, projected, is min_z or more, else 0; NaN where d is. One of values and bytes. */
struct oct_flow_show {
    float min_z;
    uint32_t first, end; /* depths of `row` */
    float *values;       /* [M][D] */
    uint8_t *bytes;      /* the same of 0..1, NaN 0 */
    float *row;          /* [M] the largest z, projected, of these depths; NaN: none. NULL */
};

struct oct_flow_engine_ops {
    const char *name; /* "cpu", "cuda" */

    /* *engine is NULL on error: OCT_E_NO_MEMORY; OCT_E_BACKEND: no device. */
    enum oct_err (*create)(struct oct_flow_engine **engine,
                           const struct oct_flow_engine_setup *setup, struct oct_error *err);

    /* B-scan i of the group, of R K; its complex values are borrowed until put returns, or, with
     * setup.keeps, until clear. */
    enum oct_err (*put)(struct oct_flow_engine *engine, unsigned i,
                        const struct oct_image_frame *bscan, struct oct_error *err);

    /* Place k of the group, with what was put. show: of setup.shows; else NULL. *found is the
     * engine's until the next call. */
    enum oct_err (*find)(struct oct_flow_engine *engine, unsigned k,
                         const struct oct_flow_show *show, struct oct_flow_found *found,
                         struct oct_error *err);

    /* Another group begins. */
    void (*clear)(struct oct_flow_engine *engine);

    /* "cpu" or "cuda": what computes at present; NULL: the name. */
    const char *(*running)(const struct oct_flow_engine *engine);

    void (*destroy)(struct oct_flow_engine *engine); /* NULL is fine */
};

extern const struct oct_flow_engine_ops oct_flow_engine_cpu, oct_flow_engine_cuda;

/* backend: "auto", "cpu", "cuda", as oct_twin_create has it; other methods than `complex` are the
 * CPU's. */
enum oct_err oct_flow_engine_select(const struct oct_flow_engine_ops **ops,
                                    struct oct_flow_engine **engine, const char *backend,
                                    const struct oct_flow_engine_setup *setup,
                                    struct oct_error *err);

#endif
