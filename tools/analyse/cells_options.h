/* The command line of octctl cells. */
#ifndef OCT_TOOLS_CELLS_OPTIONS_H
#define OCT_TOOLS_CELLS_OPTIONS_H

#include "config/config.h"
#include "tools/analyse/cells_run.h"
#include "tools/options.h"

enum oct_cells_format {
    OCT_CELLS_FORMAT_OCTD,
    OCT_CELLS_FORMAT_TRACKMATE,
    OCT_CELLS_FORMAT_NAPARI,
    OCT_CELLS_N_FORMATS
};

struct oct_cells_given {
    struct oct_param_texts own, search; /* of oct_cells_params, oct_cells_search_params */

    /* As they were given: NULL, NaN: not at all. */
    const char *projection, *slab, *pixel_um, *mask, *profile, *tracks, *into, *overlay, *kymograph,
        *along, *histogram, *summary, *maps, *format;
    double fps;
    bool detect_only, force;

    /* What oct_cells_given_read makes of them. */
    bool source_is_given, is_bscan;
    enum oct_pictures_projection which_projection;
    struct oct_depths depths; /* of --projection slab */
    enum oct_cells_format which_format;
    const char *overlay_folder, *overlay_film; /* one of them */
};

extern const struct oct_option oct_cells_options[];

#define OCT_CELLS_KEYS                                                                             \
    "cells.source cells.radius_um cells.radius_px cells.threshold cells.polarity cells.smooth "    \
    "cells.floor cells.detect_every cells.memory cells.min_frames cells.max_speed_um_s "           \
    "cells.flow_deg cells.roi analysis.enface_projection analysis.enface_slab_first "              \
    "analysis.enface_slab_last"

void oct_cells_given_init(struct oct_cells_given *given);

/* Fills what was given, and what the keys below say where it was not, into the run and the rest of
 * *given. Returns 0, or the exit status once it has said what is wrong. */
int oct_cells_given_read(struct oct_cells_given *given, const struct oct_config *config,
                         const char *name, struct oct_cells_run *run);

/* Whether `out` is a name for the table: a film that stands last is rather an input, and a table
 * was forgotten. Returns as oct_cells_given_read. */
int oct_cells_given_out(const struct oct_cells_given *given, const char *name, const char *out);

void oct_cells_given_pictures(const struct oct_cells_given *given, bool of_recordings,
                              struct oct_pictures_options *options);

/* "key = value" a line, of what the run used. */
void oct_cells_given_text(const struct oct_cells_given *given, const struct oct_cells_run *run,
                          char *text, size_t text_bytes);

#endif
