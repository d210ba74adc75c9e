/* The nerve fibre layer on a circle about the optic disc, over the angle as clinics read it: from
 * temporal by way of superior, nasal and inferior back to temporal (TSNIT). Pure. */
#ifndef OCT_ANALYSIS_LAYERS_MEASURE_TSNIT_H
#define OCT_ANALYSIS_LAYERS_MEASURE_TSNIT_H

#include <stdbool.h>
#include <stdint.h>

/* All of it, and the sectors of D. F. Garway-Heath et al., Ophthalmology 107 (2000) 1809, between
 * 45, 85, 125, 235, 275 and 315 degrees. */
#define OCT_TSNIT_N_SECTORS 7u
extern const char *const oct_tsnit_names[OCT_TSNIT_N_SECTORS]; /* "G", "T", "TS", "NS", ... */

struct oct_tsnit_setup {
    uint32_t n_lines;
    double first[2]; /* where the first A-line lies: to the right of the circle's centre and above
                        it, as the fundus is seen, in any unit */
    bool nasal_is_right; /* a right eye */
    bool falls;          /* what follows a temporal A-line is inferior of it, not superior */
};

struct oct_tsnit {
    double mean_um[OCT_TSNIT_N_SECTORS]; /* NaN: no A-line of the sector is known */
    double covered[OCT_TSNIT_N_SECTORS]; /* the share of its A-lines that is known, 0 to 1 */
};

/* Of an A-line, 0 to below 360; 0 temporal, 90 superior. */
double oct_tsnit_angle(const struct oct_tsnit_setup *setup, uint32_t line);

/* thickness_um: [n_lines], NaN where unknown. angle_deg, profile_um: [n_lines], the same by angle,
 * rising. */
void oct_tsnit_measure(const struct oct_tsnit_setup *setup, const float *thickness_um,
                       double *angle_deg, double *profile_um, struct oct_tsnit *tsnit);

#endif
