#include "tools/retina/calibration_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#define WAVELENGTHS "wavelengths.txt"

typedef void print_fn(FILE *file, const struct oct_retina_params *params,
                      const struct oct_retina_facts *facts);

static void print_wavelengths(FILE *file, const struct oct_retina_params *params,
                              const struct oct_retina_facts *facts)
{
    for (uint32_t i = 0; i < params->n_samples; i++)
        fprintf(file, "%.17g\n", facts->wavelengths_nm[i]);
}

static void print_ini(FILE *file, const struct oct_retina_params *params,
                      const struct oct_retina_facts *facts)
{
    fprintf(file, "; The camera and the scan of a synthetic retina, seed %" PRIu64 ".\n",
            params->seed);
    fprintf(file, "[camera]\nsamples=%u\nbits=%u\n\n", params->n_samples, params->bits);
    fprintf(file, "[scan]\nlines=%u\nbscans=%u\nline_rate_hz=%.15g\n", params->n_lines,
            params->n_bscans, params->line_rate_hz);
    fprintf(file, "width_um=%.15g\nheight_um=%.15g\nrefractive_index=%.15g\n\n", facts->width_um,
            facts->height_um, params->refractive_index);
    fprintf(file, "[calibration]\nwavelengths=" WAVELENGTHS "\n");
    fprintf(file, "dispersion_a2=%.17g\ndispersion_a3=%.17g\n", facts->dispersion_a2,
            facts->dispersion_a3);
}

static enum oct_err write_text(const char *folder, const char *name, print_fn *print,
                               const struct oct_retina_params *params,
                               const struct oct_retina_facts *facts, struct oct_error *err)
{
    char path[PATH_MAX], temporary[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH_MAX ||
        snprintf(temporary, sizeof(temporary), "%s/%s.synth", folder, name) >= PATH_MAX)
        return oct_fail(err, OCT_E_CONFIG, "%s: name too long", folder);
    FILE *file = fopen(temporary, "w");
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", temporary);
    print(file, params, facts);
    bool bad = fflush(file) != 0 || ferror(file);
    int errnum = errno;
    if (fclose(file) || bad) {
        errnum = bad ? errnum : errno;
        remove(temporary);
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot be written", temporary);
    }
    if (rename(temporary, path))
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be replaced", path);
    return OCT_OK;
}

enum oct_err oct_calibration_folder_write(const char *folder,
                                          const struct oct_retina_params *params,
                                          const struct oct_retina_facts *facts,
                                          struct oct_error *err)
{
    enum oct_err status;

    if (mkdir(folder, 0777) && errno != EEXIST)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", folder);
    status = write_text(folder, WAVELENGTHS, print_wavelengths, params, facts, err);
    return status ? status : write_text(folder, OCT_CALIBRATION_INI, print_ini, params, facts, err);
}
