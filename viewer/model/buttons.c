#include "viewer/model/buttons.h"

#include <stdio.h>

struct list {
    const struct oct_view_model *model;
    struct oct_view_button *buttons;
    unsigned n;
};

static enum oct_view_button_look look_of(const struct oct_view_model *model,
                                         enum oct_view_action action)
{
    bool on = false;

    switch (action) {
    case OCT_ACTION_RECORD:
        return OCT_BUTTON_RECORD;
    case OCT_ACTION_FREEZE:
        on = model->frozen;
        break;
    case OCT_ACTION_AUTO_CONTRAST:
        on = model->contrast.range == OCT_CONTRAST_AUTO;
        break;
    case OCT_ACTION_MEASURE:
        on = model->measuring;
        break;
    case OCT_ACTION_HELP:
        on = model->help;
        break;
    default:
        break;
    }
    return on ? OCT_BUTTON_ON : OCT_BUTTON_PLAIN;
}

static void add(struct list *list, enum oct_view_action action, const char *label)
{
    if (list->n == OCT_VIEW_MOST_BUTTONS)
        return;
    struct oct_view_button *b = &list->buttons[list->n++];
    b->action = action;
    b->row = OCT_BUTTONS_BELOW;
    b->look = look_of(list->model, action);
    snprintf(b->label, sizeof(b->label), "%s", label);
}

unsigned oct_view_buttons(const struct oct_view_model *model,
                          struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS])
{
    struct list list = {model, buttons, 0};
    bool records = model->daemon.reachable && model->daemon.record.active;

    add(&list, OCT_ACTION_RECORD, records ? "Stop" : "Record");
    if (model->settings.operators) {
        add(&list, OCT_ACTION_AUTO_CONTRAST, "Auto");
        add(&list, OCT_ACTION_LEVEL_DOWN, "Brighter");
        add(&list, OCT_ACTION_LEVEL_UP, "Darker");
        add(&list, OCT_ACTION_EYE, "Eye");
    } else {
        add(&list, OCT_ACTION_FREEZE, "Freeze");
        add(&list, OCT_ACTION_AUTO_CONTRAST, "Auto");
        add(&list, OCT_ACTION_LAYOUT, "Layout");
        add(&list, OCT_ACTION_MEASURE, "Measure");
        add(&list, OCT_ACTION_SNAPSHOT, "Snapshot");
    }
    add(&list, OCT_ACTION_HELP, "Help");
    return list.n;
}
