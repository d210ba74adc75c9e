#include "viewer/model/action.h"

#include <stdio.h>
#include <string.h>

const struct oct_view_key oct_view_keys[] = {
    {"Return", OCT_ACTION_START, "octd begins to receive, where it is idle"},
    {"R", OCT_ACTION_RECORD, "start recording, or stop it"},
    {"Shift+R", OCT_ACTION_VOLUMES, "volumes a recording: until stopped, 1, 2, 4, 8"},
    {"Ctrl+R", OCT_ACTION_SAVE_LAST, "save the last seconds, where octd keeps them"},
    {"V", OCT_ACTION_PLAYBACK, "the recording just made; again: live pictures"},
    {"Ctrl+PageUp", OCT_ACTION_FILE_BEFORE, "playback: the recording before, after; all exams"},
    {"Ctrl+PageDown", OCT_ACTION_FILE_AFTER, NULL},
    {"Ctrl+F", OCT_ACTION_EXAMS, NULL},
    {"Ctrl+K", OCT_ACTION_KEEP, "playback: it is good; is to be repeated; export; report"},
    {"Ctrl+E", OCT_ACTION_REPEAT, NULL},
    {"Ctrl+X", OCT_ACTION_EXPORT, NULL},
    {"Ctrl+P", OCT_ACTION_REPORT, NULL},
    {"Space", OCT_ACTION_FREEZE, "freeze the picture, go on; playback: play, pause"},
    {",", OCT_ACTION_OLDER, "frozen (10 s), playback: one B-scan back, on (Shift: five)"},
    {".", OCT_ACTION_NEWER, NULL},
    {"B", OCT_ACTION_AVERAGE, "each B-scan, or octd's average of the last ones"},
    {"Shift+B", OCT_ACTION_AVERAGE_OF, "B-scans in that average: 2, 4, 8, 16, 32"},
    {"U", OCT_ACTION_FLOW, "blood flow: decorrelation, velocity, or none"},
    {"Ctrl+1", OCT_ACTION_SUPERFICIAL, "slabs: superficial, deep, avascular, choroidal"},
    {"Ctrl+2", OCT_ACTION_DEEP, NULL},
    {"Ctrl+3", OCT_ACTION_AVASCULAR, NULL},
    {"Ctrl+4", OCT_ACTION_CHORIOCAPILLARIS, NULL},
    {"F3", OCT_ACTION_ACKNOWLEDGE, "note what is not recorded; choose a scan; draw a line, back"},
    {"F4", OCT_ACTION_SCAN, NULL},
    {"F5", OCT_ACTION_LINE, NULL},
    {"C", OCT_ACTION_CELLS, "cells that octd follows: circles, tails or none"},
    {"I", OCT_ACTION_LAYERS, "layers that octd finds: ILM and RPE, all seven, or none"},
    {"D", OCT_ACTION_SHARPEN, "octd finds the sharpest dispersion: before, after; or live"},
    {"Z", OCT_ACTION_ROLLOFF, "a mirror that octd measures, or none; cells, mirror, neither"},
    {"Shift+Z", OCT_ACTION_MORE, NULL},
    {"A", OCT_ACTION_AUTO_CONTRAST, "contrast by itself (percentiles), or as it is"},
    {"P", OCT_ACTION_PUBLISHED_CONTRAST, "contrast as published by octd"},
    {"Left", OCT_ACTION_LEVEL_DOWN, "both limits down (brighter), up (darker)"},
    {"Right", OCT_ACTION_LEVEL_UP, NULL},
    {"Up", OCT_ACTION_WINDOW_WIDER, "limits further apart (softer), closer (harder)"},
    {"Down", OCT_ACTION_WINDOW_CLOSER, NULL},
    {"[", OCT_ACTION_LOWER_DOWN, "lower limit down, up"},
    {"]", OCT_ACTION_LOWER_UP, NULL},
    {";", OCT_ACTION_UPPER_DOWN, "upper limit down, up"},
    {"'", OCT_ACTION_UPPER_UP, NULL},
    {"G", OCT_ACTION_GAMMA_DOWN, "gamma down (middle tones brighter), up"},
    {"Shift+G", OCT_ACTION_GAMMA_UP, NULL},
    {"Shift+C", OCT_ACTION_PALETTE, "grey, inverted, colour"},
    {"L", OCT_ACTION_LAYOUT, "B-scan; B-scan and en face; all four"},
    {"E", OCT_ACTION_PROJECTION, "en face: mean, maximum, slab, by layers"},
    {"PageUp", OCT_ACTION_SLAB_UP, "slab up, down; playback: a tenth of the B-scans"},
    {"PageDown", OCT_ACTION_SLAB_DOWN, NULL},
    {"Home", OCT_ACTION_SLAB_THINNER, "slab thinner, thicker; playback: first, last B-scan"},
    {"End", OCT_ACTION_SLAB_THICKER, NULL},
    {"M", OCT_ACTION_MEASURE, "calipers: drag, or move an end by arrows; again: contrast"},
    {"Shift+M", OCT_ACTION_CALIPERS, "another pair of calipers, up to nine"},
    {"Tab", OCT_ACTION_HOLD, "then: arrows move the next end, or the marked point"},
    {"N", OCT_ACTION_MARK, "mark a point by arrows (Shift: five pixels), or click there"},
    {"Delete", OCT_ACTION_REMOVE, "take away the calipers or the point that are held"},
    {"X", OCT_ACTION_CLEAR, "take all calipers and the marked point away"},
    {"= + Keypad_+", OCT_ACTION_ZOOM_IN, "zoom in, out, all of it (or the wheel)"},
    {"- Keypad_-", OCT_ACTION_ZOOM_OUT, NULL},
    {"0 Keypad_0", OCT_ACTION_ZOOM_RESET, NULL},
    {"Ctrl+Left", OCT_ACTION_PAN_LEFT, "move the zoomed picture (or drag with the right button)"},
    {"Ctrl+Right", OCT_ACTION_PAN_RIGHT, NULL},
    {"Ctrl+Up", OCT_ACTION_PAN_UP, NULL},
    {"Ctrl+Down", OCT_ACTION_PAN_DOWN, NULL},
    {"J", OCT_ACTION_CURSOR_LEFT, "A-line of the profile, of the slice: to the left, right"},
    {"K", OCT_ACTION_CURSOR_RIGHT, NULL},
    {"W", OCT_ACTION_FIT, "fill the panel; 1:1 micrometres; 1:1 pixels"},
    {"O", OCT_ACTION_GUIDE, "the guide: quality, where the retina should lie"},
    {"F2", OCT_ACTION_DETAILS, "all numbers of the stream, or the important"},
    {"Ctrl+D", OCT_ACTION_DIM, "the window's light: 100, 50, 25 %; alarms stay light"},
    {"Ctrl+S", OCT_ACTION_SOUND, "a sound for alarms and recordings, or none"},
    {"Y", OCT_ACTION_EYE, "the eye: not said, OD, OS"},
    {"1", OCT_ACTION_RIGHT_EYE, "the right eye, OD; the left one, OS"},
    {"2", OCT_ACTION_LEFT_EYE, NULL},
    {"T", OCT_ACTION_PSEUDONYM,
     "type the pseudonym (Enter: done, Escape: leave it, End: add to it)"},
    {"Ctrl+N", OCT_ACTION_NEXT_PATIENT, "next patient: eye and pseudonym are not said"},
    {"S", OCT_ACTION_SNAPSHOT, "save the window as a PNG in the working folder"},
    {"Shift+S", OCT_ACTION_SNAPSHOT_PLAIN, "save the picture alone, without words"},
    {"F", OCT_ACTION_FULL_SCREEN, "full screen, on or off"},
    {"Ctrl+O", OCT_ACTION_LOCK, "operator profile: what an examination needs, and no more"},
    {"F1 H", OCT_ACTION_HELP, "this help"},
    {"Q", OCT_ACTION_QUIT, "quit; a recording goes on in octd"},
    {"Escape", OCT_ACTION_LEAVE,
     "take help or a question away, else quit, but not while recording"},
};
const size_t oct_view_n_keys = sizeof(oct_view_keys) / sizeof(oct_view_keys[0]);

bool oct_view_action_is_step(enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_OLDER:
    case OCT_ACTION_NEWER:
    case OCT_ACTION_ZOOM_IN:
    case OCT_ACTION_ZOOM_OUT:
        return true;
    default:
        return (action >= OCT_ACTION_LEVEL_DOWN && action <= OCT_ACTION_UPPER_UP) ||
               (action >= OCT_ACTION_SLAB_UP && action <= OCT_ACTION_SLAB_THICKER) ||
               (action >= OCT_ACTION_PAN_LEFT && action <= OCT_ACTION_CURSOR_RIGHT);
    }
}

bool oct_view_action_is_operators(enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_LAYERS:
    case OCT_ACTION_OLDER:
    case OCT_ACTION_NEWER:
    case OCT_ACTION_GUIDE:
    case OCT_ACTION_DETAILS:
    case OCT_ACTION_DIM:
    case OCT_ACTION_SOUND:
    case OCT_ACTION_SNAPSHOT:
    case OCT_ACTION_SNAPSHOT_PLAIN:
    case OCT_ACTION_LOCK:
    case OCT_ACTION_HELP:
        return true;
    default:
        return action <= OCT_ACTION_ACKNOWLEDGE ||
               (action >= OCT_ACTION_AUTO_CONTRAST && action <= OCT_ACTION_PALETTE) ||
               (action >= OCT_ACTION_EYE && action <= OCT_ACTION_NEXT_PATIENT);
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
        const size_t n = strlen(keys);
        if (strncmp(key, keypad, strlen(keypad)) == 0)
            continue;
        if (strncmp(keys, ctrl, strlen(ctrl)) == 0 && strncmp(key, ctrl, strlen(ctrl)) == 0)
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
