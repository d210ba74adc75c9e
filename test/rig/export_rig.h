/* Sources of octctl export's writers whose every sample is known: sample number i, counted over
 * [planes][rows][columns], is
 *     u8   (37 i + 11) mod 251
 *     u16  (9973 i + 7) mod 65521
 *     f32  0.25 i - 4, NaN for i = 3
 * test/process/exportrig.py has the same. One thread. */
#ifndef OCT_TEST_RIG_EXPORT_RIG_H
#define OCT_TEST_RIG_EXPORT_RIG_H

#include "formats/export/export.h"

/* axes: "bscan line depth" and such. The caller may change the form. */
struct export_rig {
    struct oct_export_source source;
    char words[3][16];
    uint32_t fails_at; /* reading this plane fails (OCT_E_IO); UINT32_MAX: none */
};

void export_rig_init(struct export_rig *rig, const char *axes, const uint32_t dims[3],
                     const double um[3], enum oct_export_sample sample);
void export_rig_fill(enum oct_export_sample sample, uint64_t first, uint64_t n, void *samples);

/* force, and nobody cancels. */
extern const struct oct_export_options export_rig_options;

#endif
