#include "tools/control/errand.h"

#include "pipeline/base/clock.h"

#include <stdlib.h>
#include <time.h>

enum oct_err oct_errand_granted(const cJSON *answer, struct oct_error *err)
{
    const char *why = oct_json_text(answer, "error");
    if (oct_json_is_true(answer, "ok"))
        return OCT_OK;
    return oct_fail(err, OCT_E_STATE, "%s", why ? why : "octd refused without a reason");
}

enum oct_err oct_errand_ask(const struct oct_control_wait *wait, const char *request,
                            double *number, struct oct_error *err)
{
    cJSON *answer = NULL;
    char *text = NULL;
    enum oct_err e = oct_control_ask_patiently(wait, request, &answer, &text, err);
    if (!e)
        e = oct_errand_granted(answer, err);
    if (!e && !((*number = oct_json_number(answer, "number")) > 0))
        e = oct_fail(err, OCT_E_FORMAT, "octd's answer has no number: is it older than octctl?");
    cJSON_Delete(answer);
    free(text);
    return e;
}

/* OCT_E_AGAIN: it is under way. */
static enum oct_err look(const cJSON *status, double number, const cJSON **result,
                         struct oct_error *err)
{
    const cJSON *errand = cJSON_GetObjectItemCaseSensitive(status, "errand");
    const char *why = oct_json_text(errand, "error");
    *result = cJSON_GetObjectItemCaseSensitive(errand, "result");
    if (oct_json_number(errand, "number") != number)
        return oct_fail(err, OCT_E_STATE, "another command came between, or octd started anew");
    if (oct_json_is_true(errand, "pending"))
        return OCT_E_AGAIN;
    if (why && *why)
        return oct_fail(err, OCT_E_STATE, "%s", why);
    return *result ? OCT_OK : oct_fail(err, OCT_E_FORMAT, "octd's status has no result");
}

enum oct_err oct_errand_wait(struct oct_control_link *control, double number, double most_s,
                             cJSON **status, const cJSON **result, struct oct_error *err)
{
    const uint64_t until_ns = oct_clock_ns() + (uint64_t)(most_s * 1e9);
    for (;;) {
        *status = NULL;
        enum oct_err e = oct_control_status(control, status, err);
        if (e)
            return e; /* octd does not answer any more */
        e = look(*status, number, result, err);
        if (e != OCT_E_AGAIN)
            return e;
        cJSON_Delete(*status);
        *status = NULL;
        if (oct_clock_ns() > until_ns)
            return oct_fail(err, OCT_E_STATE, "not done within %g s: see octctl status", most_s);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}
