#include "synth/truth_file.h"

#include "pipeline/volume/volume.h"

#include <stdio.h>
#include <stdlib.h>

enum oct_err oct_truth_file_create(const char *path, struct oct_error *err)
{
    return oct_volume_create_empty(path, err);
}

static enum oct_err add_cones(const char *path, const struct oct_retina_facts *facts,
                              struct oct_error *err)
{
    const size_t dims[2] = {facts->n_cones, 2};
    double *pairs = calloc(facts->n_cones, 4 * sizeof(double));
    double *offsets = pairs ? pairs + 2 * facts->n_cones : NULL;
    enum oct_err e;
    if (!pairs)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory for the list of cones", path);
    for (size_t i = 0; i < facts->n_cones; i++)
        for (size_t k = 0; k < 2; k++) {
            pairs[2 * i + k] = facts->cones[4 * i + k];
            offsets[2 * i + k] = facts->cones[4 * i + 2 + k];
        }
    e = oct_volume_add_f64(path, "/truth/cones/position_um", pairs, 2, dims, "um", err);
    e = e ? e : oct_volume_add_f64(path, "/truth/cones/offset_px", offsets, 2, dims, "px", err);
    free(pairs);
    return e;
}

/* A dataset to be added. */
struct list {
    const char *name, *units;
    const double *values;
    unsigned rank;
    size_t n;
};

static enum oct_err add_lists(const char *path, const struct list *lists, size_t n,
                              struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (size_t i = 0; !e && i < n; i++)
        e = oct_volume_add_f64(path, lists[i].name, lists[i].values, lists[i].rank, &lists[i].n,
                               lists[i].units, err);
    return e;
}

enum oct_err oct_truth_file_add_facts(const char *path, const struct oct_retina_facts *facts,
                                      uint32_t n_samples, struct oct_error *err)
{
    const double dispersion[2] = {facts->dispersion_a2, facts->dispersion_a3};
    const double field[2] = {facts->width_um, facts->height_um};
    const struct list lists[] = {
        {"/truth/wavelengths_nm", "nm", facts->wavelengths_nm, 1, n_samples},
        {"/truth/dispersion_rad", "rad", dispersion, 1, 2},
        {"/truth/axial_um", "um", &facts->axial_um, 0, 1},
        {"/truth/field_um", "um", field, 1, 2},
        {"/truth/fovea_um", "um", facts->fovea_um, 1, 2},
    };
    enum oct_err e = add_lists(path, lists, sizeof(lists) / sizeof(lists[0]), err);
    return !e && facts->n_cones ? add_cones(path, facts, err) : e;
}

/* What is known of each A-line: its motion, and whether the lid was closed. */
static enum oct_err add_lines(const char *path, const char *group,
                              const struct oct_retina_truth *truth, const size_t dims[2],
                              struct oct_error *err)
{
    const struct {
        const char *name, *units;
        const double *values;
        size_t n_last;
    } lists[] = {
        {"line_motion_um", "um", truth->line_um, 3},
        {"line_shift_px", "px", truth->line_px, 2},
        {"blink", "1 or 0", truth->blink, 0},
    };
    enum oct_err e = OCT_OK;
    for (size_t i = 0; !e && i < sizeof(lists) / sizeof(lists[0]); i++) {
        const size_t shape[3] = {dims[0], dims[1], lists[i].n_last};
        char name[128];
        if (!lists[i].values)
            continue;
        snprintf(name, sizeof(name), "%s/%s", group, lists[i].name);
        e = oct_volume_add_f64(path, name, lists[i].values, lists[i].n_last ? 3 : 2, shape,
                               lists[i].units, err);
    }
    return e;
}

static enum oct_err add_cells(const char *path, const char *group,
                              const struct oct_retina_cells *cells, struct oct_error *err)
{
    const struct {
        const char *name, *units;
        const double *values;
        unsigned rank;
    } lists[] = {
        {"track", "1", cells->track, 1},   {"position_um", "um", cells->um, 2},
        {"seen_px", "px", cells->px, 2},   {"radius_um", "um", cells->radius_um, 1},
        {"time_s", "s", cells->time_s, 1},
    };
    const size_t dims[2] = {cells->n, 2};
    enum oct_err e = OCT_OK;
    for (size_t i = 0; !e && i < sizeof(lists) / sizeof(lists[0]); i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s/cells/%s", group, lists[i].name);
        e = oct_volume_add_f64(path, name, lists[i].values, lists[i].rank, dims, lists[i].units,
                               err);
    }
    return e;
}

enum oct_err oct_truth_file_add_volume(const char *path, const char *group,
                                       const struct oct_retina_truth *truth, uint32_t n_bscans,
                                       uint32_t n_lines, struct oct_error *err)
{
    const size_t motion_dims[2] = {n_bscans, 3}, dims[2] = {n_bscans, n_lines};
    char name[128];
    enum oct_err e;
    snprintf(name, sizeof(name), "%s/motion_um", group);
    e = oct_volume_add_f64(path, name, truth->motion_um, 2, motion_dims, "um", err);
    e = e ? e : add_lines(path, group, truth, dims, err);
    for (size_t s = 0; !e && s < OCT_N_SURFACES; s++) {
        const double *surface = truth->surface_px + s * n_bscans * n_lines;
        snprintf(name, sizeof(name), "%s/surfaces_px/%s", group, oct_surface_names[s]);
        e = oct_volume_add_f64(path, name, surface, 2, dims, "px", err);
    }
    if (!e && truth->cells.n > 0)
        e = add_cells(path, group, &truth->cells, err);
    snprintf(name, sizeof(name), "%s/vessel_um", group);
    return e ? e : oct_volume_add_f64(path, name, truth->vessel_um, 2, dims, "um", err);
}

static enum oct_err add_reflectors(const char *path, const struct oct_spectrometer *s,
                                   const struct oct_reflector *reflectors, unsigned n,
                                   struct oct_error *err)
{
    double *px = calloc(n, 3 * sizeof(double)), *um = px ? px + n : NULL,
           *share = um ? um + n : NULL;
    enum oct_err e;
    if (!px)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory for the truth", path);
    for (unsigned r = 0; r < n; r++) {
        px[r] = reflectors[r].depth_px;
        um[r] = reflectors[r].depth_px * s->axial_um;
        share[r] = reflectors[r].share;
    }
    const struct list lists[] = {
        {"/truth/mirror/depth_px", "px", px, 1, n},
        {"/truth/mirror/depth_um", "um", um, 1, n},
        {"/truth/mirror/share", "1", share, 1, n},
    };
    e = add_lists(path, lists, sizeof(lists) / sizeof(lists[0]), err);
    free(px);
    return e;
}

enum oct_err oct_truth_file_add_spectrometer(const char *path, const struct oct_spectrometer *s,
                                             const struct oct_reflector *reflectors, unsigned n,
                                             struct oct_error *err)
{
    const double dispersion[2] = {s->setup.a2, s->setup.a3};
    const size_t n_samples = s->setup.n_samples;
    const struct list lists[] = {
        {"/truth/wavelengths_nm", "nm", s->wavelengths_nm, 1, n_samples},
        {"/truth/kmap_px", "px", s->kmap_px, 1, n_samples},
        {"/truth/place_q", "1", s->place, 1, n_samples},
        {"/truth/source_counts", "counts", s->source, 1, n_samples},
        {"/truth/dispersion_rad", "rad", dispersion, 1, 2},
        {"/truth/axial_um", "um", &s->axial_um, 0, 1},
        {"/truth/limit_px", "px", &s->limit_px, 0, 1},
        {"/truth/read_counts", "counts", &s->read_counts, 0, 1},
    };
    enum oct_err e = add_lists(path, lists, sizeof(lists) / sizeof(lists[0]), err);
    return !e && n > 0 ? add_reflectors(path, s, reflectors, n, err) : e;
}

/* ---- flow ---- */

static enum oct_err add_vessels(const char *path, const struct oct_flow_phantom_truth *truth,
                                struct oct_error *err)
{
    const size_t n = truth->n_vessels, pairs[2] = {n, 2}, triples[2] = {n, 3};
    double *values = calloc(7 * n + 1, sizeof(*values));
    if (!values)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory for vessels", path);
    double *direction = values + 2 * n, *radius = direction + 3 * n, *speed = radius + n;
    for (size_t i = 0; i < n; i++) {
        const struct oct_flow_vessel *v = &truth->vessels[i];
        values[2 * i] = v->x_um;
        values[2 * i + 1] = v->z_um;
        for (size_t k = 0; k < 3; k++)
            direction[3 * i + k] = v->direction[k];
        radius[i] = v->radius_um;
        speed[i] = v->mm_s;
    }
    const struct list lists[] = {
        {"/truth/vessels/radius_um", "um", radius, 1, n},
        {"/truth/vessels/mm_s", "mm/s", speed, 1, n},
    };
    enum oct_err e =
        oct_volume_add_f64(path, "/truth/vessels/position_um", values, 2, pairs, "um", err);
    e = e ? e
          : oct_volume_add_f64(path, "/truth/vessels/direction", direction, 2, triples, "1", err);
    e = e ? e : add_lists(path, lists, 2, err);
    free(values);
    return e;
}

static enum oct_err add_motion(const char *path, const struct oct_flow_phantom *phantom,
                               uint32_t n_bscans, uint32_t n_lines, struct oct_error *err)
{
    const size_t n = (size_t)n_bscans * n_lines, dims[3] = {n_bscans, n_lines, 3};
    double *motion = malloc(4 * n * sizeof(*motion)), *time = motion ? motion + 3 * n : NULL;
    if (!motion)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory for the motion", path);
    for (uint32_t b = 0; b < n_bscans; b++)
        for (uint32_t j = 0; j < n_lines; j++) {
            const size_t i = (size_t)b * n_lines + j;
            oct_flow_phantom_motion(phantom, b, j, motion + 3 * i);
            time[i] = oct_flow_phantom_time(phantom, b, j);
        }
    enum oct_err e = oct_volume_add_f64(path, "/truth/motion_um", motion, 3, dims, "um", err);
    e = e ? e : oct_volume_add_f64(path, "/truth/time_s", time, 2, dims, "s", err);
    free(motion);
    return e;
}

static enum oct_err add_labels(const char *path, const struct oct_flow_phantom *phantom,
                               uint32_t n_lines, uint32_t first_px, uint32_t depth,
                               struct oct_error *err)
{
    const uint32_t n_places = oct_flow_phantom_truth(phantom)->n_places;
    const size_t n = (size_t)n_lines * depth, dims[3] = {n_places, n_lines, depth};
    uint8_t *voxels = malloc(n);
    double *values = malloc(n_places * n * sizeof(*values));
    enum oct_err e = voxels && values
                         ? OCT_OK
                         : oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory for the labels", path);
    for (uint32_t p = 0; p < n_places && !e; p++) {
        oct_flow_phantom_label(phantom, p, first_px, depth, voxels);
        for (size_t i = 0; i < n; i++)
            values[p * n + i] = voxels[i];
    }
    e = e ? e
          : oct_volume_add_f64(path, "/truth/labels", values, 3, dims,
                               "0 void, 1 tissue, 2 vessel, 3 below one, 4 rim", err);
    free(values);
    free(voxels);
    return e;
}

enum oct_err oct_truth_file_add_flow(const char *path, const struct oct_flow_phantom *phantom,
                                     uint32_t n_bscans, uint32_t n_lines, uint32_t first_px,
                                     uint32_t depth, struct oct_error *err)
{
    const struct oct_flow_phantom_truth *truth = oct_flow_phantom_truth(phantom);
    const struct list lists[] = {
        {"/truth/noise_counts2", "counts^2", &truth->noise_counts2, 0, 1},
        {"/truth/tissue_um", "um", truth->tissue_um, 1, 2},
    };
    enum oct_err e = oct_truth_file_add_spectrometer(path, truth->spectrometer, NULL, 0, err);
    e = e ? e : add_lists(path, lists, 2, err);
    e = e ? e : add_vessels(path, truth, err);
    e = e ? e : add_motion(path, phantom, n_bscans, n_lines, err);
    if (e || (uint64_t)truth->n_places * n_lines * depth > OCT_TRUTH_MOST_LABELS)
        return e;
    return add_labels(path, phantom, n_lines, first_px, depth, err);
}
