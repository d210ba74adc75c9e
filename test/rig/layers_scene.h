/* B-scans of a retina with two layers whose places are known, as a stage would push them. */
#ifndef OCT_TEST_RIG_LAYERS_SCENE_H
#define OCT_TEST_RIG_LAYERS_SCENE_H

#include "pipeline/flow/frame.h"

enum { LAYERS_LINES = 96, LAYERS_DEPTH = 384, LAYERS_BSCANS = 12 };
#define LAYERS_DEPTH_UM 2.5
#define LAYERS_LINE_UM 6.0
#define LAYERS_BSCAN_UM 20.0
#define LAYERS_THICK_PX 100.0
#define LAYERS_LO 10.0 /* dB of u8 pictures */
#define LAYERS_HI 60.0

struct layers_scene {
    struct oct_image_form form;
    struct oct_image_frame bscan;
    void *pixels;
    uint64_t n; /* of the next B-scan */

    /* Of the next B-scan. */
    double shift_px;          /* of all layers, downward */
    double rpe;               /* how much brighter the RPE is than what lies above it, 1 */
    double deeper_px, deeper; /* another bright band so far below the RPE; 0: none */
    bool is_blink;            /* speckle alone */
    uint32_t missing_first, n_missing;
};

/* type and quantity of the pictures. */
void layers_scene_open(struct layers_scene *scene, enum oct_sample_type type, bool is_db);
void layers_scene_close(struct layers_scene *scene);

/* Fills the next B-scan and numbers it. */
void layers_scene_next(struct layers_scene *scene);

/* Where the layers of the B-scan that was filled last are, in px. */
double layers_scene_ilm(const struct layers_scene *scene, uint32_t line);
double layers_scene_rpe(const struct layers_scene *scene, uint32_t line);

#endif
