/*
 * initdb asks for the name of the user that runs it, and refuses one that the system's list of accounts lacks. The
 * embedded database has a user id of its own, which is in no list. This library, loaded before the C library, gives every
 * user id a name.
 */

/* As in the C library's <pwd.h>. */
struct passwd {
    char *pw_name;
    char *pw_passwd;
    unsigned pw_uid;
    unsigned pw_gid;
    char *pw_gecos;
    char *pw_dir;
    char *pw_shell;
};

struct passwd *getpwuid(unsigned uid);

struct passwd *getpwuid(unsigned uid)
{
    static struct passwd account;

    account.pw_name = "platform";
    account.pw_passwd = "*";
    account.pw_uid = uid;
    account.pw_gid = uid;
    account.pw_gecos = "";
    account.pw_dir = "/";
    account.pw_shell = "/bin/false";
    return &account;
}
