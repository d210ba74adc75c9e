/* What a recording is about, where it goes and how its files are called. */
#ifndef OCT_PIPELINE_RECORD_SETTINGS_H
#define OCT_PIPELINE_RECORD_SETTINGS_H

#include "pipeline/base/err.h"
#include "pipeline/plan/plan.h"
#include "pipeline/volume/volume.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As the owner gives them; strings are borrowed. */
struct oct_record_settings {
    const char *directory; /* made if absent, its parent must be there */
    bool spectra, bscans;  /* at least one */
    bool has_complex;      /* bscans have their complex values beside them; the recorder was created
                              for them */
    bool as_sent;          /* spectra; else u16 */
    double sync_interval_s;
    const char *config_text, *eye, *pseudonym;
    double width_um, height_um, refractive_index;
    struct oct_scan_protocol scan;
    bool is_log;             /* pictures are of dB; else of counts^2 */
    uint32_t volumes;        /* end after so many whole ones; 0: when it is stopped */
    bool name_has_pseudonym; /* of files */
};

/* A copy that owns its strings. Zeroed is empty. */
struct oct_record_settings_copy {
    struct oct_record_settings settings;
    char *strings; /* what those of `settings` point into */
};

/* Does not touch the disk: the folder stays as it is written. OCT_E_NO_MEMORY. */
enum oct_err oct_record_settings_copy(struct oct_record_settings_copy *copy,
                                      const struct oct_record_settings *from,
                                      struct oct_error *err);

/* Replaces the folder, which must exist, by its real path; the status shows it. Reads the disk. */
enum oct_err oct_record_settings_resolve(struct oct_record_settings_copy *copy,
                                         struct oct_error *err);
void oct_record_settings_free(struct oct_record_settings_copy *copy);

/* Makes the folder if need be and checks that n_bscans fit, and other_bytes beside them. OCT_E_IO,
 * OCT_E_NO_SPACE. *free_bytes (may be NULL): what is free there. */
enum oct_err oct_record_settings_check(const struct oct_record_settings *from,
                                       const struct oct_geometry *geometry, uint64_t n_bscans,
                                       double other_bytes, double *free_bytes,
                                       struct oct_error *err);

/* Bytes of a B-scan in the file of a volume, with its share of results_bytes, which are of the
 * volume; 0: the settings record nothing. */
double oct_record_bscan_bytes(const struct oct_record_settings *from,
                              const struct oct_geometry *geometry, double results_bytes);

/* directory/[pseudonym_][eye_]YYYYMMDDTHHMMSSmmmZ_ENDING.h5, the time being now; with the pseudonym
 * only if name_has_pseudonym says so: ASCII letters, digits, '-', and what is not ASCII, other
 * characters as '-' */
void oct_record_path(const struct oct_record_settings *settings, const char *ending, char *path,
                     size_t path_bytes);

/* Whether a name that came from outside may be a file's: letters, digits, '.', '_' and '-', no dot
 * first, at most 100 of them; with or without ".h5". It cannot leave the folder. */
bool oct_record_name_is_safe(const char *name);

/* directory/NAME.h5 */
void oct_record_path_named(const struct oct_record_settings *settings, const char *name, char *path,
                           size_t path_bytes);

/* For oct_volume_create; borrows from settings. format: of the B-scans' samples. */
struct oct_volume_about oct_record_about(const struct oct_record_settings *settings,
                                         uint16_t format, const char *engine);

#endif
