#define _GNU_SOURCE /* flock */
#include "kernels/recon/fft.h"

#include "kernels/device/fftw_planner.h"
#include "pipeline/base/aligned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 1200

static bool complete(const struct oct_fft *fft, enum oct_fft_kind kind)
{
    return fft->forward_pair && (kind == OCT_FFT_ONE || (fft->inverse_pair && fft->forward));
}

static void destroy_plans(struct oct_fft *fft)
{
    if (fft->forward_pair)
        fftwf_destroy_plan(fft->forward_pair);
    if (fft->inverse_pair)
        fftwf_destroy_plan(fft->inverse_pair);
    if (fft->forward)
        fftwf_destroy_plan(fft->forward);
    *fft = (struct oct_fft){0};
}

static void make_plans(struct oct_fft *fft, enum oct_fft_kind kind, uint32_t padded, unsigned how)
{
    int p1 = (int)padded, p2 = 2 * p1;
    fftwf_complex *a = oct_aligned_alloc(64, 2 * (size_t)padded, sizeof(*a));
    fftwf_complex *b = oct_aligned_alloc(64, 2 * (size_t)padded, sizeof(*b));

    *fft = (struct oct_fft){0};
    if (a && b)
        fft->forward_pair = fftwf_plan_dft_1d(p1, a, b, FFTW_FORWARD, how | FFTW_PRESERVE_INPUT);
    if (a && b && kind == OCT_FFT_ALL) {
        fft->inverse_pair = fftwf_plan_dft_1d(p1, b, a, FFTW_BACKWARD, how | FFTW_DESTROY_INPUT);
        fft->forward = fftwf_plan_dft_1d(p2, a, b, FFTW_FORWARD, how | FFTW_DESTROY_INPUT);
    }
    free(a);
    free(b);
    if (!complete(fft, kind))
        destroy_plans(fft);
}

static void make_folder(const char *path)
{
    char part[PATH_BYTES];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0755); /* one that exists is fine; one that fails shows at the open */
        *slash = '/';
    }
    mkdir(part, 0755);
}

/* A process that plans holds this lock, so that two starting together end with the same plans.
 * -1: the folder cannot be written. */
static int lock_folder(const char *folder)
{
    char path[PATH_BYTES];
    make_folder(folder);
    snprintf(path, sizeof(path), "%s/wisdom.lock", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR) {
            close(fd);
            return -1;
        }
    return fd;
}

static void save_wisdom(const char *path)
{
    char temporary[PATH_BYTES + 8];
    snprintf(temporary, sizeof(temporary), "%s.new", path);
    if (fftwf_export_wisdom_to_filename(temporary) && rename(temporary, path) == 0)
        return;
    unlink(temporary);
}

/* The wisdom of one kind of transform lies in a file of its own and is the only wisdom known while
 * it is used: what else a process planned before cannot change the choice. */
static bool plan_with_wisdom(struct oct_fft *fft, enum oct_fft_kind kind, uint32_t padded,
                             const char *folder)
{
    char path[PATH_BYTES];
    int lock = lock_folder(folder);
    if (lock < 0)
        return false;
    snprintf(path, sizeof(path), "%s/fftwf-%s%u.wisdom", folder, kind == OCT_FFT_ONE ? "one-" : "",
             padded);
    fftwf_forget_wisdom();
    fftwf_import_wisdom_from_filename(path);
    make_plans(fft, kind, padded, FFTW_MEASURE | FFTW_WISDOM_ONLY);
    if (!complete(fft, kind)) {
        fftwf_forget_wisdom();
        make_plans(fft, kind, padded, FFTW_MEASURE);
        if (complete(fft, kind))
            save_wisdom(path);
        if (access(path, R_OK) != 0) /* not kept: the next process would choose afresh */
            destroy_plans(fft);
    }
    close(lock);
    return complete(fft, kind);
}

enum oct_err oct_fft_init(struct oct_fft *fft, enum oct_fft_kind kind, uint32_t padded,
                          const char *wisdom_dir, struct oct_error *err)
{
    *fft = (struct oct_fft){0};
    oct_fftw_planner_lock();
    if (!(wisdom_dir && *wisdom_dir && plan_with_wisdom(fft, kind, padded, wisdom_dir))) {
        fftwf_forget_wisdom();
        make_plans(fft, kind, padded, FFTW_ESTIMATE);
    }
    oct_fftw_planner_unlock();
    if (!complete(fft, kind))
        return oct_fail(err, OCT_E_NO_MEMORY, "FFTW could not plan transforms of %u%s points",
                        padded, kind == OCT_FFT_ALL ? " and twice as many" : "");
    return OCT_OK;
}

void oct_fft_finish(struct oct_fft *fft)
{
    oct_fftw_planner_lock();
    destroy_plans(fft);
    oct_fftw_planner_unlock();
}
