/* A recording in playback with maps from above, as its reader would give them. */
#ifndef OCT_TEST_RIG_VIEWER_MAPS_H
#define OCT_TEST_RIG_VIEWER_MAPS_H

#include "test/rig/viewer_stage.h"

#define OCT_MAPS_BSCANS 60u
#define OCT_MAPS_LINES 120u
#define OCT_MAPS_MM 7.2

/* OCT_MAPS_MM square, a fovea in its middle; the map of the retina is 300 um, that of the nerve
 * fibres 40; sector i of the ETDRS grid has the mean 200 + 10 i, all known. The shown picture's
 * layers: `fibres_um(j)` of nerve fibres at A-line j, NaN: not found. eye: "OD" or "OS". */
void oct_maps_play(struct oct_viewer_stage *s, const char *eye, double (*fibres_um)(uint32_t j));

/* The same recording compared with an exam of 2026-05-01: `change_um` at each place. */
void oct_maps_compare(struct oct_viewer_stage *s,
                      double (*change_um)(uint32_t bscan, uint32_t line));

#endif
