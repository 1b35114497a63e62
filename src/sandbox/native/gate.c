/*
 * The gate: it starts before a sandbox's programs, closes descriptors, installs a seccomp filter, and becomes the
 * program in its arguments.
 *
 *  G1 Descriptors from `close_from` on are closed, except on a kernel before 5.9, which has no close_range.
 *  G2 The program never runs without its filter: the gate exits with 126 instead.
 *  G3 The gate only removes rights: it runs with the rights of its caller, and a filter comes with no_new_privs.
 */
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include "system.h"

/* Exit codes as in shells: the gate failed itself, or could not start the program. */
enum { NO_FILTER = 126, NO_PROGRAM = 127 };
enum { STANDARD_ERROR = 2, FILTER_MAX = 256 };

/* A filter of length 0 is none. machine/gate.ts finds the mark and writes what follows it. */
struct options {
    char mark[16];
    unsigned int close_from, length;
    struct sock_filter filter[FILTER_MAX];
};
static const struct options compiled = {.mark = "options of gate"};

/* As they are in the file: the compiler must not compute with those that it compiled. */
static const struct options *read_options(void)
{
    const struct options *options = &compiled;

    __asm__("" : "+r"(options));
    return options;
}

__attribute__((noreturn)) static void fail(const char *message, int length, int code)
{
    CALL(write, STANDARD_ERROR, message, length, 0);
    end(code);
}
#define FAIL(message, code) fail(message, sizeof message - 1, code)

static void start(long *stack)
{
    const struct options *options = read_options();
    struct sock_fprog filter = {options->length, (struct sock_filter *)options->filter};

    /* An old kernel refuses this. Then only what the service itself left open is inherited (inherited.ts). */
    CALL(close_range, options->close_from, ~0u, 0, 0);
    if (filter.len > 0) {
        CALL(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0);
        if (CALL(seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter, 0) != 0)
            FAIL("gate: the kernel refuses the seccomp filter\n", NO_FILTER);
    }
    become_program(stack);
    FAIL("gate: the program cannot be started\n", NO_PROGRAM);
}
