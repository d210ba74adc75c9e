#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "pipeline/volume/hdf5_image.h"

#include "pipeline/base/file_at.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#define PAGE 4096u
#define RUN_PAGES 64u /* written at once */
#define MAX_ADDRESS ((haddr_t)INT64_MAX)

struct oct_hdf5_page {
    uint64_t offset; /* a multiple of PAGE */
    unsigned char *bytes;
};

/* What libhdf5 holds of an open image. */
struct handle {
    H5FD_t public; /* first: libhdf5 knows no more of it */
    struct oct_hdf5_image *image;
    haddr_t end_of_allocated;
};

/* What the access properties hold: the driver's own part. */
struct target {
    struct oct_hdf5_image *image;
};

/* No file has this name: libhdf5 looks it up, finds none and goes on. */
static const char name_of_all[] = "/dev/null/octd";

/* ---- pages ---- */

/* The first page at or after `offset`. */
static size_t find(const struct oct_hdf5_image *image, uint64_t offset)
{
    size_t low = 0, high = image->n_pages;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (image->pages[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Reads from the base file; beyond its end there are zeros. */
static bool read_base(const struct oct_hdf5_image *image, uint64_t offset, unsigned char *bytes,
                      size_t n_bytes)
{
    const uint64_t left = offset < image->base_bytes ? image->base_bytes - offset : 0;
    const size_t n = n_bytes < left ? n_bytes : (size_t)left;
    /* Fewer: the file was truncated meanwhile. */
    const ssize_t got = image->base_fd < 0 ? 0 : oct_file_read_at(image->base_fd, bytes, n, offset);
    if (got < 0)
        return false;
    memset(bytes + got, 0, n_bytes - (size_t)got);
    return true;
}

static bool add_page(struct oct_hdf5_image *image, size_t at, uint64_t offset)
{
    if (image->n_pages == image->room) {
        size_t room = image->room ? image->room * 2 : 64;
        struct oct_hdf5_page *pages = realloc(image->pages, room * sizeof(*pages));
        if (!pages)
            return false;
        image->pages = pages;
        image->room = room;
    }
    unsigned char *bytes = malloc(PAGE);
    if (!bytes || !read_base(image, offset, bytes, PAGE)) {
        free(bytes);
        return false;
    }
    memmove(image->pages + at + 1, image->pages + at,
            (image->n_pages - at) * sizeof(*image->pages));
    image->pages[at] = (struct oct_hdf5_page){offset, bytes};
    image->n_pages++;
    return true;
}

static bool put(struct oct_hdf5_image *image, uint64_t offset, const unsigned char *bytes,
                size_t n_bytes)
{
    while (n_bytes > 0) {
        uint64_t start = offset / PAGE * PAGE;
        size_t within = (size_t)(offset - start), n = PAGE - within;
        if (n > n_bytes)
            n = n_bytes;
        size_t at = find(image, start);
        if ((at == image->n_pages || image->pages[at].offset != start) &&
            !add_page(image, at, start))
            return false;
        memcpy(image->pages[at].bytes + within, bytes, n);
        offset += n;
        bytes += n;
        n_bytes -= n;
    }
    if (offset > image->end)
        image->end = offset;
    return true;
}

/* Pages that hold a part of these bytes would hide them, so they get them too. */
static bool put_through(struct oct_hdf5_image *image, uint64_t offset, const unsigned char *bytes,
                        size_t n_bytes)
{
    const uint64_t end = offset + n_bytes;
    if (!oct_file_write_at(image->raw_fd, bytes, n_bytes, offset)) {
        if (!image->raw_errno)
            image->raw_errno = errno;
        return false;
    }
    for (size_t at = find(image, offset / PAGE * PAGE); at < image->n_pages; at++) {
        const struct oct_hdf5_page *page = &image->pages[at];
        const uint64_t from = page->offset > offset ? page->offset : offset;
        const uint64_t to = page->offset + PAGE < end ? page->offset + PAGE : end;
        if (from >= to)
            break;
        memcpy(page->bytes + (from - page->offset), bytes + (from - offset), (size_t)(to - from));
    }
    image->base_bytes = end > image->base_bytes ? end : image->base_bytes;
    image->end = end > image->end ? end : image->end;
    return true;
}

static bool get(const struct oct_hdf5_image *image, uint64_t offset, unsigned char *bytes,
                size_t n_bytes)
{
    if (!read_base(image, offset, bytes, n_bytes))
        return false;
    for (size_t at = find(image, offset / PAGE * PAGE); at < image->n_pages; at++) {
        const struct oct_hdf5_page *page = &image->pages[at];
        uint64_t from = page->offset > offset ? page->offset : offset;
        uint64_t to =
            page->offset + PAGE < offset + n_bytes ? page->offset + PAGE : offset + n_bytes;
        if (from >= to)
            break;
        memcpy(bytes + (from - offset), page->bytes + (from - page->offset), (size_t)(to - from));
    }
    return true;
}

/* ---- libhdf5's side: one table of functions, a "virtual file driver" ---- */

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t max_address)
{
    const struct target *target = H5Pget_driver_info(access);
    (void)flags;
    (void)max_address;
    if (!target || !target->image || strcmp(name, name_of_all) != 0)
        return NULL; /* a link or a virtual dataset names another file */
    struct handle *handle = calloc(1, sizeof(*handle));
    if (!handle)
        return NULL;
    handle->image = target->image;
    return &handle->public;
}

static herr_t driver_close(H5FD_t *file)
{
    free(file);
    return 0;
}

/* As libhdf5's own drivers for one plain file: so the file has the same layout. */
static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const struct handle *)file)->end_of_allocated;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t address)
{
    (void)type;
    ((struct handle *)file)->end_of_allocated = address;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const struct handle *)file)->image->end;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address,
                          size_t n_bytes, void *bytes)
{
    struct oct_hdf5_image *image = ((struct handle *)file)->image;
    (void)type;
    (void)transfer;
    if (address > MAX_ADDRESS || n_bytes > MAX_ADDRESS - address)
        return -1;
    if (get(image, address, bytes, n_bytes))
        return 0;
    image->failed = true;
    return -1;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address,
                           size_t n_bytes, const void *bytes)
{
    struct oct_hdf5_image *image = ((struct handle *)file)->image;
    (void)transfer;
    if (address > MAX_ADDRESS || n_bytes > MAX_ADDRESS - address)
        return -1;
    if (image->raw_fd >= 0 && type == H5FD_MEM_DRAW) {
        image->failed |= !put_through(image, address, bytes, n_bytes);
        return 0;
    }
    /* The failure is kept for the owner and hidden from libhdf5, which could neither close nor
     * forget a file that it failed to flush. */
    image->failed |= !put(image, address, bytes, n_bytes);
    return 0;
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
    const struct handle *handle = (const struct handle *)file;
    (void)transfer;
    (void)closing;
    handle->image->end = handle->end_of_allocated;
    return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* 512 and beyond: for tests and private use */
#endif
    .name = "octd",
    .maxaddr = MAX_ADDRESS,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(struct target),
    .open = driver_open,
    .close = driver_close,
    /* Without .cmp libhdf5 tells open files apart by their handles. Comparing images by address
     * would be wrong: a new image may have the address of one whose file libhdf5 failed to close
     * and still holds. */
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* ---- the owner's side ---- */

void oct_hdf5_image_init(struct oct_hdf5_image *image, int base_fd, uint64_t base_bytes)
{
    *image =
        (struct oct_hdf5_image){.base_fd = base_fd, .base_bytes = base_bytes, .end = base_bytes};
    image->raw_fd = -1;
}

void oct_hdf5_image_write_through(struct oct_hdf5_image *image, int fd)
{
    image->raw_fd = image->base_fd = fd;
    image->base_bytes = 0;
}

void oct_hdf5_image_put(struct oct_hdf5_image *image, uint64_t offset, const void *bytes,
                        size_t n_bytes)
{
    image->failed |= !put(image, offset, bytes, n_bytes);
}

/* Registers the driver once, under the lock of hdf5_lock.h, and for good: as libhdf5 1.10 closes
 * the last file of a driver it drops its own copy of the table first and calls the table's `close`
 * then, in freed memory. */
static hid_t driver_id(void)
{
    static hid_t id = H5I_INVALID_HID;
    if (id < 0)
        id = H5FDregister(&driver);
    return id;
}

hid_t oct_hdf5_image_open(struct oct_hdf5_image *image, unsigned flags, uint64_t alignment,
                          char *reason, size_t reason_bytes)
{
    const struct target target = {image};
    hid_t file = H5I_INVALID_HID;
    hid_t id = driver_id(), access = H5Pcreate(H5P_FILE_ACCESS);
    if (id >= 0 && access >= 0 && H5Pset_driver(access, id, &target) >= 0 &&
        H5Pset_alignment(access, 1, alignment) >= 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) >= 0)
        file = flags & H5F_ACC_TRUNC ? H5Fcreate(name_of_all, flags, H5P_DEFAULT, access)
                                     : H5Fopen(name_of_all, flags, access);
    if (file < 0)
        oct_hdf5_reason(reason, reason_bytes);
    OCT_HDF5_CLOSE(access);
    return file;
}

/* Pages that lie side by side, up to number `end`, as many as the buffer holds: copies them and
 * returns the first of them. */
static size_t gather(const struct oct_hdf5_image *image, size_t end, unsigned char *buffer)
{
    size_t first = end - 1;
    while (first > 0 && end - first < RUN_PAGES &&
           image->pages[first - 1].offset + PAGE == image->pages[first].offset)
        first--;
    for (size_t i = first; i < end; i++)
        memcpy(buffer + (i - first) * PAGE, image->pages[i].bytes, PAGE);
    return first;
}

/* Writes the last pages first: new objects must be in the file before anything points at them. */
static enum oct_err write_pages(const struct oct_hdf5_image *image, int fd, const char *path,
                                uint64_t *n_bytes, struct oct_error *err)
{
    unsigned char *buffer = malloc(RUN_PAGES * PAGE);
    enum oct_err e = OCT_OK;
    if (!buffer)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    for (size_t end = image->n_pages, first; e == OCT_OK && end > 0; end = first) {
        first = gather(image, end, buffer);
        uint64_t offset = image->pages[first].offset;
        uint64_t left = image->end > offset ? image->end - offset : 0;
        size_t n = (end - first) * PAGE;
        if (n > left)
            n = (size_t)left;
        if (!oct_file_write_at(fd, buffer, n, offset))
            e = oct_fail_errno(err, OCT_E_IO, errno,
                               "%s: cannot write %zu bytes of metadata at byte %llu", path, n,
                               (unsigned long long)offset);
        *n_bytes += n;
    }
    free(buffer);
    return e;
}

enum oct_err oct_hdf5_image_store(const struct oct_hdf5_image *image, int fd, const char *path,
                                  uint64_t *n_bytes, struct oct_error *err)
{
    *n_bytes = 0;
    if (image->failed)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: its metadata cannot be made: out of memory",
                        path);
    if (TEMP_FAILURE_RETRY(ftruncate(fd, (off_t)image->end)) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot set its length", path);
    return write_pages(image, fd, path, n_bytes, err);
}

enum oct_err oct_hdf5_image_compare(const struct oct_hdf5_image *image, int fd, const char *path,
                                    struct oct_error *err)
{
    unsigned char read[PAGE];
    for (size_t i = 0; i < image->n_pages; i++) {
        const struct oct_hdf5_page *page = &image->pages[i];
        const uint64_t left = image->end > page->offset ? image->end - page->offset : 0;
        const size_t n = left < PAGE ? (size_t)left : PAGE;
        const ssize_t got = TEMP_FAILURE_RETRY(pread(fd, read, n, (off_t)page->offset));
        if (got < 0)
            return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read back", path);
        if ((size_t)got != n || memcmp(read, page->bytes, n) != 0)
            return oct_fail(err, OCT_E_IO, "%s: what describes its arrays reads back otherwise",
                            path);
    }
    return OCT_OK;
}

void oct_hdf5_image_finish(struct oct_hdf5_image *image)
{
    for (size_t i = 0; i < image->n_pages; i++)
        free(image->pages[i].bytes);
    free(image->pages);
    image->pages = NULL;
    image->n_pages = image->room = 0;
}
