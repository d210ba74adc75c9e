/* octd: the daemon's start, its loop and its end. */
#define _GNU_SOURCE /* mallopt, SIGPWR */
#include "config/config.h"
#include "config/options.h"
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

/* What the command line says. */
struct given {
    const char **configs, **sets; /* owned */
    const char *backend;
    bool help, version;
};

#define OPTION(shown, value, kind_of, member, means)                                               \
    .name = shown, .argument = value, .kind = OCT_OPTION_##kind_of,                                \
    .at = offsetof(struct given, member), .meaning = means
static const struct oct_option options[] = {
    {OPTION("--config", "FILE", LIST, configs, "read this configuration (INI)"), .brief = "-c"},
    {OPTION("--set", "SECTION.KEY=VALUE", LIST, sets,
            "set one key, over the file; may be repeated")},
    {OPTION("--backend", "NAME", TEXT, backend, "the same as --set pipeline.backend=NAME")},
    {OPTION("--help", NULL, FLAG, help, "this text"), .brief = "-h"},
    {OPTION("--version", NULL, FLAG, version, "version, and what it was built with")},
    {.name = NULL},
};

static void print_help(void)
{
    printf("octd: takes OCT spectra, reconstructs them, publishes B-scans, records volumes\n\n"
           "  octd [--config FILE] [--set SECTION.KEY=VALUE]... [--backend auto|cpu|cuda]\n\n");
    oct_options_print(options, 27);
    printf("\nIt runs in the foreground until SIGTERM, SIGINT or `octctl shutdown`, then finishes\n"
           "what is in flight and closes files whole. Keys:\n\n");
    oct_config_write_help(stdout, NULL);
}

static void print_version(void)
{
    char libuv[64];
    snprintf(libuv, sizeof(libuv), "libuv %d.%d.%d\n", UV_VERSION_MAJOR, UV_VERSION_MINOR,
             UV_VERSION_PATCH);
    oct_version_write(stdout, "octd", libuv);
}

static enum oct_err read_options(struct given *given, int argc, char **argv, struct oct_error *err)
{
    struct oct_option_shown shown;
    const char *wrong = NULL;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--") == 0 && i + 1 == argc)
            break;
        if (oct_option_read(options, given, argc, argv, &i, &shown, &wrong)) {
            if (wrong)
                return oct_fail(err, OCT_E_ARG, "%s needs a value: see octd --help", wrong);
        } else if (word[0] == '-' && word[1] && strcmp(word, "--") != 0) {
            return oct_fail(err, OCT_E_ARG, "unknown option '%s': see octd --help", word);
        } else {
            return oct_fail(err, OCT_E_ARG, "'%s' is no option: see octd --help",
                            strcmp(word, "--") == 0 ? argv[i + 1] : word);
        }
    }
    return OCT_OK;
}

/* Files first, then the options that override them. */
static enum oct_err read_config(struct oct_config *config, struct oct_file_watch *watch,
                                const struct given *given, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (const char **file = given->configs; *file && !e; file++) {
        oct_file_watch_add(watch, *file);
        e = oct_config_load(config, *file, err);
    }
    for (const char **set = given->sets; *set && !e; set++)
        e = oct_config_set_assignment(config, *set, err);
    if (!e && given->backend)
        e = oct_config_set(config, "pipeline.backend", given->backend, "--backend", err);
    return e ? e : oct_config_check(config, err);
}

/* Reads the command line into config. true: the program ends here with *status (--help, --version,
 * or a mistake that was reported). */
static bool configure(struct oct_config *config, struct oct_file_watch *watch, int argc,
                      char **argv, int *status)
{
    struct oct_error err = {0};
    struct given given = {.configs = calloc((size_t)argc + 1, sizeof(char *)),
                          .sets = calloc((size_t)argc + 1, sizeof(char *))};
    oct_config_init(config);
    *watch = (struct oct_file_watch){.n_files = 0};
    enum oct_err e = given.configs && given.sets
                         ? read_options(&given, argc, argv, &err)
                         : oct_fail(&err, OCT_E_NO_MEMORY, "no memory for the command line");
    const bool ends = !e && (given.version || given.help);
    if (ends && given.version)
        print_version();
    else if (ends)
        print_help();
    else if (!e)
        e = read_config(config, watch, &given, &err);
    if (e)
        oct_log(OCT_LOG_ERROR, "%s", err.text);
    free(given.configs);
    free(given.sets);
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
static void end_loop(struct loop *loop)
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

static enum oct_err run_daemon(struct loop *loop, const struct oct_config *config,
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
        end_loop(loop);
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
        end_loop(loop);
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
    if (configure(&config, &watch, argc, argv, &status))
        return status;
    ask_scheduler(&config);
    static struct loop loop; /* large; zeroed */
    enum oct_err e = oct_connections_raise(&err);
    e = e ? e : run_daemon(&loop, &config, &watch, &err);
    oct_log(e ? OCT_LOG_ERROR : OCT_LOG_INFO, "%s", e ? err.text : "octd has ended");
    /* exit() would wait for libuv's threads. */
    if (loop.disk_hangs)
        _Exit(oct_exit_status(e));
    return oct_exit_status(e);
}
