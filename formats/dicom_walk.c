#include "formats/dicom_walk.h"

#include <inttypes.h>
#include <string.h>

#define FIRST_BYTE 132u        /* behind the preamble and "DICM" */
#define MOST_DEPTH 32u         /* of sequences and items */
#define MOST_ELEMENTS 4000000u /* 100,000 frames have about half of that */
#define ITEM_END 0xfffee00du
#define SEQUENCE_END 0xfffee0ddu
#define BLOCK_BYTES 65536u
#define IMPLICIT "1.2.840.10008.1.2"
#define DEFLATED "1.2.840.10008.1.2.1.99"
#define BIG_ENDIAN "1.2.840.10008.1.2.2"

/* A sequence (packed pixels, too), one of its items, or the file. */
struct level {
    bool has_items; /* else elements */
    uint32_t tag;   /* of the sequence; of an item that of its sequence */
    uint64_t end;   /* in the file */
    bool is_open;   /* it ends with a mark, at `end` at the latest */
    bool implicit;  /* elements in it have no value representation, VR */
};

struct walk {
    const struct oct_picture_file *file;
    oct_dicom_taker *take;
    void *context;
    uint64_t at;
    struct level levels[MOST_DEPTH]; /* [n], the first is the file */
    unsigned n, n_elements;
    bool is_meta, implicit; /* within the file's own header, group 2; of the data set behind it */
    uint64_t block_at;
    size_t n_block;
    unsigned char block[BLOCK_BYTES];
};

static enum oct_err refuse(const struct walk *w, const char *what, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: damaged or truncated DICOM, at byte %" PRIu64 ": %s",
                    w->file->path, w->at, what);
}

/* n bytes at `at`, which lie in the file; valid until the next call. */
static enum oct_err look(struct walk *w, uint64_t at, size_t n, const unsigned char **bytes,
                         struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (at < w->block_at || at + n > w->block_at + w->n_block) {
        const uint64_t left = w->file->file_bytes - at;
        w->n_block = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
        w->block_at = at;
        e = oct_picture_file_read_at(w->file, at, w->block, w->n_block, err);
    }
    *bytes = w->block + (at - w->block_at);
    return e;
}

static uint32_t u16_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t tag_at(const unsigned char *at)
{
    return u16_at(at) << 16 | u16_at(at + 2);
}

static uint32_t u32_at(const unsigned char *at)
{
    return u16_at(at) | u16_at(at + 2) << 16;
}

static bool is_one_of(const unsigned char *vr, const char *list)
{
    for (; *list; list += 2)
        if (memcmp(vr, list, 2) == 0)
            return true;
    return false;
}

struct header {
    uint32_t tag, n_bytes;
    unsigned header_bytes;
    bool is_sequence, implicit; /* what is in it has no VR */
};

static enum oct_err read_header(struct walk *w, struct header *h, struct oct_error *err)
{
    struct level *in = &w->levels[w->n - 1];
    const uint64_t left = in->end - w->at;
    const unsigned char *at;
    enum oct_err e = left < 8 ? refuse(w, "an element is cut", err)
                              : look(w, w->at, left < 12 ? 8 : 12, &at, err);
    if (e)
        return e;
    *h = (struct header){.tag = tag_at(at), .n_bytes = u32_at(at + 4), .header_bytes = 8};
    if (w->is_meta && w->n == 1 && h->tag >> 16 != 2) { /* the data set begins */
        w->is_meta = false;
        in->implicit = w->implicit;
    }
    h->implicit = in->implicit;
    if (h->tag >> 16 == 0xfffe)
        return OCT_OK;
    if (in->implicit) { /* a sequence is known by the item that it begins with */
        h->is_sequence = h->n_bytes == UINT32_MAX ||
                         (h->n_bytes >= 8 && left >= 12 && tag_at(at + 8) == OCT_DICOM_ITEM);
        return OCT_OK;
    }
    h->is_sequence = memcmp(at + 4, "SQ", 2) == 0;
    if (is_one_of(at + 4, "AEASATCSDADSDTFLFDISLOLTPNSHSLSSSTTMUIULUS")) {
        h->n_bytes = u16_at(at + 6);
        return OCT_OK;
    }
    if (left < 12 || !is_one_of(at + 4, "OBODOFOLOVOWSQSVUCUNURUTUV"))
        return refuse(w, "no value representation", err);
    h->header_bytes = 12;
    h->n_bytes = u32_at(at + 8);
    if (h->n_bytes == UINT32_MAX && memcmp(at + 4, "UN", 2) == 0)
        h->is_sequence = h->implicit = true;
    return OCT_OK;
}

/* How the data set lies behind the file's own header. */
static enum oct_err take_syntax(struct walk *w, const struct oct_dicom_element *e,
                                struct oct_error *err)
{
    char uid[OCT_DICOM_VALUE_BYTES + 1] = "";
    if (e->value)
        memcpy(uid, e->value, e->n_bytes);
    uid[strcspn(uid, " ")] = '\0'; /* some pad so */
    w->implicit = strcmp(uid, IMPLICIT) == 0;
    if (strcmp(uid, DEFLATED) == 0 || strcmp(uid, BIG_ENDIAN) == 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: a deflated or big-endian DICOM file, which is not read; convert it: "
                        "dcmconv +te IN OUT",
                        w->file->path);
    return OCT_OK;
}

static enum oct_err take_element(struct walk *w, const struct header *h, struct oct_error *err)
{
    struct oct_dicom_element e = {.tag = h->tag,
                                  .sequence = w->levels[w->n - 1].tag,
                                  .outer = w->n > 1 ? w->levels[1].tag : 0,
                                  .n_around = w->n / 2, /* a sequence, its item, ... */
                                  .offset = w->at + h->header_bytes,
                                  .n_bytes = h->n_bytes};
    enum oct_err code = OCT_OK;
    if (++w->n_elements > MOST_ELEMENTS)
        return refuse(w, "more elements than any image has", err);
    if (h->n_bytes <= OCT_DICOM_VALUE_BYTES && !h->is_sequence && h->tag != OCT_DICOM_ITEM)
        code = look(w, e.offset, h->n_bytes, &e.value, err);
    if (!code && w->is_meta && h->tag == OCT_DICOM_SYNTAX)
        code = take_syntax(w, &e, err);
    return code ? code : w->take(w->context, &e, err);
}

static enum oct_err step(struct walk *w, struct oct_error *err)
{
    const struct level in = w->levels[w->n - 1];
    struct header h;
    enum oct_err e = read_header(w, &h, err);
    if (e)
        return e;
    const bool is_open = h.n_bytes == UINT32_MAX, is_item = h.tag == OCT_DICOM_ITEM;
    if (h.tag == ITEM_END || h.tag == SEQUENCE_END) {
        if (!in.is_open || in.has_items != (h.tag == SEQUENCE_END))
            return refuse(w, "an end without a beginning", err);
        w->at += 8;
        w->n--;
        return OCT_OK;
    }
    if (is_item != in.has_items)
        return refuse(w, "no item where one is due, or one where none is", err);
    const bool is_entered = is_item ? in.tag != OCT_DICOM_PIXELS
                                    : h.is_sequence || (is_open && h.tag == OCT_DICOM_PIXELS);
    if (is_open ? !is_entered : h.n_bytes > in.end - w->at - h.header_bytes)
        return refuse(
            w, is_open ? "an element without an end" : "an element is longer than what it lies in",
            err);
    if (is_entered && w->n == MOST_DEPTH)
        return refuse(w, "sequences lie in one another deeper than in any image", err);
    if ((e = take_element(w, &h, err)))
        return e;
    w->at += h.header_bytes;
    if (is_entered)
        w->levels[w->n++] =
            (struct level){!is_item, is_item ? in.tag : h.tag, is_open ? in.end : w->at + h.n_bytes,
                           is_open, h.implicit};
    else
        w->at += h.n_bytes;
    return OCT_OK;
}

enum oct_err oct_dicom_walk(const struct oct_picture_file *file, oct_dicom_taker *take,
                            void *context, struct oct_error *err)
{
    struct walk w = {file,   take,           context, FIRST_BYTE, {{.end = file->file_bytes}},
                     .n = 1, .is_meta = true};
    enum oct_err e = OCT_OK;
    if (file->file_bytes < FIRST_BYTE)
        return refuse(&w, "its header is cut", err);
    while (!e && (w.n > 1 || w.at < file->file_bytes)) {
        const struct level *in = &w.levels[w.n - 1];
        if (w.n > 1 && !in->is_open && w.at == in->end)
            w.n--;
        else
            e = step(&w, err);
    }
    return e;
}
