/* octd: the daemon's start, its loop and its end. */
#define _GNU_SOURCE /* mallopt, SIGPWR */
#include "config/config.h"
#include "config/version.h"
#include "daemon/control.h"
#include "daemon/http.h"
#include "daemon/service.h"
#include "daemon/watch.h"
#include "pipeline/base/log.h"
#include "pipeline/base/stdio.h"
#include "pipeline/base/thread.h"
#include "pipeline/net/connections.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <uv.h>

/* octd's command line. */

enum option { OPTION_CONFIG, OPTION_SET, OPTION_BACKEND, OPTION_HELP, OPTION_VERSION };

/* Not getopt, which prints its own messages, accepts abbreviations, and would make the options
 * differ from those of octctl. */
static const struct {
    const char *name;
    enum option option;
    bool has_value;
} options[] = {
    {"--config", OPTION_CONFIG, true},    {"-c", OPTION_CONFIG, true},
    {"--set", OPTION_SET, true},          {"--backend", OPTION_BACKEND, true},
    {"--help", OPTION_HELP, false},       {"-h", OPTION_HELP, false},
    {"--version", OPTION_VERSION, false},
};

static void print_help(void)
{
    printf("octd: takes OCT spectra, reconstructs them, publishes B-scans, records volumes\n\n"
           "  octd [--config FILE] [--set SECTION.KEY=VALUE]... [--backend auto|cpu|cuda]\n\n"
           "  -c, --config FILE        read this configuration (INI)\n"
           "  --set SECTION.KEY=VALUE  set one key, over the file; may be repeated\n"
           "  --backend NAME           the same as --set pipeline.backend=NAME\n"
           "  -h, --help               this text\n"
           "  --version                version, and what it was built with\n\n"
           "It runs in the foreground until SIGTERM, SIGINT or `octctl shutdown`, then finishes\n"
           "what is in flight and closes files whole. Keys:\n\n");
    oct_config_write_help(stdout);
}

static void print_version(void)
{
    char libuv[64];
    snprintf(libuv, sizeof(libuv), "libuv %d.%d.%d\n", UV_VERSION_MAJOR, UV_VERSION_MINOR,
             UV_VERSION_PATCH);
    oct_version_write(stdout, "octd", libuv);
}

/* Reads the option at argv[*i] and moves *i behind it and its value. */
static enum oct_err read_option(int argc, char **argv, int *i, enum option *option,
                                const char **value, struct oct_error *err)
{
    const char *argument = argv[(*i)++];
    *value = NULL;
    for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++) {
        size_t n = strlen(options[k].name);
        if (strncmp(argument, options[k].name, n) != 0)
            continue;
        const char *rest = argument + n;
        bool is_short = options[k].name[1] != '-';
        *option = options[k].option;
        if (!*rest && !options[k].has_value)
            return OCT_OK;
        if (!*rest && *i >= argc)
            return oct_fail(err, OCT_E_ARG, "%s needs a value: see octd --help", argument);
        if (!*rest || (options[k].has_value && (is_short || *rest == '='))) {
            *value = *rest ? rest + !is_short : argv[(*i)++];
            return OCT_OK;
        }
        if (*rest == '=')
            return oct_fail(err, OCT_E_ARG, "%s takes no value: see octd --help", options[k].name);
    }
    if (argument[0] == '-' && argument[1])
        return oct_fail(err, OCT_E_ARG, "unknown option '%s': see octd --help", argument);
    return oct_fail(err, OCT_E_ARG, "'%s' is no option: see octd --help", argument);
}

/* Reads --help and --version first, whatever else is given; then files; then the options that
 * override them. */
enum pass { PASS_LOOK, PASS_FILES, PASS_SETS };

static enum oct_err apply(struct oct_config *config, struct oct_file_watch *watch, enum pass pass,
                          enum option option, const char *value, struct oct_error *err)
{
    if (pass == PASS_FILES && option == OPTION_CONFIG) {
        oct_file_watch_add(watch, value);
        return oct_config_load(config, value, err);
    }
    if (pass == PASS_SETS && option == OPTION_SET)
        return oct_config_set_assignment(config, value, err);
    if (pass == PASS_SETS && option == OPTION_BACKEND)
        return oct_config_set(config, "pipeline.backend", value, "--backend", err);
    return OCT_OK;
}

/* *last: set to --help or --version if one is given, else unchanged. */
static enum oct_err go_over(struct oct_config *config, struct oct_file_watch *watch, enum pass pass,
                            int argc, char **argv, enum option *last, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    bool ended = false; /* by "--" */
    for (int i = 1; i < argc && !e;) {
        enum option option = OPTION_CONFIG;
        const char *value = NULL;
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
            i++;
            continue;
        }
        if (ended)
            return oct_fail(err, OCT_E_ARG, "'%s' is no option: see octd --help", argv[i]);
        e = read_option(argc, argv, &i, &option, &value, err);
        if (!e && (option == OPTION_HELP || option == OPTION_VERSION) && *last != OPTION_VERSION)
            *last = option;
        e = e ? e : apply(config, watch, pass, option, value, err);
    }
    return e;
}

/* Reads the options into config. true: the program ends here with *status (--help, --version, or a
 * mistake that was reported). */
static bool read_options(struct oct_config *config, struct oct_file_watch *watch, int argc,
                         char **argv, int *status)
{
    struct oct_error err = {0};
    enum option last = OPTION_CONFIG;
    oct_config_init(config);
    *watch = (struct oct_file_watch){.n_files = 0};
    enum oct_err e = go_over(config, watch, PASS_LOOK, argc, argv, &last, &err);
    bool ends = !e && last != OPTION_CONFIG;
    if (ends && last == OPTION_VERSION)
        print_version();
    else if (ends)
        print_help();
    for (enum pass pass = PASS_FILES; pass <= PASS_SETS && !e && !ends; pass++)
        e = go_over(config, watch, pass, argc, argv, &last, &err);
    if (!e && !ends)
        e = oct_config_check(config, &err);
    if (e)
        oct_log(OCT_LOG_ERROR, "%s", err.text);
    *status = oct_exit_status(e);
    return e || ends;
}

#define LOOK_AROUND_MS 10
#define MOST_ARENAS 256 /* more than there are threads */

/* Signals that ask the process to end, some of them soon: power failure, exceeded processor
 * time. */
static const int ending_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPWR, SIGXCPU};
#define N_ENDING (sizeof(ending_signals) / sizeof(ending_signals[0]))

struct loop {
    uv_loop_t uv;
    uv_signal_t signals[N_ENDING];
    uv_timer_t timer;
    struct oct_daemon daemon;
    struct oct_control *control;
    struct oct_http *http; /* NULL: no metrics are asked for */
    struct oct_service service;
    bool disk_hangs;
};

static void shut_down(struct loop *loop)
{
    if (uv_is_closing((uv_handle_t *)&loop->timer))
        return;
    uv_close((uv_handle_t *)&loop->timer, NULL);
    oct_control_destroy(loop->control);
    oct_http_destroy(loop->http);
    loop->control = NULL;
    loop->http = NULL;
    for (size_t i = 0; i < N_ENDING; i++)
        uv_unref((uv_handle_t *)&loop->signals[i]);
}

/* Watches signals until the end: a second one must not interrupt the shutdown that the first
 * began. */
static void finish(struct loop *loop)
{
    oct_daemon_finish(&loop->daemon);
    for (size_t i = 0; i < N_ENDING; i++)
        uv_close((uv_handle_t *)&loop->signals[i], NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    uv_loop_close(&loop->uv);
    oct_service_finish(&loop->service);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct loop *loop = signal->data;
    if (loop->daemon.want_shutdown)
        return;
    oct_log(OCT_LOG_INFO, "signal %d: draining and closing files", number);
    oct_daemon_shut_down(&loop->daemon);
}

static void on_timer(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    struct oct_daemon *daemon = &loop->daemon;

    oct_daemon_tick(daemon);
    oct_control_serve(loop->control);
    oct_http_serve(loop->http);
    oct_service_look_around(&loop->service, daemon);
    bool failed_at_start = daemon->state == OCT_STATE_ERROR && !daemon->was_ready;
    if (daemon->has_ended || daemon->is_overdue || failed_at_start) {
        shut_down(loop);
        uv_stop(&loop->uv); /* a job that hangs must not prevent the end */
    }
}

static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void watch_signals(struct loop *loop)
{
    for (size_t i = 0; i < N_ENDING; i++) {
        uv_signal_init(&loop->uv, &loop->signals[i]);
        loop->signals[i].data = loop;
        if (ending_signals[i] == SIGHUP && is_ignored(SIGHUP))
            continue; /* nohup: the end of the terminal is no reason to end */
        uv_signal_start(&loop->signals[i], on_signal, ending_signals[i]);
    }
    uv_timer_init(&loop->uv, &loop->timer);
    loop->timer.data = loop;
    uv_timer_start(&loop->timer, on_timer, LOOK_AROUND_MS, LOOK_AROUND_MS);
}

/* Whether a query of the disk is not answered within a second. */
static bool disk_hangs(struct loop *loop)
{
    const struct oct_daemon *daemon = &loop->daemon;
    for (int n = 0; n < 100 && (daemon->disk.is_asking || daemon->watch.is_looking); n++) {
        uv_run(&loop->uv, UV_RUN_NOWAIT);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return daemon->disk.is_asking || daemon->watch.is_looking;
}

static enum oct_err run(struct loop *loop, const struct oct_config *config,
                        const struct oct_file_watch *watch, struct oct_error *err)
{
    uv_loop_init(&loop->uv);
    oct_service_init(&loop->service);
    /* Watches signals before the session is built, so that a stop during a long start is not
     * lost. */
    watch_signals(loop);
    enum oct_err e = oct_daemon_init(&loop->daemon, &loop->uv, config, err);
    loop->daemon.watch = *watch;
    e = e ? e : oct_control_create(&loop->control, &loop->uv, &loop->daemon, err);
    if (e == OCT_OK && config->metrics.endpoint[0])
        e = oct_http_create(&loop->http, &loop->uv, &loop->daemon, err);
    if (e) {
        shut_down(loop);
        finish(loop);
        return e;
    }
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (loop->daemon.is_overdue) { /* threads hang; an orderly end is impossible */
        oct_log(OCT_LOG_ERROR,
                "not drained within %.6g s (daemon.drain_s): ending now; B-scans that have not "
                "reached a file are lost",
                config->daemon.drain_s);
        _Exit(1);
    }
    if (!loop->daemon.was_ready && !loop->daemon.want_shutdown) {
        *err = loop->daemon.outcome;
        e = err->code;
    }
    loop->disk_hangs = disk_hangs(loop);
    if (!loop->disk_hangs)
        finish(loop);
    return e;
}

/* Ignores signals that octd does not use and that end a process by default: a stray one must not
 * end an acquisition. Handlers set before main (by a profiler) are kept. Errors of the process
 * itself (SIGSEGV, SIGABRT, ...) still end it, and stop signals still stop it. */
static void ignore_signals(void)
{
    static const int numbers[] = {
        SIGUSR1, SIGUSR2,   SIGALRM, SIGVTALRM, SIGPROF,
        SIGIO,   SIGSTKFLT, SIGPIPE, SIGXFSZ /* a file size limit is an error of the recording */};
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction now;
        bool is_one = number >= SIGRTMIN;
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
            is_one |= numbers[i] == number;
        if (is_one && sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            signal(number, SIG_IGN);
    }
}

/* An arena of the heap for each thread: those of analyses yield to others, and one that has no
 * processor must not hold the lock of an arena that the path of the pictures uses too. Each takes
 * 64 MiB of addresses, which may be limited. */
static void separate_arenas(void)
{
    struct rlimit addresses;
    if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur == RLIM_INFINITY)
        mallopt(M_ARENA_MAX, MOST_ARENAS);
}

/* Before the first thread is started: all inherit it. */
static void ask_scheduler(const struct oct_config *config)
{
    struct oct_error err;
    oct_threads_ask_short_slices();
    if (config->daemon.realtime_priority &&
        oct_threads_ask_realtime(config->daemon.realtime_priority, &err))
        oct_log(OCT_LOG_WARNING, "daemon.realtime_priority: %s", err.text);
}

int main(int argc, char **argv)
{
    struct oct_config config;
    struct oct_file_watch watch;
    struct oct_error err;
    int status;

    oct_stdio_reserve();
    /* Message bodies are some 100 kB each: kept on the heap instead of mapped and unmapped. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    separate_arenas();
    ignore_signals();
    if (read_options(&config, &watch, argc, argv, &status))
        return status;
    ask_scheduler(&config);
    static struct loop loop; /* large; zeroed */
    enum oct_err e = oct_connections_raise(&err);
    e = e ? e : run(&loop, &config, &watch, &err);
    oct_log(e ? OCT_LOG_ERROR : OCT_LOG_INFO, "%s", e ? err.text : "octd has ended");
    /* exit() would wait for libuv's threads. */
    if (loop.disk_hangs)
        _Exit(oct_exit_status(e));
    return oct_exit_status(e);
}
