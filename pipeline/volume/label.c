#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "pipeline/volume/label.h"

#include "pipeline/base/err.h"
#include "pipeline/base/file_at.h"
#include "pipeline/base/utf8.h"
#include "pipeline/volume/closed.h"
#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/hdf5_make.h"
#include "pipeline/volume/hdf5_read.h"
#include "pipeline/volume/volume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Texts at the root of an HDF5 file that is closed, changed so that the file is whole at every
 * moment. Nothing that the file points at is overwritten:
 *
 *     | superblock | root header, heaps, arrays ... | new texts, new root header |
 *           +------> old root                                ^
 *           +- - - - - - - - - - - - - - - - - - - - - - - - +
 *
 * The new texts and a copy of the root's object header that points at them go behind the end of the
 * file. They are synced; then the superblock gets the new end, is synced, gets eight bytes that say
 * where the root lies now, and is synced. Each change makes the file some 5 KB longer.
 *
 * The two structures are those of the HDF5 File Format Specification 3.0, sections II.A (superblock
 * 0 and 1), III.E (global heap) and IV.A.1.a (object header 1), which libhdf5 1.x writes unless
 * it is told to write newer ones. libhdf5 itself reads the new file, in memory, before a byte of it
 * goes to the disk. */

#define OCT_HDF5_ROOT_TEXTS 8u

struct oct_hdf5_root_text {
    const char *name;
    const char *value; /* UTF-8, at most 255 bytes; NULL: the attribute is removed */
};

/* Values of the file are little-endian and moved as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values would need swapping");

#define HEAP_BYTES 4096u /* libhdf5 makes no smaller one */
#define HEAP_OBJECT_BYTES 16u
#define HEADER_BYTES 16u /* in front of the messages of an object header */
#define MESSAGE_BYTES 8u /* in front of a message's own */
#define MAX_MESSAGES_BYTES (1u << 20)
#define MAX_CHUNKS 64u
#define NOWHERE UINT64_MAX

enum message_type {
    MESSAGE_NOTHING = 0x00,
    MESSAGE_ATTRIBUTE = 0x0c,
    MESSAGE_CONTINUES = 0x10,
};

/* Where the superblock says what changes, and what it says. */
struct superblock {
    uint64_t end_at, root_at; /* offsets in the file */
    uint64_t end, root;
};

struct chunk {
    uint64_t offset, n_bytes;
};

/* What is written behind the file's end: a heap, then an object header. */
struct addition {
    uint64_t offset;      /* of the heap */
    unsigned char *bytes; /* [HEAP_BYTES + HEADER_BYTES + messages] */
    size_t n_bytes, room;
    size_t heap_bytes; /* in use */
    uint16_t n_objects, n_messages;
};

struct job {
    int fd;
    const char *path;
    const struct oct_hdf5_root_text *texts;
    unsigned n_texts;
    uint64_t file_bytes;
    struct superblock super;
    struct chunk chunks[MAX_CHUNKS]; /* of the old header; the first is within it */
    unsigned n_chunks;
    struct addition new;
};

static uint16_t get_u16(const unsigned char *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static uint64_t get_u64(const unsigned char *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static enum oct_err refuse(const struct job *job, const char *what, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: its label cannot be changed: %s", job->path, what);
}

static enum oct_err read_fully(const struct job *job, unsigned char *bytes, size_t n_bytes,
                               uint64_t offset, struct oct_error *err)
{
    if (offset > job->file_bytes || n_bytes > job->file_bytes - offset)
        return refuse(job, "its root lies beyond the file's end", err);
    const ssize_t n = oct_file_read_at(job->fd, bytes, n_bytes, offset);
    return n == (ssize_t)n_bytes ? OCT_OK
                                 : oct_fail_errno(err, OCT_E_IO, n < 0 ? errno : EIO,
                                                  "%s: cannot be read", job->path);
}

/* ---- what the file has ---- */

static enum oct_err read_superblock(struct job *job, struct oct_error *err)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char b[96] = {0};
    enum oct_err e = read_fully(job, b, sizeof(b), 0, err);
    if (e != OCT_OK)
        return e;
    if (memcmp(b, signature, sizeof(signature)) != 0)
        return refuse(job, "it does not begin as an HDF5 file", err);
    if (b[8] > 1)
        return refuse(job,
                      "another program wrote it in a newer layout of HDF5; a copy made with "
                      "`h5repack --low=0` has the older one",
                      err);
    const size_t at = b[8] == 1 ? 28 : 24; /* version 1 has four bytes more */
    if (b[13] != 8 || b[14] != 8 || get_u64(b + at) != 0 || get_u64(b + at + 24) != NOWHERE)
        return refuse(job, "its addresses are not those of a plain HDF5 file", err);
    job->super = (struct superblock){
        .end_at = at + 16,
        .root_at = at + 40,
        .end = get_u64(b + at + 16),
        .root = get_u64(b + at + 40),
    };
    if (job->super.end > job->file_bytes)
        return refuse(job, "the file is shorter than it says", err);
    return OCT_OK;
}

/* The object header's prefix: version, messages, references, bytes of the first chunk. */
static enum oct_err read_header(struct job *job, unsigned char prefix[HEADER_BYTES],
                                struct oct_error *err)
{
    uint32_t n_bytes;
    enum oct_err e = read_fully(job, prefix, HEADER_BYTES, job->super.root, err);
    if (e != OCT_OK)
        return e;
    if (prefix[0] != 1)
        return refuse(job, "its root has a newer layout of HDF5, or is damaged", err);
    memcpy(&n_bytes, prefix + 8, sizeof(n_bytes));
    job->chunks[0] = (struct chunk){job->super.root + HEADER_BYTES, n_bytes};
    job->n_chunks = 1;
    return OCT_OK;
}

/* ---- what it gets ---- */

static enum oct_err make_room(struct job *job, size_t n_bytes, struct oct_error *err)
{
    struct addition *a = &job->new;
    if (a->n_bytes + n_bytes > MAX_MESSAGES_BYTES)
        return refuse(job, "its root is larger than 1 MiB", err);
    if (a->n_bytes + n_bytes <= a->room)
        return OCT_OK;
    size_t room = 2 * (a->n_bytes + n_bytes);
    unsigned char *bytes = realloc(a->bytes, room);
    if (!bytes)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", job->path);
    memset(bytes + a->n_bytes, 0, room - a->n_bytes);
    a->bytes = bytes;
    a->room = room;
    return OCT_OK;
}

static size_t padded(size_t n_bytes)
{
    return (n_bytes + 7) / 8 * 8;
}

/* Returns the number of the text in the heap. */
static uint32_t add_to_heap(struct addition *a, const char *text)
{
    const uint64_t n = strlen(text);
    const uint16_t references = 1;
    unsigned char *object = a->bytes + a->heap_bytes;
    const uint16_t number = ++a->n_objects;
    memcpy(object, &number, 2);
    memcpy(object + 2, &references, 2);
    memcpy(object + 8, &n, 8);
    memcpy(object + HEAP_OBJECT_BYTES, text, (size_t)n);
    a->heap_bytes += HEAP_OBJECT_BYTES + padded((size_t)n);
    return number;
}

/* The heap's head, and its free space as an object of number 0. */
static void end_heap(struct addition *a)
{
    static const unsigned char head[8] = {'G', 'C', 'O', 'L', 1};
    const uint64_t n = HEAP_BYTES, n_free = HEAP_BYTES - a->heap_bytes;
    memcpy(a->bytes, head, sizeof(head));
    memcpy(a->bytes + 8, &n, 8);
    memcpy(a->bytes + a->heap_bytes + 8, &n_free, 8);
}

static enum oct_err add_message(struct job *job, const unsigned char *message, size_t n_bytes,
                                struct oct_error *err)
{
    struct addition *a = &job->new;
    enum oct_err e = make_room(job, n_bytes, err);
    if (e != OCT_OK)
        return e;
    if (a->n_messages == UINT16_MAX)
        return refuse(job, "its root has too many parts", err);
    memcpy(a->bytes + a->n_bytes, message, n_bytes);
    a->n_bytes += n_bytes;
    a->n_messages++;
    return OCT_OK;
}

/* An attribute of version 1: a scalar of UTF-8 text of any length, which lies in the heap. */
static enum oct_err add_text(struct job *job, const struct oct_hdf5_root_text *text,
                             struct oct_error *err)
{
    static const unsigned char type[24] = {0x19, 1, 1, 0, 16, 0, 0, 0, 0x10, 0,
                                           0,    0, 1, 0, 0,  0, 0, 0, 8}; /* 20, padded */
    static const unsigned char scalar[8] = {1};
    const uint16_t name_bytes = (uint16_t)(strlen(text->name) + 1), type_bytes = 20,
                   space_bytes = 8;
    const uint32_t n = (uint32_t)strlen(text->value);
    const uint32_t number = add_to_heap(&job->new, text->value);
    unsigned char message[MESSAGE_BYTES + 128] = {MESSAGE_ATTRIBUTE};
    unsigned char *own = message + MESSAGE_BYTES, *next = own + 8;
    own[0] = 1;
    memcpy(own + 2, &name_bytes, 2);
    memcpy(own + 4, &type_bytes, 2);
    memcpy(own + 6, &space_bytes, 2);
    memcpy(next, text->name, name_bytes);
    next += padded(name_bytes);
    memcpy(next, type, sizeof(type));
    next += sizeof(type);
    memcpy(next, scalar, sizeof(scalar));
    next += sizeof(scalar);
    memcpy(next, &n, 4);
    memcpy(next + 4, &job->new.offset, 8);
    memcpy(next + 12, &number, 4);
    next += 16;
    const uint16_t own_bytes = (uint16_t)(next - own);
    memcpy(message + 2, &own_bytes, 2);
    return add_message(job, message, (size_t)(next - message), err);
}

/* Whether an attribute's message is of that name. The name follows 8 bytes, in version 3 9. */
static bool is_named(const unsigned char *own, size_t n_bytes, const char *name)
{
    const size_t n = strlen(name) + 1, at = own[0] == 3 ? 9 : 8;
    return n_bytes >= at + n && get_u16(own + 2) == n && memcmp(own + at, name, n) == 0;
}

/* Copies a message, unless an attribute comes that takes its place. */
static enum oct_err take_message(struct job *job, const unsigned char *message, size_t own_bytes,
                                 struct oct_error *err)
{
    const unsigned char *own = message + MESSAGE_BYTES;
    const uint16_t type = get_u16(message);
    if (type == MESSAGE_NOTHING)
        return OCT_OK;
    if (type == MESSAGE_CONTINUES) {
        if (own_bytes < 16 || job->n_chunks == MAX_CHUNKS)
            return refuse(job, "its root is damaged", err);
        job->chunks[job->n_chunks++] = (struct chunk){get_u64(own), get_u64(own + 8)};
        return OCT_OK;
    }
    for (unsigned i = 0; type == MESSAGE_ATTRIBUTE && i < job->n_texts; i++)
        if (is_named(own, own_bytes, job->texts[i].name))
            return OCT_OK;
    return add_message(job, message, MESSAGE_BYTES + own_bytes, err);
}

static enum oct_err take_chunk(struct job *job, const struct chunk *chunk, struct oct_error *err)
{
    if (chunk->n_bytes > MAX_MESSAGES_BYTES)
        return refuse(job, "its root is damaged, or larger than 1 MiB", err);
    const size_t n = (size_t)chunk->n_bytes;
    unsigned char *bytes = calloc(n + 1, 1);
    if (!bytes)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", job->path);
    enum oct_err e = read_fully(job, bytes, n, chunk->offset, err);
    for (size_t at = 0; e == OCT_OK && at + MESSAGE_BYTES <= n;) {
        const size_t own_bytes = get_u16(bytes + at + 2);
        if (own_bytes > n - at - MESSAGE_BYTES)
            e = refuse(job, "its root is damaged", err);
        else
            e = take_message(job, bytes + at, own_bytes, err);
        at += MESSAGE_BYTES + own_bytes;
    }
    free(bytes);
    return e;
}

static void end_header(struct addition *a, const unsigned char prefix[HEADER_BYTES])
{
    unsigned char *header = a->bytes + HEAP_BYTES;
    const uint32_t n = (uint32_t)(a->n_bytes - HEAP_BYTES - HEADER_BYTES);
    memcpy(header, prefix, HEADER_BYTES); /* version and references stay */
    memcpy(header + 2, &a->n_messages, 2);
    memcpy(header + 8, &n, 4);
}

static enum oct_err make_addition(struct job *job, struct oct_error *err)
{
    struct addition *a = &job->new;
    unsigned char prefix[HEADER_BYTES] = {0};
    a->offset = padded(job->file_bytes); /* not before super.end */
    a->heap_bytes = HEAP_OBJECT_BYTES;   /* its head */
    enum oct_err e = read_header(job, prefix, err);
    e = e ? e : make_room(job, HEAP_BYTES + HEADER_BYTES, err);
    if (e != OCT_OK || !a->bytes)
        return e;
    a->n_bytes = HEAP_BYTES + HEADER_BYTES;
    for (unsigned i = 0; e == OCT_OK && i < job->n_chunks; i++) /* grows meanwhile */
        e = take_chunk(job, &job->chunks[i], err);
    for (unsigned i = 0; e == OCT_OK && i < job->n_texts; i++)
        if (job->texts[i].value)
            e = add_text(job, &job->texts[i], err);
    if (e != OCT_OK)
        return e;
    end_heap(a);
    end_header(a, prefix);
    return OCT_OK;
}

/* ---- the look of libhdf5 ---- */

struct inventory {
    bool readable;
    int n_attributes; /* but for the texts */
    int n_links;      /* of a recording's main ones */
};

#if H5_VERSION_GE(1, 12, 0)
#define OBJECT_INFO H5O_info2_t
#define GET_OBJECT_INFO H5Oget_info3
#else
#define OBJECT_INFO H5O_info_t
#define GET_OBJECT_INFO H5Oget_info2
#endif

static hid_t open_image(struct oct_hdf5_image *image, struct oct_hdf5_reason *reason)
{
    return oct_hdf5_image_open(image, H5F_ACC_RDONLY, 1, reason->text, sizeof(reason->text));
}

/* Asks nothing that a reader of the file does not ask: another question may crash libhdf5 where the
 * file is damaged. */
static struct inventory take_inventory(const struct job *job, hid_t file)
{
    static const char *const links[] = {"/frames", "/spectra", OCT_PACKED_SPECTRA, "/bscans",
                                        "/calibration"};
    OBJECT_INFO info;
    struct inventory found = {.readable = false};
    if (file < 0 || GET_OBJECT_INFO(file, &info, H5O_INFO_NUM_ATTRS) < 0)
        return found;
    found = (struct inventory){.readable = true, .n_attributes = (int)info.num_attrs};
    for (unsigned i = 0; i < job->n_texts; i++)
        found.n_attributes -= H5Aexists(file, job->texts[i].name) > 0;
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        found.n_links += H5Lexists(file, links[i], H5P_DEFAULT) > 0;
    return found;
}

static bool has_texts(const struct job *job, hid_t file)
{
    for (unsigned i = 0; i < job->n_texts; i++) {
        const struct oct_hdf5_root_text *text = &job->texts[i];
        char *found = oct_hdf5_text(file, text->name, 4096);
        const bool ok = text->value ? found && strcmp(found, text->value) == 0 : !found;
        free(found);
        if (!ok)
            return false;
    }
    return true;
}

/* Reads the file as it is and as it will be, both in memory. */
static enum oct_err try_out(const struct job *job, struct oct_error *err)
{
    const uint64_t end = job->new.offset + job->new.n_bytes, root = job->new.offset + HEAP_BYTES;
    struct oct_hdf5_image old_image, image;
    struct oct_hdf5_reason reason = {.text = "libhdf5 would not read it"};
    oct_hdf5_image_init(&old_image, job->fd, job->file_bytes);
    oct_hdf5_image_init(&image, job->fd, job->file_bytes);
    oct_hdf5_image_put(&image, job->new.offset, job->new.bytes, job->new.n_bytes);
    oct_hdf5_image_put(&image, job->super.end_at, &end, 8);
    oct_hdf5_image_put(&image, job->super.root_at, &root, 8);
    oct_hdf5_lock();
    hid_t old_file = open_image(&old_image, &reason), file = open_image(&image, &reason);
    const struct inventory before = take_inventory(job, old_file);
    const struct inventory after = take_inventory(job, file);
    const bool ok = before.readable && after.readable && before.n_links == after.n_links &&
                    before.n_attributes == after.n_attributes && has_texts(job, file) &&
                    !image.failed && !old_image.failed;
    if (file >= 0)
        H5Fclose(file);
    if (old_file >= 0)
        H5Fclose(old_file);
    oct_hdf5_unlock();
    oct_hdf5_image_finish(&image);
    oct_hdf5_image_finish(&old_image);
    return ok ? OCT_OK : refuse(job, reason.text, err);
}

/* ---- the disk ---- */

/* Writes and syncs; `otherwise` says what the file has if that fails. */
static enum oct_err put(const struct job *job, const void *bytes, size_t n_bytes, uint64_t offset,
                        const char *otherwise, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (!oct_file_write_at(job->fd, bytes, n_bytes, offset))
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", job->path);
    else if (TEMP_FAILURE_RETRY(fdatasync(job->fd)) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot sync: it has %s", job->path,
                           otherwise);
    return e;
}

/* Nothing points at it yet, and a file that is longer than its superblock says is whole. */
static enum oct_err append(const struct job *job, struct oct_error *err)
{
    enum oct_err e =
        put(job, job->new.bytes, job->new.n_bytes, job->new.offset, "the old label", err);
    if (e != OCT_OK) {
        int ignored = ftruncate(job->fd, (off_t)job->file_bytes); /* else it is only longer */
        (void)ignored;
    }
    return e;
}

/* Three syncs, in this order: the superblock never names an end that the disk does not have yet,
 * nor a root beyond the end that it names. Each of the two writes lies within a sector. */
static enum oct_err move_root(const struct job *job, struct oct_error *err)
{
    const uint64_t end = job->new.offset + job->new.n_bytes, root = job->new.offset + HEAP_BYTES;
    enum oct_err e = put(job, &end, 8, job->super.end_at, "the old label", err);
    e = e ? e : put(job, &root, 8, job->super.root_at, "the old label or the new one", err);
    return e;
}

/* texts: [n], n <= OCT_HDF5_ROOT_TEXTS. fd may be read and written, and nobody else changes the
 * file meanwhile; `path` names it in errors. Not under the lock of hdf5_lock.h, which it takes.
 *
 * OCT_E_FORMAT: it has a newer layout, or is damaged; OCT_E_IO, OCT_E_NO_SPACE, OCT_E_NO_MEMORY.
 * After any of them the file has the texts that it had, but for a failure of the last sync, whose
 * message says that it may have either. */
static enum oct_err put_root_texts(int fd, const char *path, const struct oct_hdf5_root_text *texts,
                                   unsigned n, struct oct_error *err)
{
    struct stat st;
    struct job job = {.fd = fd, .path = path, .texts = texts, .n_texts = n};
    if (n > OCT_HDF5_ROOT_TEXTS)
        return oct_fail(err, OCT_E_ARG, "%s: %u texts at once", path, n);
    if (fstat(fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    job.file_bytes = (uint64_t)st.st_size;
    enum oct_err e = read_superblock(&job, err);
    e = e ? e : make_addition(&job, err);
    e = e ? e : try_out(&job, err);
    e = e ? e : append(&job, err);
    e = e ? e : move_root(&job, err);
    free(job.new.bytes);
    return e;
}

static const char *const mark_names[OCT_N_MARKS] = {"none", "keep", "repeat"};

const char *oct_volume_mark_name(enum oct_volume_mark mark)
{
    return mark_names[mark];
}

bool oct_volume_mark_of(const char *name, enum oct_volume_mark *mark)
{
    *mark = OCT_MARK_NONE;
    for (int i = 0; *name && i < OCT_N_MARKS; i++) {
        if (strcmp(name, mark_names[i]) != 0)
            continue;
        *mark = (enum oct_volume_mark)i;
        return true;
    }
    return !*name;
}

enum oct_err oct_volume_label_read(const char *path, struct oct_volume_label *label,
                                   struct oct_error *err)
{
    struct oct_volume_reader *reader;
    *label = (struct oct_volume_label){.mark = OCT_MARK_NONE};
    enum oct_err e = oct_volume_open(&reader, path, err);
    if (e != OCT_OK)
        return e;
    const struct oct_volume_facts *f = oct_volume_facts(reader);
    snprintf(label->eye, sizeof(label->eye), "%s", f->eye);
    snprintf(label->pseudonym, sizeof(label->pseudonym), "%s", f->pseudonym);
    oct_volume_mark_of(f->mark, &label->mark);
    oct_volume_reader_destroy(reader);
    return OCT_OK;
}

static enum oct_err check_change(const struct oct_volume_label_change *change,
                                 struct oct_error *err)
{
    if (change->mark && (unsigned)*change->mark >= OCT_N_MARKS)
        return oct_fail(err, OCT_E_ARG, "there is no such mark");
    if (change->eye && *change->eye && strcmp(change->eye, "OD") != 0 &&
        strcmp(change->eye, "OS") != 0)
        return oct_fail(err, OCT_E_ARG, "eye %s: there is OD (right) and OS (left)", change->eye);
    if (!change->pseudonym)
        return OCT_OK;
    const size_t n = strlen(change->pseudonym);
    char line[OCT_LABEL_PSEUDONYM_BYTES];
    if (n >= sizeof(line))
        return oct_fail(err, OCT_E_ARG, "the pseudonym has %zu bytes: at most %zu are possible", n,
                        sizeof(line) - 1);
    memcpy(line, change->pseudonym, n + 1);
    oct_utf8_make_line(line);
    if (strcmp(line, change->pseudonym) != 0)
        return oct_fail(err, OCT_E_ARG,
                        "the pseudonym has control characters, or bytes that are no UTF-8");
    return OCT_OK;
}

/* ---- the file ---- */

/* The texts that differ; returns how many. */
static unsigned differences(const struct oct_volume_label *now,
                            const struct oct_volume_label_change *change,
                            struct oct_hdf5_root_text texts[3])
{
    unsigned n = 0;
    if (change->eye && strcmp(change->eye, now->eye) != 0)
        texts[n++] = (struct oct_hdf5_root_text){"eye", change->eye};
    if (change->pseudonym && strcmp(change->pseudonym, now->pseudonym) != 0)
        texts[n++] = (struct oct_hdf5_root_text){"pseudonym", change->pseudonym};
    if (change->mark && *change->mark != now->mark)
        texts[n++] =
            (struct oct_hdf5_root_text){"mark", *change->mark ? mark_names[*change->mark] : NULL};
    return n;
}

static void apply(struct oct_volume_label *label, const struct oct_volume_label_change *change)
{
    if (change->eye)
        snprintf(label->eye, sizeof(label->eye), "%s", change->eye);
    if (change->pseudonym)
        snprintf(label->pseudonym, sizeof(label->pseudonym), "%s", change->pseudonym);
    if (change->mark)
        label->mark = *change->mark;
}

enum oct_err oct_volume_label_write(const char *path, const struct oct_volume_label_change *change,
                                    struct oct_volume_label *label, struct oct_error *err)
{
    struct oct_volume_label now;
    struct oct_hdf5_root_text texts[3];
    int fd = -1;
    enum oct_err e = check_change(change, err);
    if (e != OCT_OK)
        return e;
    e = oct_volume_closed_open(&fd, path, true, err);
    e = e ? e : oct_volume_label_read(path, &now, err);
    const unsigned n = e == OCT_OK ? differences(&now, change, texts) : 0;
    if (n > 0)
        e = put_root_texts(fd, path, texts, n, err);
    if (fd >= 0)
        close(fd); /* and the locks go */
    if (e == OCT_OK && label) {
        apply(&now, change);
        *label = now;
    }
    return e;
}
