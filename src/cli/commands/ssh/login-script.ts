/**
 * What runs in a sandbox for one connection of OpenSSH: the sandbox's own `sshd`, on this connection's pipes, as the agent's user.
 *
 *  S1 Nothing listens and nothing stays: the configuration, the host key and the list with one key are in a directory of their
 *     own, which goes with the connection.
 *  S2 Commands have what the agent has: its environment, its directory, and `SHELL` or the first of the usual shells.
 *  S3 Only the key of the person who opened the connection is taken. The service has checked before that she may be here.
 */

/** Where the programs of OpenSSH's server are: in the runtime bundle of an image, or where systems have them. */
const SCRIPT = String.raw`
umask 077
first() { for file in "$@"; do [ -x "$file" ] && { printf %s "$file"; return; }; done; return 1; }
tools=/opt/platform/lib/tools
sshd=$(first $tools/sshd /usr/sbin/sshd /usr/bin/sshd /usr/local/sbin/sshd) &&
  keygen=$(first $tools/ssh-keygen /usr/bin/ssh-keygen /usr/local/bin/ssh-keygen) || {
  echo "This sandbox has no OpenSSH server. The service's operator installs it on each node (openssh-server)." >&2
  exit 127
}
sftp=$(first $tools/sftp-server /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server) || sftp=sftp-server
own=$(mktemp -d) || exit 126
trap 'rm -rf "$own"' EXIT
trap 'exit 129' HUP
trap 'exit 143' TERM
printf '%s\n' "$1" > "$own/key"
unset OLDPWD TERM SHLVL _
export PWD
export -p > "$own/environment"
"$keygen" -q -t ed25519 -N "" -f "$own/host" || exit 126
cat > "$own/command" <<'END'
. "$1"
cd "$PWD" 2>/dev/null
if [ -z "$SHELL" ] || [ ! -x "$SHELL" ]; then SHELL=$(command -v bash || command -v sh); export SHELL; fi
if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"; fi
exec "$SHELL" -i
END
{
  cat <<END
HostKey "$own/host"
AuthorizedKeysFile "$own/key"
ForceCommand /bin/sh "$own/command" "$own/environment"
Subsystem sftp $sftp
END
  cat <<'END'
PidFile none
StrictModes no
AuthenticationMethods publickey
MaxSessions 100
X11Forwarding no
PrintMotd no
PrintLastLog no
UseDNS no
AcceptEnv LANG LC_* COLORTERM GIT_* TERM_PROGRAM
LogLevel ERROR
END
  # OpenSSH from 9.8 on starts further programs of its own.
  for name in session auth; do
    file=$(first $tools/sshd-$name) || continue
    case $name in session) echo "SshdSessionPath $file" ;; auth) echo "SshdAuthPath $file" ;; esac
  done
} > "$own/configuration"
"$sshd" -i -e -f "$own/configuration"
`;

/** The command of a connection. @param key the person's public key, one line of `authorized_keys` */
export const loginCommand = (key: string): readonly string[] => ["sh", "-c", SCRIPT, "sh", key];
