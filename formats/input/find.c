#include "formats/input/formats.h"
#include "pipeline/plan/geometry.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct oct_input_ops *const formats[] = {
    &oct_input_npy,
};
#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

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
    while (probe->n_start < sizeof(probe->start)) {
        const ssize_t n = pread(fd, probe->start + probe->n_start,
                                sizeof(probe->start) - probe->n_start, (off_t)probe->n_start);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", name);
        if (n == 0)
            break;
        probe->n_start += (size_t)n;
    }
    return OCT_OK;
}

const struct oct_input_ops *oct_input_find(const struct oct_input_probe *probe)
{
    for (size_t i = 0; i < N_FORMATS; i++)
        if (formats[i]->is(probe))
            return formats[i];
    return NULL;
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
