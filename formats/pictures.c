#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "formats/pictures.h"

#include "formats/picture_file.h"
#include "formats/recording.h"
#include "pipeline/base/file_at.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
    char *path;
    const struct oct_picture_file_ops *ops;
    uint64_t first, n; /* its pictures: number `first` of the sequence, and how many */
    uint32_t height, width;
    double fps; /* 0: unknown */
    bool has_clock;
    uint64_t last_ns; /* with it: of its last row */
};

/* What all that share a sequence read; constant. */
struct table {
    struct oct_pictures_options options;
    struct entry *entries; /* [n] */
    size_t n;
    uint64_t n_pictures;
    uint8_t *mask; /* [mask_height][mask_width]; NULL: none */
    uint32_t mask_height, mask_width;
    bool has_clock; /* every file, and each begins no earlier than the one before ended */
    uint64_t origin_ns;
    double fps; /* of all files; 0: unknown, or not the same */
    unsigned n_cut;
    struct oct_error warning; /* of the first file that ends early */
};

struct oct_pictures {
    struct table *table;
    bool owns_table;
    const struct entry *entry; /* of the open file; NULL: none */
    struct oct_picture_file *file;
};

/* ---- one file ---- */

static enum oct_err refuse_size(enum oct_err e, const char *path, uint64_t height, uint64_t width,
                                struct oct_error *err)
{
    return oct_fail(err, e,
                    "%s: a picture of %" PRIu64 " x %" PRIu64 "; each side must have %u to %u "
                    "pixels",
                    path, width, height, OCT_PICTURE_LEAST_SIDE, OCT_PICTURE_MOST_SIDE);
}

enum oct_err oct_picture_file_check(const char *path, uint64_t height, uint64_t width,
                                    struct oct_error *err)
{
    const uint64_t most = OCT_PICTURE_MOST_SIDE;
    if (height > 0 && width > 0 && height <= most && width <= most)
        return OCT_OK;
    return refuse_size(OCT_E_FORMAT, path, height, width, err);
}

static enum oct_err check_least(const struct oct_pictures_options *o, const char *path,
                                const struct oct_picture_file_facts *facts, struct oct_error *err)
{
    const uint32_t least = OCT_PICTURE_LEAST_SIDE;
    if (o->any_side || (facts->height >= least && facts->width >= least))
        return OCT_OK;
    return refuse_size(OCT_E_ARG, path, facts->height, facts->width, err);
}

enum oct_err oct_picture_file_descriptor(int *fd, const char *path, struct oct_error *err)
{
    struct stat st;
    /* O_NONBLOCK: opening a named pipe must not block. */
    *fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    const bool is_known = *fd >= 0 && fstat(*fd, &st) == 0;
    const int errnum = errno;
    if (is_known && S_ISREG(st.st_mode))
        return OCT_OK;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (!is_known)
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot open", path);
    return oct_fail(err, OCT_E_IO, "%s: is %s; name the pictures themselves", path,
                    S_ISDIR(st.st_mode) ? "a folder" : "not a plain file");
}

enum oct_err oct_picture_file_start(const char *path,
                                    unsigned char start[OCT_PICTURE_FILE_START_BYTES],
                                    struct oct_error *err)
{
    int fd;
    memset(start, 0, OCT_PICTURE_FILE_START_BYTES);
    const enum oct_err e = oct_picture_file_descriptor(&fd, path, err);
    if (e)
        return e;
    const ssize_t n = oct_file_read_at(fd, start, OCT_PICTURE_FILE_START_BYTES, 0);
    const int errnum = errno;
    close(fd);
    return n < 0 ? oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot read", path) : OCT_OK;
}

enum oct_err oct_picture_file_hold(struct oct_picture_file *file, struct oct_error *err)
{
    struct stat st;
    const enum oct_err e = oct_picture_file_descriptor(&file->fd, file->path, err);
    if (!e && fstat(file->fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read", file->path);
    file->file_bytes = e ? 0 : (uint64_t)st.st_size;
    return e;
}

enum oct_err oct_picture_file_read_at(const struct oct_picture_file *file, uint64_t offset,
                                      void *bytes, size_t n, struct oct_error *err)
{
    const ssize_t got = oct_file_read_at(file->fd, bytes, n, offset);
    if (got < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read", file->path);
    if ((size_t)got < n)
        return oct_fail(err, OCT_E_FORMAT, "%s: truncated or cut meanwhile", file->path);
    return OCT_OK;
}

enum oct_err oct_picture_file_open(struct oct_picture_file **file,
                                   const struct oct_picture_file_ops *ops, const char *path,
                                   const struct oct_pictures_options *options,
                                   struct oct_picture_file_facts *facts, struct oct_error *err)
{
    struct oct_picture_file *f = calloc(1, ops->bytes);
    *file = NULL;
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    f->ops = ops;
    f->fd = -1;
    const enum oct_err e = ops->open(f, options, facts, err);
    if (e)
        oct_picture_file_close(f);
    else
        *file = f;
    return e;
}

void oct_picture_file_close(struct oct_picture_file *file)
{
    if (!file)
        return;
    file->ops->close(file);
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file);
}

const struct oct_picture_file_ops *
oct_picture_file_of_device(const unsigned char start[OCT_PICTURE_FILE_START_BYTES])
{
    return memcmp(start, "HSF-OCT-", 8) == 0     ? &oct_picture_file_vol
           : memcmp(start + 128, "DICM", 4) == 0 ? &oct_picture_file_dicom
                                                 : NULL;
}

enum oct_err oct_picture_file_choose(const struct oct_picture_file_ops **ops, const char *path,
                                     struct oct_error *err)
{
    static const struct {
        const char *first, *at_8;
        const struct oct_picture_file_ops *ops;
    } formats[] = {
        {"\x89PNG", "", &oct_picture_file_png},   {"II\x2a\0", "", &oct_picture_file_tiff},
        {"MM\0\x2a", "", &oct_picture_file_tiff}, {"II\x2b\0", "", &oct_picture_file_tiff},
        {"MM\0\x2b", "", &oct_picture_file_tiff}, {"RIFF", "AVI ", &oct_picture_file_avi},
        {"\x93NUM", "", &oct_picture_file_npy},
    };
    unsigned char start[OCT_PICTURE_FILE_START_BYTES];

    *ops = &oct_picture_file_hdf5;
    if (oct_recording_names_dataset(path))
        return OCT_OK;
    const enum oct_err e = oct_picture_file_start(path, start, err);
    if (e || oct_recording_is_volume(path))
        return e;
    *ops = oct_picture_file_of_device(start);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && !*ops; i++)
        if (memcmp(start, formats[i].first, 4) == 0 &&
            memcmp(start + 8, formats[i].at_8, strlen(formats[i].at_8)) == 0)
            *ops = formats[i].ops;
    if (*ops)
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG, "%s: neither PNG, TIFF, AVI, .npy, HDF5, .vol nor DICOM", path);
}

bool oct_pictures_are_of_device(const char *path)
{
    unsigned char start[OCT_PICTURE_FILE_START_BYTES];
    return oct_picture_file_start(path, start, NULL) == OCT_OK && oct_picture_file_of_device(start);
}

bool oct_pictures_is_volume(const char *path)
{
    return oct_recording_is_volume(path) || oct_pictures_are_of_device(path);
}

/* ---- the table ---- */

static void table_free(struct table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free(t->entries[i].path);
    free(t->entries);
    free(t->mask);
    free(t);
}

static enum oct_err select_pictures(const struct oct_pictures_options *o, struct entry *entry,
                                    const struct oct_picture_file_facts *facts,
                                    struct oct_error *err)
{
    const struct oct_span *s = &o->frames;
    entry->n = s->last > 0 ? oct_span_count(*s) : facts->n_pictures;
    entry->height = facts->height;
    entry->width = facts->width;
    if (s->last > facts->n_pictures)
        return oct_fail(err, OCT_E_ARG,
                        "%s: has frames 0:%" PRIu64 "; --frames %u:%u asks for others", entry->path,
                        facts->n_pictures, s->first, s->last);
    return OCT_OK;
}

static enum oct_err check_sizes(const struct table *t, const struct entry *entry,
                                struct oct_error *err)
{
    const struct entry *first = &t->entries[0];
    if (!t->options.allow_sizes && (entry->height != first->height || entry->width != first->width))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: %u x %u pixels, but %s %u x %u; all pictures must have one size",
                        entry->path, entry->width, entry->height, first->path, first->width,
                        first->height);
    if (t->mask && (entry->height != t->mask_height || entry->width != t->mask_width))
        return oct_fail(err, OCT_E_FORMAT, "%s: %u x %u pixels, but the mask %s %u x %u",
                        entry->path, entry->width, entry->height, t->options.mask_path,
                        t->mask_width, t->mask_height);
    return OCT_OK;
}

static enum oct_err check_whole(struct table *t, const struct entry *entry,
                                const struct oct_picture_file_facts *facts, struct oct_error *err)
{
    const bool keeps = t->options.keeps_whole;
    char of[32] = "";
    if (!facts->is_cut)
        return OCT_OK;
    if (facts->n_claimed > facts->n_pictures)
        snprintf(of, sizeof(of), " of %" PRIu64, facts->n_claimed);
    struct oct_error *say = !keeps ? err : t->n_cut++ == 0 ? &t->warning : NULL;
    const enum oct_err e =
        oct_fail(say, OCT_E_FORMAT, "%s: truncated; pictures that are whole%s: %" PRIu64 "%s",
                 entry->path, keeps ? " and used" : "", facts->n_pictures, of);
    return keeps ? OCT_OK : e;
}

/* Clock and rate of the sequence so far, entry being the newest of its files. */
static void join_times(struct table *t, struct entry *entry,
                       const struct oct_picture_file_facts *facts)
{
    const bool is_first = t->n == 1;
    entry->fps = facts->fps;
    entry->has_clock = facts->has_clock;
    entry->last_ns = facts->last_ns;
    if (is_first) {
        t->has_clock = entry->has_clock;
        t->origin_ns = facts->first_ns;
        t->fps = entry->fps;
        return;
    }
    t->has_clock = t->has_clock && entry->has_clock && facts->first_ns >= entry[-1].last_ns;
    if (entry->fps != t->fps)
        t->fps = 0;
}

static enum oct_err add_entry(struct table *t, const char *path, struct oct_error *err)
{
    struct entry *entry = &t->entries[t->n];
    struct oct_picture_file_facts facts;
    struct oct_picture_file *file;

    *entry = (struct entry){.path = strdup(path), .first = t->n_pictures};
    if (!entry->path)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    t->n++;
    enum oct_err e = OCT_OK;
    entry->ops = &oct_picture_file_enface;
    if (t->options.what != OCT_PICTURES_EN_FACE)
        e = oct_picture_file_choose(&entry->ops, path, err);
    e = e ? e : oct_picture_file_open(&file, entry->ops, path, &t->options, &facts, err);
    if (e)
        return e;
    oct_picture_file_close(file);
    join_times(t, entry, &facts);
    e = check_least(&t->options, path, &facts, err);
    e = e ? e : check_whole(t, entry, &facts, err);
    e = e ? e : select_pictures(&t->options, entry, &facts, err);
    t->n_pictures += entry->n;
    return e ? e : check_sizes(t, entry, err);
}

/* A picture of which 0, NaN and what is masked itself are not valid. */
static enum oct_err load_mask(struct table *t, const char *path, struct oct_error *err)
{
    const struct oct_pictures_options plain = {.raw = true, .any_side = t->options.any_side};
    struct oct_pictures *pictures;
    struct oct_picture picture = {0};
    enum oct_err e = oct_pictures_open(&pictures, &path, 1, &plain, err);
    if (!pictures)
        return e;
    if (oct_pictures_count(pictures) != 1)
        e = oct_fail(err, OCT_E_FORMAT, "%s: a mask is one picture", path);
    else
        e = oct_pictures_read(pictures, 0, &picture, NULL, err);
    oct_pictures_close(pictures);
    const size_t n = (size_t)picture.height * picture.width;
    if (n == 0)
        return e;
    t->mask = malloc(n);
    for (size_t i = 0; t->mask && i < n; i++)
        t->mask[i] = picture.pixels[i] != 0 && (!picture.valid || picture.valid[i]);
    t->mask_height = picture.height;
    t->mask_width = picture.width;
    oct_picture_finish(&picture);
    return t->mask ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
}

enum oct_err oct_pictures_open(struct oct_pictures **pictures, const char *const *paths,
                               unsigned n_paths, const struct oct_pictures_options *options,
                               struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    *pictures = NULL;
    if (n_paths == 0)
        return oct_fail(err, OCT_E_ARG, "no pictures");
    struct oct_pictures *p = calloc(1, sizeof(*p));
    struct table *t = calloc(1, sizeof(*t));
    if (!p || !t || !(t->entries = calloc(n_paths, sizeof(*t->entries)))) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u files", n_paths);
        goto fail;
    }
    t->options = *options;
    if (options->mask_path)
        e = load_mask(t, options->mask_path, err);
    for (unsigned i = 0; e == OCT_OK && i < n_paths; i++)
        e = add_entry(t, paths[i], err);
    if (e)
        goto fail;
    if (t->n_cut > 1)
        oct_error_go_on(&t->warning, OCT_E_FORMAT, "", "; %u files more are truncated",
                        t->n_cut - 1);
    *p = (struct oct_pictures){.table = t, .owns_table = true};
    *pictures = p;
    return OCT_OK;
fail:
    table_free(t);
    free(p);
    return e;
}

enum oct_err oct_pictures_share(struct oct_pictures **other, const struct oct_pictures *pictures,
                                struct oct_error *err)
{
    *other = calloc(1, sizeof(**other));
    if (!*other)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    (*other)->table = pictures->table;
    return OCT_OK;
}

static void close_file(struct oct_pictures *p)
{
    oct_picture_file_close(p->file);
    p->file = NULL;
    p->entry = NULL;
}

void oct_pictures_close(struct oct_pictures *pictures)
{
    if (!pictures)
        return;
    close_file(pictures);
    if (pictures->owns_table)
        table_free(pictures->table);
    free(pictures);
}

uint64_t oct_pictures_count(const struct oct_pictures *pictures)
{
    return pictures->table->n_pictures;
}

const char *oct_pictures_warning(const struct oct_pictures *pictures)
{
    return pictures->table->n_cut > 0 ? pictures->table->warning.text : NULL;
}

double oct_pictures_fps(const struct oct_pictures *pictures)
{
    const struct table *t = pictures->table;
    const double fps = t->options.fps > 0 ? t->options.fps : t->fps > 0 ? t->fps : NAN;
    return fps / oct_span_of(t->options.frames, 1).step;
}

static const struct entry *find(const struct table *t, uint64_t frame)
{
    size_t low = 0, high = t->n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (t->entries[middle].first <= frame)
            low = middle;
        else
            high = middle;
    }
    return &t->entries[low];
}

void oct_pictures_size(const struct oct_pictures *pictures, uint64_t frame, uint32_t *height,
                       uint32_t *width)
{
    const struct entry *entry = find(pictures->table, frame);
    *height = entry->height;
    *width = entry->width;
}

const char *oct_pictures_path(const struct oct_pictures *pictures, uint64_t frame)
{
    return find(pictures->table, frame)->path;
}

/* ---- reading ---- */

/* Its number in its file. */
static uint64_t index_of(const struct table *t, const struct entry *entry, uint64_t frame)
{
    const struct oct_span span = oct_span_of(t->options.frames, 1);
    return span.first + (frame - entry->first) * span.step;
}

static enum oct_err open_entry(struct oct_pictures *p, const struct entry *entry,
                               struct oct_error *err)
{
    struct oct_picture_file_facts facts;
    if (p->entry == entry)
        return OCT_OK;
    close_file(p);
    enum oct_err e =
        oct_picture_file_open(&p->file, entry->ops, entry->path, &p->table->options, &facts, err);
    if (e)
        return e;
    p->entry = entry;
    if (facts.height == entry->height && facts.width == entry->width &&
        facts.n_pictures > index_of(p->table, entry, entry->first + entry->n - 1))
        return OCT_OK;
    close_file(p);
    return oct_fail(err, OCT_E_FORMAT, "%s: has changed meanwhile", entry->path);
}

/* What the user masks becomes NaN, as what the file does. */
static void apply_masks(const struct table *t, struct oct_picture *picture)
{
    const size_t n = (size_t)picture->height * picture->width;
    const float invalid = (float)t->options.invalid;
    for (size_t i = 0; t->options.has_invalid && i < n; i++)
        if (picture->pixels[i] == invalid)
            picture->pixels[i] = NAN;
    for (size_t i = 0; t->mask && i < n; i++)
        if (!t->mask[i])
            picture->pixels[i] = NAN;
}

static bool is_integer(const struct oct_picture *picture)
{
    const size_t n = (size_t)picture->height * picture->width;
    for (size_t i = 0; i < n; i++) {
        const float v = picture->pixels[i];
        if ((!picture->valid || picture->valid[i]) &&
            !(v >= 0 && v <= 65535 && (float)(int32_t)v == v))
            return false;
    }
    return true;
}

static enum oct_err read_pixels(struct oct_pictures *p, struct oct_picture *picture,
                                struct oct_pictures_info *info, struct oct_error *err)
{
    const struct table *t = p->table;
    enum oct_err e = p->entry->ops->read(p->file, info->index, picture->pixels, info, err);
    if (e)
        return e;
    apply_masks(t, picture);
    if ((e = oct_picture_mask_not_finite(picture, err)) != OCT_OK)
        return e;
    info->is_integer = is_integer(picture);
    for (int axis = 0; axis < 2; axis++)
        if (t->options.um[axis] > 0)
            info->um[axis] = t->options.um[axis];
    return OCT_OK;
}

enum oct_err oct_pictures_read(struct oct_pictures *pictures, uint64_t frame,
                               struct oct_picture *picture, struct oct_pictures_info *info,
                               struct oct_error *err)
{
    struct oct_pictures *p = pictures;
    *picture = (struct oct_picture){0};
    if (frame >= p->table->n_pictures)
        return oct_fail(err, OCT_E_ARG, "no picture %" PRIu64 ": there are %" PRIu64, frame,
                        p->table->n_pictures);
    const struct entry *entry = find(p->table, frame);
    struct oct_pictures_info about = {
        .frame = frame,
        .path = entry->path,
        .index = index_of(p->table, entry, frame),
        .um = {NAN, NAN},
    };
    enum oct_err e = open_entry(p, entry, err);
    if (p->entry)
        e = oct_picture_init(picture, entry->height, entry->width, false, err);
    if (picture->pixels)
        e = read_pixels(p, picture, &about, err);
    if (e)
        oct_picture_finish(picture);
    else if (info)
        *info = about;
    return e;
}

enum oct_err oct_pictures_layer(struct oct_pictures *pictures, uint64_t frame, unsigned k,
                                float *depth_px, struct oct_error *err)
{
    const struct entry *entry = find(pictures->table, frame);
    const uint64_t index = index_of(pictures->table, entry, frame);
    const enum oct_err e = open_entry(pictures, entry, err);
    return e ? e : pictures->file->ops->layer(pictures->file, index, k, depth_px, err);
}

/* ---- times ---- */

static enum oct_err make_room(struct oct_pictures_times *times, uint32_t n, struct oct_error *err)
{
    if (n <= times->n_room)
        return OCT_OK;
    double *grown = realloc(times->room, n * sizeof(*grown));
    if (!grown)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the times of %u rows", n);
    times->room = grown;
    times->n_room = n;
    return OCT_OK;
}

enum oct_err oct_pictures_times(struct oct_pictures *pictures, uint64_t frame,
                                struct oct_pictures_times *times, struct oct_error *err)
{
    struct oct_pictures *p = pictures;
    const struct table *t = p->table;
    times->time_s = NULL;
    times->start_s = NAN;
    if (frame >= t->n_pictures)
        return oct_fail(err, OCT_E_ARG, "no picture %" PRIu64 ": there are %" PRIu64, frame,
                        t->n_pictures);
    if (t->options.fps > 0 || !t->has_clock) {
        times->start_s = (double)frame / oct_pictures_fps(p);
        return OCT_OK;
    }
    const struct entry *entry = find(t, frame);
    enum oct_err e = open_entry(p, entry, err);
    e = e ? e : make_room(times, entry->height, err);
    if (e)
        return e;
    times->time_s = times->room;
    entry->ops->times(p->file, index_of(t, entry, frame), t->origin_ns, times);
    return OCT_OK;
}

void oct_pictures_times_finish(struct oct_pictures_times *times)
{
    free(times->room);
    *times = (struct oct_pictures_times){.start_s = NAN};
}
