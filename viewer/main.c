/* octview: shows the B-scans that octd publishes. */
#include "config/version.h"
#include "pipeline/base/log.h"
#include "pipeline/base/stdio.h"
#include "viewer/app.h"
#include "viewer/options.h"
#include "viewer/signals.h"

#include <SDL.h>
#include <SDL_ttf.h>
#include <png.h>
#include <stdio.h>

static void print_help(void)
{
    char keys[128];
    puts(
        "octview shows the B-scans that octd publishes, live, and those of its recordings.\n"
        "\n"
        "  octview [--config FILE] [--set SECTION.KEY=VALUE]... [--connect ENDPOINT] [--size WxH]\n"
        "  octview FILE.h5 ...      shows a recording; no octd is needed\n"
        "  octview --headless --frames N --screenshot FILE.png [--timeout SECONDS] ...\n");
    oct_options_print(oct_view_option_table, 27);
    puts(
        "\nExit status: 0 done, 1 it failed while working, 2 it was called or configured wrongly.\n"
        "\nIn the window:");
    for (size_t i = 0; i < oct_view_n_keys; i++)
        if (oct_view_key_help(i, keys, sizeof(keys)))
            printf("  %-24s %s\n", keys, oct_view_keys[i].meaning);
    puts("\nConfiguration keys:");
    oct_config_write_help(stdout, NULL);
}

static void print_version(void)
{
    char sdl[160];
    snprintf(sdl, sizeof(sdl), "SDL %d.%d.%d\nSDL_ttf %d.%d.%d\nlibpng %s\n", SDL_MAJOR_VERSION,
             SDL_MINOR_VERSION, SDL_PATCHLEVEL, SDL_TTF_MAJOR_VERSION, SDL_TTF_MINOR_VERSION,
             SDL_TTF_PATCHLEVEL, PNG_LIBPNG_VER_STRING);
    oct_version_write(stdout, "octview", sdl);
}

int main(int argc, char **argv)
{
    struct oct_view_options options;
    struct oct_error err = {0};
    oct_stdio_reserve();
    enum oct_err code = oct_view_options_read(&options, argc, argv, &err);

    if (code == OCT_OK && options.task == OCT_TASK_HELP) {
        print_help();
    } else if (code == OCT_OK && options.task == OCT_TASK_VERSION) {
        print_version();
    } else if (code == OCT_OK) {
        oct_signals_block();
        oct_view_step_back(options.config.view.nice);
        code = options.task == OCT_TASK_HEADLESS ? oct_view_headless(&options, &err)
                                                 : oct_view_window(&options, &err);
    }
    oct_view_options_finish(&options);
    if (code)
        oct_log(OCT_LOG_ERROR, "%s", err.text);
    return oct_exit_status(code);
}
