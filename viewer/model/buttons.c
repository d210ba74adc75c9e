#include "viewer/model/buttons.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum profile { BOTH, LAB, OPERATOR };

#define IN(situation) (1u << OCT_SITUATION_##situation)
#define PICTURE (IN(WATCHING) | IN(LIVE) | IN(RECORDING) | IN(FROZEN) | IN(PLAYBACK))

/* The places below the picture, from the left, and which button stands at each in which situation;
 * where none does the first of the place stands there, and is off. A button has one place for good.
 * Where Record was, Cancel is asked with: a double click on Record records nothing. A label that
 * depends on more is written by words_of. */
enum place {
    PLACE_RECORD,
    PLACE_SAVE,
    PLACE_PLAYBACK,
    PLACE_FREEZE,
    PLACE_BACK,
    PLACE_FORWARD,
    PLACE_AVERAGE,
    PLACE_FLOW,
    PLACE_LAYERS,
    PLACE_AUTO,
    PLACE_FIRST_OF_PROFILE,
    PLACE_SECOND_OF_PROFILE,
    PLACE_SNAPSHOT,
    PLACE_HELP,
    N_PLACES
};
static const struct row {
    enum place place;
    enum oct_view_action action;
    const char *label, *brief; /* brief NULL: the label */
    unsigned in;               /* situations */
    enum profile profile;
} rows[] = {
    {PLACE_RECORD, OCT_ACTION_RECORD, "Record", NULL, IN(LIVE) | IN(FROZEN), BOTH},
    {PLACE_RECORD, OCT_ACTION_RECORD, "Stop", NULL, IN(RECORDING) | IN(PLAYBACK), BOTH},
    {PLACE_RECORD, OCT_ACTION_LEAVE, "Cancel", NULL, IN(ASKING), BOTH},
    {PLACE_SAVE, OCT_ACTION_SAVE_LAST, "Save the last", "Save",
     IN(LIVE) | IN(RECORDING) | IN(FROZEN), BOTH},
    {PLACE_SAVE, OCT_ACTION_RECORD, "Record", NULL, IN(ASKING), BOTH},
    {PLACE_SAVE, OCT_ACTION_EXPORT, "Export", NULL, IN(PLAYBACK), BOTH},
    {PLACE_PLAYBACK, OCT_ACTION_PLAYBACK, "Playback", NULL, IN(IDLE) | IN(LIVE) | IN(FROZEN), BOTH},
    {PLACE_PLAYBACK, OCT_ACTION_PLAYBACK, "Live", NULL, IN(PLAYBACK), BOTH},
    {PLACE_FREEZE, OCT_ACTION_FREEZE, "Freeze", NULL, PICTURE, BOTH},
    {PLACE_FREEZE, OCT_ACTION_START, "Start", NULL, IN(IDLE), BOTH},
    {PLACE_BACK, OCT_ACTION_OLDER, "Back", NULL, IN(FROZEN) | IN(PLAYBACK), BOTH},
    {PLACE_BACK, OCT_ACTION_GUIDE, "Guide", NULL, IN(LIVE), BOTH},
    {PLACE_FORWARD, OCT_ACTION_NEWER, "Forward", NULL, IN(FROZEN) | IN(PLAYBACK), BOTH},
    {PLACE_FORWARD, OCT_ACTION_MORE, "More", NULL, IN(LIVE), LAB},
    {PLACE_FORWARD, OCT_ACTION_SCAN, "Scan", NULL, IN(LIVE) | IN(RECORDING), BOTH},
    {PLACE_AVERAGE, OCT_ACTION_AVERAGE, "Average", NULL, IN(LIVE) | IN(RECORDING), BOTH},
    {PLACE_AVERAGE, OCT_ACTION_KEEP, "Keep", NULL, IN(PLAYBACK), BOTH},
    {PLACE_FLOW, OCT_ACTION_FLOW, "Flow", NULL, IN(LIVE) | IN(RECORDING), BOTH},
    {PLACE_FLOW, OCT_ACTION_REPEAT, "Repeat", NULL, IN(PLAYBACK), BOTH},
    {PLACE_LAYERS, OCT_ACTION_LAYERS, "Layers", NULL,
     IN(LIVE) | IN(RECORDING) | IN(FROZEN) | IN(PLAYBACK), BOTH},
    {PLACE_AUTO, OCT_ACTION_AUTO_CONTRAST, "Auto", NULL, PICTURE, BOTH},
    {PLACE_FIRST_OF_PROFILE, OCT_ACTION_LEVEL_DOWN, "Brighter", NULL, PICTURE, OPERATOR},
    {PLACE_SECOND_OF_PROFILE, OCT_ACTION_LEVEL_UP, "Darker", NULL, PICTURE, OPERATOR},
    {PLACE_FIRST_OF_PROFILE, OCT_ACTION_LAYOUT, "Layout", NULL, PICTURE & ~IN(PLAYBACK), LAB},
    {PLACE_FIRST_OF_PROFILE, OCT_ACTION_REPORT, "Report", NULL, IN(PLAYBACK), LAB},
    {PLACE_SECOND_OF_PROFILE, OCT_ACTION_MEASURE, "Measure", NULL, PICTURE, LAB},
    {PLACE_SNAPSHOT, OCT_ACTION_SNAPSHOT, "Snapshot", NULL, PICTURE & ~IN(PLAYBACK), BOTH},
    {PLACE_SNAPSHOT, OCT_ACTION_SNAPSHOT_PLAIN, "Save PNG", NULL, IN(PLAYBACK), BOTH},
    {PLACE_HELP, OCT_ACTION_HELP, "Help", NULL, ~0u, BOTH},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

enum oct_view_situation oct_view_situation(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    if (model->playback.active)
        return OCT_SITUATION_PLAYBACK;
    if (model->patient.asks != OCT_ASKS_NOTHING)
        return OCT_SITUATION_ASKING;
    if (!model->has_control || !d->reachable)
        return OCT_SITUATION_WATCHING;
    if (d->record.active)
        return OCT_SITUATION_RECORDING;
    if ((strcmp(d->state, "idle") == 0 && !oct_view_scan_changes(model)) ||
        strcmp(d->state, "error") == 0)
        return OCT_SITUATION_IDLE;
    return model->frozen ? OCT_SITUATION_FROZEN : OCT_SITUATION_LIVE;
}

static bool is_on(const struct oct_view_model *model, enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_FREEZE:
        return model->playback.active ? model->playback.plays : model->frozen;
    case OCT_ACTION_AVERAGE:
        return model->settings.average;
    case OCT_ACTION_FLOW:
        return oct_view_flow_is_on(model);
    case OCT_ACTION_SUPERFICIAL:
    case OCT_ACTION_DEEP:
    case OCT_ACTION_AVASCULAR:
    case OCT_ACTION_CHORIOCAPILLARIS:
        return strcmp(model->daemon.flow.slab, oct_view_slab_of(action)) == 0;
    case OCT_ACTION_EXAMS:
        return model->exams.is_open || model->playback.follow.is_on;
    case OCT_ACTION_LAYERS:
        return model->settings.layers && (model->playback.active || oct_view_layers_are_on(model));
    case OCT_ACTION_MORE:
        return oct_view_overlay_more(model);
    case OCT_ACTION_GUIDE:
        return model->settings.guide;
    case OCT_ACTION_KEEP:
        return model->playback.file.verdict == OCT_MARK_KEEP;
    case OCT_ACTION_REPEAT:
        return model->playback.file.verdict == OCT_MARK_REPEAT;
    case OCT_ACTION_AUTO_CONTRAST:
        return model->contrast.range == OCT_CONTRAST_AUTO;
    case OCT_ACTION_MEASURE:
        return model->measuring;
    case OCT_ACTION_SCAN:
        return oct_view_scans_are_shown(model) || model->scan.draws ||
               oct_view_scan_is_placed(model);
    case OCT_ACTION_HELP:
        return model->help;
    case OCT_ACTION_RIGHT_EYE:
        return strcmp(oct_view_patient_eye(model), "OD") == 0;
    case OCT_ACTION_LEFT_EYE:
        return strcmp(oct_view_patient_eye(model), "OS") == 0;
    default:
        return false;
    }
}

static bool is_of_use(const struct oct_view_model *model, enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_RECORD: /* in playback, to stop what goes on */
        return !model->playback.active || (model->daemon.reachable && model->daemon.record.active);
    case OCT_ACTION_MORE:
        return oct_view_daemon_analysis(&model->daemon, oct_view_overlay_cells.topic) ||
               oct_view_daemon_analysis(&model->daemon, oct_view_overlay_rolloff.topic);
    case OCT_ACTION_SAVE_LAST:
        return model->daemon.last.bscans_most > 0 && model->daemon.last.length_s >= 0.5;
    case OCT_ACTION_REPORT:
        return !model->playback.file.what[0] && !model->report_page.runs;
    case OCT_ACTION_EXPORT:
        return !model->playback.file.what[0] && !oct_view_export_runs(model);
    case OCT_ACTION_PLAYBACK:
        return model->playback.active || model->daemon.record.file[0] ||
               model->daemon.last.file[0] || model->playback.file.path[0];
    default:
        return true;
    }
}

static void words_of(struct oct_view_button *b, const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    const char *lacks = oct_view_patient_lacks(model);
    if (b->action == OCT_ACTION_RECORD && oct_view_situation(model) == OCT_SITUATION_ASKING) {
        if (lacks)
            snprintf(b->label, sizeof(b->label), "Record without %s", lacks);
        else if (model->patient.asks == OCT_ASKS_SAME)
            snprintf(b->label, sizeof(b->label), "Yes, record");
        snprintf(b->brief, sizeof(b->brief), "%s", lacks ? "Record anyway" : "Yes, record");
    } else if (b->action == OCT_ACTION_SAVE_LAST) {
        double s = fmin(round(d->last.length_s), 9999);
        snprintf(b->label, sizeof(b->label), "Save the last %.0f s", s);
        snprintf(b->brief, sizeof(b->brief), "Save %.0f s", s);
    } else if (b->action == OCT_ACTION_AVERAGE) {
        double n = d->average_bscans > 1 ? d->average_bscans : oct_view_average_wished(model);
        snprintf(b->label, sizeof(b->label), "Average %.0f", fmin(n, 999));
        snprintf(b->brief, sizeof(b->brief), "Avg %.0f", fmin(n, 999));
    } else if (b->action == OCT_ACTION_MORE && oct_view_overlay_more(model)) {
        const bool is_cells = oct_view_overlay_more(model) == &oct_view_overlay_cells;
        snprintf(b->label, sizeof(b->label), "%s", is_cells ? "Cells" : "Roll-off");
        snprintf(b->brief, sizeof(b->brief), "%s", is_cells ? "Cells" : "Roll-off");
    } else if (b->action == OCT_ACTION_SCAN) {
        snprintf(b->label, sizeof(b->label), "Scan %s",
                 oct_view_scan_is_placed(model) ? "line" : d->scans.running);
    } else if (b->action == OCT_ACTION_FLOW && model->settings.velocity) {
        snprintf(b->label, sizeof(b->label), "Velocity");
        snprintf(b->brief, sizeof(b->brief), "Velocity");
    } else if (b->action == OCT_ACTION_FREEZE && model->playback.active) {
        snprintf(b->label, sizeof(b->label), "%s", model->playback.plays ? "Pause" : "Play");
        snprintf(b->brief, sizeof(b->brief), "%.*s", (int)sizeof(b->brief) - 1, b->label);
    } else if (b->action == OCT_ACTION_FREEZE && model->frozen) {
        snprintf(b->label, sizeof(b->label), "Go on");
        snprintf(b->brief, sizeof(b->brief), "Go on");
    }
}

static struct oct_view_button button_of(const struct oct_view_model *model, const struct row *row)
{
    const char *brief = row->brief ? row->brief : row->label;
    struct oct_view_button b = {.action = row->action, .row = OCT_BUTTONS_BELOW};
    b.look = row->action == OCT_ACTION_RECORD ? OCT_BUTTON_RECORD
             : is_on(model, row->action)      ? OCT_BUTTON_ON
                                              : OCT_BUTTON_PLAIN;
    snprintf(b.label, sizeof(b.label), "%s", row->label);
    snprintf(b.brief, sizeof(b.brief), "%s", brief);
    words_of(&b, model);
    return b;
}

/* Scan stands where octd has a list, and where no cells and no mirror need the place. */
static bool is_left_out(const struct oct_view_model *model, enum oct_view_action action)
{
    const bool needs = !model->settings.operators && is_of_use(model, OCT_ACTION_MORE);
    const bool has_scan = model->scan.rows.n > 0 && !needs;
    return (action == OCT_ACTION_SCAN && !has_scan) || (action == OCT_ACTION_MORE && has_scan);
}

/* The row of the place that stands there, or would. */
static const struct row *row_at(const struct oct_view_model *model, enum place place, bool *is_off)
{
    const unsigned in = 1u << oct_view_situation(model);
    const enum profile other = model->settings.operators ? LAB : OPERATOR;
    const struct row *first = NULL;
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].place != place || rows[i].profile == other ||
            is_left_out(model, rows[i].action))
            continue;
        first = first ? first : &rows[i];
        *is_off = !is_of_use(model, rows[i].action);
        if (rows[i].in & in)
            return &rows[i];
    }
    *is_off = true;
    return first;
}

static unsigned add_below(const struct oct_view_model *model, struct oct_view_button *buttons)
{
    for (unsigned place = 0; place < N_PLACES; place++) {
        bool is_off;
        const struct row *row = row_at(model, (enum place)place, &is_off);
        buttons[place] = button_of(model, row);
        if (is_off) {
            buttons[place].look = OCT_BUTTON_OFF;
            snprintf(buttons[place].label, sizeof(buttons[place].label), "%s",
                     row->brief ? row->brief : row->label);
        }
    }
    return N_PLACES;
}

static unsigned add_patient(const struct oct_view_model *model, struct oct_view_button *buttons)
{
    const char *pseudonym = oct_view_patient_pseudonym(model), *name = oct_view_patient_name(model);
    struct oct_view_button row[] = {
        {.action = OCT_ACTION_RIGHT_EYE, .label = "OD", .brief = "OD"},
        {.action = OCT_ACTION_LEFT_EYE, .label = "OS", .brief = "OS"},
        {.action = OCT_ACTION_PSEUDONYM, .look = OCT_BUTTON_FIELD, .brief = "pseudonym"},
        {.action = OCT_ACTION_NEXT_PATIENT, .label = "Next patient", .brief = "Next"},
    };
    unsigned n = sizeof(row) / sizeof(row[0]);
    snprintf(row[2].label, sizeof(row[2].label), "%s", pseudonym[0] ? pseudonym : "no pseudonym");
    if (name[0])
        snprintf(row[2].label, sizeof(row[2].label), "%s (%s)", name, pseudonym);
    if (model->typing)
        snprintf(row[2].label, sizeof(row[2].label), "%s%s", model->typed,
                 model->patient.selected ? "" : "_");
    if (model->playback.active) /* nobody is next to a recording */
        row[3] = (struct oct_view_button){
            .action = OCT_ACTION_EXAMS, .label = "Exams", .brief = "Exams"};
    for (unsigned i = 0; i < n; i++) {
        buttons[i] = row[i];
        buttons[i].row = OCT_BUTTONS_PATIENT;
        if (is_on(model, row[i].action))
            buttons[i].look = OCT_BUTTON_ON;
    }
    return n;
}

/* The slab is octd's, so that there are none where it cannot be asked. */
static unsigned add_slabs(const struct oct_view_model *model, struct oct_view_button *buttons)
{
    static const struct oct_view_button row[] = {
        {.action = OCT_ACTION_SUPERFICIAL, .label = "Superficial", .brief = "Superf."},
        {.action = OCT_ACTION_DEEP, .label = "Deep", .brief = "Deep"},
        {.action = OCT_ACTION_AVASCULAR, .label = "Avascular", .brief = "Avasc."},
        {.action = OCT_ACTION_CHORIOCAPILLARIS, .label = "Choriocapillaris", .brief = "Choroid"},
    };
    const unsigned n = sizeof(row) / sizeof(row[0]);
    for (unsigned i = 0; i < n; i++) {
        buttons[i] = row[i];
        buttons[i].row = OCT_BUTTONS_SLABS;
        buttons[i].look = is_on(model, row[i].action) ? OCT_BUTTON_ON : OCT_BUTTON_PLAIN;
    }
    return n;
}

unsigned oct_view_buttons(const struct oct_view_model *model,
                          struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS])
{
    unsigned n = add_below(model, buttons);
    if ((model->has_control || model->playback.active) && n + 4 <= OCT_VIEW_MOST_BUTTONS)
        n += add_patient(model, buttons + n);
    if (model->has_control && model->daemon.reachable && oct_view_model_has_angiogram(model) &&
        n + 4 <= OCT_VIEW_MOST_BUTTONS)
        n += add_slabs(model, buttons + n);
    return n;
}
