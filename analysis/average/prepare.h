/* From a B-scan's intensity to the picture that is registered: binned, as decibels, and
 * prepared as all that is matched (analysis/align/prepare.h). Of this folder alone; one thread.
 *
 *     begin -> { add an A-line, in order ... } -> finish */
#ifndef OCT_ANALYSIS_AVERAGE_PREPARE_H
#define OCT_ANALYSIS_AVERAGE_PREPARE_H

#include "numeric/picture.h"

struct oct_average_prepare {
    uint32_t n_lines, depth;       /* M, D */
    uint32_t bin_lines, bin_depth; /* pixels of a bin */
    struct oct_picture picture;    /* [M / bin_lines][D / bin_depth] */
    float *scratch;                /* of the same size, and a line */
    uint8_t *n_added;              /* [height] A-lines that came to each row */
};

/* OCT_E_CONFIG: a B-scan of that size is too small to be registered. */
enum oct_err oct_average_prepare_check(uint32_t n_lines, uint32_t depth, struct oct_error *err);

/* Chooses bins. Errors of the check, OCT_E_NO_MEMORY. */
enum oct_err oct_average_prepare_init(struct oct_average_prepare *prepare, uint32_t n_lines,
                                      uint32_t depth, struct oct_error *err);
void oct_average_prepare_finish(struct oct_average_prepare *prepare); /* of an empty one too */

void oct_average_prepare_begin(struct oct_average_prepare *prepare);
/* intensity [D], finite. An A-line that never came is not added: where a row has none it says
 * nothing, neither for nor against a shift. */
void oct_average_prepare_add(struct oct_average_prepare *prepare, uint32_t line,
                             const float *intensity);
enum oct_err oct_average_prepare_end(struct oct_average_prepare *prepare, struct oct_error *err);

/* Bins by which the picture is to be smoothed for fractions of one: 1.5 px. */
double oct_average_prepare_smoothing(const struct oct_average_prepare *prepare);

#endif
