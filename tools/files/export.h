/* octctl export, for a command that sends what it makes. */
#ifndef OCT_TOOLS_EXPORT_H
#define OCT_TOOLS_EXPORT_H

#include "pipeline/volume/label.h"
#include "tools/commands.h"

struct oct_export_given {
    const char *to, *dataset, *slab, *sample, *range, *frames, *pixel_um, *eye, *identity;
    bool pseudonym, force, json;
};

/* Of struct oct_export_given; from that index on those that archive send has, too. */
extern const struct oct_option oct_export_options[];
#define OCT_EXPORT_OPTIONS_OF_DICOM 4

/* Exports the recording `in` to `out` as DICOM and says nothing but what fails, as `command`;
 * returns the exit status. pseudonym and what become those of the recording and the dataset. */
int oct_export_as_dicom(const char *command, const struct oct_config *config,
                        const struct oct_export_given *given, const char *in, const char *out,
                        char pseudonym[OCT_LABEL_PSEUDONYM_BYTES], char what[64]);

#endif
