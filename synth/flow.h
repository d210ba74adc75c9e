/* A phantom of blood flow: scatterers in still tissue and in vessels, before a spectrometer, in a
 * scan that repeats its places.
 *
 * Tissue from 100 to 400 um below zero delay (path in tissue), uniform but for a brighter band at
 * the top and at the bottom. x runs along a B-scan from A-line to A-line, y from place to place,
 * z deeper. The beam's field falls as exp(-2 r^2 / w^2), w = 7 um, so that two places dx apart
 * correlate by exp(-dx^2 / w^2). A vessel is a cylinder through the field, about along y; its
 * scatterers move along its axis by v (1 - (r / R)^2), and come back after 64 um. Below it the
 * phase of light may jitter (tails). A fringe of scatterer s at sample i is
 *
 *     source_i m a_s cos(2 k_i n z_s),  m such that tissue has the SNR on average
 *
 * in E|B|^2 over that of the camera's noise, both of contract section 6's B.
 *
 * B-scan b of the volume begins (4/3) b M / line rate; its A-lines follow at the line rate. The
 * tissue moves meanwhile: fixation 0.2 mm/s along the beam and 0.07 aside, strong 1 and 0.5; a
 * burst moves it 30 um aside within one B-scan.
 *
 * Same setup, same bytes, whatever the number of threads. One thread uses a phantom at a time. */
#ifndef OCT_SYNTH_FLOW_H
#define OCT_SYNTH_FLOW_H

#include "synth/spectrometer.h"

#include <stdbool.h>
#include <stddef.h>

#define OCT_FLOW_PHANTOM_MOST_VESSELS 64u
#define OCT_FLOW_PHANTOM_MOST_BURSTS 64u

enum oct_flow_motion { OCT_FLOW_STILL, OCT_FLOW_FIXATION, OCT_FLOW_STRONG };

struct oct_flow_phantom_setup {
    uint32_t n_samples, n_lines, n_bscans; /* N, M, V */
    unsigned bits;
    uint32_t repeats, interleave; /* R, K */
    double line_um, place_um, line_rate_hz, refractive_index;
    double snr_db;      /* of tissue */
    unsigned n_vessels; /* of 4 to 20 um radius, 0.3 to 12 mm/s in the middle */
    enum oct_flow_motion motion;
    unsigned n_bursts; /* B-scans with one */
    unsigned n_blinks; /* B-scans without light from the sample */
    double tail_rad;   /* standard deviation of the phase below vessels */
    uint64_t seed;
    unsigned n_threads; /* 0: one a core */
};

struct oct_flow_vessel {
    double x_um, z_um;      /* of the axis at y = 0 */
    double direction[3];    /* of the flow: x, y, z, of length 1 */
    double radius_um, mm_s; /* mm_s in the middle */
};

/* What is true; arrays are owned by the phantom. */
struct oct_flow_phantom_truth {
    const struct oct_spectrometer *spectrometer;
    const struct oct_flow_vessel *vessels; /* [n_vessels] */
    unsigned n_vessels;
    double noise_counts2; /* E|B|^2 of the noise */
    double tissue_um[2];  /* from where to where */
    uint32_t n_places;
};

struct oct_flow_phantom;

/* OCT_E_ARG: sizes that cannot be; OCT_E_NO_MEMORY. *phantom is NULL on error. */
enum oct_err oct_flow_phantom_create(struct oct_flow_phantom **phantom,
                                     const struct oct_flow_phantom_setup *setup,
                                     struct oct_error *err);
void oct_flow_phantom_destroy(struct oct_flow_phantom *phantom); /* NULL is fine */

const struct oct_flow_phantom_truth *oct_flow_phantom_truth(const struct oct_flow_phantom *phantom);

/* B-scan b: spectra [M][N]. Returns how many samples were clipped. */
uint64_t oct_flow_phantom_render(struct oct_flow_phantom *phantom, uint32_t b, uint16_t *spectra);

/* Seconds from the first B-scan's begin to that of A-line j of B-scan b. */
double oct_flow_phantom_time(const struct oct_flow_phantom *phantom, uint32_t b, uint32_t j);

/* x, y, z by which the tissue has moved then, um. */
void oct_flow_phantom_motion(const struct oct_flow_phantom *phantom, uint32_t b, uint32_t j,
                             double um[3]);

/* What lies at each voxel of a place, [M][depth] of pixels first_px on, as its first repeat shows
 * it: */
enum oct_flow_voxel {
    OCT_FLOW_VOID,
    OCT_FLOW_TISSUE,
    OCT_FLOW_VESSEL, /* within 0.8 of its radius */
    OCT_FLOW_BELOW,  /* a vessel */
    OCT_FLOW_RIM     /* of a vessel or of the tissue, or what a burst or a blink spoils */
};
void oct_flow_phantom_label(const struct oct_flow_phantom *phantom, uint32_t place,
                            uint32_t first_px, uint32_t depth, uint8_t *voxels);

#endif
