/* The course of both layers in one B-scan, as what to expect of the next one: how far that lies
 * along the depth, and where its layers may be. Pure. */
#ifndef OCT_ANALYSIS_SURFACE_COURSE_H
#define OCT_ANALYSIS_SURFACE_COURSE_H

#include "analysis/surface/trace.h"

struct oct_course {
    float *position[OCT_N_LAYERS]; /* [n_lines] px; NaN: not known */
};

/* Gaps of at most most_gap A-lines between positions that are known become straight lines. */
void oct_course_fill(float *position, uint32_t n_lines, uint32_t most_gap);

/* A B-scan to compare courses with. */
struct oct_course_picture {
    const float *pixels;       /* [n_lines][depth], what is not finite counts as nothing */
    const uint8_t *line_valid; /* [n_lines]; NULL: all are */
    uint32_t n_lines, depth;
    uint32_t side; /* px above and below a place whose means are compared */
};

/* The contrast along the course moved by whole pixels: below the ILM less above it, plus above the
 * RPE's border less below it, of some 64 A-lines. */
struct oct_course_fit {
    int shift; /* px, that of the greatest contrast */
    double contrast;
    bool found; /* false: the course lies outside the picture, or is not known */
};

/* Of all shifts up to most_shift. sums, counts: [2 * most_shift + 1], prefix: [depth + 1], of the
 * caller. */
struct oct_course_fit oct_course_find(const struct oct_course *course,
                                      const struct oct_course_picture *picture, uint32_t most_shift,
                                      double *sums, uint32_t *counts, double *prefix);

/* Where a layer that is moved by `shift` px may be in each A-line: `slack` px beyond what it is in
 * the A-lines up to `reach` away. NaN: anywhere. */
void oct_course_bounds(const float *position, uint32_t n_lines, double shift, double slack,
                       uint32_t reach, float *least, float *most);

#endif
