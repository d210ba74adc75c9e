#include "viewer/model/action.h"

#include <stdio.h>
#include <string.h>

const struct oct_view_key oct_view_keys[] = {
    {"R", OCT_VIEW_RECORD, "start recording, or stop it"},
    {"Space", OCT_VIEW_FREEZE, "freeze the picture, go on (counting never stops)"},
    {",", OCT_VIEW_OLDER, "frozen: one B-scan back, on (of the last 10 s; Shift: five)"},
    {".", OCT_VIEW_NEWER, NULL},
    {"A", OCT_VIEW_AUTO_CONTRAST, "contrast by itself (percentiles), or as it is"},
    {"P", OCT_VIEW_PUBLISHED_CONTRAST, "contrast as published by octd"},
    {"Left", OCT_VIEW_LEVEL_DOWN, "both limits down (brighter), up (darker)"},
    {"Right", OCT_VIEW_LEVEL_UP, NULL},
    {"Up", OCT_VIEW_WINDOW_WIDER, "limits further apart (softer), closer (harder)"},
    {"Down", OCT_VIEW_WINDOW_CLOSER, NULL},
    {"[", OCT_VIEW_LOWER_DOWN, "lower limit down, up"},
    {"]", OCT_VIEW_LOWER_UP, NULL},
    {";", OCT_VIEW_UPPER_DOWN, "upper limit down, up"},
    {"'", OCT_VIEW_UPPER_UP, NULL},
    {"G", OCT_VIEW_GAMMA_DOWN, "gamma down (middle tones brighter), up"},
    {"Shift+G", OCT_VIEW_GAMMA_UP, NULL},
    {"C", OCT_VIEW_PALETTE, "grey, inverted, colour"},
    {"L", OCT_VIEW_LAYOUT, "B-scan; B-scan and en face; all four"},
    {"E", OCT_VIEW_PROJECTION, "en face: mean, maximum, slab"},
    {"PageUp", OCT_VIEW_SLAB_UP, "slab up, down"},
    {"PageDown", OCT_VIEW_SLAB_DOWN, NULL},
    {"Home", OCT_VIEW_SLAB_THINNER, "slab thinner, thicker"},
    {"End", OCT_VIEW_SLAB_THICKER, NULL},
    {"M", OCT_VIEW_MEASURE, "calipers: drag, or move an end by arrows; again: contrast"},
    {"Tab", OCT_VIEW_HOLD, "then: arrows move the other end, or the marked point"},
    {"N", OCT_VIEW_MARK, "mark a point by arrows (Shift: five pixels), or click there"},
    {"X Delete", OCT_VIEW_CLEAR, "take calipers and marked point away"},
    {"= + Keypad_+", OCT_VIEW_ZOOM_IN, "zoom in, out, all of it (or the wheel)"},
    {"- Keypad_-", OCT_VIEW_ZOOM_OUT, NULL},
    {"0 Keypad_0", OCT_VIEW_ZOOM_RESET, NULL},
    {"Ctrl+Left", OCT_VIEW_PAN_LEFT, "move the zoomed picture (or drag with the right button)"},
    {"Ctrl+Right", OCT_VIEW_PAN_RIGHT, NULL},
    {"Ctrl+Up", OCT_VIEW_PAN_UP, NULL},
    {"Ctrl+Down", OCT_VIEW_PAN_DOWN, NULL},
    {"J", OCT_VIEW_CURSOR_LEFT, "A-line of the profile: to the left, to the right"},
    {"K", OCT_VIEW_CURSOR_RIGHT, NULL},
    {"W", OCT_VIEW_STRETCH, "fill the window, or keep proportions (unknown: square pixels)"},
    {"Y", OCT_VIEW_EYE, "the eye: not said, OD, OS"},
    {"T", OCT_VIEW_PSEUDONYM, "type the pseudonym (Enter: done, Escape: leave it)"},
    {"S", OCT_VIEW_SNAPSHOT, "save the window as a PNG in the working folder"},
    {"Shift+S", OCT_VIEW_SNAPSHOT_PLAIN, "save the picture alone, without words"},
    {"F", OCT_VIEW_FULL_SCREEN, "full screen, on or off"},
    {"Ctrl+O", OCT_VIEW_LOCK, "operator profile: only recording, contrast and label"},
    {"F1 H", OCT_VIEW_HELP, "this help"},
    {"Q", OCT_VIEW_QUIT, "quit; a recording goes on in octd"},
    {"Escape", OCT_VIEW_LEAVE, "take this help away, else quit, but not while recording"},
};
const size_t oct_view_n_keys = sizeof(oct_view_keys) / sizeof(oct_view_keys[0]);

bool oct_view_action_is_step(enum oct_view_action action)
{
    switch (action) {
    case OCT_VIEW_OLDER:
    case OCT_VIEW_NEWER:
    case OCT_VIEW_ZOOM_IN:
    case OCT_VIEW_ZOOM_OUT:
        return true;
    default:
        return (action >= OCT_VIEW_LEVEL_DOWN && action <= OCT_VIEW_UPPER_UP) ||
               (action >= OCT_VIEW_SLAB_UP && action <= OCT_VIEW_SLAB_THICKER) ||
               (action >= OCT_VIEW_PAN_LEFT && action <= OCT_VIEW_CURSOR_RIGHT);
    }
}

bool oct_view_action_is_operators(enum oct_view_action action)
{
    switch (action) {
    case OCT_VIEW_NOTHING:
    case OCT_VIEW_RECORD:
    case OCT_VIEW_EYE:
    case OCT_VIEW_PSEUDONYM:
    case OCT_VIEW_LOCK:
    case OCT_VIEW_HELP:
        return true;
    default:
        return action >= OCT_VIEW_AUTO_CONTRAST && action <= OCT_VIEW_PALETTE;
    }
}

/* Appends the keys of a row, without those of the keypad, and without a "Ctrl+" that stands before
 * them already. */
static void add_keys(const char *from, char *keys, size_t n_bytes)
{
    static const char ctrl[] = "Ctrl+", keypad[] = "Keypad_";
    char row[64], *rest;

    snprintf(row, sizeof(row), "%s", from);
    for (char *key = strtok_r(row, " ", &rest); key; key = strtok_r(NULL, " ", &rest)) {
        size_t n = strlen(keys);
        bool said = n > 0 && strncmp(keys, ctrl, strlen(ctrl)) == 0;
        if (strncmp(key, keypad, strlen(keypad)) == 0)
            continue;
        if (said && strncmp(key, ctrl, strlen(ctrl)) == 0)
            key += strlen(ctrl);
        snprintf(keys + n, n_bytes - n, "%s%s", n ? " " : "", key);
    }
}

bool oct_view_key_help(size_t i, char *keys, size_t n_bytes)
{
    if (!oct_view_keys[i].meaning)
        return false;
    keys[0] = '\0';
    do
        add_keys(oct_view_keys[i++].keys, keys, n_bytes);
    while (i < oct_view_n_keys && !oct_view_keys[i].meaning);
    return true;
}

size_t oct_view_buttons(bool operators, const struct oct_view_button **buttons)
{
    static const struct oct_view_button all[] = {
        {OCT_VIEW_RECORD, "Record"},      {OCT_VIEW_FREEZE, "Freeze"},
        {OCT_VIEW_AUTO_CONTRAST, "Auto"}, {OCT_VIEW_LAYOUT, "Layout"},
        {OCT_VIEW_MEASURE, "Measure"},    {OCT_VIEW_SNAPSHOT, "Snapshot"},
        {OCT_VIEW_HELP, "Help"},
    };
    static const struct oct_view_button few[] = {
        {OCT_VIEW_RECORD, "Record"},
        {OCT_VIEW_AUTO_CONTRAST, "Auto"},
        {OCT_VIEW_LEVEL_DOWN, "Brighter"},
        {OCT_VIEW_LEVEL_UP, "Darker"},
        {OCT_VIEW_EYE, "Eye"},
        {OCT_VIEW_HELP, "Help"},
    };

    *buttons = operators ? few : all;
    return operators ? sizeof(few) / sizeof(few[0]) : sizeof(all) / sizeof(all[0]);
}
