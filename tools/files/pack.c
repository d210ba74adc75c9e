#define _GNU_SOURCE /* realpath */
/* pack: a recording without loss in less space, and what reading it then costs. */
#include "pipeline/volume/pack.h"
#include "formats/whole_file.h"
#include "pipeline/volume/closed.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/progress.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct pack_options {
    uint64_t level;
    bool replace, force, json;
};

static const struct oct_option options[] = {
    {"--replace", NULL, "no OUT.h5: the packed copy takes the recording's place, if it is smaller",
     OCT_OPTION_FLAG, .at = offsetof(struct pack_options, replace)},
    {"--level", "L", "1 (fast) to 9 (small); default 4", OCT_OPTION_COUNT,
     .at = offsetof(struct pack_options, level), .least = 1, .most = 9},
    {"--force", NULL, "replace OUT.h5 if it exists", OCT_OPTION_FLAG,
     .at = offsetof(struct pack_options, force)},
    {"--json", NULL, "print the figures as JSON", OCT_OPTION_FLAG,
     .at = offsetof(struct pack_options, json)},
    {NULL},
};

static double rate(uint64_t bytes, double seconds)
{
    return seconds > 0 ? (double)bytes / 1e6 / seconds : 0;
}

static void print_json(const char *out, bool is_kept, const struct oct_volume_pack_report *r)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", out);
    cJSON_AddBoolToObject(o, "written", is_kept);
    cJSON_AddNumberToObject(o, "arrays", r->n_arrays);
    cJSON_AddNumberToObject(o, "values_bytes", (double)r->values_bytes);
    cJSON_AddNumberToObject(o, "packed_bytes", (double)r->packed_bytes);
    cJSON_AddNumberToObject(o, "file_bytes", (double)r->file_bytes);
    cJSON_AddNumberToObject(o, "packed_file_bytes", (double)r->packed_file_bytes);
    cJSON_AddNumberToObject(o, "pack_s", r->pack_s);
    cJSON_AddNumberToObject(o, "read_mb_s", rate(r->values_bytes, r->read_s));
    cJSON_AddNumberToObject(o, "read_packed_mb_s", rate(r->values_bytes, r->read_packed_s));
    oct_command_print_json(o);
    cJSON_Delete(o);
}

static void print(const char *out, bool is_kept, const struct oct_volume_pack_report *r)
{
    if (r->n_arrays == 0) {
        printf("%s: nothing to pack: its arrays are packed already, or small\n", out);
        return;
    }
    printf("%s: %.1f MB on the disk, %.1f MB packed (%.2f to 1), %u arrays, verified; packing "
           "%.1f s (%.0f MB/s), reading %.0f MB/s instead of %.0f%s\n",
           out, (double)r->file_bytes / 1e6, (double)r->packed_file_bytes / 1e6,
           (double)r->file_bytes / (double)r->packed_file_bytes, r->n_arrays, r->pack_s,
           rate(r->values_bytes, r->pack_s), rate(r->values_bytes, r->read_packed_s),
           rate(r->values_bytes, r->read_s), is_kept ? "" : "; no smaller: left as it is");
}

/* Who may read and write the recording stays, whatever the umask. */
static enum oct_err keep_mode(const char *path, const char *copy, struct oct_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && chmod(copy, st.st_mode & 0777) == 0)
        return OCT_OK;
    return oct_fail_errno(err, OCT_E_IO, errno, "%s: its mode cannot be kept", path);
}

/* The whole of it, once the names are settled. */
static enum oct_err pack(const char *in, const char *out, const struct oct_config *config,
                         const struct pack_options *o, struct oct_volume_pack_report *report,
                         bool *is_kept, struct oct_error *err)
{
    struct oct_progress progress = {.what = "bytes", .quiet = config->quiet};
    const struct oct_volume_pack_options how = {.level = (unsigned)o->level,
                                                .n_threads = config->pipeline.threads,
                                                .progress = oct_progress_show,
                                                .context = &progress,
                                                .cancel = oct_interrupt_watch()};
    struct oct_whole_file file;
    enum oct_err e = o->replace ? OCT_OK : oct_whole_file_may(out, o->force, &in, 1, err);
    e = e ? e : oct_whole_file_init(&file, out, o->force || o->replace, err);
    if (e)
        return e;
    e = oct_volume_pack(in, file.work, &how, report, err);
    oct_progress_clear(&progress);
    *is_kept = !e && report->n_arrays > 0 &&
               (!o->replace || report->packed_file_bytes < report->file_bytes);
    if (!e && report->n_arrays == 0 && !o->replace) /* who reads the status may remove the input */
        e = oct_fail(err, OCT_E_STATE,
                     "%s: nothing to pack: its arrays are packed already, or small; %s is not made",
                     in, out);
    if (*is_kept && o->replace)
        e = keep_mode(in, file.work, err);
    if (*is_kept && !e)
        return oct_whole_file_publish(&file, err);
    oct_whole_file_discard(&file);
    return e;
}

/* The recording stays locked until its copy has the name: a label that is written meanwhile would
 * be lost. */
static enum oct_err replace(const char *path, const struct oct_config *config,
                            const struct pack_options *o, struct oct_volume_pack_report *report,
                            bool *is_kept, struct oct_error *err)
{
    int fd;
    enum oct_err e = oct_volume_closed_open(&fd, path, true, err);
    e = e ? e : pack(path, path, config, o, report, is_kept, err);
    if (fd >= 0)
        close(fd);
    return e;
}

static int run_pack(struct oct_config *config, int argc, char **argv)
{
    struct pack_options o = {.level = 4};
    struct oct_volume_pack_report report;
    struct oct_error err;
    char real[PATH_MAX];
    bool is_kept;
    const int status = oct_options_read(&oct_command_pack, &o, &argc, argv);
    if (status)
        return status;
    if (o.replace && argc > 2)
        return oct_command_misuse("pack", "--replace and an output: choose one");
    if (!o.replace && argc < 3)
        return oct_command_misuse("pack", "into which file? --replace packs it in its place");
    /* The file itself; a symbolic link that names it stays. */
    const char *out = o.replace && realpath(argv[1], real) ? real : argv[argc - 1];
    if (o.replace ? replace(out, config, &o, &report, &is_kept, &err)
                  : pack(argv[1], out, config, &o, &report, &is_kept, &err))
        return oct_command_fail_at_work("pack", &err);
    (o.json ? print_json : print)(out, is_kept, &report);
    return 0;
}

const struct oct_command oct_command_pack = {
    .name = "pack",
    .usage = "IN.h5 OUT.h5 | IN.h5 --replace",
    .help = "packs a closed recording without loss, for any reader of HDF5",
    .options = options,
    .keys = "",
    .n_least = 1,
    .n_most = 2,
    .too_few = "which recording?",
    .too_many = "too many files",
    .run = run_pack,
};
