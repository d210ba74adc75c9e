#include "test/bench/greedy.h"

#include "formats/nifti_write.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SETTINGS "-d 3 -m SSD -n 100x30x10"
#define IN_PYTHON                                                                                  \
    "python3 -c 'from picsl_greedy import Greedy3D;import sys;Greedy3D().execute(sys.argv[1])'"

enum { HEADER_BYTES = 352, AT_DIMS = 40 }; /* of NIfTI-1, with an empty extension */

static const char *const files[] = {"fixed.nii", "moving.nii", "warp.nii"};

enum kind { PROGRAM, MODULE, NEITHER };

static enum kind find_it(void)
{
    if (system("command -v greedy >/dev/null 2>&1") == 0) /* NOLINT(cert-env33-c): no user's text */
        return PROGRAM;
    /* NOLINTNEXTLINE(cert-env33-c): no user's text */
    return system("python3 -c 'import picsl_greedy' >/dev/null 2>&1") == 0 ? MODULE : NEITHER;
}

static void path_of(const char *folder, unsigned file, char *path, size_t path_bytes)
{
    snprintf(path, path_bytes, "%s/%s", folder, files[file]);
}

static enum oct_err write_pair(const char *folder, const float *const volumes[2], uint32_t side,
                               struct oct_error *err)
{
    const struct oct_nifti_form form = {.dims = {side, side, side}, .um = {1000, 1000, 1000}};
    enum oct_err e = OCT_OK;
    char path[128];
    for (unsigned i = 0; i < 2 && !e; i++) {
        path_of(folder, i, path, sizeof(path));
        e = oct_nifti_write(path, true, &form, volumes[i], err);
    }
    return e;
}

/* The sum over levels of its iterations times their mean; 0: it said nothing of the kind. */
static double read_seconds(FILE *stream)
{
    static const char mean[] = "Avg. Total Iteration Time";
    char line[512];
    unsigned n = 0;
    double sum = 0;
    while (fgets(line, sizeof(line), stream)) {
        const char *at = strstr(line, mean), *colon = at ? strchr(at, ':') : NULL;
        if (strncmp(line, "LEVEL ", 6) == 0)
            n = 0;
        n += strstr(line, "  Iter ") != NULL;
        if (colon)
            sum += n * strtod(colon + 1, NULL);
    }
    return sum;
}

static double children_cpu_s(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) != 0)
        return NAN;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static enum oct_err run_it(const char *folder, enum kind kind, unsigned n_threads,
                           struct bench_greedy *greedy, struct oct_error *err)
{
    char command[768], given[512];
    snprintf(given, sizeof(given),
             SETTINGS " -i %s/fixed.nii %s/moving.nii -o %s/warp.nii -threads %u", folder, folder,
             folder, n_threads);
    if (kind == PROGRAM)
        snprintf(command, sizeof(command), "greedy %s 2>/dev/null", given);
    else
        snprintf(command, sizeof(command), IN_PYTHON " '%s' 2>/dev/null", given);
    const double begin_s = children_cpu_s();
    FILE *child = popen(command, "re"); /* NOLINT(cert-env33-c): no text of a user's in it */
    if (!child)
        return oct_fail_errno(err, OCT_E_IO, errno, "greedy cannot be started");
    greedy->seconds = read_seconds(child);
    const int status = pclose(child);
    greedy->cpu_s = children_cpu_s() - begin_s;
    if (status != 0 || !(greedy->seconds > 0))
        return oct_fail(err, OCT_E_STATE, "greedy fails, or says no times: status %d", status);
    return OCT_OK;
}

/* Its field is what is added to a place, mm in LPS; voxels are 1 mm along the axes of RAS. */
static enum oct_err read_warp(const char *folder, uint32_t side, float *displacement,
                              struct oct_error *err)
{
    static const float signs[3] = {1, 1, -1}; /* u = -(what is added), RAS = -LPS but for z */
    const size_t n = (size_t)side * side * side;
    const int16_t dims[6] = {5, (int16_t)side, (int16_t)side, (int16_t)side, 1, 3};
    char path[128], header[HEADER_BYTES];
    enum oct_err e = OCT_OK;
    path_of(folder, 2, path, sizeof(path));
    FILE *stream = fopen(path, "rbe");
    if (!stream)
        return oct_fail_errno(err, OCT_E_STATE, errno, "greedy wrote no displacement");
    if (fread(header, 1, sizeof(header), stream) != sizeof(header) ||
        memcmp(header + AT_DIMS, dims, sizeof(dims)) != 0)
        e = oct_fail(err, OCT_E_STATE, "greedy's displacement is of another form");
    for (int part = 0; part < 3 && !e; part++) {
        float *u = displacement + (size_t)(2 - part) * n;
        if (fread(u, sizeof(*u), n, stream) != n)
            e = oct_fail(err, OCT_E_STATE, "greedy's displacement is not whole");
        for (size_t i = 0; i < n && !e; i++)
            u[i] *= signs[part];
    }
    fclose(stream);
    return e;
}

enum oct_err bench_greedy(const float *fixed, const float *moving, uint32_t side,
                          unsigned n_threads, float *displacement, struct bench_greedy *greedy,
                          struct oct_error *err)
{
    const enum kind kind = find_it();
    const float *const volumes[2] = {fixed, moving};
    char folder[] = "/tmp/octbench.XXXXXX", path[128];
    *greedy = (struct bench_greedy){0};
    if (kind == NEITHER)
        return OCT_OK;
    if (!mkdtemp(folder))
        return oct_fail_errno(err, OCT_E_IO, errno, "/tmp: no folder");
    enum oct_err e = write_pair(folder, volumes, side, err);
    e = e ? e : run_it(folder, kind, n_threads, greedy, err);
    e = e ? e : read_warp(folder, side, displacement, err);
    for (unsigned i = 0; i < 3; i++) {
        path_of(folder, i, path, sizeof(path));
        unlink(path);
    }
    rmdir(folder);
    return e;
}
