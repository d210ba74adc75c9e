/* register --as frames: a sequence of pictures, rigid or by strips. --as bscans: the same of
 * B-scans of one place, whose noise hides fractions of a pixel: those are of smoothed ones. */
#include "formats/whole_file.h"
#include "kernels/device/workers.h"
#include "tools/analyse/register.h"
#include "tools/analyse/register_files.h"
#include "tools/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct oct_register *r;
    struct oct_pictures *pictures;
    struct oct_register_frames_info info;
    struct oct_picture reference; /* of --reference FILE */
    struct oct_sequence_setup setup;
    struct oct_sequence sequence;
    struct oct_workers *workers;
    uint8_t *skip;
    struct oct_strip *given;
    struct oct_progress progress;
};

#define SMOOTH_PX 1.5 /* of B-scans */

static enum oct_err read_frame(void *context, uint64_t frame, struct oct_picture *picture,
                               struct oct_error *err)
{
    struct job *job = context;
    struct oct_pictures_info info;
    enum oct_err e = oct_register_read(job->r, job->pictures, frame, picture, &info, err);
    if (!e) {
        job->info.time_ns[frame] = info.time_ns;
        job->info.is_read[frame] = 1;
    }
    return e;
}

static void show(void *context, uint64_t done, uint64_t all)
{
    struct job *job = context;
    oct_progress_show(&job->progress, done, all);
}

/* Opens the sequence, and looks at its first frame for what holds of all. */
static enum oct_err open_frames(struct job *job, struct oct_error *err)
{
    const struct oct_register *r = job->r;
    struct oct_picture first = {0};
    struct oct_pictures_info info;
    enum oct_err e = oct_pictures_open(&job->pictures, r->inputs, r->n_inputs, &r->pictures, err);
    if (e)
        return e;
    uint64_t n = oct_pictures_count(job->pictures);
    job->info.n_frames = n;
    job->info.time_ns = calloc(n + 1, sizeof(uint64_t));
    job->info.is_read = calloc(n + 1, 1);
    if (!job->info.time_ns || !job->info.is_read)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %llu frames",
                        (unsigned long long)n);
    if (n < 2)
        return oct_fail(err, OCT_E_FORMAT, "%s: holds one picture; two or more are registered",
                        r->inputs[0]);
    e = oct_pictures_read(job->pictures, 0, &first, &info, err);
    if (e)
        return e;
    job->info.um[0] = info.um[0];
    job->info.um[1] = info.um[1];
    job->info.is_db = info.is_db;
    job->info.pictures = job->pictures;
    job->setup = r->setup;
    job->setup.height = first.height;
    job->setup.width = first.width;
    job->setup.as_power = info.is_db && r->is_linear;
    oct_picture_finish(&first);
    return OCT_OK;
}

static enum oct_err read_reference(struct job *job, struct oct_error *err)
{
    const char *path = job->r->reference_path;
    struct oct_pictures *pictures;
    const struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES};
    if (!path)
        return OCT_OK;
    enum oct_err e = oct_pictures_open(&pictures, &path, 1, &options, err);
    if (e)
        return e;
    e = oct_pictures_read(pictures, 0, &job->reference, NULL, err);
    oct_pictures_close(pictures);
    if (!e &&
        (job->reference.height != job->setup.height || job->reference.width != job->setup.width))
        e = oct_fail(err, OCT_E_FORMAT, "%s is %u x %u pixels, but %s is %u x %u", path,
                     job->reference.width, job->reference.height,
                     oct_pictures_path(job->pictures, 0), job->setup.width, job->setup.height);
    job->setup.reference = &job->reference;
    return e;
}

static enum oct_err prepare(struct job *job, struct oct_error *err)
{
    const struct oct_register *r = job->r;
    enum oct_err e = oct_register_check_files(r, true, err);
    if (!e)
        e = open_frames(job, err);
    if (!e)
        e = read_reference(job, err);
    if (!e)
        e = oct_register_read_skip(r->options.skip, job->info.n_frames, &job->skip, err);
    if (!e && r->options.shifts)
        e = oct_register_read_shifts(r->options.shifts, job->info.n_frames, job->setup.height,
                                     &job->given, err);
    if (!e)
        e = oct_workers_create(&job->workers, 0, err);
    job->setup.skip = job->skip;
    job->setup.given = job->given;
    job->setup.workers = job->workers;
    return e;
}

static enum oct_err run_as(const struct oct_register *r, bool as_bscans, struct oct_error *err)
{
    struct job job = {.r = r, .progress = {.what = "frames", .quiet = r->config->quiet}};
    enum oct_err e = prepare(&job, err);
    const struct oct_sequence_source source = {
        .context = &job, .n_frames = job.info.n_frames, .read = read_frame, .progress = show};
    job.setup.smooth_px = as_bscans ? SMOOTH_PX : 0;
    if (!e)
        e = oct_sequence_register(&job.sequence, &job.setup, &source, err);
    if (!e)
        e = oct_register_write(r, &job.sequence, &job.info, err);
    oct_sequence_finish(&job.sequence);
    oct_workers_destroy(job.workers);
    oct_pictures_close(job.pictures);
    oct_picture_finish(&job.reference);
    free(job.info.time_ns);
    free(job.info.is_read);
    free(job.skip);
    free(job.given);
    return e;
}

static enum oct_err run_frames(const struct oct_register *r, struct oct_error *err)
{
    return run_as(r, false, err);
}

static enum oct_err run_bscans(const struct oct_register *r, struct oct_error *err)
{
    return run_as(r, true, err);
}

const struct oct_register_mode oct_register_frames = {
    .name = "frames", .use = OCT_REGISTER_FRAMES, .run = run_frames};
const struct oct_register_mode oct_register_bscans = {
    .name = "bscans", .use = OCT_REGISTER_FRAMES, .run = run_bscans};
