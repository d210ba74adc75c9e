#include "viewer/errands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beyond what octctl itself bounds, in seconds; an export reads a whole recording. */
#define MORE_S 20.
#define MOST_EXPORT_S 3600.

/* The words before the command's are the configuration that octview itself has. */
static void begin(struct oct_view_errands *errands, enum oct_view_errand_of which,
                  const char *const *command, double most_s)
{
    const struct oct_view_options *o = errands->options;
    char control[OCT_CONFIG_STRING_BYTES + 32];
    size_t n = 0, n_sets = 0, n_command = 0;
    while (o->sets && o->sets[n_sets])
        n_sets++;
    while (command[n_command])
        n_command++;
    const char **words = calloc(2 * n_sets + n_command + 6, sizeof(*words));
    if (!words)
        return; /* it stays due */
    words[n++] = "octctl";
    if (o->config_path) {
        words[n++] = "--config";
        words[n++] = o->config_path;
    }
    for (size_t i = 0; i < n_sets; i++) {
        words[n++] = "--set";
        words[n++] = o->sets[i];
    }
    snprintf(control, sizeof(control), "control.endpoint=%s", o->control);
    if (o->control[0]) {
        words[n++] = "--set";
        words[n++] = control;
    }
    memcpy(words + n, command, n_command * sizeof(*words));
    oct_view_errand_begin(&errands->errand[which], words, most_s);
    free(words);
}

#define BEGIN(errands, which, most_s, ...)                                                         \
    begin(errands, which, (const char *const[]){__VA_ARGS__, NULL}, most_s)

void oct_view_errands_init(struct oct_view_errands *errands, const struct oct_view_options *options,
                           struct oct_view_model *model)
{
    const struct oct_config *c = &options->config;
    errands->options = options;
    model->worklist.is_set = c->dicom.worklist[0] != '\0';
    model->exported.has_archive = c->dicom.archive[0] != '\0';
    model->exported.is_real = c->dicom.identity == OCT_IDENTITY_REAL;
    snprintf(model->exported.archive, sizeof(model->exported.archive), "%.*s",
             (int)strcspn(c->dicom.archive, "@"), c->dicom.archive);
}

/* ---- what is due ---- */

void oct_view_errands_take_patient(struct oct_view_errands *errands, const char *key)
{
    BEGIN(errands, OCT_ERRAND_TAKE, 3. * errands->options->config.dicom.timeout_s + 2 * MORE_S,
          "worklist", "--take", key, "--json");
}

static void begin_export(struct oct_view_errands *errands, struct oct_view_model *model)
{
    struct oct_view_export *e = &model->exported;
    const char *identity = e->is_real ? "real" : "masked", *slash = strrchr(e->written, '/');
    char why[OCT_VIEW_FILE_BYTES + 64];
    if (!e->has_archive && access(e->written, F_OK) == 0) {
        snprintf(why, sizeof(why), "%.250s is there already: move it away first",
                 slash ? slash + 1 : e->written);
        oct_view_export_take(model, NULL, 0, why);
        return;
    }
    if (e->has_archive)
        BEGIN(errands, OCT_ERRAND_EXPORT, MOST_EXPORT_S, "archive", "exam", e->path, "--identity",
              identity, "--json");
    else
        BEGIN(errands, OCT_ERRAND_EXPORT, MOST_EXPORT_S, "export", e->path, e->written, "--to",
              "dicom", "--identity", identity, "--json");
    e->state = errands->errand[OCT_ERRAND_EXPORT].runs ? OCT_EXPORT_RUNS : e->state;
}

static void begin_due(struct oct_view_errands *errands, struct oct_view_model *model)
{
    const struct oct_view_errand *e = errands->errand;
    struct oct_view_worklist *w = &model->worklist;
    if (w->is_due && !e[OCT_ERRAND_LIST].runs) {
        w->is_due = false;
        BEGIN(errands, OCT_ERRAND_LIST, 3. * errands->options->config.dicom.timeout_s + MORE_S,
              "worklist", "--json");
    }
    if (!e[OCT_ERRAND_NAME].runs && oct_view_worklist_wants_name(model)) {
        snprintf(errands->asked_name, sizeof(errands->asked_name), "%s",
                 oct_view_patient_pseudonym(model));
        BEGIN(errands, OCT_ERRAND_NAME, MORE_S, "identify", errands->asked_name, "--json");
    }
    if (model->exported.state == OCT_EXPORT_DUE && !e[OCT_ERRAND_EXPORT].runs)
        begin_export(errands, model);
    struct oct_view_report_page *r = &model->report_page;
    if (r->is_due && !e[OCT_ERRAND_REPORT].runs) {
        BEGIN(errands, OCT_ERRAND_REPORT, MOST_EXPORT_S, "report", r->path, r->written,
              "--identity", model->exported.is_real ? "real" : "masked", "--json");
        r->runs = e[OCT_ERRAND_REPORT].runs;
        r->is_due = !r->runs; /* without memory */
    }
    if (!e[OCT_ERRAND_STATUS].runs && oct_view_export_wants_status(model))
        BEGIN(errands, OCT_ERRAND_STATUS, MORE_S, "archive", "status", "--json");
}

/* ---- what came of it ---- */

/* octd has the pseudonym now, and octctl knows who it is; or nobody was taken. */
static void answer_patient(struct oct_view_model *model, const struct oct_view_errand *e,
                           const char *json)
{
    struct oct_view_answer answer = {.wish = OCT_WISH_PATIENT, .ok = e->ok};
    const struct oct_view_daemon daemon = model->daemon;
    snprintf(answer.text, sizeof(answer.text), "%s",
             e->ok ? oct_view_worklist_take_name(&model->worklist, NULL, json, e->n_bytes)
                   : e->why);
    oct_view_model_hear(model, &daemon, &answer);
}

static void take(struct oct_view_errands *errands, struct oct_view_model *model,
                 enum oct_view_errand_of which)
{
    const struct oct_view_errand *e = &errands->errand[which];
    const char *json = e->ok ? e->text ? e->text : "" : NULL;
    switch (which) {
    case OCT_ERRAND_LIST:
        if (!model->worklist.is_due) /* else it was asked for anew meanwhile */
            oct_view_worklist_take(&model->worklist, json, e->n_bytes, e->why);
        break;
    case OCT_ERRAND_TAKE:
        answer_patient(model, e, json);
        break;
    case OCT_ERRAND_NAME:
        oct_view_worklist_take_name(&model->worklist, errands->asked_name, json, e->n_bytes);
        break;
    case OCT_ERRAND_EXPORT:
        oct_view_export_take(model, json, e->n_bytes, e->why);
        break;
    case OCT_ERRAND_REPORT:
        oct_view_report_page_take(model, json, e->why);
        break;
    default:
        oct_view_export_take_status(model, json, e->n_bytes);
    }
}

bool oct_view_errands_turn(struct oct_view_errands *errands, struct oct_view_model *model)
{
    bool changed = false;
    if (!errands->options)
        return false;
    for (unsigned i = 0; i < OCT_N_ERRANDS; i++)
        if (oct_view_errand_look(&errands->errand[i])) {
            take(errands, model, (enum oct_view_errand_of)i);
            changed = true;
        }
    begin_due(errands, model);
    return changed;
}

void oct_view_errands_finish(struct oct_view_errands *errands)
{
    oct_view_errand_end_all(errands->errand, OCT_N_ERRANDS);
}
