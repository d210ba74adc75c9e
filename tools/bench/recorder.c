/* The recorder, spectra alone: the thread of the daemon behind two rings that are fed as fast as it
 * goes, beside O_DIRECT writes of as many bytes into one file of the same disk (what dd does with
 * oflag=direct). Both end when the disk has everything. */
#define _GNU_SOURCE /* O_DIRECT, fallocate */
#include "pipeline/record/recorder.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"
#include "tools/bench/part.h"
#include "tools/bench/scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define BLOCK_BYTES (8u << 20) /* of the direct writes */
#define PATIENCE_US 60000000u

struct rig {
    struct oct_bench_scene scene;
    char folder[1024];
    struct oct_ring *raw, *images;
    struct oct_recorder *recorder;
};

void oct_bench_empty_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

static void close_rig(struct rig *r)
{
    if (r->raw)
        oct_ring_close(r->raw);
    if (r->images)
        oct_ring_close(r->images);
    oct_recorder_destroy(r->recorder);
    oct_ring_destroy(r->raw);
    oct_ring_destroy(r->images);
    if (r->folder[0]) {
        oct_bench_empty_folder(r->folder);
        rmdir(r->folder);
    }
    oct_bench_scene_finish(&r->scene);
}

static enum oct_err open_rig(struct rig *r, const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_error *err)
{
    struct statvfs fs;
    char folder[1024];
    *r = (struct rig){.folder = ""};
    enum oct_err e = oct_bench_scene_init(&r->scene, config, 0, err);
    if (e)
        return e;
    snprintf(folder, sizeof(folder), "%s/octctl-bench.XXXXXX", options->directory);
    if (!mkdtemp(folder) || statvfs(folder, &fs) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s", folder);
    memcpy(r->folder, folder, sizeof(folder));
    if ((double)fs.f_bavail * (double)fs.f_frsize < 1.1 * options->recorder_bytes)
        return oct_fail(err, OCT_E_NO_SPACE,
                        "record.directory: %s has %.1f GB free, %.1f are written: take a smaller "
                        "--size-gb",
                        options->directory, (double)fs.f_bavail * (double)fs.f_frsize * 1e-9,
                        options->recorder_bytes * 1e-9);
    const struct oct_geometry *g = &r->scene.plan->geometry;
    e = oct_ring_create(&r->raw, config->pipeline.ring_bscans, oct_raw_slot_bytes(g), NULL, NULL,
                        err);
    if (e == OCT_OK)
        e = oct_ring_create(&r->images, config->pipeline.ring_bscans, oct_image_slot_bytes(g), NULL,
                            NULL, err);
    const struct oct_recorder_options recorder = {
        .plan = r->scene.plan, .raw = r->raw, .images = r->images, .engine = "bench"};
    e = e ? e : oct_recorder_create(&r->recorder, &recorder, err);
    if (!e)
        oct_recorder_drain(r->recorder); /* the feeder waits for the disk: no B-scan is lost */
    return e;
}

/* Puts B-scan b into both rings; after the first turn of the ring its samples are in the slot
 * already. */
static enum oct_err feed(struct rig *r, uint64_t b, struct oct_error *err)
{
    const struct oct_geometry *g = &r->scene.plan->geometry;
    uint64_t slot, image_slot;
    if (oct_ring_acquire(r->raw, PATIENCE_US, &slot) ||
        oct_ring_acquire(r->images, PATIENCE_US, &image_slot))
        return oct_fail(err, OCT_E_IO, "the recorder has stopped taking B-scans");
    struct oct_raw_frame *raw = oct_raw_slot(r->raw, slot, g);
    struct oct_image_frame *image = oct_image_slot(r->images, image_slot);
    if (b < oct_ring_n_slots(r->raw)) {
        memcpy(raw->spectra, r->scene.in[b % OCT_BENCH_FRAMES].spectra,
               oct_geometry_spectra_bytes(g));
        memset(raw->line_valid, 1, g->n_lines);
    }
    raw->info = (struct oct_bscan_info){.id = slot,
                                        .acquisition = 1,
                                        .number = b,
                                        .volume = b / g->n_bscans,
                                        .bscan = (uint32_t)(b % g->n_bscans)};
    image->info = raw->info;
    image->status = OCT_OK;
    oct_ring_publish(r->raw);
    oct_ring_publish(r->images);
    return OCT_OK;
}

static enum oct_err record(struct rig *r, uint64_t n, uint64_t *fed, double *seconds,
                           struct oct_error *err)
{
    const struct oct_record_settings settings = {.directory = r->folder,
                                                 .spectra = true,
                                                 .sync_interval_s = 1,
                                                 .config_text = "",
                                                 .eye = "",
                                                 .pseudonym = "",
                                                 .refractive_index = 1};
    const struct timespec pause = {.tv_nsec = 1000000};
    struct oct_recorder_status status;
    oct_recorder_get_status(r->recorder, &status);
    uint64_t written_before = status.bscans_written, begin = oct_clock_ns();
    enum oct_err e = oct_recorder_start(r->recorder, &settings, err);
    for (uint64_t b = 0; b < n && !e; b++)
        e = feed(r, (*fed)++, err);
    oct_recorder_stop(r->recorder);
    do {
        nanosleep(&pause, NULL);
        oct_recorder_get_status(r->recorder, &status);
    } while (status.active);
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    if (!e && status.failure.code)
        e = oct_fail(err, status.failure.code, "%s", status.failure.text);
    if (!e && status.bscans_written - written_before != n)
        e = oct_fail(err, OCT_E_IO, "the recorder has written %llu of %llu B-scans",
                     (unsigned long long)(status.bscans_written - written_before),
                     (unsigned long long)n);
    return e;
}

static enum oct_err write_directly(struct rig *r, double bytes, double *seconds,
                                   struct oct_error *err)
{
    char path[sizeof(r->folder) + 16];
    snprintf(path, sizeof(path), "%s/direct", r->folder);
    unsigned char *block = oct_aligned_alloc(4096, 1, BLOCK_BYTES);
    uint64_t n = (uint64_t)(bytes / BLOCK_BYTES) + 1, begin = oct_clock_ns();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && block;
    if (ok) {
        memset(block, 0x5a, BLOCK_BYTES);
        (void)!fallocate(fd, 0, 0, (off_t)(n * BLOCK_BYTES)); /* as the recorder does */
    }
    for (uint64_t k = 0; k < n && ok; k++)
        ok = pwrite(fd, block, BLOCK_BYTES, (off_t)(k * BLOCK_BYTES)) == (ssize_t)BLOCK_BYTES;
    ok = ok && fdatasync(fd) == 0;
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9 * bytes / ((double)n * BLOCK_BYTES);
    int why = errno;
    if (fd >= 0)
        close(fd);
    unlink(path);
    free(block);
    return ok ? OCT_OK : oct_fail_errno(err, OCT_E_IO, why, "%s: direct writes", path);
}

enum oct_err oct_bench_recorder(const struct oct_config *config,
                                const struct oct_bench_options *options,
                                struct oct_bench_rows *rows, struct oct_error *err)
{
    struct rig r;
    struct oct_bench_row *row = oct_bench_add(rows, "recorder", "O_DIRECT writes", "GB/s", 0.9);
    double took = 0, took_direct = 0, took_after = 0;
    uint64_t fed = 0, n = 0;
    enum oct_err e = open_rig(&r, config, options, err);
    if (!e) {
        const struct oct_geometry *g = &r.scene.plan->geometry;
        double bscan = (double)oct_geometry_spectra_bytes(g);
        n = ((uint64_t)(options->recorder_bytes / bscan / g->n_bscans) + 1) * g->n_bscans;
        e = record(&r, g->n_bscans, &fed, &took, err);
        oct_bench_empty_folder(r.folder);
        /* Measures the limit before and after: the disks of virtual machines change their speed. */
        double bytes = (double)n * bscan;
        if (!e && !(e = write_directly(&r, bytes, &took_direct, err)) &&
            !(e = record(&r, n, &fed, &took, err))) {
            oct_bench_empty_folder(r.folder);
            e = write_directly(&r, bytes, &took_after, err);
        }
        took_direct = took_after < took_direct ? took_after : took_direct;
        row->value = bytes * 1e-9 / took;
        row->limit = bytes * 1e-9 / took_direct;
        snprintf(row->what, sizeof(row->what), "%.1f GB of spectra", bytes * 1e-9);
        snprintf(row->note, sizeof(row->note), "%.0f A-lines/s", (double)n * g->n_lines / took);
    }
    close_rig(&r);
    return e;
}
