/* System calls and the way into a program without a C library, for x86-64 and arm64. */
#include <asm/unistd.h>

static long system_call(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return number;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#endif
}

/* A system call by its name. All further arguments of it are 0. */
#define CALL(name, a, b, c, d) system_call(__NR_##name, (long)(a), (long)(b), (long)(c), (long)(d))

__attribute__((noreturn)) static void end(int code)
{
    for (;;)
        CALL(exit, code, 0, 0, 0);
}

/*
 * Becomes the program that the arguments name. It returns only if that cannot be started. The kernel starts a program
 * with argc at the top of the stack, then argv and a null, then the environment.
 */
static void become_program(long *stack)
{
    CALL(execve, stack[2], stack + 2, stack + 2 + stack[0], 0);
}

/* The program. It ends by `end`. */
__attribute__((noreturn, used)) static void start(long *stack);

#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall start\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x0, sp\nbl start\n");
#endif
