#include "formats/export/ome_tiff.h"

#include "pipeline/base/utf8.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "http://www.openmicroscopy.org/Schemas/OME/2016-06"
#define MICROMETRE "&#181;m" /* a reference, so that the text is ASCII, as TIFF wants it */
#define DATE_TIME_BYTES 19u  /* 2026-01-02T03:04:05 */

/* ---- text ---- */

/* The code point of a character of n bytes. */
static uint32_t code_point(const unsigned char *c, size_t n)
{
    static const unsigned char lead[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = c[0] & lead[n];
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (c[i] & 0x3f);
    return code;
}

/* What XML 1.0 has; of line ends and tabs attributes keep nothing, so that they are none. */
static bool is_character(uint32_t code)
{
    return code >= 0x20 && code != 0x7f && code != 0xfffe && code != 0xffff;
}

/* Text from a file as ASCII: marks and all beyond ASCII become references, what cannot be in XML
 * becomes '?'. */
static void put_text(FILE *out, const char *text)
{
    const size_t n_bytes = strlen(text);
    for (size_t at = 0, n; at < n_bytes; at += n ? n : 1) {
        n = oct_utf8_character(text + at, n_bytes - at);
        const uint32_t code = n ? code_point((const unsigned char *)text + at, n) : 0;
        if (!is_character(code))
            fputc('?', out);
        else if (code >= 0x7f || strchr("<>&\"'", (int)code))
            fprintf(out, "&#%" PRIu32 ";", code);
        else
            fputc((int)code, out);
    }
}

static void put_pair(FILE *out, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    fprintf(out, "<M K=\"%s\">", key);
    put_text(out, value);
    fputs("</M>", out);
}

static void put_number(FILE *out, const char *key, double value)
{
    if (isfinite(value))
        fprintf(out, "<M K=\"%s\">%.9g</M>", key, value);
}

/* ---- parts ---- */

bool oct_ome_is_time(const struct oct_export_form *form)
{
    static const char *const names[] = {"time", "volume", "frame"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(form->axes[0], names[i]) == 0)
            return true;
    return false;
}

/* ISO 8601 as xsd:dateTime takes it, to the second at least; else the date is left out. */
static bool is_date_time(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00";
    for (size_t i = 0; i < DATE_TIME_BYTES; i++)
        if (form[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    text += DATE_TIME_BYTES;
    if (*text == '.' && isdigit((unsigned char)text[1]))
        for (text++; isdigit((unsigned char)*text);)
            text++;
    return *text == '\0' || strcmp(text, "Z") == 0;
}

static void put_length(FILE *out, char axis, double um)
{
    if (um > 0 && isfinite(um))
        fprintf(out, " PhysicalSize%c=\"%.9g\" PhysicalSize%cUnit=\"" MICROMETRE "\"", axis, um,
                axis);
}

/* Where planes of no rows lie: where each begins. */
static void put_plane(FILE *out, const struct oct_export_form *form, uint32_t i, bool is_time)
{
    double um[2];
    const bool has_place = oct_export_position(form, i, 0, um);
    if (!has_place && !(form->plane_s > 0))
        return;
    fprintf(out, "<Plane TheZ=\"%" PRIu32 "\" TheC=\"0\" TheT=\"%" PRIu32 "\"", is_time ? 0 : i,
            is_time ? i : 0);
    if (form->plane_s > 0)
        fprintf(out, " DeltaT=\"%.9g\" DeltaTUnit=\"s\"", i * form->plane_s);
    for (int axis = 0; has_place && axis < 2; axis++)
        fprintf(out, " Position%c=\"%.9g\" Position%cUnit=\"" MICROMETRE "\"", "XY"[axis], um[axis],
                "XY"[axis]);
    fputs("/>", out);
}

static void put_pixels(FILE *out, const struct oct_export_form *form, unsigned image,
                       uint64_t first_ifd)
{
    static const char *const types[] = {
        [OCT_EXPORT_U8] = "uint8", [OCT_EXPORT_U16] = "uint16", [OCT_EXPORT_F32] = "float"};
    const bool is_time = oct_ome_is_time(form);
    const uint32_t n = form->dims[0];
    uint32_t height, width;
    double um[2];
    oct_export_picture_size(form, &height, &width, um);
    fprintf(out, "<Pixels ID=\"Pixels:%u\" DimensionOrder=\"XYZCT\" Type=\"%s\"", image,
            types[form->sample]);
    fprintf(out,
            " SizeX=\"%" PRIu32 "\" SizeY=\"%" PRIu32 "\" SizeZ=\"%" PRIu32
            "\" SizeC=\"1\" SizeT=\"%" PRIu32 "\"",
            width, height, is_time ? 1 : n, is_time ? n : 1);
    fputs(" BigEndian=\"false\" Interleaved=\"false\"", out);
    put_length(out, 'X', um[1]);
    put_length(out, 'Y', um[0]);
    put_length(out, 'Z', is_time ? NAN : form->um[0]);
    if (is_time && form->plane_s > 0)
        fprintf(out, " TimeIncrement=\"%.9g\" TimeIncrementUnit=\"s\"", form->plane_s);
    fprintf(out, "><Channel ID=\"Channel:%u:0\" SamplesPerPixel=\"1\"/>", image);
    fprintf(out, "<TiffData FirstC=\"0\" FirstT=\"0\" FirstZ=\"0\" IFD=\"%" PRIu64 "\"", first_ifd);
    fprintf(out, " PlaneCount=\"%" PRIu32 "\"/>", n);
    for (uint32_t i = 0; i < n; i++)
        put_plane(out, form, i, is_time);
    fputs("</Pixels>", out);
}

static void put_image(FILE *out, const struct oct_export_form *form, unsigned image,
                      uint64_t first_ifd)
{
    fprintf(out, "<Image ID=\"Image:%u\" Name=\"", image);
    put_text(out, form->name);
    fputs("\">", out);
    if (is_date_time(form->start_time))
        fprintf(out, "<AcquisitionDate>%s</AcquisitionDate>", form->start_time);
    put_pixels(out, form, image, first_ifd);
    fprintf(out, "<AnnotationRef ID=\"Annotation:%u\"/></Image>", image);
}

/* "3,7-9" */
static void put_missing(FILE *out, const struct oct_export_form *form)
{
    const uint32_t n = form->dims[0];
    bool is_first = true;
    for (uint32_t i = 0, end; form->plane_valid && i < n; i = end + 1) {
        for (end = i; end < n && !form->plane_valid[end];)
            end++;
        if (end == i)
            continue;
        fprintf(out, is_first ? "<M K=\"missing_planes\">%" PRIu32 : ",%" PRIu32, i);
        if (end - i > 1)
            fprintf(out, "-%" PRIu32, end - 1);
        is_first = false;
    }
    if (!is_first)
        fputs("</M>", out);
}

/* What OME has no element for. */
static void put_annotation(FILE *out, const struct oct_export_form *form, unsigned image)
{
    const unsigned x = form->is_upright ? 2 : 1;
    fprintf(out, "<MapAnnotation ID=\"Annotation:%u\" Namespace=\"octd\"><Value>", image);
    put_pair(out, "x_axis", form->axes[x]);
    put_pair(out, "y_axis", form->axes[3 - x]);
    put_pair(out, "plane_axis", form->axes[0]);
    put_pair(out, "quantity", form->quantity);
    put_pair(out, "unit", form->unit);
    if (form->scan)
        put_pair(out, "scan_pattern", oct_scan_pattern_names[form->scan->pattern]);
    put_number(out, "black", form->lo);
    put_number(out, "white", form->hi);
    put_pair(out, "eye", form->eye);
    put_pair(out, "pseudonym", form->pseudonym);
    put_number(out, "refractive_index", form->refractive_index);
    put_pair(out, "start_time_source", form->start_time_source);
    put_pair(out, "recorded_by", form->software);
    put_pair(out, "engine", form->engine);
    put_pair(out, "acquisition", form->acquisition_uid);
    put_missing(out, form);
    fputs("</Value></MapAnnotation>", out);
}

enum oct_err oct_ome_xml_make(char **xml, const struct oct_export_source *sources, unsigned n,
                              struct oct_error *err)
{
    size_t bytes;
    uint64_t ifd = 0;
    *xml = NULL;
    FILE *out = open_memstream(xml, &bytes);
    if (!out)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for OME-XML");
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME xmlns=\"" SCHEMA
          "\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"" SCHEMA
          " " SCHEMA "/ome.xsd\" Creator=\"octd " OCT_VERSION "\">",
          out);
    for (unsigned i = 0; i < n; ifd += sources[i++].form.dims[0])
        put_image(out, &sources[i].form, i, ifd);
    fputs("<StructuredAnnotations>", out);
    for (unsigned i = 0; i < n; i++)
        put_annotation(out, &sources[i].form, i);
    fputs("</StructuredAnnotations></OME>", out);
    const bool is_whole = !ferror(out);
    if (fclose(out) == 0 && is_whole)
        return OCT_OK;
    free(*xml);
    *xml = NULL;
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for OME-XML");
}
