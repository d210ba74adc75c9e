/* What clinics read from two layers: the thickness between them, and its means in the nine sectors
 * of the ETDRS grid. Pure. */
#ifndef OCT_ANALYSIS_LAYERS_MEASURE_THICKNESS_H
#define OCT_ANALYSIS_LAYERS_MEASURE_THICKNESS_H

#include <stdbool.h>
#include <stdint.h>

/* (lower - upper) * depth_um of n A-lines, NaN where either is. depth_um: of tissue. Returns how
 * many are known. */
uint64_t oct_thickness_map(const float *upper, const float *lower, uint64_t n, double depth_um,
                           float *thickness_um);

/* Early Treatment Diabetic Retinopathy Study Research Group, Report 10 (1991): circles of 1, 3 and
 * 6 mm about the fovea, the rings cut at 45 degrees. */
enum oct_etdrs_sector {
    OCT_ETDRS_CENTRE,
    OCT_ETDRS_INNER_SUPERIOR,
    OCT_ETDRS_INNER_NASAL,
    OCT_ETDRS_INNER_INFERIOR,
    OCT_ETDRS_INNER_TEMPORAL,
    OCT_ETDRS_OUTER_SUPERIOR,
    OCT_ETDRS_OUTER_NASAL,
    OCT_ETDRS_OUTER_INFERIOR,
    OCT_ETDRS_OUTER_TEMPORAL,
    OCT_ETDRS_N_SECTORS
};
extern const char *const oct_etdrs_names[OCT_ETDRS_N_SECTORS]; /* "centre", "inner superior", ... */

#define OCT_ETDRS_N_CIRCLES 3u
extern const double oct_etdrs_radii_mm[OCT_ETDRS_N_CIRCLES]; /* from the centre's on */

struct oct_etdrs_setup {
    uint32_t n_bscans, n_lines;
    double bscan_um, line_um;       /* > 0 */
    double fovea_b, fovea_j;        /* B-scan and A-line */
    bool has_sides, nasal_is_right; /* without has_sides nasal and temporal are not known: "nasal"
                                       is towards larger A-lines, and the caller says so */
    bool superior_is_last;          /* larger B-scans are superior; else inferior */
};

struct oct_etdrs {
    double mean_um[OCT_ETDRS_N_SECTORS]; /* NaN: no A-line of the sector is known */
    double covered[OCT_ETDRS_N_SECTORS]; /* the share of its area that is known, 0 to 1 */
};
void oct_etdrs_measure(const struct oct_etdrs_setup *setup, const float *thickness_um,
                       struct oct_etdrs *etdrs);

/* The sector of a place, mm to the right (larger A-lines) and up (superior) of the fovea;
 * OCT_ETDRS_N_SECTORS beyond 3 mm. */
enum oct_etdrs_sector oct_etdrs_sector_at(double right_mm, double up_mm, bool nasal_is_right);

/* Where the retina is thinnest within the field, as the fovea's pit is: the lowest place of the map
 * smoothed over 100 um that is below its surroundings on all sides. False: there is no pit in
 * view. */
bool oct_thickness_fovea(const float *thickness_um, uint32_t n_bscans, uint32_t n_lines,
                         double bscan_um, double line_um, double *b, double *j);

#endif
