/* TrackMate's XML, as its TmXmlReader reads it ("Load a TrackMate file" of Fiji): all spots by
 * frame, tracks as edges between spots, and the settings that it asks for. Positions in um and s
 * where both are known, else in px and frames. The spots' QUALITY is |S|, 0 of coasted cells. */
#include "pipeline/base/utf8.h"
#include "tools/analyse/cells.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

struct xml {
    FILE *file;
    const struct oct_cells_job *c;
    const struct oct_cells_rows *rows;
    bool has_time;
    double dx, dy, um; /* of a pixel of the picture, and of the searched one; or 1 */
    double frame_s;    /* of a frame, in the mean; or 1 */
};

static void put_text(FILE *file, const char *text)
{
    for (; *text; text++)
        if (*text == '&')
            fputs("&amp;", file);
        else if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '"')
            fputs("&quot;", file);
        else /* control characters are not XML */
            fputc((unsigned char)*text < ' ' ? '?' : *text, file);
}

/* ---- what is declared ---- */

static const struct {
    const char *kind, *feature, *name, *dimension, *is_int;
} declared[] = {
    {"SpotFeatures", "QUALITY", "Quality", "QUALITY", "false"},
    {"SpotFeatures", "POSITION_X", "X", "POSITION", "false"},
    {"SpotFeatures", "POSITION_Y", "Y", "POSITION", "false"},
    {"SpotFeatures", "POSITION_Z", "Z", "POSITION", "false"},
    {"SpotFeatures", "POSITION_T", "T", "TIME", "false"},
    {"SpotFeatures", "FRAME", "Frame", "NONE", "true"},
    {"SpotFeatures", "RADIUS", "Radius", "LENGTH", "false"},
    {"SpotFeatures", "VISIBILITY", "Visibility", "NONE", "true"},
    {"EdgeFeatures", "SPOT_SOURCE_ID", "Source spot ID", "NONE", "true"},
    {"EdgeFeatures", "SPOT_TARGET_ID", "Target spot ID", "NONE", "true"},
    {"EdgeFeatures", "LINK_COST", "Edge cost", "COST", "false"},
    {"TrackFeatures", "TRACK_INDEX", "Track index", "NONE", "true"},
    {"TrackFeatures", "TRACK_ID", "Track ID", "NONE", "true"},
    {"TrackFeatures", "NUMBER_SPOTS", "Number of spots", "NONE", "true"},
};
#define N_DECLARED (sizeof(declared) / sizeof(declared[0]))

static void put_declarations(FILE *file)
{
    fputs("    <FeatureDeclarations>\n", file);
    for (size_t i = 0; i < N_DECLARED; i++) {
        const char *kind = declared[i].kind;
        if (i == 0 || strcmp(kind, declared[i - 1].kind) != 0)
            fprintf(file, "      <%s>\n", kind);
        fprintf(file,
                "        <Feature feature=\"%s\" name=\"%s\" shortname=\"%s\" dimension=\"%s\" "
                "isint=\"%s\" />\n",
                declared[i].feature, declared[i].name, declared[i].name, declared[i].dimension,
                declared[i].is_int);
        if (i + 1 == N_DECLARED || strcmp(kind, declared[i + 1].kind) != 0)
            fprintf(file, "      </%s>\n", kind);
    }
    fputs("    </FeatureDeclarations>\n", file);
}

/* ---- spots and tracks ---- */

static void put_spots(const struct xml *x)
{
    const struct oct_cells_rows *rows = x->rows;
    fprintf(x->file, "    <AllSpots nspots=\"%zu\">\n", rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        const struct oct_cells_row *r = &rows->rows[i];
        const struct oct_cells_found *f = &r->found;
        if (i == 0 || r[-1].frame != r->frame)
            fprintf(x->file, "      <SpotsInFrame frame=\"%" PRIu64 "\">\n", r->frame);
        fprintf(x->file,
                "        <Spot ID=\"%zu\" name=\"ID%zu\" QUALITY=\"%.6g\" POSITION_X=\"%.9g\" "
                "POSITION_Y=\"%.9g\" POSITION_Z=\"0\" POSITION_T=\"%.9g\" FRAME=\"%" PRIu64
                "\" RADIUS=\"%.9g\" VISIBILITY=\"1\" />\n",
                i, i, isnan(f->score) ? 0 : fabs(f->score), f->x_px * x->dx, f->y_px * x->dy,
                x->has_time ? f->time_s : (double)r->frame, r->frame, f->radius_px * x->um);
        if (i + 1 == rows->n || r[1].frame != r->frame)
            fputs("      </SpotsInFrame>\n", x->file);
    }
    fputs("    </AllSpots>\n", x->file);
}

static void put_track(const struct xml *x, size_t first, size_t end, size_t index)
{
    const struct oct_cells_rows *rows = x->rows;
    const uint64_t track = rows->by_track[first]->found.track;
    fprintf(x->file,
            "      <Track name=\"Track_%" PRIu64 "\" TRACK_ID=\"%" PRIu64
            "\" TRACK_INDEX=\"%zu\" NUMBER_SPOTS=\"%zu\">\n",
            track, track, index, end - first);
    for (size_t i = first; i + 1 < end; i++)
        fprintf(x->file,
                "        <Edge SPOT_SOURCE_ID=\"%td\" SPOT_TARGET_ID=\"%td\" LINK_COST=\"0\" />\n",
                rows->by_track[i] - rows->rows, rows->by_track[i + 1] - rows->rows);
    fputs("      </Track>\n", x->file);
}

/* Of all tracks the edges, or their numbers alone. A track of one spot has no edge, and is none of
 * TrackMate's. */
static void put_tracks(const struct xml *x, bool with_edges)
{
    const struct oct_cells_rows *rows = x->rows;
    size_t index = 0, end;
    for (size_t i = 0; i < rows->n; i = end) {
        const uint64_t track = rows->by_track[i]->found.track;
        end = i + 1;
        while (end < rows->n && rows->by_track[end]->found.track == track)
            end++;
        if (track == 0 || end - i == 1)
            continue;
        if (with_edges)
            put_track(x, i, end, index++);
        else
            fprintf(x->file, "      <TrackID TRACK_ID=\"%" PRIu64 "\" />\n", track);
    }
}

/* ---- settings ---- */

static void put_image(const struct xml *x)
{
    const struct oct_cells_job *c = x->c;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", c->job.inputs[0]);
    oct_utf8_repair(path);
    char *slash = strrchr(path, '/');
    fputs("    <ImageData filename=\"", x->file);
    put_text(x->file, slash ? slash + 1 : path);
    fputs("\" folder=\"", x->file);
    if (slash)
        slash[1] = '\0';
    put_text(x->file, slash ? path : "");
    fprintf(x->file,
            "\" width=\"%u\" height=\"%u\" nslices=\"1\" nframes=\"%" PRIu64
            "\" pixelwidth=\"%.9g\" pixelheight=\"%.9g\" voxeldepth=\"1\" timeinterval=\"%.9g\" "
            "/>\n",
            c->width, c->height, c->n, x->dx, x->dy, x->frame_s);
    fprintf(x->file,
            "    <BasicSettings xstart=\"0\" xend=\"%u\" ystart=\"0\" yend=\"%u\" zstart=\"0\" "
            "zend=\"0\" tstart=\"0\" tend=\"%" PRIu64 "\" detectionchannel=\"1\" />\n",
            c->width - 1, c->height - 1, c->n - 1);
}

static void put_settings(const struct xml *x)
{
    fputs("  <Settings>\n", x->file);
    put_image(x);
    fprintf(x->file,
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
            x->c->params->radius * x->um);
}

static void put_all(const void *job, FILE *file)
{
    const struct oct_cells_job *c = job;
    const bool has_um = oct_cells_has_um(c), has_time = !isnan(c->first_s);
    const struct xml x = {
        .file = file,
        .c = c,
        .rows = &c->rows,
        .has_time = has_time,
        .dx = has_um ? c->um[1] : 1,
        .dy = has_um ? c->um[0] : 1,
        .um = has_um ? c->grid.um : 1,
        .frame_s = has_time && c->n > 1 ? (c->last_s - c->first_s) / (double)(c->n - 1) : 1};
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<TrackMate version=\"7.11.1\">\n"
            "  <Log>octctl cells, octd " OCT_VERSION "</Log>\n"
            "  <Model spatialunits=\"%s\" timeunits=\"%s\">\n",
            has_um ? "micron" : "pixel", has_time ? "sec" : "frame");
    put_declarations(file);
    put_spots(&x);
    fputs("    <AllTracks>\n", file);
    put_tracks(&x, true);
    fputs("    </AllTracks>\n    <FilteredTracks>\n", file);
    put_tracks(&x, false);
    fputs("    </FilteredTracks>\n  </Model>\n", file);
    put_settings(&x);
    fputs("  <GUIState state=\"ConfigureViews\" />\n  <DisplaySettings />\n</TrackMate>\n", file);
}

enum oct_err oct_cells_write_trackmate(void *job, const char *path, bool force,
                                       struct oct_error *err)
{
    (void)force;
    return oct_outputs_print(path, put_all, job, err);
}
