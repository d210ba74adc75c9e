#include "test/rig/result_forms.h"

#include <math.h>

static const char *const labels[COLUMNS] = {"depth, um", "level, dB", "ä"};

const struct oct_image_form form_table = {
    .name = "cells",
    .quantity = OCT_QUANTITY_NUMBERS,
    .type = OCT_SAMPLE_F32,
    .rank = 2,
    .dims = {ROWS, COLUMNS},
    .spacing_um = {NAN, NAN},
    .axes = {"cell", "column"},
    .labels = labels,
};

const struct oct_image_form form_picture = {
    .name = "smooth",
    .quantity = OCT_QUANTITY_INTENSITY_DB,
    .type = OCT_SAMPLE_U8,
    .rank = 3,
    .dims = {2, M, D},
    .spacing_um = {NAN, 7.5, 2},
    .axes = {"look", "line", "depth"},
};

const struct oct_image_form form_enface = {
    .name = "enface",
    .quantity = OCT_QUANTITY_INTENSITY_DB,
    .type = OCT_SAMPLE_F32,
    .rank = 2,
    .dims = {V, M},
    .spacing_um = {NAN, 7.5},
    .axes = {"bscan", "line"},
    .of_volume = true,
};

const struct oct_image_form form_shadow = {
    .name = "shadow",
    .quantity = OCT_QUANTITY_INTENSITY,
    .type = OCT_SAMPLE_U8,
    .rank = 1,
    .dims = {3 * 4096 + 5},
    .spacing_um = {NAN},
    .axes = {"line"},
    .of_volume = true,
};
