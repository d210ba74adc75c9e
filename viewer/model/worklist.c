#include "viewer/model/worklist.h"

#include "viewer/model/model.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void oct_view_worklist_finish(struct oct_view_worklist *w)
{
    free(w->all);
    w->all = NULL;
    w->rows = (struct oct_view_list){.n = 0};
}

void oct_view_worklist_open(struct oct_view_model *model)
{
    struct oct_view_worklist *w = &model->worklist;
    if (!w->is_set || !model->has_control)
        return;
    oct_view_worklist_finish(w);
    w->is_open = w->is_due = true;
    w->state = OCT_WORKLIST_ASKING;
}

bool oct_view_worklist_is_shown(const struct oct_view_model *model)
{
    return model->worklist.is_open && !model->playback.active && !model->hides_names &&
           !oct_view_model_is_recording(model);
}

/* ---- what octctl says ---- */

static void read_text(const cJSON *object, const char *key, char *text, size_t n_bytes)
{
    const char *is = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    snprintf(text, n_bytes, "%s", is ? is : "");
    oct_view_letters_clean(text);
}

/* "Doe^Jane^^Dr=..." (PS3.5 6.2): the family name, the given ones; of the first way of writing it
 * that is not empty. */
static void read_name(const cJSON *object, char name[OCT_VIEW_NAME_BYTES])
{
    char text[OCT_VIEW_NAME_BYTES], *rest = NULL;
    size_t n = 0;
    read_text(object, "name", text, sizeof(text));
    char *group = text + strspn(text, "=^ ");
    group[strcspn(group, "=")] = '\0';
    name[0] = '\0';
    for (char *part = strtok_r(group, "^", &rest); part && n + 3 < OCT_VIEW_NAME_BYTES;
         part = strtok_r(NULL, "^", &rest))
        n += (size_t)snprintf(name + n, OCT_VIEW_NAME_BYTES - n, "%s%s",
                              !n                  ? ""
                              : strchr(name, ',') ? " "
                                                  : ", ",
                              part);
    oct_view_letters_clean(name);
}

static void read_appointment(const cJSON *object, struct oct_view_appointment *a)
{
    char time[16];
    read_text(object, "key", a->key, sizeof(a->key));
    read_text(object, "time", time, sizeof(time));
    if (strspn(time, "0123456789") >= 4)
        snprintf(a->time, sizeof(a->time), "%.2s:%.2s", time, time + 2);
    else
        snprintf(a->time, sizeof(a->time), "--:--");
    read_name(object, a->name);
    read_text(object, "id", a->id, sizeof(a->id));
    read_text(object, "accession", a->accession, sizeof(a->accession));
    a->is_readable = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "readable")) &&
                     a->key[0] && strspn(a->key, "0123456789abcdef") == strlen(a->key);
}

void oct_view_worklist_take(struct oct_view_worklist *w, const char *json, size_t n_bytes,
                            const char *why)
{
    cJSON *list = json ? cJSON_ParseWithLength(json, n_bytes) : NULL, *one;
    oct_view_worklist_finish(w);
    w->state = cJSON_IsArray(list) ? OCT_WORKLIST_HERE : OCT_WORKLIST_FAILED;
    snprintf(w->why, sizeof(w->why), "%s", json ? "octctl's answer was no list" : why);
    if (cJSON_GetArraySize(list) > 0)
        w->all = calloc(OCT_VIEW_MOST_APPOINTMENTS, sizeof(*w->all));
    cJSON_ArrayForEach(one, list)
    {
        if (w->all && w->rows.n < OCT_VIEW_MOST_APPOINTMENTS && cJSON_IsObject(one))
            read_appointment(one, &w->all[w->rows.n++]);
    }
    cJSON_Delete(list);
}

/* ---- choosing ---- */

void oct_view_worklist_choose(struct oct_view_model *model, unsigned i)
{
    struct oct_view_worklist *w = &model->worklist;
    if (i >= w->rows.n)
        return;
    if (!w->all[i].is_readable) {
        oct_view_model_say(model, "this entry cannot be read: type a pseudonym");
        return;
    }
    oct_view_model_end_typing(model, false);
    w->is_open = false;
    model->patient.accepted = false;
    oct_view_model_wish(model, OCT_WISH_PATIENT, w->all[i].key);
}

/* ---- who it is ---- */

bool oct_view_worklist_wants_name(const struct oct_view_model *model)
{
    const struct oct_view_worklist *w = &model->worklist;
    const char *pseudonym = oct_view_patient_pseudonym(model);
    return w->is_set && pseudonym[0] && pseudonym[0] != '-' && strcmp(pseudonym, w->pseudonym) != 0;
}

const char *oct_view_worklist_take_name(struct oct_view_worklist *w, const char *pseudonym,
                                        const char *json, size_t n_bytes)
{
    cJSON *who = json ? cJSON_ParseWithLength(json, n_bytes) : NULL;
    if (pseudonym)
        snprintf(w->pseudonym, sizeof(w->pseudonym), "%s", pseudonym);
    else
        read_text(who, "pseudonym", w->pseudonym, sizeof(w->pseudonym));
    read_name(who, w->name);
    cJSON_Delete(who);
    return w->pseudonym;
}

const char *oct_view_patient_name(const struct oct_view_model *model)
{
    const struct oct_view_worklist *w = &model->worklist;
    const bool is_of_it = strcmp(oct_view_patient_pseudonym(model), w->pseudonym) == 0;
    return w->pseudonym[0] && is_of_it && !model->hides_names ? w->name : "";
}
