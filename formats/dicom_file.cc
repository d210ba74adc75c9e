#include "formats/dicom_file.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dcostrmb.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmdata/dcwcache.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>
#include <dcmtk/oflog/oflog.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace
{

/* An item, and its sequence that was begun last. */
struct level {
    DcmItem *item;
    DcmSequenceOfItems *sequence;
    uint32_t tag; /* of `sequence` */
};

DcmTag tag_of(uint32_t tag, const char *vr)
{
    return DcmTag(static_cast<Uint16>(tag >> 16), static_cast<Uint16>(tag & 0xffff), DcmVR(vr));
}

} // namespace

struct oct_dicom_set {
    DcmFileFormat file;
    std::vector<level> levels; /* the data set, then items within one another */
    enum oct_err failure;
    uint32_t failed_tag;
    std::string why;
};

namespace
{

void note(oct_dicom_set *set, enum oct_err e, uint32_t tag, const char *why)
{
    if (set->failure)
        return;
    set->failure = e;
    set->failed_tag = tag;
    try {
        set->why = why;
    } catch (...) { /* the code is kept */
    }
}

/* Runs what puts one attribute, unless the set has failed: exceptions end here. */
template <typename F> void attempt(oct_dicom_set *set, uint32_t tag, F put)
{
    if (set->failure)
        return;
    try {
        const OFCondition condition = put(set->levels.back());
        if (condition.bad())
            note(set, OCT_E_FORMAT, tag, condition.text());
    } catch (const std::bad_alloc &) {
        note(set, OCT_E_NO_MEMORY, tag, "out of memory");
    } catch (...) {
        note(set, OCT_E_FORMAT, tag, "an exception of DCMTK");
    }
}

OFCondition insert(DcmItem *item, DcmElement *element)
{
    const OFCondition condition = item->insert(element, OFTrue);
    if (condition.bad())
        delete element;
    return condition;
}

void write_all(DcmFileFormat &file, std::vector<unsigned char> &all, OFCondition &condition)
{
    std::vector<unsigned char> room(1 << 16);
    DcmOutputBufferStream stream(room.data(), static_cast<offile_off_t>(room.size()));
    DcmWriteCache cache;
    file.transferInit();
    do {
        void *filled = nullptr;
        offile_off_t n = 0;
        condition = file.write(stream, EXS_LittleEndianExplicit, EET_ExplicitLength, &cache,
                               EGL_withoutGL, EPD_withoutPadding);
        stream.flushBuffer(filled, n);
        const unsigned char *at = static_cast<unsigned char *>(filled);
        all.insert(all.end(), at, at + n);
    } while (condition == EC_StreamNotifyClient);
    file.transferEnd();
}

} // namespace

struct oct_dicom_set *oct_dicom_set_create(void)
{
    try {
        OFLog::configure(OFLogger::OFF_LOG_LEVEL);
        oct_dicom_set *set = new oct_dicom_set();
        set->levels.push_back({set->file.getDataset(), nullptr, 0});
        return set;
    } catch (...) {
        return nullptr;
    }
}

void oct_dicom_set_destroy(struct oct_dicom_set *set)
{
    delete set;
}

void oct_dicom_put_text(struct oct_dicom_set *set, uint32_t tag, const char *vr, const char *text)
{
    attempt(set, tag, [=](level &l) {
        DcmElement *element = nullptr;
        OFCondition condition = DcmItem::newDicomElementWithVR(element, tag_of(tag, vr));
        if (condition.bad())
            return condition;
        condition = element->putString(text);
        if (condition.bad()) {
            delete element;
            return condition;
        }
        condition = insert(l.item, element);
        return condition.bad() || !text[0] ? condition : element->checkValue();
    });
}

void oct_dicom_put_decimals(struct oct_dicom_set *set, uint32_t tag, const double *values,
                            unsigned n)
{
    enum { MOST = 6, ROOM = 32 };
    char text[MOST * ROOM] = "";
    size_t length = 0;
    if (n > MOST) {
        note(set, OCT_E_ARG, tag, "too many values");
        return;
    }
    for (unsigned i = 0; i < n; i++)
        length += static_cast<size_t>(std::snprintf(text + length, ROOM, "%s%.10g", i ? "\\" : "",
                                                    values[i] == 0 ? 0. : values[i]));
    oct_dicom_put_text(set, tag, "DS", text);
}

void oct_dicom_put_u16(struct oct_dicom_set *set, uint32_t tag, uint16_t value)
{
    attempt(set, tag,
            [=](level &l) { return l.item->putAndInsertUint16(tag_of(tag, "US"), value); });
}

void oct_dicom_put_u32(struct oct_dicom_set *set, uint32_t tag, const uint32_t *values, unsigned n)
{
    attempt(set, tag, [=](level &l) {
        DcmUnsignedLong *element = new DcmUnsignedLong(tag_of(tag, "UL"));
        const OFCondition condition = element->putUint32Array(values, n);
        if (condition.good())
            return insert(l.item, element);
        delete element;
        return condition;
    });
}

void oct_dicom_put_f32(struct oct_dicom_set *set, uint32_t tag, const float *values, unsigned n)
{
    attempt(set, tag, [=](level &l) {
        DcmFloatingPointSingle *element = new DcmFloatingPointSingle(tag_of(tag, "FL"));
        const OFCondition condition = element->putFloat32Array(values, n);
        if (condition.good())
            return insert(l.item, element);
        delete element;
        return condition;
    });
}

void oct_dicom_put_f64(struct oct_dicom_set *set, uint32_t tag, double value)
{
    attempt(set, tag,
            [=](level &l) { return l.item->putAndInsertFloat64(tag_of(tag, "FD"), value); });
}

void oct_dicom_put_tag(struct oct_dicom_set *set, uint32_t tag, uint32_t value)
{
    attempt(set, tag, [=](level &l) {
        return l.item->putAndInsertTagKey(
            tag_of(tag, "AT"),
            DcmTagKey(static_cast<Uint16>(value >> 16), static_cast<Uint16>(value & 0xffff)));
    });
}

void oct_dicom_put_bytes(struct oct_dicom_set *set, uint32_t tag, const unsigned char *bytes,
                         size_t n)
{
    attempt(set, tag,
            [=](level &l) { return l.item->putAndInsertUint8Array(tag_of(tag, "OB"), bytes, n); });
}

void oct_dicom_put_no_items(struct oct_dicom_set *set, uint32_t tag)
{
    attempt(set, tag,
            [=](level &l) { return insert(l.item, new DcmSequenceOfItems(tag_of(tag, "SQ"))); });
}

void oct_dicom_begin(struct oct_dicom_set *set, uint32_t tag)
{
    attempt(set, tag, [=](level &l) {
        OFCondition condition = EC_Normal;
        if (!l.sequence || l.tag != tag) {
            DcmSequenceOfItems *sequence = new DcmSequenceOfItems(tag_of(tag, "SQ"));
            condition = insert(l.item, sequence);
            if (condition.bad())
                return condition;
            l.sequence = sequence;
            l.tag = tag;
        }
        DcmItem *item = new DcmItem();
        condition = l.sequence->append(item);
        if (condition.bad())
            delete item;
        else
            set->levels.push_back({item, nullptr, 0}); /* l is not used any more */
        return condition;
    });
}

void oct_dicom_end(struct oct_dicom_set *set)
{
    if (set->failure)
        return;
    if (set->levels.size() > 1)
        set->levels.pop_back();
    else
        note(set, OCT_E_STATE, 0, "an item is ended that was not begun");
}

enum oct_err oct_dicom_encode(struct oct_dicom_set *set, unsigned char **bytes, size_t *n,
                              struct oct_error *err)
{
    *bytes = nullptr;
    *n = 0;
    if (!set->failure && set->levels.size() != 1)
        note(set, OCT_E_STATE, set->levels.front().tag, "an item is not ended");
    /* The file's own header, which DCMTK makes, has its representations from there. */
    if (!set->failure && !dcmDataDict.isDictionaryLoaded())
        return oct_fail(err, OCT_E_IO,
                        "DCMTK's data dictionary cannot be read: install libdcmtk's package whole, "
                        "or name a dicom.dic by DCMDICTPATH");
    attempt(set, 0, [=](level &) {
        std::vector<unsigned char> all;
        OFCondition condition;
        write_all(set->file, all, condition);
        if (condition.bad())
            return condition;
        *bytes = static_cast<unsigned char *>(std::malloc(all.size()));
        if (!*bytes)
            throw std::bad_alloc();
        std::memcpy(*bytes, all.data(), all.size());
        *n = all.size();
        return condition;
    });
    if (!set->failure)
        return OCT_OK;
    return oct_fail(err, set->failure, "the DICOM attribute (%04x,%04x): %s", set->failed_tag >> 16,
                    set->failed_tag & 0xffff, set->why.c_str());
}

/* ---- packed frames ---- */

struct oct_dicom_frames {
    std::string path;
    DcmFileFormat file;
    DcmElement *pixels;
};

namespace
{

bool register_codecs()
{
    OFLog::configure(OFLogger::OFF_LOG_LEVEL);
    DJDecoderRegistration::registerCodecs();
    DJLSDecoderRegistration::registerCodecs();
    return true;
}

/* Runs what reads; exceptions end here. */
template <typename F>
enum oct_err read_by(const char *path, const char *what, F read, struct oct_error *err)
{
    try {
        const OFCondition condition = read();
        return condition.good() ? OCT_OK
                                : oct_fail(err, OCT_E_FORMAT, "%s: damaged DICOM: %s: %s", path,
                                           what, condition.text());
    } catch (const std::bad_alloc &) {
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    } catch (...) {
        return oct_fail(err, OCT_E_FORMAT, "%s: damaged DICOM: %s", path, what);
    }
}

} // namespace

enum oct_err oct_dicom_frames_open(struct oct_dicom_frames **frames, const char *path,
                                   struct oct_error *err)
{
    oct_dicom_frames *f = nullptr;
    *frames = nullptr;
    const enum oct_err e = read_by(
        path, "it cannot be read",
        [&] {
            static const bool has_codecs = register_codecs();
            (void)has_codecs;
            f = new oct_dicom_frames();
            f->path = path;
            const OFCondition condition = f->file.loadFile(path);
            return condition.bad()
                       ? condition
                       : f->file.getDataset()->findAndGetElement(DCM_PixelData, f->pixels);
        },
        err);
    if (e)
        delete f;
    else
        *frames = f;
    return e;
}

void oct_dicom_frames_close(struct oct_dicom_frames *frames)
{
    delete frames;
}

enum oct_err oct_dicom_frames_read(struct oct_dicom_frames *frames, uint32_t number,
                                   unsigned char *bytes, size_t n, struct oct_error *err)
{
    oct_dicom_frames *f = frames;
    DcmDataset *set = f->file.getDataset();
    const auto read = [&] {
        OFString colours;
        Uint32 fragment = number + 1; /* the first is the table of offsets */
        Uint32 size = 0;
        OFCondition condition = f->pixels->getUncompressedFrameSize(set, size);
        if (condition.good() && size != n)
            condition = EC_IllegalParameter;
        if (condition.good())
            condition = f->pixels->getUncompressedFrame(set, number, fragment, bytes,
                                                        size + size % 2, colours);
        return condition.good() && colours != "MONOCHROME2" ? EC_IllegalParameter : condition;
    };
    return read_by(f->path.c_str(), "a frame cannot be unpacked", read, err);
}
