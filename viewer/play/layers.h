/* The layers of an open recording, found anew in the B-scans that are asked for, in any order, as
 * octd finds them live (analysis/layers/find/sequence.h): a B-scan within 300 um of one that was
 * searched begins from that one's layers.
 *
 * One thread, that of the recording. */
#ifndef OCT_VIEWER_PLAY_LAYERS_H
#define OCT_VIEWER_PLAY_LAYERS_H

#include "analysis/layers/find/sequence.h"
#include "viewer/play/recorded.h"

struct oct_play_layers;

/* The recording is borrowed and outlives the layers. *layers is NULL on error. OCT_E_CONFIG: no
 * layers can be found in such pictures; OCT_E_NO_MEMORY. */
enum oct_err oct_play_layers_create(struct oct_play_layers **layers,
                                    struct oct_play_recorded *recorded, struct oct_error *err);
void oct_play_layers_destroy(struct oct_play_layers *layers); /* NULL is fine */

/* The layers of B-scan v, until the next call; NULL: it was not recorded, or cannot be read. */
const struct oct_sequence_layers *oct_play_layers_find(struct oct_play_layers *layers, uint32_t v);

/* How thick the layers of a B-scan (NULL: it has none) are, into a row of both maps, which have its
 * A-lines, or some. um: of a depth pixel; NaN: pixels. */
void oct_play_thickness(const struct oct_sequence_layers *found, double um,
                        struct oct_view_enface map[OCT_N_MAPS], uint32_t row);

/* Number and time of the B-scan that was searched last, as the header of its picture. */
const struct oct_picture_header *oct_play_layers_of(const struct oct_play_layers *layers);

#endif
