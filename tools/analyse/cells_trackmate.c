/* TrackMate's XML, as its TmXmlReader reads it ("Load a TrackMate file" of Fiji): all spots by
 * frame, tracks as edges between spots, and the settings that it asks for. Positions in um and s
 * where both are known, else in px and frames. The spots' QUALITY is |S|, 0 of coasted cells. */
#include "tools/analyse/cells_report.h"

#include "formats/whole_file.h"
#include "pipeline/base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct xml {
    FILE *stream;
    const struct oct_cells_report *report;
    bool has_um, has_time;
    double frame_s; /* of a frame, in the mean */
};

static void put_text(FILE *stream, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", stream);
            break;
        case '<':
            fputs("&lt;", stream);
            break;
        case '"':
            fputs("&quot;", stream);
            break;
        default: /* control characters are not XML */
            fputc((unsigned char)*text < ' ' ? '?' : *text, stream);
        }
}

/* ---- what is declared ---- */

static void declare(const struct xml *x, const char *kind, const char *const (*features)[4])
{
    fprintf(x->stream, "      <%s>\n", kind);
    for (; (*features)[0]; features++)
        fprintf(x->stream,
                "        <Feature feature=\"%s\" name=\"%s\" shortname=\"%s\" dimension=\"%s\" "
                "isint=\"%s\" />\n",
                (*features)[0], (*features)[1], (*features)[1], (*features)[2], (*features)[3]);
    fprintf(x->stream, "      </%s>\n", kind);
}

static void put_declarations(const struct xml *x)
{
    static const char *const spots[][4] = {{"QUALITY", "Quality", "QUALITY", "false"},
                                           {"POSITION_X", "X", "POSITION", "false"},
                                           {"POSITION_Y", "Y", "POSITION", "false"},
                                           {"POSITION_Z", "Z", "POSITION", "false"},
                                           {"POSITION_T", "T", "TIME", "false"},
                                           {"FRAME", "Frame", "NONE", "true"},
                                           {"RADIUS", "Radius", "LENGTH", "false"},
                                           {"VISIBILITY", "Visibility", "NONE", "true"},
                                           {NULL}};
    static const char *const edges[][4] = {{"SPOT_SOURCE_ID", "Source spot ID", "NONE", "true"},
                                           {"SPOT_TARGET_ID", "Target spot ID", "NONE", "true"},
                                           {"LINK_COST", "Edge cost", "COST", "false"},
                                           {NULL}};
    static const char *const tracks[][4] = {{"TRACK_INDEX", "Track index", "NONE", "true"},
                                            {"TRACK_ID", "Track ID", "NONE", "true"},
                                            {"NUMBER_SPOTS", "Number of spots", "NONE", "true"},
                                            {NULL}};
    fputs("    <FeatureDeclarations>\n", x->stream);
    declare(x, "SpotFeatures", spots);
    declare(x, "EdgeFeatures", edges);
    declare(x, "TrackFeatures", tracks);
    fputs("    </FeatureDeclarations>\n", x->stream);
}

/* ---- spots and tracks ---- */

static void put_spot(const struct xml *x, size_t i)
{
    const struct oct_cells_run *run = x->report->run;
    const struct oct_cells_row *r = &run->rows.rows[i];
    const double dx = x->has_um ? run->um[1] : 1, dy = x->has_um ? run->um[0] : 1;
    const double score = isnan(r->score) ? 0 : fabs((double)r->score);
    fprintf(x->stream,
            "        <Spot ID=\"%zu\" name=\"ID%zu\" QUALITY=\"%.6g\" POSITION_X=\"%.9g\" "
            "POSITION_Y=\"%.9g\" POSITION_Z=\"0\" POSITION_T=\"%.9g\" FRAME=\"%" PRIu64
            "\" RADIUS=\"%.9g\" VISIBILITY=\"1\" />\n",
            i, i, score, r->x_px * dx, r->y_px * dy, x->has_time ? r->time_s : (double)r->frame,
            r->frame, r->radius_px * (x->has_um ? run->grid.um : 1));
}

static void put_spots(const struct xml *x)
{
    const struct oct_cells_rows *rows = &x->report->run->rows;
    fprintf(x->stream, "    <AllSpots nspots=\"%zu\">\n", rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        const uint64_t frame = rows->rows[i].frame;
        if (i == 0 || rows->rows[i - 1].frame != frame)
            fprintf(x->stream, "      <SpotsInFrame frame=\"%" PRIu64 "\">\n", frame);
        put_spot(x, i);
        if (i + 1 == rows->n || rows->rows[i + 1].frame != frame)
            fputs("      </SpotsInFrame>\n", x->stream);
    }
    fputs("    </AllSpots>\n", x->stream);
}

/* The row behind the last one of the track that begins at order[first]. */
static size_t end_of(const struct oct_cells_rows *rows, const size_t *order, size_t first)
{
    size_t end = first + 1;
    while (end < rows->n && rows->rows[order[end]].track == rows->rows[order[first]].track)
        end++;
    return end;
}

/* A track of one spot has no edge, and none of TrackMate's. */
static bool is_track(const struct oct_cells_rows *rows, const size_t *order, size_t first,
                     size_t end)
{
    return rows->rows[order[first]].track > 0 && end - first > 1;
}

static void put_tracks(const struct xml *x, const size_t *order)
{
    const struct oct_cells_rows *rows = &x->report->run->rows;
    size_t index = 0, end;
    fputs("    <AllTracks>\n", x->stream);
    for (size_t i = 0; i < rows->n; i = end) {
        const uint64_t track = rows->rows[order[i]].track;
        end = end_of(rows, order, i);
        if (!is_track(rows, order, i, end))
            continue;
        fprintf(x->stream,
                "      <Track name=\"Track_%" PRIu64 "\" TRACK_ID=\"%" PRIu64
                "\" TRACK_INDEX=\"%zu\" NUMBER_SPOTS=\"%zu\">\n",
                track, track, index++, end - i);
        for (size_t k = i; k + 1 < end; k++)
            fprintf(x->stream,
                    "        <Edge SPOT_SOURCE_ID=\"%zu\" SPOT_TARGET_ID=\"%zu\" LINK_COST=\"0\" "
                    "/>\n",
                    order[k], order[k + 1]);
        fputs("      </Track>\n", x->stream);
    }
    fputs("    </AllTracks>\n    <FilteredTracks>\n", x->stream);
    for (size_t i = 0; i < rows->n; i = end) {
        end = end_of(rows, order, i);
        if (is_track(rows, order, i, end))
            fprintf(x->stream, "      <TrackID TRACK_ID=\"%" PRIu64 "\" />\n",
                    rows->rows[order[i]].track);
    }
    fputs("    </FilteredTracks>\n", x->stream);
}

/* ---- settings ---- */

static void put_image(const struct xml *x)
{
    const struct oct_cells_run *run = x->report->run;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", x->report->inputs[0]);
    oct_utf8_repair(path);
    char *slash = strrchr(path, '/');
    fputs("    <ImageData filename=\"", x->stream);
    put_text(x->stream, slash ? slash + 1 : path);
    fputs("\" folder=\"", x->stream);
    if (slash)
        slash[1] = '\0';
    put_text(x->stream, slash ? path : "");
    fprintf(x->stream,
            "\" width=\"%u\" height=\"%u\" nslices=\"1\" nframes=\"%" PRIu64
            "\" pixelwidth=\"%.9g\" pixelheight=\"%.9g\" voxeldepth=\"1\" timeinterval=\"%.9g\" "
            "/>\n",
            run->width, run->height, run->n, x->has_um ? run->um[1] : 1, x->has_um ? run->um[0] : 1,
            x->has_time ? x->frame_s : 1);
    fprintf(x->stream,
            "    <BasicSettings xstart=\"0\" xend=\"%u\" ystart=\"0\" yend=\"%u\" zstart=\"0\" "
            "zend=\"0\" tstart=\"0\" tend=\"%" PRIu64 "\" detectionchannel=\"1\" />\n",
            run->width - 1, run->height - 1, run->n - 1);
}

static void put_settings(const struct xml *x)
{
    const struct oct_cells_run *run = x->report->run;
    fputs("  <Settings>\n", x->stream);
    put_image(x);
    fprintf(x->stream,
            "    <DetectorSettings DETECTOR_NAME=\"MANUAL_DETECTOR\" RADIUS=\"%.9g\" />\n"
            "    <InitialSpotFilter feature=\"QUALITY\" value=\"0.0\" isabove=\"true\" />\n"
            "    <SpotFilterCollection />\n"
            "    <TrackerSettings TRACKER_NAME=\"MANUAL_TRACKER\" />\n"
            "    <TrackFilterCollection />\n"
            "    <AnalyzerCollection>\n"
            "      <SpotAnalyzers />\n"
            "      <EdgeAnalyzers />\n"
            "      <TrackAnalyzers />\n"
            "    </AnalyzerCollection>\n"
            "  </Settings>\n",
            run->params.radius * (x->has_um ? run->grid.um : 1));
}

static void put_all(const struct xml *x, const size_t *order)
{
    fprintf(x->stream,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<TrackMate version=\"7.11.1\">\n"
            "  <Log>octctl cells, octd " OCT_VERSION "</Log>\n"
            "  <Model spatialunits=\"%s\" timeunits=\"%s\">\n",
            x->has_um ? "micron" : "pixel", x->has_time ? "sec" : "frame");
    put_declarations(x);
    put_spots(x);
    put_tracks(x, order);
    fputs("  </Model>\n", x->stream);
    put_settings(x);
    fputs("  <GUIState state=\"ConfigureViews\" />\n  <DisplaySettings />\n</TrackMate>\n",
          x->stream);
}

enum oct_err oct_cells_report_trackmate(void *context, const char *path, bool force,
                                        struct oct_error *err)
{
    const struct oct_cells_report *report = context;
    const struct oct_cells_run *run = report->run;
    struct oct_whole_file file;
    size_t *order = oct_cells_rows_by_track(&run->rows);
    if (!order)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    enum oct_err e = oct_whole_file_init(&file, path, force, err);
    if (e) {
        free(order);
        return e;
    }
    struct xml x = {.report = report,
                    .has_um = oct_cells_run_has_um(run),
                    .has_time = !isnan(run->first_s),
                    .frame_s =
                        run->n > 1 ? (run->last_s - run->first_s) / (double)(run->n - 1) : 1};
    x.stream = fopen(file.work, "wxe");
    bool ok = x.stream != NULL;
    if (ok) {
        errno = 0;
        put_all(&x, order);
        ok = fflush(x.stream) == 0 && !ferror(x.stream);
    }
    int error = errno; /* of the open, or of the first write that failed; fclose may set another */
    if (x.stream && fclose(x.stream) != 0 && ok) {
        error = errno;
        ok = false;
    }
    free(order);
    if (ok)
        return oct_whole_file_publish(&file, err);
    e = oct_fail_errno(err, OCT_E_IO, error ? error : EIO, "%s: cannot be written", path);
    oct_whole_file_discard(&file);
    return e;
}
