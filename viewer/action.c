#include "viewer/action.h"

const struct oct_view_key oct_view_keys[] = {
    {"Space", "pause the picture, go on (counting never pauses)"},
    {"Left Right", "contrast level: both limits down (brighter), up (darker)"},
    {"Up Down", "contrast window: limits further apart (softer), closer (harder)"},
    {"Shift", "with an arrow: five steps"},
    {"Mouse drag", "contrast: left/right moves the level, up/down the window"},
    {"A", "contrast follows the published limits, on or off"},
    {"R", "contrast back to the published limits"},
    {"W", "fill the window, or keep the picture's proportions"},
    {"S", "save the window as a PNG in the working folder"},
    {"F", "full screen, on or off"},
    {"H F1", "this help"},
    {"Q Esc", "quit"},
};
const size_t oct_view_n_keys = sizeof(oct_view_keys) / sizeof(oct_view_keys[0]);
