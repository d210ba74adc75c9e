/* info: what a recording, a volume or a file of results holds. */
#include "formats/contents.h"
#include "formats/pictures.h"
#include "formats/recording.h"
#include "formats/recording_plan.h"
#include "formats/spool.h"
#include "formats/volumes.h"
#include "pipeline/base/utf8.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static cJSON *describe_shape(cJSON *list, const char *name, const uint64_t *dims, unsigned rank)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", name);
    cJSON *shape = cJSON_AddArrayToObject(o, "shape");
    for (unsigned i = 0; i < rank; i++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)dims[i]));
    cJSON_AddItemToArray(list, o);
    return o;
}

static void describe_dataset(cJSON *list, const struct oct_volume_dataset *d)
{
    cJSON *o = describe_shape(list, d->name, d->dims, d->rank);
    cJSON_AddStringToObject(o, "sample", d->type == OCT_SAMPLE_F32 ? "f32" : "u8");
    cJSON_AddStringToObject(o, "quantity", d->quantity);
    cJSON_AddStringToObject(o, "unit", d->unit);
    cJSON_AddBoolToObject(o, "of_volume", d->of_volume);
    cJSON_AddNumberToObject(o, "valid", d->n_valid);
}

/* The results of analyses, if the file has any. */
static enum oct_err describe_datasets(cJSON *o, struct oct_volume_reader *reader,
                                      struct oct_error *err)
{
    struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS];
    unsigned n;
    enum oct_err code = oct_volume_datasets(reader, datasets, &n, err);
    if (code || n == 0)
        return code;
    cJSON *list = cJSON_AddArrayToObject(o, "datasets");
    for (unsigned i = 0; i < n; i++)
        describe_dataset(list, &datasets[i]);
    return OCT_OK;
}

/* "spacing_um": from B-scan to B-scan, A-line to A-line, depth pixel to depth pixel; NaN, which is
 * printed as null: the file does not say. */
static void describe_spacing(cJSON *o, const double *um, unsigned n)
{
    cJSON *list = cJSON_AddArrayToObject(o, "spacing_um");
    for (unsigned i = 0; i < n; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(um[i]));
}

static void add_text(cJSON *o, const char *key, const char *text)
{
    if (text[0])
        cJSON_AddStringToObject(o, key, text);
}

/* Both describe functions add the facts to one JSON object, which is printed as it is or as a
 * table. They leave out members that do not apply. */
static enum oct_err describe_volume(cJSON *o, const char *path, struct oct_error *err)
{
    struct oct_volume_reader *reader = NULL;
    struct oct_calibration cal = {0};
    enum oct_err code = oct_volume_open(&reader, path, err);
    code = code ? code : oct_volume_calibration(reader, &cal, err);
    if (code)
        goto fail;
    const struct oct_volume_facts *f = oct_volume_facts(reader);
    cJSON_AddStringToObject(o, "format", "volume");
    cJSON_AddNumberToObject(o, "bscans", f->n_bscans);
    cJSON_AddNumberToObject(o, "lines", f->n_lines);
    cJSON_AddBoolToObject(o, "spectra", f->n_samples > 0);
    if (f->n_samples > 0)
        cJSON_AddNumberToObject(o, "samples", f->n_samples);
    if (f->n_samples > 0 && f->spectra_format != OCT_LINES_U16)
        cJSON_AddStringToObject(o, "stored_as", oct_samples_name(f->spectra_format));
    cJSON_AddBoolToObject(o, "pictures", f->depth > 0);
    if (f->depth > 0) {
        cJSON_AddNumberToObject(o, "depth", f->depth);
        cJSON_AddStringToObject(o, "sample", f->sample_type == OCT_SAMPLE_F32 ? "f32" : "u8");
    }
    describe_spacing(o, f->spacing_um, f->depth > 0 ? 3 : 2);
    cJSON_AddNumberToObject(o, "valid_bscans", (double)f->n_valid);
    cJSON_AddNumberToObject(o, "missing_lines", (double)f->missing_lines);
    cJSON_AddBoolToObject(o, "whole", f->whole);
    cJSON_AddStringToObject(o, "start_time", f->start_time);
    add_text(o, "start_time_source", f->start_time_source);
    cJSON_AddStringToObject(o, "software", f->software);
    cJSON_AddStringToObject(o, "eye", f->eye);
    cJSON_AddStringToObject(o, "pseudonym", f->pseudonym);
    cJSON_AddStringToObject(o, "mark", f->mark);
    cJSON_AddNumberToObject(o, "wavelengths", (double)cal.n_wavelengths);
    cJSON_AddNumberToObject(o, "dispersion", (double)cal.n_dispersion);
    cJSON_AddBoolToObject(o, "configuration", oct_volume_config_text(reader) != NULL);
    code = describe_datasets(o, reader, err);
fail:
    oct_calibration_finish(&cal);
    oct_volume_reader_destroy(reader);
    return code;
}

static void add_known(cJSON *o, const char *key, double value)
{
    if (isfinite(value) && value > 0)
        cJSON_AddNumberToObject(o, key, value);
}

/* What another device exported. */
static enum oct_err describe_device(cJSON *o, const char *path, struct oct_error *err)
{
    struct oct_volume_info f;
    char sample[8], layers[128] = "";
    const enum oct_err code = oct_volume_look(path, &f, err);
    if (code)
        return code;
    cJSON_AddStringToObject(o, "format", f.format);
    cJSON_AddNumberToObject(o, "bscans", f.dims[0]);
    cJSON_AddNumberToObject(o, "lines", f.dims[1]);
    cJSON_AddNumberToObject(o, "depth", f.dims[2]);
    snprintf(sample, sizeof(sample), "%c%u", f.sample_bits == 32 ? 'f' : 'u', f.sample_bits);
    cJSON_AddStringToObject(o, "sample", sample);
    describe_spacing(o, f.um, 3);
    for (unsigned i = 0; i < f.n_layers; i++)
        snprintf(layers + strlen(layers), sizeof(layers) - strlen(layers), "%s%s", i ? ", " : "",
                 f.layers[i]);
    add_text(o, "layers", layers);
    add_text(o, "start_time", f.start_time);
    cJSON_AddStringToObject(o, "eye", f.eye);
    return OCT_OK;
}

static void describe_entry(cJSON *list, const struct oct_volume_array_entry *e, bool is_shown)
{
    char sample[16];
    cJSON *o = describe_shape(list, e->name.text, e->dims, e->rank);
    snprintf(sample, sizeof(sample), "%c%u",
             e->is_float    ? 'f'
             : e->is_signed ? 'i'
                            : 'u',
             8 * e->value_bytes);
    cJSON_AddStringToObject(o, "sample", sample);
    cJSON_AddStringToObject(o, "unit", e->unit);
    cJSON_AddBoolToObject(o, "picture", is_shown);
    cJSON *axes = cJSON_AddArrayToObject(o, "axes");
    cJSON *um = cJSON_AddArrayToObject(o, "spacing_um");
    for (unsigned i = 0; i < e->rank; i++) {
        cJSON_AddItemToArray(axes, cJSON_CreateString(e->axes[i]));
        cJSON_AddItemToArray(um, cJSON_CreateNumber(e->spacing_um[i]));
    }
}

/* What octctl's analyses wrote. */
static void describe_result(cJSON *o, const struct oct_contents *c)
{
    cJSON_AddStringToObject(o, "format", "result");
    cJSON_AddStringToObject(o, "kind", c->kind);
    cJSON_AddStringToObject(o, "is", c->words);
    cJSON_AddStringToObject(o, "software", c->root.software);
    cJSON *from = cJSON_AddArrayToObject(o, "source");
    for (const char *at = c->root.source, *end; at && at[0]; at = end + (end[0] != '\0')) {
        char line[1024];
        end = at + strcspn(at, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)(end - at), at);
        cJSON_AddItemToArray(from, cJSON_CreateString(line));
    }
    cJSON *list = cJSON_AddArrayToObject(o, "datasets");
    for (unsigned i = 0; i < c->n; i++)
        describe_entry(list, &c->datasets[i], i < c->n_shown);
}

/* The depth pixel that a reconstruction with this configuration has; nothing where it has no k map
 * yet, or no scale. */
static void describe_depth(cJSON *o, struct oct_recording *recording,
                           const struct oct_config *config)
{
    struct oct_config copy = *config;
    struct oct_plan *plan;
    if (oct_recording_plan(&plan, &copy, recording, NULL) != OCT_OK)
        return;
    add_known(o, "depth_um", plan->axial_um);
    oct_plan_destroy(plan);
}

/* What a file of another program says beside its geometry. */
static enum oct_err describe_input(cJSON *o, struct oct_recording *recording,
                                   const struct oct_config *config, struct oct_error *err)
{
    const struct oct_input_facts *f = oct_recording_input(recording);
    struct oct_calibration cal = {0};
    const enum oct_err code = oct_recording_calibration(recording, &cal, err);
    if (code)
        return code;
    add_known(o, "line_rate_hz", f->line_rate_hz);
    add_known(o, "width_um", f->width_um);
    add_known(o, "height_um", f->height_um);
    add_known(o, "axial_um", f->axial_um);
    describe_depth(o, recording, config);
    add_known(o, "lambda_nm", f->lambda_nm);
    add_known(o, "bandwidth_nm", f->width_nm);
    add_text(o, "eye", f->eye);
    bool has_coefficients = false;
    for (unsigned m = 2; m <= OCT_MAX_DISPERSION_ORDER; m++)
        has_coefficients = has_coefficients || fabs(cal.coefficient[m]) > 0;
    cJSON_AddNumberToObject(o, "wavelengths", (double)cal.n_wavelengths);
    cJSON_AddNumberToObject(o, "kmap", (double)cal.n_kmap);
    cJSON_AddNumberToObject(o, "background", (double)cal.n_background);
    cJSON_AddNumberToObject(o, "dispersion", (double)cal.n_dispersion);
    cJSON_AddBoolToObject(o, "dispersion_coefficients", has_coefficients);
    oct_calibration_finish(&cal);
    return OCT_OK;
}

static enum oct_err describe_samples(cJSON *o, const char *path, struct oct_config *config,
                                     struct oct_error *err)
{
    struct oct_recording *recording;
    enum oct_err code = oct_recording_open(&recording, path, config, err);
    if (code)
        return code;
    const struct oct_input_facts *f = oct_recording_input(recording);
    double n_bscans = (double)oct_recording_n_bscans(recording);
    double n_lines = n_bscans * oct_recording_n_lines(recording);
    cJSON_AddStringToObject(o, "format", f->format);
    cJSON_AddNumberToObject(o, "bscans", n_bscans);
    cJSON_AddNumberToObject(o, "lines", oct_recording_n_lines(recording));
    cJSON_AddNumberToObject(o, "samples", oct_recording_n_samples(recording));
    cJSON_AddNumberToObject(o, "bits", config->camera.bits);
    add_text(o, "scaling", f->scaling);
    add_text(o, "start_time", oct_recording_start_time(recording));
    add_text(o, "start_time_source", oct_recording_start_time_source(recording));
    cJSON_AddNumberToObject(o, "volumes", n_bscans / oct_recording_bscans_per_volume(recording));
    cJSON_AddNumberToObject(o, "duration_s", n_lines / config->scan.line_rate_hz);
    if (strcmp(f->format, "samples") == 0) {
        cJSON_AddNumberToObject(o, "header_bytes", (double)config->file.header_bytes);
        cJSON_AddNumberToObject(o, "trailer_bytes", (double)config->file.trailer_bytes);
    } else {
        code = describe_input(o, recording, config, err);
    }
    oct_recording_close(recording);
    return code;
}

/* "50 um B-scans, 12.5 um A-lines, 1.046 um depth" */
static void print_spacing(const cJSON *list)
{
    static const char *const of[] = {"B-scans", "A-lines", "depth"};
    for (int i = 0; i < 3 && i < cJSON_GetArraySize(list); i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i);
        if (isfinite(item->valuedouble))
            printf("%s%.4g um %s", i ? ", " : "", item->valuedouble, of[i]);
        else
            printf("%sunknown %s", i ? ", " : "", of[i]);
    }
    putchar('\n');
}

static const struct {
    const char *key, *label, *unit;
} rows[] = {
    {"file", "file", ""},
    {"format", "format", ""},
    {"bscans", "B-scans", ""},
    {"lines", "A-lines a B-scan", ""},
    {"samples", "samples an A-line", ""},
    {"stored_as", "stored as", ""},
    {"depth", "depth", " pixels"},
    {"sample", "pixel type", ""},
    {"bits", "bits a sample", ""},
    {"scaling", "became u16 by", ""},
    {"volumes", "volumes", " (by scan.bscans)"},
    {"duration_s", "duration", " s (by scan.line_rate_hz)"},
    {"header_bytes", "header", " bytes"},
    {"trailer_bytes", "trailer", " bytes"},
    {"line_rate_hz", "line rate", " A-lines/s"},
    {"width_um", "width", " um"},
    {"height_um", "height", " um"},
    {"depth_um", "depth pixel", " um (optical path)"},
    {"axial_um", "its maker's", " um (depth pixel, optical path)"},
    {"lambda_nm", "centre wavelength", " nm"},
    {"bandwidth_nm", "bandwidth", " nm"},
    {"spacing_um", "spacing", ""},
    {"layers", "device's layers", ""},
    {"spectra", "holds spectra", ""},
    {"pictures", "holds pictures", ""},
    {"valid_bscans", "B-scans written", ""},
    {"missing_lines", "missing lines", ""},
    {"whole", "whole", ""},
    {"start_time", "recorded", ""},
    {"software", "software", ""},
    {"eye", "eye", ""},
    {"pseudonym", "pseudonym", ""},
    {"mark", "mark", ""},
    {"wavelengths", "wavelengths", " values"},
    {"kmap", "k map", " values"},
    {"background", "background", " values"},
    {"dispersion", "dispersion", " values"},
    {"dispersion_coefficients", "a2 .. a5", ""},
    {"configuration", "configuration", ""},
};

/* As a terminal may see it: names and texts are the file's. */
static const char *text_of(const cJSON *o, const char *key)
{
    char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    if (text)
        oct_utf8_make_line(text);
    return text ? text : "";
}

/* A text of a file, or its name. */
static void put_line(const char *text)
{
    oct_command_put_name(stdout, text);
    putchar('\n');
}

static void print_table(const cJSON *o)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, rows[i].key);
        if (!item)
            continue;
        const bool is_changed =
            strcmp(rows[i].key, "start_time") == 0 &&
            strcmp(text_of(o, "start_time_source"), OCT_TIME_FILE_MODIFIED) == 0;
        printf("%-18s ", is_changed ? "file changed" : rows[i].label);
        if (cJSON_IsString(item))
            put_line(item->valuestring[0] ? item->valuestring : "-");
        else if (cJSON_IsBool(item))
            printf("%s\n", cJSON_IsTrue(item) ? "yes" : "no");
        else if (cJSON_IsArray(item))
            print_spacing(item);
        else
            printf("%.10g%s\n", item->valuedouble, rows[i].unit);
    }
}

/* "dataset            enface [512][300] f32" */
static void print_shape(const cJSON *d)
{
    const cJSON *extent;
    printf("%-18s %s ", "dataset", text_of(d, "name"));
    cJSON_ArrayForEach(extent, cJSON_GetObjectItemCaseSensitive(d, "shape"))
    {
        printf("[%.0f]", cJSON_GetNumberValue(extent));
    }
    printf(" %s", text_of(d, "sample"));
}

/* Behind it ", dB: written". */
static void print_datasets(const cJSON *o)
{
    const cJSON *d;
    cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(o, "datasets"))
    {
        const double n_valid = oct_json_number(d, "valid");
        print_shape(d);
        printf(", %s: ", text_of(d, "unit"));
        if (oct_json_is_true(d, "of_volume"))
            puts(n_valid > 0 ? "written" : "not written");
        else
            printf("%.0f rows written\n", n_valid);
    }
}

/* Behind it ", um; bscan 2.5 um, line 2.5 um". */
static void print_entry(const cJSON *d)
{
    const cJSON *axis, *um = cJSON_GetObjectItemCaseSensitive(d, "spacing_um");
    const char *unit = text_of(d, "unit"), *between = "; ";
    print_shape(d);
    printf("%s%s", unit[0] ? ", " : "", unit);
    um = um->child;
    cJSON_ArrayForEach(axis, cJSON_GetObjectItemCaseSensitive(d, "axes"))
    {
        if (axis->valuestring[0])
            printf("%s%s", between, axis->valuestring);
        if (axis->valuestring[0] && isfinite(um->valuedouble))
            printf(" %.4g um", um->valuedouble);
        between = axis->valuestring[0] ? ", " : between;
        um = um->next;
    }
    putchar('\n');
}

static void print_result(const cJSON *o)
{
    const cJSON *source = cJSON_GetObjectItemCaseSensitive(o, "source");
    const int n = cJSON_GetArraySize(source);
    const cJSON *d;
    printf("%-18s ", "file");
    put_line(text_of(o, "file"));
    printf("%-18s %s\n%-18s %s\n", "is", text_of(o, "is"), "software", text_of(o, "software"));
    if (n > 0)
        printf("%-18s %s", "made of", cJSON_GetArrayItem(source, 0)->valuestring);
    if (n > 1)
        printf(" and %d more", n - 1);
    if (n > 0)
        putchar('\n');
    cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(o, "datasets"))
    {
        print_entry(d);
    }
}

static void print_facts(const cJSON *o, bool json)
{
    if (json) {
        oct_command_print_json(o);
    } else if (strcmp(text_of(o, "format"), "result") == 0) {
        print_result(o);
    } else {
        print_table(o);
        print_datasets(o);
    }
}

struct info_options {
    bool json;
};

static const struct oct_option options[] = {
    {"--json", NULL, "print it as JSON", OCT_OPTION_FLAG,
     .at = offsetof(struct info_options, json)},
    {NULL},
};

/* A volume is read from `path`, others from `name`. A file of results is not asked what it is where
 * the user calls one of its datasets spectra. */
static enum oct_err describe(cJSON *o, const char *path, const char *name,
                             struct oct_config *config, struct oct_error *err)
{
    struct oct_contents contents = {.kind = ""};
    const bool is_result = config->file.dataset[0] == '\0' && oct_recording_is_volume(path) &&
                           oct_contents_look(&contents, path, NULL) == OCT_OK && contents.is_result;
    if (is_result)
        describe_result(o, &contents);
    oct_contents_finish(&contents);
    if (is_result)
        return OCT_OK;
    if (oct_pictures_are_of_device(path))
        return describe_device(o, path, err);
    return oct_recording_is_our_volume(path, config) ? describe_volume(o, path, err)
                                                     : describe_samples(o, name, config, err);
}

static int run_info(struct oct_config *config, int argc, char **argv)
{
    struct info_options o = {false};
    int misuse = oct_options_read(&oct_command_info, &o, &argc, argv);
    if (misuse)
        return misuse;
    const char *path = argv[1];
    struct oct_error err = {0};
    cJSON *facts = cJSON_CreateObject();
    cJSON_AddStringToObject(facts, "file", path);
    const bool is_pipe = strcmp(path, "-") == 0;
    enum oct_err code = is_pipe ? oct_spool_stdin(NULL, &err) : OCT_OK;
    if (!code)
        code = describe(facts, is_pipe ? "/dev/stdin" : path, path, config, &err);
    if (!code)
        print_facts(facts, o.json);
    cJSON_Delete(facts);
    return code ? oct_command_fail(argv[0], &err) : 0;
}

const struct oct_command oct_command_info = {
    .name = "info",
    .usage = "FILE",
    .help = "what a recording, a volume (.vol and DICOM too) or a file of results holds",
    .options = options,
    .keys = "",
    .n_least = 1,
    .n_most = 1,
    .too_few = "which file?",
    .run = run_info,
};
