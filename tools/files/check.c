/* check: whether recordings hold what was written into them. */
#include "formats/contents.h"
#include "formats/pictures.h"
#include "pipeline/base/crc32c.h"
#include "pipeline/volume/volume.h"
#include "tools/alloc.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BAD 1000 /* B-scans named one by one; beyond it they are only counted */

/* A file that is being checked. */
struct check {
    const char *path;
    struct oct_volume_reader *reader;
    const struct oct_volume_facts *facts;
    struct oct_raw_frame frame; /* of the row being looked at */
    void *pixels;
    const struct oct_gap *gaps;
    size_t n_gaps;
    bool exact_gaps; /* the gap map lists every missing line */
    bool is_part;
    uint64_t n_verified, n_unfinished, bytes, dropped[OCT_N_LOSSES];
    uint64_t n_bad;
    cJSON *bad; /* [{bscan, why}] */
};

static void add_bad(struct check *c, uint32_t v, const char *why)
{
    c->n_bad++;
    if (c->n_bad > MOST_BAD)
        return;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "bscan", v);
    cJSON_AddStringToObject(o, "why", why);
    cJSON_AddItemToArray(c->bad, o);
}

/* Returns how many of the lines first .. first + n - 1 the gap map lists; *reason becomes that of
 * the last of them. */
static uint64_t gap_lines(const struct check *c, uint32_t acquisition, uint64_t first, uint64_t n,
                          enum oct_loss *reason)
{
    uint64_t found = 0;
    for (size_t i = 0; i < c->n_gaps; i++) {
        uint64_t within = oct_gap_lines_within(&c->gaps[i], first, n);
        if (c->gaps[i].acquisition != acquisition || within == 0)
            continue;
        found += within;
        *reason = c->gaps[i].reason;
    }
    return found;
}

/* ---- a row that counts as written ---- */

static enum oct_err check_crc(uint32_t crc, uint32_t recorded, const char *what,
                              struct oct_error *why)
{
    return crc == recorded ? OCT_OK
                           : oct_fail(why, OCT_E_FORMAT,
                                      "%s: CRC-32C is 0x%08" PRIx32 ", recorded was 0x%08" PRIx32,
                                      what, crc, recorded);
}

/* Compares the payload with its check sums. */
static enum oct_err check_payload(struct check *c, uint32_t v, const struct oct_volume_row *row,
                                  struct oct_error *why)
{
    const struct oct_volume_facts *f = c->facts;
    enum oct_err e = OCT_OK;
    bool valid;
    if (f->n_samples > 0) {
        const size_t bytes =
            (size_t)f->n_lines * (size_t)oct_samples_bytes(f->spectra_format, f->n_samples);
        e = oct_volume_read_spectra(c->reader, v, &c->frame, &valid, why);
        e = e ? e
              : check_crc(oct_volume_spectra_crc32c(c->reader, &c->frame), row->spectra_crc32c,
                          "spectra", why);
        c->bytes += e ? 0 : bytes;
    }
    if (!e && f->depth > 0) {
        const size_t bytes =
            (size_t)f->n_lines * f->depth * (f->sample_type == OCT_SAMPLE_F32 ? 4 : 1);
        e = oct_volume_read_image(c->reader, v, c->pixels, &valid, why);
        e = e ? e : check_crc(oct_crc32c(c->pixels, bytes), row->bscans_crc32c, "picture", why);
        c->bytes += e ? 0 : bytes;
    }
    return e;
}

/* Compares the numbers of a row with each other, with the mask and with the gap map. */
static enum oct_err check_numbers(const struct check *c, uint32_t v,
                                  const struct oct_volume_row *row, struct oct_error *why)
{
    const struct oct_volume_facts *f = c->facts;
    enum oct_loss reason;
    if (f->counted && row->number != f->first_bscan + v)
        return oct_fail(why, OCT_E_FORMAT, "its number is %" PRIu64 ", its place says %" PRIu64,
                        row->number, f->first_bscan + v);
    if (f->n_samples > 0 && c->frame.info.missing_lines != row->missing_lines)
        return oct_fail(why, OCT_E_FORMAT,
                        "missing_lines is %" PRIu32 ", but %" PRIu32 " lines are marked missing",
                        row->missing_lines, c->frame.info.missing_lines);
    const uint64_t lines = c->exact_gaps ? gap_lines(c, row->acquisition, row->number * f->n_lines,
                                                     f->n_lines, &reason)
                                         : row->missing_lines;
    if (lines != row->missing_lines)
        return oct_fail(why, OCT_E_FORMAT,
                        "missing_lines is %" PRIu32 ", but the gap map has %" PRIu64
                        " of its lines",
                        row->missing_lines, lines);
    return OCT_OK;
}

static void check_written(struct check *c, uint32_t v, const struct oct_volume_row *row)
{
    struct oct_error why;
    if (check_payload(c, v, row, &why) || check_numbers(c, v, row, &why))
        add_bad(c, v, why.text);
    else
        c->n_verified++;
}

/* ---- rows that are not there ---- */

/* A row of acquisition `acquisition` that holds no B-scan is bad unless the gap map has a reason
 * for it. In a .part the rows behind the last one written may lack one: the writer was killed. */
static void check_absent(struct check *c, uint32_t v, uint32_t acquisition, bool at_the_end)
{
    enum oct_loss reason = OCT_LOSS_NONE;
    uint64_t n_lines = c->facts->n_lines;
    if (!c->facts->counted || !c->facts->has_gaps) {
        c->n_unfinished++;
        return;
    }
    uint64_t lines =
        gap_lines(c, acquisition, (c->facts->first_bscan + v) * n_lines, n_lines, &reason);
    if (lines == n_lines)
        c->dropped[reason]++;
    else if (!c->exact_gaps || (c->is_part && at_the_end))
        c->n_unfinished++;
    else
        add_bad(c, v, "neither written nor in the gap map");
}

/* In a file whose rows skip dropped B-scans, the gap map must list those between the numbers of two
 * neighbouring rows. */
static void check_between(struct check *c, uint32_t v, const struct oct_volume_row *before,
                          const struct oct_volume_row *row)
{
    enum oct_loss reason = OCT_LOSS_NONE;
    uint64_t n_lines = c->facts->n_lines;
    if (c->facts->counted || !c->exact_gaps || before->acquisition != row->acquisition)
        return;
    if (row->number <= before->number) {
        add_bad(c, v, "its number does not rise");
        return;
    }
    uint64_t n = row->number - before->number - 1;
    if (gap_lines(c, row->acquisition, (before->number + 1) * n_lines, n * n_lines, &reason) !=
        n * n_lines)
        add_bad(c, v, "B-scans before it are neither written nor in the gap map");
    else if (n > 0)
        c->dropped[reason] += n;
}

static void check_rows(struct check *c)
{
    struct oct_volume_row before = {0};
    bool has_before = false;
    uint32_t n = c->facts->n_bscans, end = n, acquisition = 0;
    while (end > 0 && !oct_volume_row(c->reader, end - 1).valid)
        end--;
    for (uint32_t v = 0; v < n && acquisition == 0; v++) /* a counted file holds one acquisition */
        acquisition = oct_volume_row(c->reader, v).acquisition;
    if (acquisition == 0 && c->n_gaps > 0)
        acquisition = c->gaps[0].acquisition;
    for (uint32_t v = 0; v < n; v++) {
        struct oct_volume_row row = oct_volume_row(c->reader, v);
        if (!row.valid) {
            check_absent(c, v, acquisition, v >= end);
            continue;
        }
        if (has_before)
            check_between(c, v, &before, &row);
        check_written(c, v, &row);
        before = row;
        has_before = true;
    }
}

/* ---- a file ---- */

static enum oct_err check_row(struct check *c, struct oct_error *err)
{
    enum oct_err code = oct_volume_open(&c->reader, c->path, err);
    if (code)
        return code;
    const struct oct_volume_facts *f = c->facts = oct_volume_facts(c->reader);
    if ((f->n_samples > 0 && !f->has_spectra_crc) || (f->depth > 0 && !f->has_bscans_crc))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: holds no CRC-32C of its B-scans (made by another program, or before "
                        "octd had them): it cannot be verified",
                        c->path);
    c->frame.spectra = oct_alloc((size_t)f->n_lines * (f->n_samples + 1), sizeof(uint16_t));
    c->frame.line_valid = oct_alloc(f->n_lines, 1);
    c->pixels = oct_alloc((size_t)f->n_lines * (f->depth + 1), sizeof(float));
    struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS];
    unsigned n_datasets;
    code = oct_volume_datasets(c->reader, datasets, &n_datasets, err);
    if (code)
        return code;
    size_t n = strlen(c->path);
    c->is_part = n > 5 && strcmp(c->path + n - 5, ".part") == 0;
    c->gaps = oct_volume_gaps(c->reader, &c->n_gaps);
    c->exact_gaps = f->has_gaps && f->has_number;
    for (size_t i = 0; i < c->n_gaps; i++)
        c->exact_gaps &= c->gaps[i].reason != OCT_LOSS_MORE;
    check_rows(c);
    return OCT_OK;
}

static void describe(cJSON *o, const struct check *c)
{
    cJSON_AddBoolToObject(o, "ok", c->n_bad == 0);
    cJSON_AddNumberToObject(o, "bscans", c->facts->n_bscans);
    cJSON_AddNumberToObject(o, "written", (double)c->facts->n_valid);
    cJSON_AddNumberToObject(o, "verified", (double)c->n_verified);
    cJSON_AddNumberToObject(o, "bytes_verified", (double)c->bytes);
    cJSON_AddNumberToObject(o, "missing_lines", (double)c->facts->missing_lines);
    cJSON *dropped = cJSON_AddObjectToObject(o, "dropped");
    for (int r = OCT_LOSS_NONE + 1; r < OCT_N_LOSSES; r++)
        if (c->dropped[r] > 0)
            cJSON_AddNumberToObject(dropped, oct_loss_names[r], (double)c->dropped[r]);
    cJSON_AddNumberToObject(o, "unfinished", (double)c->n_unfinished);
    cJSON_AddBoolToObject(o, "part", c->is_part);
    cJSON_AddNumberToObject(o, "n_bad", (double)c->n_bad);
}

static void print_line(const struct check *c)
{
    oct_command_put_name(stdout, c->path);
    fputs(": ", stdout);
    if (c->n_bad > 0)
        printf("BAD: %" PRIu64 " B-scans; ", c->n_bad);
    printf("%s%" PRIu64 " of %" PRIu32 " B-scans written, %" PRIu64 " verified, %" PRIu64
           " lines missing",
           c->n_bad ? "" : "ok: ", c->facts->n_valid, c->facts->n_bscans, c->n_verified,
           c->facts->missing_lines);
    for (int r = OCT_LOSS_NONE + 1; r < OCT_N_LOSSES; r++)
        if (c->dropped[r] > 0)
            printf(", %" PRIu64 " %s", c->dropped[r], oct_loss_names[r]);
    if (c->n_unfinished > 0)
        printf(", %" PRIu64 " never finished", c->n_unfinished);
    putchar('\n');
    const cJSON *bad;
    cJSON_ArrayForEach(bad, c->bad)
    {
        printf("  B-scan %.0f: %s\n",
               cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(bad, "bscan")),
               cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(bad, "why")));
    }
    if (c->n_bad > MOST_BAD)
        printf("  and %" PRIu64 " more\n", c->n_bad - MOST_BAD);
}

/* Results and exports of other devices have no check sums: what is checked is that they can be read
 * to the end. n: how many of `of` (a key of the JSON) were read. */
static void report_readable(const char *path, const char *words, uint64_t n, const char *of,
                            uint64_t bytes, bool json, cJSON *o)
{
    cJSON_AddNumberToObject(o, of, (double)n);
    cJSON_AddNumberToObject(o, "bytes_read", (double)bytes);
    if (json)
        return;
    oct_command_put_name(stdout, path);
    printf(": ok: %s; %" PRIu64 " %s, %" PRIu64 " bytes read (no check sums)\n", words, n,
           strcmp(of, "bscans") == 0 ? "B-scans" : of, bytes);
}

static enum oct_err check_result(const struct oct_contents *contents, const char *path, bool json,
                                 cJSON *o, struct oct_error *err)
{
    uint64_t bytes;
    const enum oct_err e = oct_contents_read(contents, path, &bytes, err);
    if (!e)
        report_readable(path, contents->words, contents->n, "datasets", bytes, json, o);
    return e;
}

static enum oct_err check_device(const char *path, bool json, cJSON *o, struct oct_error *err)
{
    const struct oct_pictures_options options = {.any_side = true};
    struct oct_pictures *pictures;
    struct oct_picture picture;
    struct oct_pictures_info info;
    uint64_t bytes = 0;
    enum oct_err e = oct_pictures_open(&pictures, &path, 1, &options, err);
    const uint64_t n = e ? 0 : oct_pictures_count(pictures);
    for (uint64_t i = 0; i < n && !e; i++) {
        e = oct_pictures_read(pictures, i, &picture, &info, err);
        bytes += e ? 0 : (uint64_t)picture.height * picture.width * info.bits / 8;
        oct_picture_finish(&picture);
    }
    oct_pictures_close(pictures);
    if (!e)
        report_readable(path, "export of another device", n, "bscans", bytes, json, o);
    return e;
}

/* False: it is none, and whoever reads it as a recording says what is wrong with it. */
static bool is_result(const char *path, struct oct_contents *contents)
{
    return oct_contents_look(contents, path, NULL) == OCT_OK && contents->is_result;
}

/* Returns whether the file holds what was written. */
static bool check_recording(const char *path, bool json, cJSON *o)
{
    struct check c = {.path = path, .bad = cJSON_CreateArray()};
    struct oct_error err = {0};
    enum oct_err code = check_row(&c, &err);
    if (code) {
        cJSON_AddBoolToObject(o, "ok", false);
        cJSON_AddStringToObject(o, "error", err.text);
        if (!json)
            oct_command_fail("check", &err);
    } else {
        describe(o, &c);
        if (!json)
            print_line(&c);
    }
    cJSON_AddItemToObject(o, "bad", c.bad);
    oct_volume_reader_destroy(c.reader);
    free(c.frame.spectra);
    free(c.frame.line_valid);
    free(c.pixels);
    return code == OCT_OK && c.n_bad == 0;
}

static bool check_file(const char *path, bool json, cJSON *files)
{
    struct oct_contents contents = {.kind = ""};
    struct oct_error err = {0};
    bool ok;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", path);
    cJSON_AddItemToArray(files, o);
    const bool is_device = oct_pictures_are_of_device(path);
    if (is_device || is_result(path, &contents)) {
        ok = (is_device ? check_device(path, json, o, &err)
                        : check_result(&contents, path, json, o, &err)) == OCT_OK;
        cJSON_AddBoolToObject(o, "ok", ok);
        cJSON_AddStringToObject(o, "kind", is_device ? "device" : contents.kind);
        if (!ok)
            cJSON_AddStringToObject(o, "error", err.text);
        if (!ok && !json)
            oct_command_fail("check", &err);
    } else {
        ok = check_recording(path, json, o);
    }
    oct_contents_finish(&contents);
    return ok;
}

struct check_options {
    bool json;
};

static const struct oct_option options[] = {
    {"--json", NULL, "print it as JSON", OCT_OPTION_FLAG,
     .at = offsetof(struct check_options, json)},
    {NULL},
};

static int run_check(struct oct_config *config, int argc, char **argv)
{
    struct check_options o = {false};
    bool ok = true;
    (void)config;
    int misuse = oct_options_read(&oct_command_check, &o, &argc, argv);
    if (misuse)
        return misuse;
    cJSON *files = cJSON_CreateArray();
    for (int i = 1; i < argc; i++)
        ok &= check_file(argv[i], o.json, files);
    if (o.json)
        oct_command_print_json(files);
    cJSON_Delete(files);
    return !ok;
}

const struct oct_command oct_command_check = {
    .name = "check",
    .usage = "FILE...",
    .help =
        "whether recordings hold what was written into them; of results, whether all can be read",
    .options = options,
    .keys = "",
    .n_least = 1,
    .n_most = INT_MAX,
    .too_few = "which files?",
    .run = run_check,
};
