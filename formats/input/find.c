#include "formats/input/array.h"
#include "formats/input/formats.h"
#include "pipeline/base/file_at.h"
#include "pipeline/plan/geometry.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Any HDF5 file comes behind all that know their own among those. */
static const struct oct_input_ops *const formats[] = {
    &oct_input_npy,     &oct_input_thorlabs, &oct_input_octproz,
    &oct_input_octview, &oct_input_vortex,   &oct_input_hdf5,
};
#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

#define MOST_ARRAYS 1024u

static enum oct_err read_start(struct oct_input_probe *probe, struct oct_error *err)
{
    const ssize_t n = oct_file_read_at(probe->fd, probe->start, sizeof(probe->start), 0);
    if (n < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", probe->name);
    probe->n_start = (size_t)n;
    return OCT_OK;
}

bool oct_input_is_hdf5(const struct oct_input_probe *probe)
{
    static const char signature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    for (size_t at = 0; at + sizeof(signature) <= probe->n_start; at = at ? 2 * at : 512)
        if (memcmp(probe->start + at, signature, sizeof(signature)) == 0)
            return true;
    return false;
}

/* A file that cannot be read has none; opening it fails and says why. */
static enum oct_err list_arrays(struct oct_input_probe *probe, struct oct_error *err)
{
    probe->arrays = calloc(MOST_ARRAYS, sizeof(*probe->arrays));
    if (!probe->arrays)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", probe->name);
    if (oct_volume_array_entries(probe->path, NULL, probe->arrays, MOST_ARRAYS, &probe->n_arrays,
                                 NULL)) {
        oct_input_look_end(probe);
        probe->n_arrays = 0;
    }
    return OCT_OK;
}

enum oct_err oct_input_look(struct oct_input_probe *probe, const char *path, const char *name,
                            int fd, struct oct_error *err)
{
    struct stat about;
    *probe = (struct oct_input_probe){.path = path, .name = name, .fd = fd};
    if (fstat(fd, &about) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read its size", name);
    if (S_ISDIR(about.st_mode))
        return oct_fail(err, OCT_E_IO, "%s: is not a plain file but a folder: name a file in it",
                        name);
    if (!S_ISREG(about.st_mode))
        return oct_fail(err, OCT_E_IO,
                        "%s: is not a plain file: a pipe is read from standard input (-)", name);
    probe->size = (uint64_t)about.st_size;
    const enum oct_err e = read_start(probe, err);
    return e || !oct_input_is_hdf5(probe) ? e : list_arrays(probe, err);
}

void oct_input_look_end(struct oct_input_probe *probe)
{
    free(probe->arrays);
    probe->arrays = NULL;
}

const struct oct_volume_array_entry *oct_input_array_named(const struct oct_input_probe *probe,
                                                           const char *name)
{
    for (unsigned i = 0; i < probe->n_arrays; i++) {
        const char *has = probe->arrays[i].name.text;
        if (strcmp(has, name) == 0 || strcmp(has + 1, name) == 0)
            return &probe->arrays[i];
    }
    return NULL;
}

const struct oct_input_ops *oct_input_find(const struct oct_input_probe *probe)
{
    for (size_t i = 0; i < N_FORMATS; i++)
        if (formats[i]->is(probe))
            return formats[i];
    return NULL;
}

enum oct_err oct_input_open(struct oct_input *input, const struct oct_input_ops *ops,
                            const struct oct_input_probe *probe, const struct oct_input_wish *wish,
                            struct oct_input_facts *facts, struct oct_calibration *cal,
                            struct oct_error *err)
{
    *input = (struct oct_input){.ops = ops};
    facts->format = ops->name;
    return ops->open(input, probe, wish, facts, cal, err);
}

void oct_input_close(struct oct_input *input)
{
    oct_input_array_destroy(input->array);
    oct_volume_array_close(input->source);
    if (input->own)
        input->ops->close(input->own);
    *input = (struct oct_input){.own = NULL};
}

void oct_input_facts_init(struct oct_input_facts *facts)
{
    *facts = (struct oct_input_facts){
        .line_rate_hz = NAN,
        .width_um = NAN,
        .height_um = NAN,
        .axial_um = NAN,
        .lambda_nm = NAN,
        .width_nm = NAN,
    };
}

enum oct_err oct_input_check(const char *name, uint64_t n_bscans, uint64_t n_lines,
                             uint64_t n_samples, struct oct_error *err)
{
    if (n_lines > OCT_MAX_LINES && n_samples >= OCT_MIN_SAMPLES && n_samples <= OCT_MAX_SAMPLES)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: has %" PRIu64 " A-lines a B-scan, more than %u: scan.lines divides "
                        "them into B-scans",
                        name, n_lines, OCT_MAX_LINES);
    if (n_bscans < 1 || n_bscans > OCT_MAX_BSCANS || n_lines < 1 || n_lines > OCT_MAX_LINES ||
        n_samples < OCT_MIN_SAMPLES || n_samples > OCT_MAX_SAMPLES ||
        n_lines * n_samples > OCT_MAX_BSCAN_SAMPLES)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: %" PRIu64 " B-scans of %" PRIu64 " A-lines of %" PRIu64
                        " samples: beyond what can be processed, or empty (file.transpose says "
                        "which axis is which)",
                        name, n_bscans, n_lines, n_samples);
    return OCT_OK;
}
