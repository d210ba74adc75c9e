/* Figures and words on a page of A4. */
#include "plot/canvas.h"

#include <cairo-pdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINT 0.5 /* of a unit */
#define HEADING 26.0
#define LABELS 13.0 /* letters */
#define WORDS 17.0
#define FACTS 14.0
#define FACT_ROW 20.0
#define FACT_LABEL 150.0
#define PALE_INK 0x6a6a6au
#define RULE 0xb8b8b8u
#define EMPTY 0xf4f4f4u
#define WIDTH (OCT_PLOT_PAGE_WIDTH - 2 * OCT_PLOT_MARGIN)

/* ---- the file in memory ---- */

struct bytes {
    unsigned char *at;
    size_t n, room;
};

static cairo_status_t append_bytes(void *context, const unsigned char *bytes, unsigned n)
{
    struct bytes *b = context;
    if (b->n + n > b->room) {
        const size_t room = 2 * b->room + n;
        unsigned char *more = realloc(b->at, room);
        if (!more)
            return CAIRO_STATUS_NO_MEMORY;
        b->at = more;
        b->room = room;
    }
    memcpy(b->at + b->n, bytes, n);
    b->n += n;
    return CAIRO_STATUS_SUCCESS;
}

/* ---- words ---- */

static void draw_rule(struct oct_canvas *c, double y)
{
    oct_canvas_colour(c, RULE, 1);
    oct_canvas_fill(c, OCT_PLOT_MARGIN, y, WIDTH, 1.2);
    oct_canvas_colour(c, OCT_INK, 1);
}

static void draw_head(struct oct_canvas *c, const struct oct_plot_page *page)
{
    const double column = WIDTH / OCT_PLOT_HEAD_COLUMNS;
    unsigned at = 0; /* the next of all columns of all rows */
    oct_canvas_colour(c, OCT_INK, 1);
    oct_canvas_text(c, OCT_PLOT_MARGIN, 66, HEADING, OCT_TEXT_BOLD, page->title);
    oct_canvas_text(c, OCT_PLOT_MARGIN + WIDTH, 66, HEADING, OCT_TEXT_BOLD | OCT_TEXT_RIGHT,
                    page->right);
    draw_rule(c, 90);
    for (unsigned i = 0; i < page->n_head; i++) {
        const struct oct_plot_fact *fact = &page->head[i];
        const unsigned n = fact->columns ? fact->columns : 1;
        const double x = OCT_PLOT_MARGIN + at % OCT_PLOT_HEAD_COLUMNS * column;
        const double y = 110 + at / OCT_PLOT_HEAD_COLUMNS * OCT_PLOT_HEAD_ROW;
        oct_canvas_colour(c, PALE_INK, 1);
        oct_canvas_text(c, x, y, LABELS, 0, fact->label);
        oct_canvas_colour(c, OCT_INK, 1);
        oct_canvas_text_within(c, x, y + 20, n * column - 16, WORDS, OCT_TEXT_BOLD, fact->text);
        at += n;
    }
    const unsigned n_rows = (at + OCT_PLOT_HEAD_COLUMNS - 1) / OCT_PLOT_HEAD_COLUMNS;
    draw_rule(c, 98 + n_rows * OCT_PLOT_HEAD_ROW);
}

static void draw_facts(struct oct_canvas *c, const struct oct_plot_page *page)
{
    draw_rule(c, page->facts_y - 16);
    for (unsigned i = 0; i < page->n_facts; i++) {
        const double y = page->facts_y + i * FACT_ROW;
        oct_canvas_colour(c, PALE_INK, 1);
        oct_canvas_text(c, OCT_PLOT_MARGIN, y, FACTS, 0, page->facts[i].label);
        oct_canvas_colour(c, OCT_INK, 1);
        oct_canvas_text_within(c, OCT_PLOT_MARGIN + FACT_LABEL, y, WIDTH - FACT_LABEL, FACTS, 0,
                               page->facts[i].text);
    }
    draw_rule(c, OCT_PLOT_PAGE_HEIGHT - 72);
    oct_canvas_text(c, OCT_PLOT_PAGE_WIDTH / 2, OCT_PLOT_PAGE_HEIGHT - 52, WORDS,
                    OCT_TEXT_BOLD | OCT_TEXT_MIDDLE, page->foot);
}

/* ---- boxes ---- */

static void draw_nothing(struct oct_canvas *c, const struct oct_plot_box *b)
{
    const double top = b->y + 30, height = b->height - 30;
    oct_canvas_colour(c, EMPTY, 1);
    oct_canvas_fill(c, b->x, top, b->width, height);
    oct_canvas_colour(c, OCT_INK, 1);
    oct_canvas_text_within(c, b->x, b->y + 12, b->width, OCT_TITLE_LETTERS, OCT_TEXT_BOLD,
                           b->title);
    oct_canvas_colour(c, PALE_INK, 1);
    oct_canvas_text_within(c, b->x + b->width / 2, top + height / 2, b->width - 24, OCT_LETTERS,
                           OCT_TEXT_MIDDLE, b->why);
}

static enum oct_err draw_box(struct oct_canvas *c, const struct oct_plot_box *b,
                             struct oct_error *err)
{
    const struct oct_view box = {.x = b->x, .y = b->y, .width = b->width, .height = b->height};
    enum oct_err e = OCT_OK;
    cairo_save(c->cairo);
    if (b->picture)
        e = oct_canvas_picture(c, b->picture, &box, err);
    else if (b->lines)
        oct_canvas_plot(c, b->lines, b->x, b->y - 12, b->width, b->height + 12, false, false);
    else
        draw_nothing(c, b);
    oct_canvas_legends(c, b->x, b->y + b->height + 18, b->legends, b->n_legends);
    cairo_restore(c->cairo);
    return e;
}

/* ---- the page ---- */

static cairo_surface_t *open_pdf(struct bytes *to, const struct oct_plot_page *page)
{
    cairo_surface_t *pdf = cairo_pdf_surface_create_for_stream(
        append_bytes, to, POINT * OCT_PLOT_PAGE_WIDTH, POINT * OCT_PLOT_PAGE_HEIGHT);
    cairo_pdf_surface_set_metadata(pdf, CAIRO_PDF_METADATA_TITLE, page->title);
    cairo_pdf_surface_set_metadata(pdf, CAIRO_PDF_METADATA_CREATE_DATE,
                                   page->date ? page->date : "");
    return pdf;
}

enum oct_err oct_plot_page_pdf(const struct oct_plot_page *page, unsigned char **pdf, size_t *n,
                               struct oct_error *err)
{
    struct bytes bytes = {NULL, 0, 0};
    cairo_surface_t *surface = open_pdf(&bytes, page);
    struct oct_canvas c = {surface, cairo_create(surface)};
    enum oct_err e = OCT_OK;
    cairo_scale(c.cairo, POINT, POINT);
    cairo_set_line_join(c.cairo, CAIRO_LINE_JOIN_ROUND);
    draw_head(&c, page);
    for (unsigned i = 0; i < page->n_boxes && !e; i++)
        e = draw_box(&c, &page->boxes[i], err);
    draw_facts(&c, page);
    cairo_status_t status = cairo_status(c.cairo);
    cairo_destroy(c.cairo);
    cairo_surface_finish(surface);
    status = status ? status : cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    if (!e && status)
        e = oct_fail(err, status == CAIRO_STATUS_NO_MEMORY ? OCT_E_NO_MEMORY : OCT_E_IO,
                     "the page cannot be drawn: %s", cairo_status_to_string(status));
    if (e)
        free(bytes.at);
    *pdf = e ? NULL : bytes.at;
    *n = e ? 0 : bytes.n;
    return e;
}
