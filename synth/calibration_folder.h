/* The calibration of a synthetic camera as a lab would keep it: text files and a configuration. */
#ifndef OCT_SYNTH_CALIBRATION_FOLDER_H
#define OCT_SYNTH_CALIBRATION_FOLDER_H

#include "synth/retina.h"
#include "synth/spectrometer.h"

#define OCT_CALIBRATION_INI "calibration.ini"

/* Writes wavelengths.txt (nm, one a line) and calibration.ini ([camera], [scan], [calibration], to
 * be loaded with --config) into a folder, which is made if it is not there. Files of these names
 * are replaced, each at once: calibration follows its recording. */
enum oct_err oct_calibration_folder_write(const char *folder,
                                          const struct oct_retina_params *params,
                                          const struct oct_retina_facts *facts,
                                          struct oct_error *err);

/* The same of a spectrometer: wavelengths.txt, kmap.txt and calibration.ini ([camera],
 * [calibration], with the k map and the coefficients), all of the truth. */
enum oct_err oct_calibration_folder_write_spectrometer(const char *folder,
                                                       const struct oct_spectrometer *s,
                                                       struct oct_error *err);

#endif
