/* Frames of standard input: a head, then its text. */
#include <asm/termios.h>

/* Longest text of a frame (daemon/terminals/terminal.ts). */
enum { TEXT_MAX = 32 * 1024 };

struct head {
    unsigned int length;
    unsigned short rows, columns;
};

/* Reads from standard input. At its end, the process ends. */
static void read_all(void *to, unsigned int length)
{
    while (length > 0) {
        long count = CALL(read, 0, to, length, 0);
        if (count <= 0)
            end(0);
        to = (char *)to + count;
        length -= count;
    }
}

/* If the reader has gone, the process ends. */
static void write_all(int descriptor, const char *from, unsigned int length)
{
    while (length > 0) {
        long count = CALL(write, descriptor, from, length, 0);
        if (count <= 0)
            end(0);
        from += count;
        length -= count;
    }
}

/* Reads a frame's head and sets the size that it has. Returns the length of the text. */
static unsigned int read_head(int terminal)
{
    struct head head;

    read_all(&head, sizeof head);
    if (head.rows > 0) {
        struct winsize size = {head.rows, head.columns, 0, 0};
        CALL(ioctl, terminal, TIOCSWINSZ, &size, 0);
    }
    return head.length;
}

static void pass_frame(int terminal)
{
    char text[TEXT_MAX];
    unsigned int length = read_head(terminal);

    if (length > sizeof text)
        end(0);
    read_all(text, length);
    write_all(terminal, text, length);
}
