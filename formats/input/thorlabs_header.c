#include "formats/input/thorlabs_header.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <expat.h>

#define MOST_FILES ((size_t)1 << 17)
#define MOST_DEPTH 32u

/* Elements whose text is a number. */
static const struct {
    const char *path;
    size_t at;
} numbers[] = {
    {"/Ocity/Instrument/BytesPerPixel", offsetof(struct oct_thorlabs_header, bytes)},
    {"/Ocity/Instrument/BitDepth", offsetof(struct oct_thorlabs_header, bits)},
    {"/Ocity/Instrument/BinaryToElectronCountScaling",
     offsetof(struct oct_thorlabs_header, electrons)},
    {"/Ocity/Instrument/CentralWavelength", offsetof(struct oct_thorlabs_header, lambda_nm)},
    {"/Ocity/Instrument/SourceBandwidth", offsetof(struct oct_thorlabs_header, width_nm)},
    {"/Ocity/Instrument/CameraLineRate", offsetof(struct oct_thorlabs_header, line_rate_hz)},
    {"/Ocity/Acquisition/RefractiveIndex", offsetof(struct oct_thorlabs_header, refractive_index)},
    {"/Ocity/Acquisition/Timestamp", offsetof(struct oct_thorlabs_header, timestamp_s)},
    {"/Ocity/Image/SizeReal/SizeX", offsetof(struct oct_thorlabs_header, x_mm)},
    {"/Ocity/Image/SizeReal/SizeY", offsetof(struct oct_thorlabs_header, y_mm)},
    {"/Ocity/Image/SizeReal/SizeZ", offsetof(struct oct_thorlabs_header, z_mm)},
    {"/Ocity/Image/SizePixel/SizeZ", offsetof(struct oct_thorlabs_header, z_px)},
    {"/Ocity/Image/PixelSpacing/SizeZ", offsetof(struct oct_thorlabs_header, z_spacing_mm)},
};

struct reading {
    struct oct_thorlabs_header *header;
    XML_Parser parser;
    char path[256]; /* "/Ocity/Image", without what lies deeper than it has room for */
    unsigned depth, n_in_path;
    char text[128];
    size_t n_text;
    struct oct_thorlabs_file file; /* of the DataFile that is open */
    bool is_ocity, is_out_of_memory, is_refused;
};

static void stop(struct reading *r, bool *why)
{
    *why = true;
    XML_StopParser(r->parser, XML_FALSE);
}

/* 0 where it is no whole number. */
static uint64_t count_of(const char *text)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return 0;
    const unsigned long long count = strtoull(text, &end, 10);
    return *end || count > UINT32_MAX ? 0 : count;
}

static void read_attributes(struct oct_thorlabs_file *file, const char **attributes)
{
    *file = (struct oct_thorlabs_file){.n_samples = 0};
    for (; attributes[0]; attributes += 2) {
        const char *key = attributes[0], *value = attributes[1];
        if (strcmp(key, "Type") == 0)
            snprintf(file->type, sizeof(file->type), "%s", value);
        else if (strcmp(key, "SizeZ") == 0)
            file->n_samples = count_of(value);
        else if (strcmp(key, "SizeX") == 0)
            file->n_lines = count_of(value);
        else if (strcmp(key, "BytesPerPixel") == 0)
            file->bytes = count_of(value);
        else if (strcmp(key, "ApoRegionStart0") == 0)
            file->apo_first = count_of(value);
        else if (strcmp(key, "ApoRegionEnd0") == 0)
            file->apo_end = count_of(value);
        else if (strcmp(key, "ScanRegionStart0") == 0)
            file->scan_first = count_of(value);
        else if (strcmp(key, "ScanRegionEnd0") == 0)
            file->scan_end = count_of(value);
        else if (strcmp(key, "ScanRegionStart1") == 0)
            file->has_more = true;
    }
    file->has_apo = file->apo_end > file->apo_first;
    file->has_scan = file->scan_end > file->scan_first;
}

static void XMLCALL on_start(void *context, const char *element, const char **attributes)
{
    struct reading *r = context;
    const size_t n = strlen(r->path);
    if (r->depth++ == r->n_in_path && r->n_in_path < MOST_DEPTH &&
        n + strlen(element) + 2 <= sizeof(r->path)) {
        snprintf(r->path + n, sizeof(r->path) - n, "/%s", element);
        r->n_in_path++;
    }
    r->n_text = 0;
    if (r->depth == 1)
        r->is_ocity = strcmp(element, "Ocity") == 0;
    if (r->depth == r->n_in_path && strcmp(r->path, "/Ocity/DataFiles/DataFile") == 0)
        read_attributes(&r->file, attributes);
}

static void XMLCALL on_text(void *context, const char *text, int n_bytes)
{
    struct reading *r = context;
    size_t n = (size_t)n_bytes;
    if (n > sizeof(r->text) - 1 - r->n_text)
        n = sizeof(r->text) - 1 - r->n_text;
    memcpy(r->text + r->n_text, text, n);
    r->n_text += n;
}

/* "data\Spectral0.data": Spectral0. Files of another form are none of a recording. */
static void name_file(struct oct_thorlabs_file *file, const char *entry)
{
    static const char end[] = ".data";
    const size_t n = strlen(entry), n_end = strlen(end);
    const char *name = entry;
    for (const char *c = entry; *c; c++)
        if (*c == '\\' || *c == '/')
            name = c + 1;
    const size_t n_name = n - (size_t)(name - entry);
    if (n >= sizeof(file->entry) || n_name <= n_end || n_name - n_end >= sizeof(file->name) ||
        strcmp(entry + n - n_end, end) != 0)
        return;
    memcpy(file->entry, entry, n + 1);
    memcpy(file->name, name, n_name - n_end);
    file->name[n_name - n_end] = '\0';
}

static void add_file(struct reading *r, const char *entry)
{
    struct oct_thorlabs_header *h = r->header;
    name_file(&r->file, entry);
    if (!r->file.name[0])
        return;
    if (h->n_files == h->room) {
        const size_t room = h->room ? h->room * 2 : 64;
        struct oct_thorlabs_file *files =
            room <= MOST_FILES ? realloc(h->files, room * sizeof(*files)) : NULL;
        if (!files) {
            stop(r, &r->is_out_of_memory);
            return;
        }
        h->files = files;
        h->room = room;
    }
    h->files[h->n_files++] = r->file;
}

static const char *trimmed(struct reading *r)
{
    static const char blanks[] = " \t\r\n";
    while (r->n_text > 0 && strchr(blanks, r->text[r->n_text - 1]))
        r->n_text--;
    r->text[r->n_text] = '\0';
    return r->text + strspn(r->text, blanks);
}

static void take_text(struct reading *r, const char *text)
{
    char *end;
    if (strcmp(r->path, "/Ocity/DataFiles/DataFile") == 0)
        add_file(r, text);
    else if (strcmp(r->path, "/Ocity/Instrument/RawDataIsSigned") == 0)
        r->header->is_signed = strcmp(text, "True") == 0 || strcmp(text, "true") == 0;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(r->path, numbers[i].path) != 0)
            continue;
        const double value = strtod(text, &end);
        if (end != text && !*end && isfinite(value))
            memcpy((char *)r->header + numbers[i].at, &value, sizeof(value));
    }
}

static void XMLCALL on_end(void *context, const char *element)
{
    struct reading *r = context;
    (void)element;
    if (r->depth == r->n_in_path) {
        take_text(r, trimmed(r));
        char *slash = strrchr(r->path, '/');
        if (slash)
            *slash = '\0';
        r->n_in_path--;
    }
    r->n_text = 0;
    r->depth--;
}

/* A document type may define entities that unfold without end; Thorlabs writes none. */
static void XMLCALL on_doctype(void *context, const char *doctype, const char *system,
                               const char *public, int has_subset)
{
    struct reading *r = context;
    (void)doctype;
    (void)system;
    (void)public;
    (void)has_subset;
    stop(r, &r->is_refused);
}

static enum oct_err explain(const struct reading *r, const char *name, struct oct_error *err)
{
    if (r->is_out_of_memory)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: Header.xml: out of memory", name);
    if (r->is_refused)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: Header.xml has a document type, which none of Thorlabs has", name);
    return oct_fail(err, OCT_E_FORMAT, "%s: Header.xml, line %lu: %s", name,
                    (unsigned long)XML_GetCurrentLineNumber(r->parser),
                    XML_ErrorString(XML_GetErrorCode(r->parser)));
}

enum oct_err oct_thorlabs_header_read(struct oct_thorlabs_header *header, const char *name,
                                      const char *xml, size_t n_bytes, struct oct_error *err)
{
    *header = (struct oct_thorlabs_header){.n_files = 0};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        memcpy((char *)header + numbers[i].at, &(double){NAN}, sizeof(double));
    if (n_bytes > OCT_THORLABS_MOST_HEADER)
        return oct_fail(err, OCT_E_FORMAT, "%s: Header.xml has more than %zu bytes", name,
                        OCT_THORLABS_MOST_HEADER);
    struct reading r = {.header = header, .parser = XML_ParserCreate(NULL)};
    if (!r.parser)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: Header.xml: out of memory", name);
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    enum oct_err e = OCT_OK;
    if (XML_Parse(r.parser, xml, (int)n_bytes, 1) != XML_STATUS_OK)
        e = explain(&r, name, err);
    else if (!r.is_ocity)
        e = oct_fail(err, OCT_E_FORMAT, "%s: Header.xml is not one of Thorlabs (<Ocity>)", name);
    XML_ParserFree(r.parser);
    return e;
}

void oct_thorlabs_header_finish(struct oct_thorlabs_header *header)
{
    free(header->files);
    *header = (struct oct_thorlabs_header){.n_files = 0};
}

const struct oct_thorlabs_file *oct_thorlabs_header_find(const struct oct_thorlabs_header *header,
                                                         const char *name)
{
    for (size_t i = 0; i < header->n_files; i++)
        if (strcmp(header->files[i].name, name) == 0)
            return &header->files[i];
    return NULL;
}
