/* What the tests of recordings share: known samples for every B-scan, a plan without an engine,
 * writing and checking whole files. */
#ifndef OCT_TEST_RIG_VOLUME_CASES_H
#define OCT_TEST_RIG_VOLUME_CASES_H

#include "pipeline/volume/volume.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A plan with geometry alone (no tables): all that a volume file needs. */
struct oct_plan volume_plan(uint32_t n_samples, uint32_t n_lines, uint32_t n_bscans, uint32_t depth,
                            enum oct_sample_type type);

extern const struct oct_volume_about volume_about;

/* The known content of B-scan v: every sample, pixel, mask and number follows from v. */
struct volume_bscan {
    struct oct_raw_frame raw;
    struct oct_image_frame image;
    size_t pixel_bytes; /* of the whole picture */
};
void volume_bscan_init(struct volume_bscan *b, const struct oct_geometry *g);
void volume_bscan_make(struct volume_bscan *b, const struct oct_geometry *g, uint32_t v);
void volume_bscan_finish(struct volume_bscan *b);

/* Writes B-scan v into whatever the file holds. */
enum oct_err volume_put(struct oct_volume_writer *w, const struct oct_geometry *g, uint32_t v,
                        bool with_spectra, bool with_bscans, struct oct_error *err);

/* The writer's functions; the cmocka test fails if they do. */
struct oct_volume_writer *volume_make(const char *path, const struct oct_plan *plan,
                                      bool with_spectra, bool with_bscans);
void volume_add(struct oct_volume_writer *w, const struct oct_plan *plan, uint32_t v, bool spectra,
                bool bscans);
void volume_sync(struct oct_volume_writer *w);
void volume_close(struct oct_volume_writer *w);

/* Every row v with written[v] must be valid and exact, every other invalid and zero. Fails the
 * cmocka test. */
void volume_expect(const char *path, const struct oct_geometry *g, const uint8_t *written,
                   bool with_spectra, bool with_bscans);

/* Everything of a dataset, converted, which must be there; *n values, malloc'd. */
double *volume_values(const char *path, const char *name, size_t *n);

/* The whole file; malloc'd. */
unsigned char *volume_slurp(const char *path, size_t *bytes);

#endif
