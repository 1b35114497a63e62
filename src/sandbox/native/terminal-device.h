/* A new terminal: the side of the terminal program, and the command's. */
#include <asm/ioctls.h>
#include <linux/fcntl.h>

/* Exit codes as in shells: there is no terminal, or the command cannot be started. */
enum { NO_TERMINAL = 126, NO_COMMAND = 127 };

static int open_side(const char *path, int flags)
{
    int side = CALL(openat, AT_FDCWD, path, O_RDWR | O_NOCTTY | flags, 0);
    if (side < 0)
        end(NO_TERMINAL);
    return side;
}

/* The command's side, by the terminal's number. */
static int open_command_side(int terminal)
{
    char path[] = "/dev/pts/0000000000";
    char *digit = path + sizeof path - 1;
    unsigned int number = 0, locked = 0;

    CALL(ioctl, terminal, TIOCSPTLCK, &locked, 0);
    CALL(ioctl, terminal, TIOCGPTN, &number, 0);
    do
        *--digit = '0' + number % 10;
    while (number /= 10);
    /* The digits follow the last slash, and the zeros before them are left out. */
    for (char *at = path + 9;; at++, digit++)
        if (!(*at = *digit))
            return open_side(path, 0);
}
