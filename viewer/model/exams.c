#include "viewer/model/exams.h"

#include "viewer/model/model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void oct_view_exams_finish(struct oct_view_exams *exams)
{
    for (unsigned i = 0; i < exams->n; i++)
        free(exams->all[i]);
    free(exams->all);
    free(exams->found);
    *exams = (struct oct_view_exams){
        .is_open = exams->is_open, .asked = exams->asked, .serial = exams->serial + 1};
}

void oct_view_exams_toggle(struct oct_view_model *model)
{
    struct oct_view_exams *e = &model->exams;
    e->is_open = !e->is_open;
    if (!e->is_open)
        return;
    if (model->typing)
        oct_view_model_end_typing(model, false);
    oct_view_exams_finish(e);
    e->asked++;
}

bool oct_view_exams_are_shown(const struct oct_view_model *model)
{
    return model->exams.is_open && model->playback.active;
}

/* ---- order, and search ---- */

/* Dates are text whose order is theirs; unknown ones and nobody's come last. */
static int compare_exams(const struct oct_view_exam *a, const struct oct_view_exam *b)
{
    int order = (b->pseudonym[0] != '\0') - (a->pseudonym[0] != '\0');
    order = order ? order : strcmp(b->newest, a->newest);
    order = order ? order : strcmp(a->pseudonym, b->pseudonym);
    order = order ? order : strcmp(b->begun, a->begun);
    return order ? order : strcmp(a->name, b->name);
}

static int order_of_exams(const void *a, const void *b)
{
    return compare_exams(*(struct oct_view_exam *const *)a, *(struct oct_view_exam *const *)b);
}

static int order_by_patient(const void *a, const void *b)
{
    const struct oct_view_exam *const *x = a, *const *y = b;
    const int order = strcmp((*x)->pseudonym, (*y)->pseudonym);
    return order ? order : strcmp((*y)->begun, (*x)->begun);
}

static bool holds(const char *text, const char *part)
{
    const size_t n = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && text[i] &&
               tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == n)
            return true;
    }
    return n == 0;
}

static void find(struct oct_view_exams *e)
{
    unsigned n = 0;
    for (unsigned i = 0; i < e->n && e->found; i++)
        if (holds(e->all[i]->pseudonym, e->search) || holds(e->all[i]->begun, e->search) ||
            holds(e->all[i]->name, e->search))
            e->found[n++] = i;
    e->rows.n = n;
    e->rows.first = e->rows.first < n ? e->rows.first : 0;
    e->rows.chosen = e->rows.chosen <= n ? e->rows.chosen : 0;
    e->serial++;
}

static bool make_room(struct oct_view_exams *e, unsigned n)
{
    if (n <= e->room)
        return true;
    const unsigned room = n < 64 ? 64 : 2 * n;
    struct oct_view_exam **all = realloc(e->all, room * sizeof(struct oct_view_exam *));
    if (!all)
        return false;
    e->all = all;
    unsigned *found = realloc(e->found, room * sizeof(*found));
    if (!found)
        return false;
    e->found = found;
    e->room = room;
    return true;
}

void oct_view_exams_add(struct oct_view_exams *e, const struct oct_view_exam *read, unsigned n)
{
    for (unsigned i = 0; i < n && e->n < OCT_VIEW_MOST_EXAMS; i++) {
        struct oct_view_exam *exam = make_room(e, e->n + 1) ? malloc(sizeof(*exam)) : NULL;
        if (!exam)
            break;
        *exam = read[i];
        e->all[e->n++] = exam;
    }
    if (e->n == 0)
        return;
    qsort(e->all, e->n, sizeof(struct oct_view_exam *), order_by_patient);
    for (unsigned i = 0; i < e->n; i++) { /* the newest of each patient comes first */
        const bool goes_on = i > 0 && strcmp(e->all[i]->pseudonym, e->all[i - 1]->pseudonym) == 0;
        memcpy(e->all[i]->newest, goes_on ? e->all[i - 1]->newest : e->all[i]->begun,
               sizeof(e->all[i]->newest));
    }
    qsort(e->all, e->n, sizeof(struct oct_view_exam *), order_of_exams);
    find(e);
}

const struct oct_view_exam *oct_view_exams_row(const struct oct_view_exams *e, unsigned i)
{
    return i < e->rows.n ? e->all[e->found[i]] : NULL;
}

void oct_view_exams_type(struct oct_view_exams *e, const char *text)
{
    const size_t n = strlen(e->search);
    if (!oct_view_letters_are(text) || n + strlen(text) + 1 > sizeof(e->search))
        return;
    snprintf(e->search + n, sizeof(e->search) - n, "%s", text);
    e->rows.first = e->rows.chosen = 0;
    find(e);
}

void oct_view_exams_rub_out(struct oct_view_exams *e, bool whole)
{
    size_t n = whole ? 0 : strlen(e->search);
    while (n > 0 && ((unsigned char)e->search[--n] & 0xc0) == 0x80)
        ;
    e->search[n] = '\0';
    find(e);
}

/* ---- what is done with a row ---- */

static void path_of(const struct oct_view_model *model, const struct oct_view_exam *exam,
                    char path[OCT_VIEW_PATH_BYTES])
{
    const char *now = model->playback.file.path, *slash = strrchr(now, '/');
    snprintf(path, OCT_VIEW_PATH_BYTES, "%.*s%s", slash ? (int)(slash + 1 - now) : 0, now,
             exam->name);
}

void oct_view_exams_choose(struct oct_view_model *model, unsigned i)
{
    const struct oct_view_exam *exam = oct_view_exams_row(&model->exams, i);
    char path[OCT_VIEW_PATH_BYTES];
    if (!exam)
        return;
    path_of(model, exam, path);
    model->exams.is_open = false;
    oct_view_playback_open(model, path, 0, false);
}

bool oct_view_exams_is_alike(const struct oct_view_model *model, unsigned i)
{
    const struct oct_view_exam *exam = oct_view_exams_row(&model->exams, i);
    const struct oct_view_file *file = &model->playback.file;
    return exam && file->pseudonym[0] && strcmp(exam->pseudonym, file->pseudonym) == 0 &&
           file->eye[0] && strcmp(exam->eye, file->eye) == 0 && strcmp(exam->name, file->name) != 0;
}

void oct_view_exams_compare(struct oct_view_model *model, unsigned i)
{
    const struct oct_view_exam *exam = oct_view_exams_row(&model->exams, i);
    struct oct_view_follow *f = &model->playback.follow;
    if (!exam || !oct_view_exams_is_alike(model, i))
        return;
    oct_view_follow_finish(f);
    path_of(model, exam, f->path);
    snprintf(f->begun, sizeof(f->begun), "%.10s", exam->begun);
    f->number++;
    f->is_on = true;
    model->exams.is_open = false;
    model->settings.layers = true; /* what has changed is how thick they are */
}

/* ---- words ---- */

void oct_view_exams_title(const struct oct_view_model *model, char *text, size_t n_bytes)
{
    const struct oct_view_exams *e = &model->exams;
    unsigned n_patients = 0;
    const struct oct_view_exam *before = NULL;
    for (unsigned i = 0; i < e->rows.n; i++) {
        const struct oct_view_exam *exam = oct_view_exams_row(e, i);
        n_patients +=
            exam->pseudonym[0] && (!before || strcmp(before->pseudonym, exam->pseudonym) != 0);
        before = exam;
    }
    char reading[80] = "";
    if (e->n + e->n_others < e->n_files)
        snprintf(reading, sizeof(reading), "; %u of %u files read", e->n + e->n_others, e->n_files);
    else if (e->n_left_out > 0)
        snprintf(reading, sizeof(reading), "; the list ends at %u files, %u are not in it",
                 e->n_files, e->n_left_out);
    if (e->search[0])
        snprintf(text, n_bytes, "%s_: %u exam%s of %u patient%s%s", e->search, e->rows.n,
                 e->rows.n == 1 ? "" : "s", n_patients, n_patients == 1 ? "" : "s", reading);
    else
        snprintf(text, n_bytes, "%u exam%s of %u patient%s, the newest first; type to search%s",
                 e->rows.n, e->rows.n == 1 ? "" : "s", n_patients, n_patients == 1 ? "" : "s",
                 reading);
}
