/* What the two mirrors are driven by: the way of a scan (scan.h) as angles in time, a sample a line
 * that is sent, with turns between B-scans that a mirror can follow.
 *
 * Between the end of a B-scan's lines and the beginning of the next one each mirror takes the
 * polynomial of the fifth degree that has the position, the speed and the acceleration of both (the
 * least of the squared third derivative that does: Flash and Hogan 1985), over flyback_lines lines.
 * After the last B-scan the first comes again.
 *
 * A mirror that takes T for a step over the field W, from rest to rest with the greatest
 * acceleration first one way and then the other, has the acceleration 4 W / T^2 and reaches the
 * speed 2 W / T: these are the limits, W the larger side of the field. No state; any thread. */
#ifndef OCT_PIPELINE_PLAN_WAVEFORM_H
#define OCT_PIPELINE_PLAN_WAVEFORM_H

#include "pipeline/plan/scan.h"

#include <stddef.h>

#define OCT_WAVEFORM_MOST_LINES (UINT64_C(1) << 24) /* of a volume, with those of the flyback */

struct oct_mirrors {
    double line_rate_hz;
    double step_us; /* T */
    double um_per_degree, volts_per_degree;
};

struct oct_waveform {
    size_t n;         /* lines of a volume that are sent */
    double (*um)[2];  /* [n] x, y on the sample, without lag */
    uint8_t *is_line; /* [n] 1: an A-line of a B-scan when it arrives, as octd counts it */
    double useful;    /* share of lines that are A-lines */
    double speed, acceleration; /* the most that it asks for, of the limits: 1 is all */
};

/* The least flyback_lines that the mirrors can follow; 0 where the way goes on by itself.
 * OCT_E_CONFIG: they cannot follow the way itself, or not within scan.lines lines more. */
enum oct_err oct_waveform_flyback(const struct oct_scan *scan, const struct oct_mirrors *mirrors,
                                  uint32_t *lines, struct oct_error *err);

/* OCT_E_CONFIG: the size of the field is unknown, line_repeats are steps, the volume has more than
 * OCT_WAVEFORM_MOST_LINES, or a mirror cannot follow: scan.flyback_lines, with the number that it
 * takes. OCT_E_NO_MEMORY. */
enum oct_err oct_waveform_init(struct oct_waveform *waveform, const struct oct_scan *scan,
                               const struct oct_mirrors *mirrors, struct oct_error *err);
void oct_waveform_finish(struct oct_waveform *waveform); /* of an empty one too */

/* The same for one line of a volume that is sent, of a scan with any flyback, whether mirrors can
 * follow it or not: where the mirrors stand, and whether it is an A-line as octd counts it. */
void oct_waveform_line(const struct oct_scan *scan, uint64_t line, double um[2], bool *is_line);

/* V of a mirror that moves the beam by um. */
double oct_mirror_volts(const struct oct_mirrors *mirrors, double um);

#endif
