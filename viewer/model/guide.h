/* The guide: where the tissue lies in a picture, how good the picture is, and which way to move. */
#ifndef OCT_VIEWER_MODEL_GUIDE_H
#define OCT_VIEWER_MODEL_GUIDE_H

#include "analysis/quality/sight.h"
#include "viewer/model/archive.h"
#include "viewer/model/picture.h"

#include <stdbool.h>
#include <stdint.h>

/* analysis/quality/sight.h of a picture; log: pixels are dB, else counts^2. */
bool oct_view_sight_of(const struct oct_view_picture *picture, bool log, struct oct_sight *sight);

/* The guide: how good the shown picture is, as one index of 0 to 10, and which way the instrument
 * must move for the retina to lie where it should.
 *
 * Four parts, each a factor of 0 to 1:
 *
 *   signal      (signal_db - 2) / 20                       the tissue over the noise
 *   light       1 - sqrt(saturated / 0.02)              share of the samples at the camera's limit
 *   place       1 between the lines that are drawn, 0 beyond 85 % of the way to the edge
 *   motion      (1 - blinks) * 0.7^jumps                   of the second before the picture
 *
 *   index = 10 * signal * light * place * motion
 *
 * each cut off at 0 and 1. So every fault lowers it, none makes up for another, and a part that is
 * not known counts as none. signal and place are of the picture alone; light is of the topic
 * `spectrum`, motion of the topic `quality`, both by the time at which the picture came. Contrast
 * and zoom change nothing, nor does averaging: it leaves mean intensities where they are. An
 * 8-bit picture that was cut off at its limits can only look worse than it is.
 *
 * Live, the measures are smoothed over a second, and the whole number that is shown changes only
 * once the index lies more than 0.7 beside it. A picture that is held (frozen, playback) has its
 * own measures, unsmoothed.
 *
 * Direction: depth grows downward in a picture, and with the length of the sample's path. An
 * instrument that comes closer to the eye shortens that path, and tissue moves up. Tissue too low:
 * closer. Too high: away. A picture that is mirrored at zero delay (the retina upside down) moves
 * the other way, and the guide cannot see that. */

enum oct_view_guide_part {
    OCT_GUIDE_SIGNAL,
    OCT_GUIDE_LIGHT,
    OCT_GUIDE_PLACE,
    OCT_GUIDE_MOTION,
    OCT_GUIDE_N_PARTS
};

enum oct_view_guide_move { OCT_GUIDE_STAY, OCT_GUIDE_CLOSER, OCT_GUIDE_AWAY };

/* What is measured; NaN: not known. */
struct oct_view_guide_measures {
    struct oct_sight sight;
    double saturated;     /* share of the camera's samples */
    double used;          /* the largest sample, as a share of the camera's limit */
    double blinks, jumps; /* share of the second that was blinks; how many jumps it had */
};

#define OCT_VIEW_GUIDE_SPECTRA 64u /* at four a second, more than the ten seconds that are kept */

/* Zeroed it knows nothing. Anyone reads the members; the functions below write them. */
struct oct_view_guide {
    bool known; /* there is a picture that it speaks of */
    struct oct_view_guide_measures measured;
    double part[OCT_GUIDE_N_PARTS]; /* 0..1; NaN: not known */
    double index;                   /* 0..10 */
    int number;                     /* as shown: a whole one, steady */
    double off;          /* of the depth: by how much the tissue lies too low; below 0: too high */
    double upper, lower; /* the lines, shares of the depth; apart as far as the tissue needs */
    enum oct_view_guide_move move;
    bool pointed;     /* the pointer rests on it: its parts are shown */
    bool seen_tissue; /* in a picture of this acquisition */

    uint64_t serial, arrival_ns; /* of the picture */
    bool held;
    char acquisition_id[64];
    struct {
        uint64_t arrival_ns;
        double saturated, used;
    } light[OCT_VIEW_GUIDE_SPECTRA]; /* a ring */
    unsigned n_light;
    struct oct_view_quality quality; /* held: as it was when the picture was frozen */
};

struct oct_view_model;

/* Looks at the shown picture, unless it did. Cheap: call it whenever another picture may be
 * shown. */
void oct_view_guide_see(struct oct_view_model *model);

/* Notes how much of the camera's range is used; while the picture is held, nothing. n_lines: of the
 * B-scan that the spectrum is of. */
void oct_view_guide_take_spectrum(struct oct_view_guide *guide,
                                  const struct oct_view_spectrum *spectrum, uint32_t n_lines);

/* Whether the guide has a number of a picture of now (or one that is held). */
bool oct_view_guide_has_number(const struct oct_view_model *model);

/* Whether lines and arrow belong over the picture: a live one, the guide is on, and an eye is
 * looked at: thick tissue was seen in this acquisition, the label says which eye, or operators
 * work. A mirror or a plate is judged by nobody's retina. */
bool oct_view_guide_leads(const struct oct_view_model *model);

#define OCT_VIEW_GUIDE_TEXT_BYTES 128

/* "signal", "light", "place", "motion". */
const char *oct_view_guide_part_name(enum oct_view_guide_part part);

/* "14 dB above the noise", or why it is not known; and what to do about it, or "". */
void oct_view_guide_part_text(const struct oct_view_model *model, enum oct_view_guide_part part,
                              char text[OCT_VIEW_GUIDE_TEXT_BYTES],
                              char remedy[OCT_VIEW_GUIDE_TEXT_BYTES]);

/* "closer 0.3 mm" (of the instrument, in air), "a little away"; "": it may stay. */
void oct_view_guide_move_text(const struct oct_view_model *model,
                              char text[OCT_VIEW_GUIDE_TEXT_BYTES]);

#endif
