/* The log, with a pipe for stderr. */
#define _GNU_SOURCE /* F_SETPIPE_SZ, program_invocation_short_name */
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "test/rig/tap.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { N_THREADS = 4, N_LINES = 500 };

struct swap {
    int before, ends[2]; /* read, write */
};

static void begin(struct swap *s, bool pipe_wanted)
{
    fflush(stdout);
    unsetenv("JOURNAL_STREAM");
    s->before = dup(STDERR_FILENO);
    if (pipe_wanted) {
        assert_int_equal(pipe(s->ends), 0);
        assert_true(fcntl(s->ends[1], F_SETPIPE_SZ, 8192) >= 8192);
    } else {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s->ends), 0);
    }
    dup2(s->ends[1], STDERR_FILENO);
}

static void end(struct swap *s)
{
    dup2(s->before, STDERR_FILENO);
    close(s->before);
    close(s->ends[0]);
    close(s->ends[1]);
}

/* All that is there now; the caller frees. */
static char *take(struct swap *s)
{
    size_t n = 0;
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    struct pollfd in = {.fd = s->ends[0], .events = POLLIN};
    while (poll(&in, 1, 0) > 0) {
        ssize_t got = read(s->ends[0], text + n, (1 << 20) - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
    }
    return text;
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

static void *write_lines(void *argument)
{
    (void)argument;
    for (int i = 0; i < N_LINES; i++)
        oct_log(OCT_LOG_INFO, "line %d of a thread, with as many words as lines have", i);
    return NULL;
}

static void expect_account(struct swap *s)
{
    unsigned long long lost = 0;
    pthread_t threads[N_THREADS];
    uint64_t began_ns = oct_clock_ns();
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, NULL), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    /* 2,000 lines that waited 20 ms each would take 40 s. */
    assert_true(oct_clock_ns() - began_ns < UINT64_C(10000000000));
    char *kept = take(s);
    oct_log(OCT_LOG_ERROR, "the line after");
    char *after = take(s);
    unsigned n_kept = count(kept, " of a thread, with as many words as lines have\n");
    assert_true(n_kept > 20 && n_kept == count(kept, "\n"));
    const char *lost_at = strstr(after, "warning: ");
    assert_non_null(lost_at);
    assert_int_equal(sscanf(lost_at, "warning: %llu lines of this log were lost here", &lost), 1);
    assert_int_equal(lost + n_kept, N_THREADS * N_LINES);
    assert_non_null(strstr(after, "error: the line after\n"));
    assert_int_equal(count(after, "\n"), 2);
    oct_log(OCT_LOG_INFO, "and one more");
    char *more = take(s);
    assert_int_equal(count(more, "\n"), 1); /* told once */
    free(kept);
    free(after);
    free(more);
}

TEST(a_pipe_that_nobody_reads_holds_up_no_thread_and_lines_are_accounted_for)
{
    struct swap s;
    begin(&s, true);
    expect_account(&s);
    end(&s);
}

TEST(a_socket_that_nobody_reads_holds_up_no_thread_and_lines_are_accounted_for)
{
    struct swap s;
    int bytes = 8192;
    begin(&s, false);
    setsockopt(s.ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    expect_account(&s);
    end(&s);
}

TEST(a_line_too_long_is_cut_and_ends_as_one_line)
{
    struct swap s;
    char words[3000];
    begin(&s, true);
    memset(words, 'w', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    oct_log(OCT_LOG_WARNING, "%s", words);
    char *text = take(&s);
    assert_int_equal(count(text, "\n"), 1);
    assert_int_equal(strlen(text), 1023);
    assert_non_null(strstr(text, "warning: www"));
    free(text);
    end(&s);
}
