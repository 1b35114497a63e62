/*
 * The terminal program: it runs a command in a terminal of its own (a pseudoterminal) and passes bytes between that and
 * its standard input and output. The daemon starts it as the agent, so the terminal is the agent's (decision 0084).
 * Node cannot make a terminal, and `script` cannot change its size.
 *
 *  P1 Standard input has frames: four bytes with the length of the text that follows, then two with the number of rows
 *     and two with the number of columns, all little-endian. Rows 0 leave the size as it is. The first frame has no
 *     text, and the command starts only after it.
 *  P2 Standard output has what the command writes, unchanged. If it is not read, the command waits in its own write.
 *  P3 The program exits with the command's code, or 128 plus the number of its signal. All output is written before.
 *     The kernel then sends SIGHUP to the terminal's other processes.
 *  P4 At the end of standard input, the terminal stays until the command ends. When the program itself is killed, the
 *     terminal is gone, and the command gets SIGHUP.
 */
#include <asm/signal.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include "system.h"
#include "terminal-device.h"
#include "terminal-frames.h"

/* Of a set of signals. */
enum { SET_BYTES = 8 };

/* A background job of a shell ignores some signals, and so would every program in the terminal. */
static void heed(int signal)
{
    struct sigaction action = {0};

    CALL(rt_sigaction, signal, &action, 0, SET_BYTES);
}

/* The command's process: a session of its own, whose terminal is the new one. */
static void become_command(long *stack, int side)
{
    heed(SIGINT);
    heed(SIGQUIT);
    CALL(setsid, 0, 0, 0, 0);
    CALL(ioctl, side, TIOCSCTTY, 0, 0);
    for (int standard = 0; standard <= 2; standard++)
        CALL(dup3, side, standard, 0, 0);
    CALL(close, side, 0, 0, 0);
    become_program(stack);
    end(NO_COMMAND);
}

/* The process for input. It ends with the one for output. */
static void pass_input(int terminal)
{
    CALL(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
    for (;;)
        pass_frame(terminal);
}

/* Until the command's side is closed. */
static void pass_output(int terminal)
{
    char text[TEXT_MAX];
    long count;

    while ((count = CALL(read, terminal, text, sizeof text, 0)) > 0)
        write_all(1, text, count);
}

static int exit_code(long command)
{
    int status = 0, signal;

    CALL(wait4, command, &status, 0, 0);
    signal = status & 0x7f;
    return signal > 0 ? 128 + signal : status >> 8 & 0xff;
}

static void start(long *stack)
{
    int terminal = open_side("/dev/ptmx", O_CLOEXEC);
    int side = open_command_side(terminal);
    long command;

    read_head(terminal);
    /* It goes on when the new process runs the command: an interrupt that meets a terminal without one is lost. */
    command = CALL(clone, CLONE_VFORK | SIGCHLD, 0, 0, 0);
    if (command < 0)
        end(NO_TERMINAL);
    if (command == 0)
        become_command(stack, side);
    /* The command's side is open in the command only, so that its end is the terminal's. */
    CALL(close, side, 0, 0, 0);
    if (CALL(clone, SIGCHLD, 0, 0, 0) == 0)
        pass_input(terminal);
    pass_output(terminal);
    end(exit_code(command));
}
