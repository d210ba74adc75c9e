#include "formats/dicom_texts.h"

#include "formats/dicom_walk.h"
#include "pipeline/base/utf8.h"

#include <iconv.h>
#include <string.h>
#include <unistd.h>

#define CHARACTER_SET 0x00080005u
#define SET_BYTES 64u

struct reading {
    const struct oct_picture_file *file;
    const struct oct_dicom_text *texts;
    unsigned n;
    bool is_whole;
    char set[SET_BYTES];
};

static enum oct_err take_value(const struct oct_picture_file *file,
                               const struct oct_dicom_element *element, char *text, size_t bytes,
                               bool *is_whole, struct oct_error *err)
{
    if (text[0] || !element->n_bytes)
        return OCT_OK;
    if (element->n_bytes >= bytes) {
        *is_whole = false;
        return OCT_OK;
    }
    const enum oct_err e =
        oct_picture_file_read_at(file, element->offset, text, element->n_bytes, err);
    text[e ? 0 : element->n_bytes] = '\0';
    return e;
}

static enum oct_err take_element(void *context, const struct oct_dicom_element *element,
                                 struct oct_error *err)
{
    struct reading *r = context;
    if (element->tag == CHARACTER_SET && !element->sequence)
        return take_value(r->file, element, r->set, sizeof(r->set), &r->is_whole, err);
    for (unsigned i = 0; i < r->n; i++)
        if (element->tag == r->texts[i].tag && element->sequence == r->texts[i].sequence)
            return take_value(r->file, element, r->texts[i].text, r->texts[i].bytes, &r->is_whole,
                              err);
    return OCT_OK;
}

/* What iconv calls the set; NULL: ASCII, or one that is not read. */
static const char *iconv_name(const char *set)
{
    static const char *const names[][2] = {
        {"ISO_IR 192", "UTF-8"},
        {"ISO_IR 100", "ISO-8859-1"},
        {"ISO_IR 101", "ISO-8859-2"},
        {"ISO_IR 109", "ISO-8859-3"},
        {"ISO_IR 110", "ISO-8859-4"},
        {"ISO_IR 144", "ISO-8859-5"},
        {"ISO_IR 127", "ISO-8859-6"},
        {"ISO_IR 126", "ISO-8859-7"},
        {"ISO_IR 138", "ISO-8859-8"},
        {"ISO_IR 148", "ISO-8859-9"},
        {"ISO_IR 166", "TIS-620"},
        {"GB18030", "GB18030"},
        {"GBK", "GBK"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(set, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static void trim(char *text)
{
    const size_t n = strspn(text, " ");
    size_t end = strlen(text);
    while (end > n && text[end - 1] == ' ')
        end--;
    memmove(text, text + n, end - n);
    text[end - n] = '\0';
}

/* False: it holds what cannot be converted, or not into its room; it is as it was then. */
static bool convert(const char *from, const struct oct_dicom_text *text)
{
    char whole[1024];
    char *in = text->text, *out = whole;
    size_t n_in = strlen(in), n_out = sizeof(whole) - 1;
    if (!from)
        return false;
    const iconv_t cd = iconv_open("UTF-8", from);
    if (cd == (iconv_t)-1) /* NOLINT(performance-no-int-to-ptr): POSIX's */
        return false;
    const bool is_good = iconv(cd, &in, &n_in, &out, &n_out) != (size_t)-1 &&
                         sizeof(whole) - 1 - n_out < text->bytes;
    iconv_close(cd);
    *out = '\0';
    if (is_good)
        memcpy(text->text, whole, (size_t)(out - whole) + 1);
    return is_good;
}

static unsigned count_marks(const char *text)
{
    unsigned n = 0;
    for (; *text; text++)
        n += *text == '?';
    return n;
}

static bool is_ascii(const char *text)
{
    while (*text && (unsigned char)*text < 128)
        text++;
    return !*text;
}

enum oct_err oct_dicom_texts_read(const char *path, const struct oct_dicom_text *texts, unsigned n,
                                  bool *is_whole, struct oct_error *err)
{
    struct oct_picture_file file = {.path = (char *)path, .fd = -1};
    struct reading r = {.file = &file, .texts = texts, .n = n, .is_whole = true};
    for (unsigned i = 0; i < n; i++)
        memset(texts[i].text, 0, texts[i].bytes);
    enum oct_err e = oct_picture_file_hold(&file, err);
    e = e ? e : oct_dicom_walk(&file, take_element, &r, err);
    if (file.fd >= 0)
        close(file.fd);
    r.set[strcspn(r.set, "\\")] = '\0';
    trim(r.set);
    for (unsigned i = 0; i < n; i++) {
        const bool is_good =
            is_ascii(texts[i].text) || convert(r.set[0] ? iconv_name(r.set) : "UTF-8", &texts[i]);
        const unsigned n_marks = count_marks(texts[i].text);
        oct_utf8_make_line(texts[i].text);
        r.is_whole = r.is_whole && is_good && count_marks(texts[i].text) == n_marks;
        trim(texts[i].text);
    }
    if (is_whole)
        *is_whole = r.is_whole;
    return e;
}
