/* octctl register: frames onto one another, and their average. */
#include "formats/paths.h"
#include "tools/analyse/register.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/picture_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* In the order of the help. */
static const struct oct_register_mode *const modes[] = {
    &oct_register_frames,
    &oct_register_bscans,
    &oct_register_volume,
    &oct_register_mosaic,
};
#define N_MODES (sizeof(modes) / sizeof(modes[0]))

#define AT(member) .at = offsetof(struct oct_register_options, member)
static const struct oct_option options[] = {
    {"--as", "WHAT",
     "frames: pictures one on another; bscans: B-scans of one place, whose noise\n"
     "hides fractions of a pixel; volume: each B-scan onto those before it; mosaic:\n"
     "pictures that overlap into one (frames)",
     OCT_OPTION_TEXT, AT(as), .words = "frames bscans volume mosaic"},
    {"--model", "M", "rigid: one shift a frame; strips: motion within frames; none (rigid)",
     OCT_OPTION_TEXT, AT(model), .words = "rigid strips none"},
    {"--reference", "R", "auto, the number of a frame from 0, or a picture's FILE (auto)",
     OCT_OPTION_TEXT, AT(reference), .words = OCT_WORDS_FILES},
    {"--strip", "LINES:STEP", "strips of LINES lines, one every STEP (32:8)", OCT_OPTION_TEXT,
     AT(strip)},
    {"--search", "PX",
     "rigid: largest shift (a third of the side); strips: from strip to strip\n(12)",
     OCT_OPTION_COUNT, AT(search), .least = 1, .most = 16384, .needs = "1 to 16384 pixels"},
    {"--far", "PX", "strips that are lost are sought this far from the whole frame (64)",
     OCT_OPTION_COUNT, AT(far), .least = 1, .most = 1024, .needs = "1 to 1024 pixels"},
    {"--min-score", "Q",
     "correlation below which a frame or a strip is left out, besides what\nchance makes too (0)",
     OCT_OPTION_NUMBER, AT(min_score), .least = -1, .most = 1, .needs = "a number from -1 to 1"},
    {"--passes", "N", "2: again, against the average of the first pass (1)", OCT_OPTION_COUNT,
     AT(passes), .least = 1, .most = 2, .needs = "1 or 2"},
    {"--roi", "X:Y:W:H", "register by this part of the frames; all of them is moved",
     OCT_OPTION_TEXT, AT(roi)},
    {"--mask", "FILE", "a picture of the frames' size: 0 is not valid", OCT_OPTION_TEXT, AT(mask)},
    {"--invalid", "VALUE", "pixels of this value are not valid", OCT_OPTION_NUMBER, AT(invalid)},
    {"--skip", "N,N-M", "leave out these frames", OCT_OPTION_TEXT, AT(skip)},
    {"--shifts", "FILE.csv", "move by these shifts, found on another channel", OCT_OPTION_TEXT,
     AT(shifts)},
    {"--shifts-only", NULL, "no average; OUT.h5 may be left out", OCT_OPTION_FLAG, AT(shifts_only)},
    {"--crop", "WHAT", "all: the canvas holds all frames; common: what all cover (all)",
     OCT_OPTION_TEXT, AT(crop), .words = "all common"},
    {"--domain", "D", "frames in dB are averaged as powers (linear) or as they are (db) (linear)",
     OCT_OPTION_TEXT, AT(domain), .words = "linear db"},
    {"--interpolation", "I", "linear, cubic or none (linear)", OCT_OPTION_TEXT, AT(interpolation),
     .words = "linear cubic none"},
    {"--en-face", "A:B", "of volumes: the mean over depth pixels A .. B - 1", OCT_OPTION_TEXT,
     AT(en_face)},
    {"--lateral", NULL, "volume: also along the A-lines, not in depth alone", OCT_OPTION_FLAG,
     AT(lateral)},
    {"--stack", NULL, "also the moved frames, as /registered", OCT_OPTION_FLAG, AT(stack)},
    {"--csv", "FILE", "the shifts as a table", OCT_OPTION_TEXT, AT(csv)},
    {"--png", "FILE", "the average as a picture, and FILE-motion.png, motion over time",
     OCT_OPTION_TEXT, AT(png)},
    {"--um", "DX[,DY]", "size of a pixel in micrometres", OCT_OPTION_TEXT, AT(um)},
    {"--json", NULL, "the summary as JSON", OCT_OPTION_FLAG, AT(json)},
    {"--force", NULL, "replace files that exist", OCT_OPTION_FLAG, AT(force)},
    {NULL},
};

static const struct oct_register_mode *find_mode(const char *name)
{
    for (size_t i = 0; i < N_MODES; i++)
        if (!name || strcmp(modes[i]->name, name) == 0)
            return modes[i];
    return NULL;
}

/* The last argument is the file to make; with --shifts-only only if it is named .h5. */
static enum oct_err divide(struct oct_register *r, int argc, char **argv, struct oct_error *err)
{
    bool may_lack = r->options.shifts_only;
    bool has_out = may_lack ? oct_picture_option_has_out(argc, argv) : argc > 2;
    if (!has_out && !may_lack)
        return oct_fail(err, OCT_E_CONFIG, "say where to: IN... OUT.h5");
    r->inputs = (const char *const *)argv + 1;
    r->n_inputs = (unsigned)(argc - (has_out ? 2 : 1));
    r->out = has_out ? argv[argc - 1] : NULL;
    return OCT_OK;
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct oct_register r = {
        .config = config,
        .options = {.invalid = NAN, .min_score = NAN, .passes = 1},
    };
    struct oct_error err = {.text = ""};
    struct oct_paths paths = {0};
    int misuse = oct_options_read(&oct_command_register, &r.options, &argc, argv);
    if (misuse)
        return misuse;
    const struct oct_register_mode *mode = find_mode(r.options.as);
    enum oct_err e = OCT_OK;
    if (!mode)
        return oct_command_misuse(argv[0], "--as %s is not known", r.options.as);
    e = divide(&r, argc, argv, &err);
    if (!e)
        e = oct_paths_expand(&paths, r.inputs, r.n_inputs, &err);
    r.inputs = (const char *const *)paths.path;
    r.n_inputs = paths.n;
    if (!e)
        e = oct_register_understand(&r, &err);
    if (!e)
        e = oct_register_check_options(&r, mode, &err);
    r.cancel = oct_interrupt_watch(); /* before there is anything to clean up */
    if (!e)
        e = mode->run(&r, &err);
    oct_paths_finish(&paths);
    if (!e)
        return 0;
    return oct_command_fail_at_work(argv[0], &err);
}

const struct oct_command oct_command_register = {
    .name = "register",
    .usage = "IN... OUT.h5 [OPTIONS]",
    .keys = "",
    .help = "puts frames onto one another and averages them",
    .options = options,
    .n_least = 1,
    .n_most = 1 << 20,
    .too_few = "which files? IN... OUT.h5",
    .run = run,
};
