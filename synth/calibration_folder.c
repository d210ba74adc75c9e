#include "synth/calibration_folder.h"

#include "formats/whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#define WAVELENGTHS "wavelengths.txt"

#define KMAP "kmap.txt"

typedef void print_fn(FILE *file, const void *of);

struct retina {
    const struct oct_retina_params *params;
    const struct oct_retina_facts *facts;
};

static void print_column(FILE *file, const double *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        fprintf(file, "%.17g\n", values[i]);
}

static void print_wavelengths(FILE *file, const void *of)
{
    const struct retina *retina = of;
    print_column(file, retina->facts->wavelengths_nm, retina->params->n_samples);
}

static void print_ini(FILE *file, const void *of)
{
    const struct retina *retina = of;
    const struct oct_retina_params *params = retina->params;
    const struct oct_retina_facts *facts = retina->facts;
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

static void print_spectrometer_wavelengths(FILE *file, const void *of)
{
    const struct oct_spectrometer *s = of;
    print_column(file, s->wavelengths_nm, s->setup.n_samples);
}

static void print_kmap(FILE *file, const void *of)
{
    const struct oct_spectrometer *s = of;
    print_column(file, s->kmap_px, s->setup.n_samples);
}

static void print_spectrometer_ini(FILE *file, const void *of)
{
    const struct oct_spectrometer *s = of;
    fprintf(file,
            "; A synthetic spectrometer: %.6g um of optical path a depth pixel. " WAVELENGTHS
            "\n; gives the same steps in k, but another depth scale.\n",
            s->axial_um);
    fprintf(file, "[camera]\nsamples=%u\nbits=%u\n\n", s->setup.n_samples, s->setup.bits);
    fprintf(file, "[calibration]\nkmap=" KMAP "\n");
    fprintf(file, "dispersion_a2=%.17g\ndispersion_a3=%.17g\n", s->setup.a2, s->setup.a3);
}

static enum oct_err write_text(const char *folder, const char *name, print_fn *print,
                               const void *of, struct oct_error *err)
{
    char path[PATH_MAX];
    struct oct_whole_file whole;
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH_MAX)
        return oct_fail(err, OCT_E_CONFIG, "%s: name too long", folder);
    enum oct_err e = oct_whole_file_init(&whole, path, true, err);
    if (e)
        return e;
    FILE *file = fopen(whole.work, "wxe");
    if (file)
        print(file, of);
    bool bad = !file || fflush(file) != 0 || ferror(file);
    int errnum = errno;
    if ((file && fclose(file)) || bad) {
        errnum = bad ? errnum : errno;
        oct_whole_file_discard(&whole);
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot be written", path);
    }
    return oct_whole_file_publish(&whole, err);
}

static enum oct_err make_folder(const char *folder, struct oct_error *err)
{
    if (mkdir(folder, 0777) && errno != EEXIST)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", folder);
    return OCT_OK;
}

enum oct_err oct_calibration_folder_write(const char *folder,
                                          const struct oct_retina_params *params,
                                          const struct oct_retina_facts *facts,
                                          struct oct_error *err)
{
    const struct retina retina = {params, facts};
    enum oct_err e = make_folder(folder, err);
    e = e ? e : write_text(folder, WAVELENGTHS, print_wavelengths, &retina, err);
    return e ? e : write_text(folder, OCT_CALIBRATION_INI, print_ini, &retina, err);
}

enum oct_err oct_calibration_folder_write_spectrometer(const char *folder,
                                                       const struct oct_spectrometer *s,
                                                       struct oct_error *err)
{
    enum oct_err e = make_folder(folder, err);
    e = e ? e : write_text(folder, WAVELENGTHS, print_spectrometer_wavelengths, s, err);
    e = e ? e : write_text(folder, KMAP, print_kmap, s, err);
    return e ? e : write_text(folder, OCT_CALIBRATION_INI, print_spectrometer_ini, s, err);
}
