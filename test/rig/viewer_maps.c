#include "test/rig/viewer_maps.h"

#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AXIAL_UM 2.0
#define ILM_PX 20

static double retina(uint32_t bscan, uint32_t line)
{
    return 290 + 20. * bscan / (OCT_MAPS_BSCANS - 1) + 0 * line;
}

static double fibres(uint32_t bscan, uint32_t line)
{
    return 30 + 20. * line / (OCT_MAPS_LINES - 1) + 0 * bscan;
}

static void fill(struct oct_view_enface *e, double (*value)(uint32_t bscan, uint32_t line),
                 double lo, double hi)
{
    assert_true(oct_view_enface_resize(e, OCT_MAPS_BSCANS, OCT_MAPS_LINES));
    for (uint32_t b = 0; b < e->n_rows; b++)
        for (uint32_t j = 0; j < e->n_columns; j++)
            e->value[b * e->n_columns + j] = (float)value(b, j);
    e->lo = lo;
    e->hi = hi;
    snprintf(e->unit, sizeof(e->unit), "\u00b5m");
}

static void set_layers(struct oct_view_model *m, double (*fibres_um)(uint32_t j))
{
    static float rows[OCT_SURFACES_N_ROWS][OCT_MAPS_LINES];
    struct oct_view_image image = {.header = {.type = OCT_SAMPLE_F32,
                                              .rank = 2,
                                              .dims = {OCT_SURFACES_N_ROWS, OCT_MAPS_LINES},
                                              .frame_num = m->shown.header.frame_num},
                                   .values = rows};
    memcpy(image.header.acquisition_id, m->shown.header.acquisition_id,
           sizeof(image.header.acquisition_id));
    for (uint32_t j = 0; j < OCT_MAPS_LINES; j++) {
        rows[OCT_LAYER_ILM][j] = ILM_PX;
        rows[OCT_LAYER_RNFL_GCL][j] = (float)(ILM_PX + fibres_um(j) / AXIAL_UM);
        rows[OCT_LAYER_RPE][j] = 80;
    }
    oct_view_layers_set(&m->layers, &image);
}

void oct_maps_play(struct oct_viewer_stage *s, const char *eye, double (*fibres_um)(uint32_t j))
{
    struct oct_view_model *m = &s->model;
    struct oct_view_file *file = &m->playback.file;
    struct oct_view_thickness *t = &m->playback.thickness;
    m->playback.active = m->playback.read.valid = true;
    *file = (struct oct_view_file){.name = "now.h5",
                                   .n_bscans = OCT_MAPS_BSCANS,
                                   .n_lines = OCT_MAPS_LINES,
                                   .depth = 100,
                                   .n_valid = OCT_MAPS_BSCANS,
                                   .log = true,
                                   .axial_um = AXIAL_UM,
                                   .lateral_um = 1000 * OCT_MAPS_MM / OCT_MAPS_LINES,
                                   .slow_um = 1000 * OCT_MAPS_MM / OCT_MAPS_BSCANS,
                                   .pseudonym = "P-1"};
    snprintf(file->eye, sizeof(file->eye), "%s", eye);
    snprintf(file->path, sizeof(file->path), "/r.d/now.h5");
    fill(&m->playback.enface, retina, 290, 310);
    fill(&t->map[OCT_MAP_RETINA], retina, 290, 310);
    fill(&t->map[OCT_MAP_NERVE_FIBRES], fibres, 30, 50);
    t->share = 1;
    t->any = t->has_fovea = true;
    t->fovea_row = (OCT_MAPS_BSCANS - 1) / 2.;
    t->fovea_column = (OCT_MAPS_LINES - 1) / 2.;
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++)
        for (unsigned map = 0; map < OCT_N_MAPS; map++) {
            t->etdrs[map].mean_um[i] = 200 + 10 * i;
            t->etdrs[map].covered[i] = 1;
        }
    m->settings.arrangement = OCT_ARRANGEMENT_TWO;
    m->settings.layers = true;
    set_layers(m, fibres_um);
}

void oct_maps_compare(struct oct_viewer_stage *s,
                      double (*change_um)(uint32_t bscan, uint32_t line))
{
    struct oct_view_follow *f = &s->model.playback.follow;
    f->is_on = true;
    f->state = OCT_FOLLOW_FOUND;
    snprintf(f->begun, sizeof(f->begun), "2026-05-01");
    for (unsigned i = 0; i < OCT_N_MAPS; i++) {
        fill(&f->change[i], change_um, -20, 20);
        f->mean_change[i] = 3;
    }
}
