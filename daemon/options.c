#include "daemon/options.h"

#include "pipeline/log.h"

#include <getopt.h>
#include <stdio.h>

#include <cjson/cJSON.h>
#include <fftw3.h>
#include <hdf5.h>
#include <uv.h>
#include <zmq.h>

enum { OPTION_SET = 256, OPTION_BACKEND, OPTION_VERSION };

static const struct option long_options[] = {
    {"config", required_argument, NULL, 'c'},
    {"set", required_argument, NULL, OPTION_SET},
    {"backend", required_argument, NULL, OPTION_BACKEND},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static void print_help(void)
{
    printf("octd: takes OCT spectra, reconstructs them, publishes B-scans, records volumes\n\n"
           "  octd [--config FILE] [--set SECTION.KEY=VALUE]... [--backend auto|cpu|cuda]\n\n"
           "  --config FILE            read this configuration (INI)\n"
           "  --set SECTION.KEY=VALUE  set one key, over the file; may be repeated\n"
           "  --backend NAME           the same as --set pipeline.backend=NAME\n"
           "  --help, --version\n\n"
           "It runs in the foreground until SIGTERM, SIGINT or `octctl shutdown`, then finishes\n"
           "what is in flight and closes files whole. Keys:\n\n");
    oct_config_write_help(stdout);
}

static void print_version(void)
{
    int major, minor, patch;
    zmq_version(&major, &minor, &patch);
    printf("octd %s\nbuilt with gcc %s, libzmq %d.%d.%d, libuv %s, FFTW %s, HDF5 %d.%d.%d, "
           "cJSON %s\n",
           OCT_VERSION, __VERSION__, major, minor, patch, uv_version_string(), fftwf_version,
           H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE, cJSON_Version());
}

/* Applies one option. *ends: the program is done. */
static enum oct_err apply(struct oct_config *config, int option, const char *value, bool *ends,
                          struct oct_error *err)
{
    switch (option) {
    case 'c':
        return OCT_OK; /* the file was read first: --set wins wherever it stands */
    case OPTION_SET:
        return oct_config_set_assignment(config, value, err);
    case OPTION_BACKEND:
        return oct_config_set(config, "pipeline.backend", value, "--backend", err);
    case 'h':
        print_help();
        *ends = true;
        return OCT_OK;
    case OPTION_VERSION:
        print_version();
        *ends = true;
        return OCT_OK;
    default:
        return oct_fail(err, OCT_E_ARG, "see octd --help");
    }
}

static enum oct_err read_files(struct oct_config *config, int argc, char **argv,
                               struct oct_error *err)
{
    int option;
    enum oct_err e = OCT_OK;
    opterr = 0; /* told in the second pass */
    optind = 1;
    while (!e && (option = getopt_long(argc, argv, "c:h", long_options, NULL)) != -1)
        if (option == 'c')
            e = oct_config_load(config, optarg, err);
    return e;
}

bool oct_daemon_options(struct oct_config *config, int argc, char **argv, int *status)
{
    struct oct_error err = {0};
    bool ends = false;
    int option;

    oct_config_init(config);
    enum oct_err e = read_files(config, argc, argv, &err);
    opterr = 1;
    optind = 1;
    while (!e && !ends && (option = getopt_long(argc, argv, "c:h", long_options, NULL)) != -1)
        e = apply(config, option, optarg, &ends, &err);
    if (!e && !ends && optind < argc)
        e = oct_fail(&err, OCT_E_ARG, "'%s' is no option: see octd --help", argv[optind]);
    if (!e && !ends)
        e = oct_config_check(config, &err);
    if (e)
        oct_log(OCT_LOG_ERROR, "%s", err.text);
    *status = oct_exit_status(e);
    return e || ends;
}
