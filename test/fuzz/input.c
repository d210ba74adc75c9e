#include "test/fuzz/input.h"

#include "formats/input/array.h"
#include "test/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_SAMPLES (1u << 22) /* of a B-scan that is read; more is only opened */
#define MOST_BSCANS 8u

static void check_facts(const struct oct_input_facts *f, const struct oct_calibration *cal)
{
    struct oct_error err;
    fuzz_must(oct_input_check("a", f->n_bscans, f->n_lines, f->n_samples, &err) == OCT_OK);
    fuzz_must(f->bits <= 16 && memchr(f->scaling, '\0', sizeof(f->scaling)));
    fuzz_must(memchr(f->start_time, '\0', sizeof(f->start_time)) != NULL);
    fuzz_must(!cal->n_background || cal->n_background == f->n_samples);
    fuzz_must((cal->n_kmap > 0) == (cal->kmap_px != NULL));
}

static void read_some(struct oct_input *input, const struct oct_input_facts *f)
{
    const size_t n = (size_t)f->n_lines * f->n_samples;
    uint16_t *spectra = n <= MOST_SAMPLES ? malloc(n * sizeof(*spectra)) : NULL;
    struct oct_error err = {.text = ""};
    for (uint32_t i = 0; spectra && i <= f->n_bscans && i < MOST_BSCANS; i++) {
        const enum oct_err e = oct_input_array_read(input->array, i, spectra, &err);
        fuzz_must(e == OCT_OK ? i < f->n_bscans : err.text[0] != '\0');
    }
    free(spectra);
}

void fuzz_open_input(const struct oct_input_ops *ops, const char *path, const char *dataset)
{
    const struct oct_input_wish wish = {.dataset = dataset};
    struct oct_input_probe probe = {.n_start = 0};
    struct oct_input_facts facts;
    struct oct_calibration cal = {0};
    struct oct_input input;
    struct oct_error err = {.text = ""};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    fuzz_must(fd >= 0);
    fuzz_must(oct_input_look(&probe, path, path, fd, &err) == OCT_OK);
    oct_input_facts_init(&facts);
    if (ops->is(&probe)) {
        const enum oct_err e = oct_input_open(&input, ops, &probe, &wish, &facts, &cal, &err);
        fuzz_must(e == OCT_OK || (err.text[0] && !strchr(err.text, '\n')));
        if (e == OCT_OK) {
            check_facts(&facts, &cal);
            read_some(&input, &facts);
        }
        oct_input_close(&input);
        oct_calibration_finish(&cal);
    }
    oct_input_look_end(&probe);
    close(fd);
}
