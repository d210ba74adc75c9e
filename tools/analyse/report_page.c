/* The page of octctl report: what stands where, and in which words. */
#include "tools/alloc.h"
#include "tools/analyse/report.h"
#include "tools/outputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MICRO "\302\265m"
#define LINE_RGB 0x2ca02cu /* of the B-scan that is shown, in the picture from above */
#define LEFT OCT_PLOT_MARGIN
#define WIDTH (OCT_PLOT_PAGE_WIDTH - 2 * OCT_PLOT_MARGIN)
#define GAP 30.0
#define HALF ((WIDTH - GAP) / 2)
#define QUARTER ((HALF - GAP) / 2)
#define BSCAN_BOTTOM 590.0 /* of the boxes, units of a page; their tops */
#define UPPER 638.0
#define UPPER_HEIGHT 396.0
#define LOWER 1056.0
#define LOWER_HEIGHT 356.0
#define FACTS 1446.0
#define MOST_STRETCH 4.0
#define GOOD_PLACE 0.7 /* below it the quality says that, as the guide of octview */
#define N_BOXES 6u
#define MOST_FACTS 10u

struct drawing {
    struct oct_report_job *r;
    struct oct_plot_box boxes[N_BOXES];
    unsigned n_boxes;
    struct oct_surfaces_figure bscan, map, fibres;
    struct oct_plot_legend legends[OCT_N_LAYERS + 1];
    struct oct_plot_picture enface, angiogram[OCT_REPORT_MOST_ANGIOGRAMS];
    char angiogram_title[OCT_REPORT_MOST_ANGIOGRAMS][80], bscan_title[256];
    double *line_x, *line_y; /* of the B-scan, from above */
    struct oct_plot_path line;
    struct oct_plot_series circle_series[2];
    struct oct_plot_lines circle;
    struct oct_plot_fact head[2 * OCT_PLOT_HEAD_COLUMNS], facts[MOST_FACTS];
    unsigned n_head, n_facts;
    char *texts[2 * OCT_PLOT_HEAD_COLUMNS + MOST_FACTS]; /* to be freed */
    unsigned n_texts;
};

/* ---- words ---- */

/* A text that lives as long as the drawing. */
static const char *own_text(struct drawing *d, char *text)
{
    d->texts[d->n_texts++] = text;
    return text;
}

static void add_fact(struct drawing *d, const char *label, const char *text)
{
    d->facts[d->n_facts++] = (struct oct_plot_fact){.label = label, .text = text};
}

static void add_head(struct drawing *d, const char *label, const char *text)
{
    d->head[d->n_head++] =
        (struct oct_plot_fact){.label = label, .text = text && text[0] ? text : "not recorded"};
}

static const char *eye_words(const struct oct_report_job *r)
{
    return r->s.eye == OCT_SURFACES_EYE_OD   ? "right eye (OD)"
           : r->s.eye == OCT_SURFACES_EYE_OS ? "left eye (OS)"
                                             : "eye not known";
}

/* "FAMILY^GIVEN^MIDDLE", in up to three ways of writing with '=' between (PS3.5 6.2.1.1), as it is
 * read: "FAMILY, GIVEN MIDDLE / ...". */
static char *name_words(const char *name)
{
    char *words = oct_alloc(1, 4 * strlen(name) + 1), *to = words;
    bool is_family = true;
    for (const char *c = name; *c; c++) {
        const bool is_end = c[1] == '\0' || c[1] == '^' || c[1] == '=';
        if (*c != '^' && *c != '=') {
            *to++ = *c;
        } else if (*c == '=') {
            to += is_end ? 0 : sprintf(to, "%s", to > words ? " / " : "");
            is_family = true;
        } else {
            to += is_end ? 0 : sprintf(to, "%s", is_family ? ", " : " ");
            is_family = is_family && is_end;
        }
    }
    return words;
}

/* "1961-02-03, F" */
static char *born_words(const struct oct_export_person *person)
{
    const char *b = person->born, *sex = person->sex;
    if (!b[0])
        return oct_alloc_text("%s", sex);
    return oct_alloc_text("%.4s-%.2s-%.2s%s%s", b, b + 4, b + 6, sex[0] ? ", " : "", sex);
}

/* In this machine's time. */
static char *time_words(const char *start_time)
{
    struct tm local;
    time_t utc;
    double s;
    char text[64] = "";
    if (oct_export_local_time(start_time, &utc, &local, &s))
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
    return oct_alloc_text("%s", text);
}

static char *field_words(const struct oct_surfaces_job *s)
{
    if (oct_surfaces_is_circle(s))
        return oct_alloc_text("circle of %u A-lines", s->n_lines);
    if (!(s->um[0] > 0 && s->um[1] > 0) || s->n_bscans < 2)
        return oct_alloc_text("%u x %u A-lines", s->n_bscans, s->n_lines);
    return oct_alloc_text("%.3g x %.3g mm", s->n_lines * s->um[1] / 1000,
                          s->n_bscans * s->um[0] / 1000);
}

static char *quality_words(const struct oct_report_job *r)
{
    if (isnan(r->quality))
        return oct_alloc_text("%s",
                              r->s.thickness[0].n_known ? "not measured: no dB" : "no retina seen");
    if (r->place < GOOD_PLACE)
        return oct_alloc_text("%.0f of 10 (out of place)", r->quality);
    return oct_alloc_text("%.0f of 10 (signal %.0f dB)", r->quality, r->signal_db);
}

static void write_head(struct drawing *d)
{
    const struct oct_report_job *r = d->r;
    const struct oct_export_form *form = &r->enface.source.form;
    const struct oct_export_person *who = &r->person;
    if (r->is_real) {
        add_head(d, "Patient", own_text(d, name_words(who->name)));
        d->head[0].columns = 2;
        add_head(d, "Patient ID", who->id);
        add_head(d, "Born, sex", own_text(d, born_words(who)));
        add_head(d, "Accession number", who->accession);
        add_head(d, "Recorded", own_text(d, time_words(form->start_time)));
    } else {
        add_head(d, "Pseudonym", form->pseudonym);
    }
    add_head(d, "Quality", own_text(d, quality_words(r)));
    add_head(d, "Scan", own_text(d, field_words(&r->s)));
}

/* ---- the rows below ---- */

static char *scan_words(const struct oct_surfaces_job *s)
{
    static const char *const names[3] = {"B-scans", "A-lines", "depths"};
    const unsigned first = s->n_bscans == 1; /* then there is no next one */
    char *all =
        oct_alloc_text("%u B-scan%s of %u A-lines of %u depths; from one to the next:", s->n_bscans,
                       first ? "" : "s", s->n_lines, s->depth);
    for (unsigned i = first; i < 3; i++) {
        const char *comma = i > first ? "," : "";
        char *more = s->um[i] > 0
                         ? oct_alloc_text("%s%s %s %.4g " MICRO, all, comma, names[i], s->um[i])
                         : oct_alloc_text("%s%s %s not known", all, comma, names[i]);
        free(all);
        all = more;
    }
    return all;
}

/* How the pictures were made, by the keys of the configuration. */
static char *chain_words(const struct oct_config *config)
{
    static const char *const keys[] = {
        "pipeline.dc",  "pipeline.interpolation", "pipeline.window",  "scan.refractive_index",
        "scan.repeats", "average.bscans",         "scan.line_rate_hz"};
    char value[OCT_CONFIG_STRING_BYTES], *all = oct_alloc_text("%s", "");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (oct_config_get(config, keys[i], value, sizeof(value), NULL))
            continue;
        const char *name = strchr(keys[i], '.') + 1;
        char *more =
            oct_alloc_text("%s%s%s %.40s", all, i ? ", " : "",
                           strcmp(keys[i], "average.bscans") == 0 ? "average" : name, value);
        free(all);
        all = more;
    }
    return all;
}

static char *layer_words(const struct oct_report_job *r)
{
    const struct oct_surfaces_thickness *t = &r->s.thickness[0];
    if (t->n_known == 0)
        return oct_alloc_text("no retina seen");
    return oct_alloc_text("%s; retina in %.1f %% of the A-lines, %.1f %s thick in the mean",
                          r->layers_path ? "of a file of octctl surfaces" : "as octctl surfaces",
                          100 * t->known, t->mean, isnan(r->s.um[2]) ? "px" : MICRO);
}

/* "centre 280, inner superior 312, ..." */
static char *sector_words(const char *const *names, const double *mean, const double *covered,
                          unsigned n)
{
    char *all = oct_alloc_text("%s", "");
    for (unsigned i = 0; i < n; i++) {
        char value[32] = "-";
        if (isfinite(mean[i]))
            snprintf(value, sizeof(value), covered[i] >= 0.5 ? "%.0f" : "(%.0f)", mean[i]);
        char *more = oct_alloc_text("%s%s%s %s", all, i ? ", " : "", names[i], value);
        free(all);
        all = more;
    }
    return all;
}

/* As it was typed; without names of files, which may say who it is, where nobody is to be known. */
static char *command_words(const struct oct_report_job *r)
{
    const struct oct_report_options *g = &r->given;
    if (r->is_real)
        return oct_outputs_command();
    return oct_alloc_text("octctl report IN%s OUT%s%s%s%s%s%s --identity masked",
                          r->n_results ? " RESULTS" : "", g->eye ? " --eye " : "",
                          g->eye ? g->eye : "", g->bscan ? " --bscan " : "",
                          g->bscan ? g->bscan : "", g->to ? " --to " : "", g->to ? g->to : "");
}

static void write_facts(struct drawing *d)
{
    static const char *const etdrs_names[2][OCT_ETDRS_N_SECTORS] = {
        {"centre", "inner S", "N", "I", "T", "outer S", "N", "I", "T"},
        {"centre", "inner S", "right", "I", "left", "outer S", "right", "I", "left"}};
    const struct oct_report_job *r = d->r;
    const struct oct_surfaces_job *s = &r->s;
    const struct oct_export_form *form = &r->enface.source.form;
    const struct oct_config *config = oct_export_source_config(r->enface.open);
    const struct oct_etdrs *etdrs = &s->thickness[0].etdrs;
    const struct oct_tsnit *tsnit = &s->circle.tsnit;
    add_fact(d, "Scan", own_text(d, scan_words(s)));
    add_fact(d, "Layers", own_text(d, layer_words(r)));
    if (s->grid.is_measured)
        add_fact(d, "ETDRS (" MICRO ")",
                 own_text(d, sector_words(etdrs_names[s->eye == OCT_SURFACES_EYE_UNKNOWN],
                                          etdrs->mean_um, etdrs->covered, OCT_ETDRS_N_SECTORS)));
    if (s->circle.is_measured)
        add_fact(d, "Nerve fibres (" MICRO ")",
                 own_text(d, sector_words(oct_tsnit_names, tsnit->mean_um, tsnit->covered,
                                          OCT_TSNIT_N_SECTORS)));
    add_fact(d, "Chain",
             config             ? own_text(d, chain_words(config))
             : s->device.format ? s->device.format
                                : "not recorded");
    add_fact(
        d, "Recorded by",
        own_text(d, oct_alloc_text("%s%s%s", form->software[0] ? form->software : "not recorded",
                                   form->engine[0] ? ", " : "", form->engine)));
    add_fact(d, "Report by", "octctl " OCT_VERSION);
    add_fact(d, "Source", own_text(d, oct_alloc_text("CRC-32C %s", r->crc32c)));
    add_fact(d, "Command", own_text(d, command_words(r)));
}

/* ---- boxes ---- */

static struct oct_plot_box *add_box(struct drawing *d, double x, double y, double width,
                                    double height, const char *title)
{
    struct oct_plot_box *box = &d->boxes[d->n_boxes++];
    *box = (struct oct_plot_box){.x = x, .y = y, .width = width, .height = height, .title = title};
    return box;
}

/* Depth is stretched as far as it has room, for a retina is flat. */
static enum oct_err add_bscan(struct drawing *d, double top, struct oct_error *err)
{
    struct oct_report_job *r = d->r;
    struct oct_plot_box *box = add_box(d, LEFT, top, WIDTH, BSCAN_BOTTOM - top, "B-scan");
    struct oct_plot_picture *plot = &d->bscan.plot;
    const enum oct_err e = oct_surfaces_figure_bscan(&r->s, r->bscan, &d->bscan, err);
    if (e)
        return e;
    const bool has_um = plot->um_dx > 0;
    const double high = has_um ? plot->um_dy / plot->um_dx : 1;
    const double room = (box->height - 30) / WIDTH * plot->width / (plot->height * high);
    const double stretch = fmin(MOST_STRETCH, fmax(1, floor(2 * room) / 2));
    char depth[48] = "";
    if (!has_um)
        snprintf(depth, sizeof(depth), ", stretched: not to scale");
    else if (stretch > 1)
        snprintf(depth, sizeof(depth), ", depth x %.3g", stretch);
    snprintf(d->bscan_title, sizeof(d->bscan_title), "%s; %u in all%s%s", d->bscan.title,
             r->s.n_bscans, r->s.grid.is_measured && !r->given.bscan ? ", through the fovea" : "",
             depth);
    plot->title = d->bscan_title;
    plot->um_dy *= stretch;
    plot->fills = !has_um;
    box->picture = plot;
    if (r->s.thickness[0].n_known > 0) {
        box->n_legends = oct_surfaces_legends(&r->s, d->legends);
        box->legends = d->legends;
    }
    return OCT_OK;
}

/* The way of the B-scan in a gridded picture, whose middle is that of the box around all. */
static void find_way(struct drawing *d)
{
    const struct oct_report_job *r = d->r;
    const struct oct_scan *scan = oct_export_source_scan(r->enface.open);
    const struct oct_export_form *form = &r->enface.source.form;
    struct oct_scan_box box = OCT_SCAN_NO_BOX;
    double um[2];
    for (uint32_t b = 0; b < r->s.n_bscans; b++)
        for (uint32_t j = 0; j < r->s.n_lines; j++) {
            oct_scan_position(scan, b, j, um);
            oct_scan_box_grow(&box, um);
        }
    for (uint32_t j = 0; j < r->s.n_lines; j++) {
        oct_scan_position(scan, r->bscan, j, um);
        d->line_x[j] =
            (um[0] - (box.low[0] + box.high[0]) / 2) / form->um[2] + (form->dims[2] - 1) / 2.0;
        d->line_y[j] =
            (um[1] - (box.low[1] + box.high[1]) / 2) / form->um[1] + (form->dims[1] - 1) / 2.0;
    }
    d->line.n = r->s.n_lines;
}

/* um: from row to row, from A-line to A-line. */
static struct oct_plot_picture from_above(const struct oct_report_enface *of, const double um[2],
                                          const char *title)
{
    const struct oct_export_form *form = &of->source.form;
    const bool has_um = um[0] > 0 && um[1] > 0;
    return (struct oct_plot_picture){.title = title,
                                     .pixels = of->values,
                                     .height = form->dims[1],
                                     .width = form->dims[2],
                                     .smooth = true,
                                     .um_dx = has_um ? um[1] : 0,
                                     .um_dy = has_um ? um[0] : 0};
}

static void add_enface(struct drawing *d, double x, double y, double width, double height)
{
    const struct oct_report_job *r = d->r;
    struct oct_plot_box *box = add_box(d, x, y, width, height, "From above");
    if (r->s.n_bscans < 2) {
        box->why = "one B-scan: there is no picture from above";
        return;
    }
    if (oct_scan_is_one_place(oct_export_source_scan(r->enface.open))) {
        box->why = "all B-scans lie at one place: there is no picture from above";
        return;
    }
    const bool is_gridded = strcmp(r->enface.source.form.axes[2], "x") == 0;
    d->enface = from_above(&r->enface, is_gridded ? r->enface.source.form.um + 1 : r->s.um,
                           "From above (en face)");
    memcpy(d->enface.compass, d->map.plot.compass, sizeof(d->enface.compass));
    d->line_x = oct_alloc(r->s.n_lines + 1, sizeof(double));
    d->line_y = oct_alloc(r->s.n_lines + 1, sizeof(double));
    d->line_x[0] = -0.5;
    d->line_x[1] = r->s.n_lines - 0.5;
    d->line_y[0] = d->line_y[1] = r->bscan;
    d->line = (struct oct_plot_path){d->line_x, d->line_y, 2, LINE_RGB};
    if (is_gridded)
        find_way(d);
    d->enface.paths = &d->line;
    d->enface.n_paths = 1;
    box->picture = &d->enface;
}

/* Thickness i, or why there is none. */
static enum oct_err add_map(struct drawing *d, unsigned i, struct oct_surfaces_figure *figure,
                            const struct oct_plot_box *at, struct oct_error *err)
{
    const struct oct_surfaces_job *s = &d->r->s;
    const char *title = i == 0 ? "Retinal thickness, ILM to RPE" : "Nerve fibre layer (RNFL)";
    struct oct_plot_box *box = add_box(d, at->x, at->y, at->width, at->height, title);
    const bool has_no_rows = !oct_scan_is_raster(oct_export_source_scan(d->r->enface.open));
    box->why = s->thickness[0].n_known == 0                           ? "no retina seen"
               : !s->thickness[i].map || s->thickness[i].n_known == 0 ? "its borders were not found"
               : s->n_bscans < 2 ? "one B-scan: there is no map"
                                 : NULL;
    if (box->why)
        return OCT_OK;
    const enum oct_err e = oct_surfaces_figure_map(s, i, at->height - 100, figure, err);
    figure->plot.title = title;
    figure->plot.smooth = true;
    figure->plot.footer = s->grid.is_measured ? "ETDRS, 1, 3 and 6 mm, means in " MICRO
                                                " (in brackets: half is not known)"
                          : has_no_rows ? "rows are B-scans, which lie elsewhere: no ETDRS grid"
                          : oct_surfaces_has_um(s) ? "no pit of a fovea in view: no ETDRS grid"
                          : s->um[0] > 0 && s->um[1] > 0
                              ? "how far apart depths are is not known: no ETDRS grid"
                              : "the scan's size is not known: no ETDRS grid";
    box->picture = &figure->plot;
    return e;
}

static bool is_known(const struct oct_report_enface *of)
{
    const size_t n = (size_t)of->source.form.dims[1] * of->source.form.dims[2];
    for (size_t i = 0; i < n; i++)
        if (isfinite(of->values[i]))
            return true;
    return false;
}

static void add_angiograms(struct drawing *d)
{
    const struct oct_report_job *r = d->r;
    const double x = LEFT + HALF + GAP;
    if (r->n_angiograms == 0)
        add_box(d, x, LOWER, HALF, LOWER_HEIGHT, "Angiogram")->why = "not recorded";
    const double width = r->n_angiograms > 1 ? QUARTER : HALF;
    for (unsigned i = 0; i < r->n_angiograms; i++) {
        const struct oct_report_enface *of = &r->angiogram[i];
        char *title = d->angiogram_title[i];
        struct oct_plot_box *box =
            add_box(d, x + i * (QUARTER + GAP), LOWER, width, LOWER_HEIGHT, title);
        snprintf(title, sizeof(d->angiogram_title[i]), "Angiogram, %s", of->name);
        d->angiogram[i] = from_above(of, of->source.form.um + 1, title);
        if (is_known(of))
            box->picture = &d->angiogram[i];
        else
            box->why = "all moved, or no layers";
    }
}

static enum oct_err add_boxes(struct drawing *d, struct oct_error *err)
{
    const struct oct_surfaces_job *s = &d->r->s;
    const struct oct_plot_box upper = {.x = LEFT + HALF + GAP,
                                       .y = UPPER,
                                       .width = HALF,
                                       .height = UPPER_HEIGHT},
                              lower = {
                                  .x = LEFT, .y = LOWER, .width = HALF, .height = LOWER_HEIGHT};
    const bool is_circle = s->circle.is_measured;
    enum oct_err e = add_bscan(d, d->n_head > OCT_PLOT_HEAD_COLUMNS ? 222 : 174, err);
    if (!e && is_circle) {
        oct_surfaces_plot_circle(s, d->circle_series, &d->circle);
        add_box(d, LEFT, UPPER, WIDTH, UPPER_HEIGHT, "")->lines = &d->circle;
        add_enface(d, LEFT, LOWER, HALF, LOWER_HEIGHT);
    } else if (!e) {
        e = add_map(d, 0, &d->map, &upper, err);
        e = e ? e : add_map(d, 1, &d->fibres, &lower, err);
        add_enface(d, LEFT, UPPER, HALF, UPPER_HEIGHT);
    }
    add_angiograms(d);
    return e;
}

/* ---- the page ---- */

enum oct_err oct_report_draw(struct oct_report_job *r, unsigned char **pdf, size_t *n,
                             struct oct_error *err)
{
    struct drawing *d = oct_alloc(1, sizeof(*d));
    d->r = r;
    write_head(d);
    write_facts(d);
    enum oct_err e = add_boxes(d, err);
    const struct oct_plot_page page = {.title = "OCT report",
                                       .right = eye_words(r),
                                       .head = d->head,
                                       .n_head = d->n_head,
                                       .boxes = d->boxes,
                                       .n_boxes = d->n_boxes,
                                       .facts = d->facts,
                                       .n_facts = d->n_facts,
                                       .facts_y = FACTS,
                                       .foot = "Not for diagnosis."};
    e = e ? e : oct_plot_page_pdf(&page, pdf, n, err);
    oct_surfaces_figure_finish(&d->bscan);
    oct_surfaces_figure_finish(&d->map);
    oct_surfaces_figure_finish(&d->fibres);
    for (unsigned i = 0; i < d->n_texts; i++)
        free(d->texts[i]);
    free(d->line_x);
    free(d->line_y);
    free(d);
    return e;
}
