#include "formats/export/describe.h"

#include "pipeline/base/utf8.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static void add_number(cJSON *object, const char *name, double value)
{
    cJSON_AddItemToObject(object, name,
                          isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

/* "" is unknown and left out. */
static void add_text(cJSON *object, const char *name, const char *text)
{
    if (text && *text)
        cJSON_AddStringToObject(object, name, text);
}

static void add_axes(cJSON *object, const struct oct_export_form *f, bool as_picture)
{
    const bool is_turned = as_picture && !f->is_upright;
    const unsigned order[3] = {0, is_turned ? 2 : 1, is_turned ? 1 : 2};
    cJSON *dims = cJSON_AddArrayToObject(object, "dims"),
          *axes = cJSON_AddArrayToObject(object, "axes"),
          *um = cJSON_AddArrayToObject(object, "spacing_um");
    for (unsigned i = 0; i < 3; i++) {
        const double step = f->um[order[i]];
        cJSON_AddItemToArray(dims, cJSON_CreateNumber(f->dims[order[i]]));
        cJSON_AddItemToArray(axes, cJSON_CreateString(f->axes[order[i]]));
        cJSON_AddItemToArray(um, isfinite(step) ? cJSON_CreateNumber(step) : cJSON_CreateNull());
    }
}

static void add_valid(cJSON *object, const struct oct_export_form *f)
{
    cJSON *missing = cJSON_AddArrayToObject(object, "missing_planes");
    for (uint32_t i = 0; f->plane_valid && i < f->dims[0]; i++)
        if (!f->plane_valid[i])
            cJSON_AddItemToArray(missing, cJSON_CreateNumber(i));
}

char *oct_export_describe(const struct oct_export_form *form, bool as_picture)
{
    static const char *const samples[] = {
        [OCT_EXPORT_U8] = "u8", [OCT_EXPORT_U16] = "u16", [OCT_EXPORT_F32] = "f32"};
    cJSON *o = cJSON_CreateObject();
    if (!o)
        return NULL;
    cJSON_AddStringToObject(o, "dataset", form->name);
    cJSON_AddStringToObject(o, "sample", samples[form->sample]);
    add_axes(o, form, as_picture);
    add_text(o, "quantity", form->quantity);
    add_text(o, "unit", form->unit);
    add_number(o, "lo", form->lo);
    add_number(o, "hi", form->hi);
    add_number(o, "plane_s", form->plane_s);
    add_number(o, "refractive_index", form->refractive_index);
    add_text(o, "eye", form->eye);
    add_text(o, "pseudonym", form->pseudonym);
    add_text(o, "start_time", form->start_time);
    add_text(o, "start_time_source", form->start_time_source);
    add_text(o, "software", form->software);
    add_text(o, "engine", form->engine);
    add_text(o, "acquisition_uid", form->acquisition_uid);
    add_valid(o, form);
    char *text = cJSON_Print(o);
    cJSON_Delete(o);
    if (text)
        oct_utf8_repair(text);
    return text;
}
