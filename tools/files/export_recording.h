/* A recording that is no volume file (plain samples, a file of another program) as an input of
 * octctl export: its spectra, which are all it has. Private to tools/export_*. */
#ifndef OCT_TOOLS_EXPORT_RECORDING_H
#define OCT_TOOLS_EXPORT_RECORDING_H

#include "tools/files/export_values.h"

/* Fills all members of *in but .path; oct_export_input_close ends it, after an error too. `path`
 * as the user named it, "-" too. Errors as oct_recording_open. */
enum oct_err oct_export_recording_open(struct oct_export_input *in, const char *path,
                                       const struct oct_config *config, struct oct_error *err);

/* The dataset `name` of in->recording, u16 [V][M][N]. OCT_E_ARG: it is not "spectra". The caller
 * closes *values by oct_export_values_finish, after an error too. */
enum oct_err oct_export_recording_values(struct oct_export_values *values,
                                         struct oct_export_input *in, const char *name,
                                         const struct oct_export_wish *wish, struct oct_error *err);

#endif
