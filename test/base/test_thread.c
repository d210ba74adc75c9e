/* Started threads: their names, their signals, and the message where none can be started. */
#define _GNU_SOURCE /* pthread_getname_np, pthread_setattr_default_np */
#include "test/rig/tap.h"

#include "pipeline/base/thread.h"

#include <semaphore.h>
#include <signal.h>
#include <string.h>

struct seen {
    sem_t named, done;
    char name[16];
    sigset_t blocked;
};

static void *look(void *argument)
{
    struct seen *seen = argument;
    sem_wait(&seen->named); /* its creator names it, maybe after it has begun */
    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
    sem_post(&seen->done);
    return NULL;
}

static int set_up(void **state)
{
    static struct seen seen;
    memset(&seen, 0, sizeof(seen));
    sem_init(&seen.named, 0, 0);
    sem_init(&seen.done, 0, 0);
    *state = &seen;
    return 0;
}

TEST_WITH(a_thread_has_its_name_and_its_creators_signals_stay, set_up, NULL)
{
    struct seen *seen = *state;
    pthread_t thread;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    must(oct_thread_start(&thread, "octd-look", look, seen, "look thread", &failure));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    sem_post(&seen->named);
    pthread_join(thread, NULL);
    assert_string_equal(seen->name, "octd-look");
    assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
    assert_int_equal(sigismember(&after, SIGTERM), 0);
}

TEST_WITH(a_thread_blocks_what_others_send_and_not_what_it_raises, set_up, NULL)
{
    struct seen *seen = *state;
    static const int sent[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM, SIGPIPE};
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    pthread_t thread;
    assert_int_equal(oct_thread_start(&thread, NULL, look, seen, "look thread", NULL), OCT_OK);
    sem_post(&seen->named);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
        assert_int_equal(sigismember(&seen->blocked, sent[i]), 1);
    for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++)
        assert_int_equal(sigismember(&seen->blocked, raised[i]), 0);
}

TEST_WITH(a_detached_thread_has_its_name_too, set_up, NULL)
{
    struct seen *seen = *state;
    assert_int_equal(oct_thread_start_detached("octd-alone", look, seen, "lone thread", NULL),
                     OCT_OK);
    sem_post(&seen->named);
    sem_wait(&seen->done);
    assert_string_equal(seen->name, "octd-alone");
}

/* A stack as large as the whole address space cannot be had. */
TEST_WITH(without_a_thread_there_is_a_message, set_up, NULL)
{
    struct seen *seen = *state;
    struct oct_error err = {.text = ""};
    pthread_attr_t before, huge;
    pthread_t thread;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    pthread_attr_init(&huge);
    assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0);
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    enum oct_err e = oct_thread_start(&thread, "octd-none", look, seen, "look thread", &err);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    pthread_attr_destroy(&before);
    pthread_attr_destroy(&huge);
    assert_int_equal(e, OCT_E_IO);
    assert_int_equal(err.code, OCT_E_IO);
    assert_int_equal(strncmp(err.text, "look thread: ", 13), 0);
}
