/* A benchmark's scene by the configuration. */
#include "config/apply.h"
#include "tools/bench/part.h"
#include "tools/bench/scene.h"

#include <stdio.h>

static enum oct_err make_plan(struct oct_bench_scene *scene, const struct oct_config *config,
                              uint32_t depth, struct oct_error *err)
{
    struct oct_config c = *config;
    struct oct_geometry geometry;
    struct oct_calibration cal = {0};
    struct oct_chain chain;
    if (depth) {
        c.pipeline.crop_first = 0;
        c.pipeline.crop_last = depth;
    }
    enum oct_err e = oct_config_geometry(&c, &geometry, err);
    if (e || (e = oct_config_calibration(&c, &cal, err)))
        return e;
    if (!cal.n_wavelengths && !cal.n_kmap)
        e = oct_bench_calibration(&cal, geometry.n_samples);
    oct_config_chain(&c, &chain);
    e = e ? e : oct_plan_create(&scene->plan, &geometry, &cal, &chain, err);
    oct_calibration_finish(&cal);
    return e;
}

enum oct_err oct_bench_scene_init(struct oct_bench_scene *scene, const struct oct_config *config,
                                  uint32_t depth, struct oct_error *err)
{
    *scene = (struct oct_bench_scene){0};
    enum oct_err e = make_plan(scene, config, depth, err);
    e = e ? e : oct_bench_scene_fill(scene, err);
    oct_config_display(config, &scene->display);
    if (e)
        oct_bench_scene_finish(scene);
    return e;
}

void oct_bench_depth_text(const struct oct_config *config, char *text, size_t text_bytes)
{
    struct oct_geometry g;
    if (oct_config_geometry(config, &g, NULL))
        snprintf(text, text_bytes, "D = ?"); /* the measurement itself says why */
    else
        snprintf(text, text_bytes, "D = %u", g.depth);
}
