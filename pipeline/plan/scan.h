/* The way of a scan: where each A-line of a volume is taken, and which lines that are sent belong
 * to none.
 *
 * Positions are um of the sample, origin in the middle of the scan's field before centre and angle;
 * the last of these turns the pattern about its middle, +x towards +y. B-scan b of a volume lies at
 * place oct_scan_place(b) of n_places = V / repeats; A-line j at point j / line_repeats of
 * n_points = M / line_repeats. s = (point + 1/2) / n_points, t = (place + 1/2) / n_places:
 *
 *     raster       x = (s - 1/2) width, y = (t - 1/2) height
 *     raster-both  the same; every second B-scan of a volume is scanned backwards
 *     line         x = (s - 1/2) width, y = 0: all B-scans at one place
 *     circle       diameter width: angle 2 pi s from +x towards +y; all B-scans at one place
 *     radial       diameters of length width, at angle pi (t - 1/(2 n_places)): a star
 *     spiral       a turn a B-scan, w = (place + s) / n_places of the volume: radius
 *                  width / 2 * (1 - |1 - 2 w|), angle 2 pi s: outwards, then inwards again
 *     lissajous    x = width / 2 * sin(2 pi s), y = height / 2 * sin(2 pi (n_places - 1) w): a
 *                  period of x a B-scan, and one of y less than places a volume
 *     file         as the file says, [V * M] rows of x and y; NaN: the A-line lies nowhere
 *
 * What is sent of a B-scan is its M lines in the order of time, then flyback_lines. The mirrors lag
 * by delay_lines: line i shows what a mirror without lag would have shown delay_lines earlier.
 * Whole lines of it move the B-scan within what is sent; the rest, half a line at most, and the
 * uneven speed of a resonant mirror (phase_deg: the sweep is that of a sinus between -phase and
 * +phase; 0: even) are undone in pictures of raster, raster-both and line, as weights of lines; not
 * where mirrors stay for line_repeats.
 *
 * No state; any thread. */
#ifndef OCT_PIPELINE_PLAN_SCAN_H
#define OCT_PIPELINE_PLAN_SCAN_H

#include "pipeline/base/err.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum oct_scan_pattern {
    OCT_SCAN_RASTER,
    OCT_SCAN_RASTER_BOTH,
    OCT_SCAN_LINE,
    OCT_SCAN_CIRCLE,
    OCT_SCAN_RADIAL,
    OCT_SCAN_SPIRAL,
    OCT_SCAN_LISSAJOUS,
    OCT_SCAN_FILE,
};
extern const char *const oct_scan_pattern_names[]; /* NULL-terminated: "raster", "raster-both" */

/* How a scanner comes back to places. B-scan n of a group of repeats * interleave neighbours of a
 * volume, by their numbers, is repeat n / interleave of place n % interleave; line_repeats A-lines
 * lie at one point, one after another. 0 stands for 1. */
struct oct_scan_protocol {
    uint32_t repeats, interleave, line_repeats;
};

struct oct_scan {
    enum oct_scan_pattern pattern;
    uint32_t n_lines, n_bscans; /* M; of a volume of the scan */
    uint32_t
        first_bscan; /* B-scan 0 is this one of a volume, and others follow it: of what was kept
                             from the middle of a volume on */
    struct oct_scan_protocol protocol;
    double width_um, height_um; /* 0: unknown, and so is where A-lines lie */
    double centre_um[2], angle_deg;
    uint32_t flyback_lines;
    double delay_lines; /* 0 to flyback_lines, or to 1/2 */
    double phase_deg;
    const double (*file)[2]; /* [V * M]; of `file` alone */
};

/* OCT_E_CONFIG with the key ("scan.phase", ...): a value that the pattern cannot have. */
enum oct_err oct_scan_check(const struct oct_scan *scan, struct oct_error *err);

/* Lines sent of a B-scan, and the whole lines of the lag. */
uint32_t oct_scan_sent_lines(const struct oct_scan *scan);
uint32_t oct_scan_lag(const struct oct_scan *scan);

/* Whether B-scan b of a volume is scanned backwards: its A-lines are put into the order of places,
 * as everywhere but on the wire. */
bool oct_scan_is_turned(const struct oct_scan *scan, uint32_t b);

/* Whether pictures are put onto an even grid of lines (pipeline/flow/even_lines.h). */
bool oct_scan_is_uneven(const struct oct_scan *scan);

/* Whether B-scans are rows of a picture from above: else it is gridded from positions. A circle
 * stays an unrolled one. */
bool oct_scan_has_rows(const struct oct_scan *scan);

/* Whether B-scans lie beside one another, at one distance; and whether all of them lie at one
 * place: then they follow one another in time alone. */
bool oct_scan_is_raster(const struct oct_scan *scan);
bool oct_scan_is_one_place(const struct oct_scan *scan);

/* Whether the A-lines of a B-scan lie along a straight line, at one distance. */
bool oct_scan_is_straight(const struct oct_scan *scan);

/* The box around positions, of which the first finds low at +INFINITY and high at -INFINITY; one
 * that is not known changes nothing. */
struct oct_scan_box {
    double low[2], high[2]; /* um */
};
#define OCT_SCAN_NO_BOX ((struct oct_scan_box){{INFINITY, INFINITY}, {-INFINITY, -INFINITY}})
void oct_scan_box_grow(struct oct_scan_box *box, const double um[2]);

/* How long the way of a B-scan is where its A-lines lie at one distance, um; else, and of a field
 * whose width is unknown (0), 0. */
double oct_scan_length_um(enum oct_scan_pattern pattern, double width_um);

uint32_t oct_scan_n_places(const struct oct_scan *scan);
uint32_t oct_scan_place(const struct oct_scan *scan, uint32_t b);

/* The first B-scan of a place. */
uint32_t oct_scan_bscan(const struct oct_scan *scan, uint32_t place);

/* Where A-line j of the picture of B-scan b lies; NaN: unknown. */
void oct_scan_position(const struct oct_scan *scan, uint32_t b, uint32_t j, double um[2]);

/* Where the mirrors stand, in the order of time: line i of what is sent for B-scan b, i < M,
 * without lag. i may be any number, also of the flyback: then the sweep goes on. */
void oct_scan_way(const struct oct_scan *scan, uint32_t b, double i, double um[2]);

/* Where line k of a B-scan of spectra lies, in the order of places: with the rest of the lag,
 * before pictures are put onto the even grid. */
void oct_scan_sample(const struct oct_scan *scan, uint32_t b, uint32_t k, double um[2]);

/* In columns (0: the middle of the first A-line), where line k of a B-scan of spectra lies, in the
 * order of places. */
double oct_scan_column(const struct oct_scan *scan, bool is_turned, uint32_t k);

#endif
