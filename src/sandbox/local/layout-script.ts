/**
 * A sandbox's layout (../machine/boot/layout.ts) as a script for `sh`, for the form without bubblewrap. It needs every
 * capability in fresh user, mount and network namespaces.
 */
import { type MountStep, SANDBOX_HOSTNAME } from "../machine/boot/layout.ts";

/** The size of the new root and of /dev, in bytes. */
const SMALL_BYTES = 1024 * 1024;

/** Quotes `text` as one literal word of a shell command. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * Functions for the script below. `seal_tree` also covers mounts below its target, each with its own flags. As in
 * bubblewrap, no set-uid program and no device works there.
 */
const SHELL_FUNCTIONS = `
place() { # source, target: an empty mount point of the source's kind
  if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "\${2%/*}"; [ -e "$2" ] || : > "$2"; fi
}
bind() { place "$1" "$2"; mount --rbind "$1" "$2"; }
seal_tree() {
  while read -r _ _ _ _ target options _; do
    case $target in "$1" | "$1"/*) mount -o "remount,bind,ro,nosuid,nodev,\${options#r?,}" "$target" ;; esac
  done < /proc/self/mountinfo
}
devices() {
  mkdir -p "$1"
  mount -t tmpfs -o mode=755,size=${SMALL_BYTES} tmpfs "$1"
  for name in null zero full random urandom tty; do
    : > "$1/$name"
    mount --bind "/dev/$name" "$1/$name"
  done
  mkdir "$1/pts"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$1/pts"
  ln -s pts/ptmx "$1/ptmx"
  ln -s /proc/self/fd "$1/fd"
  ln -s /proc/self/fd/0 "$1/stdin"
  ln -s /proc/self/fd/1 "$1/stdout"
  ln -s /proc/self/fd/2 "$1/stderr"
}`;

const shellCommand = (step: MountStep, root: string): string => {
  const target = quote(root + (step.target === "/" ? "" : step.target));
  switch (step.kind) {
    case "root":
      return `mount --rbind ${quote(step.source)} ${quote(root)}; seal_tree ${quote(root)}`;
    case "bind":
    case "read-only-bind": {
      const source = quote(step.source);
      const mountLine = `bind ${source} ${target}`;
      const line = step.kind === "bind" ? mountLine : `${mountLine}; seal_tree ${target}`;
      return step.optional ? `if [ -e ${source} ]; then ${line}; fi` : line;
    }
    case "symlink":
      return `mkdir -p "$(dirname ${target})"; ln -s ${quote(step.source)} ${target}`;
    case "directory":
      return `mkdir -p ${target}`;
    case "proc":
      return `mkdir -p ${target}; mount -t proc proc ${target}`;
    case "devices":
      return `devices ${target}`;
    case "seal":
      return `mount -o remount,bind,ro ${target}`;
    case "memory":
      return `mkdir -p ${target}; mount -t tmpfs -o ${quote(`mode=${step.mode},size=${step.bytes}`)} tmpfs ${target}`;
  }
};

/**
 * Builds the tree in memory over the directory `root`, makes it the root, and brings loopback up. Then it forbids
 * further user namespaces beyond `nestedUserNamespaces`, and executes the command in its arguments.
 */
export const namespaceScript = (
  steps: readonly MountStep[],
  root: string,
  nestedUserNamespaces: number,
): string =>
  [
    "set -eu",
    "umask 022",
    SHELL_FUNCTIONS,
    ...(steps[0]?.kind === "root"
      ? []
      : [`mount -t tmpfs -o mode=755,size=${SMALL_BYTES} tmpfs ${quote(root)}`]),
    ...steps
      .filter(({ kind, target }) => kind === "root" || target !== "/")
      .map((step) => shellCommand(step, root)),
    `hostname ${SANDBOX_HOSTNAME} 2>/dev/null || true`,
    "ip link set lo up 2>/dev/null || ifconfig lo up 2>/dev/null || busybox ip link set lo up",
    `cd ${quote(root)}`,
    // The old root is then on top of the new one. It needs no directory there, because the new one may be read-only.
    "pivot_root . .",
    // The programs are in other places now.
    "hash -r",
    "umount -l .",
    "cd /",
    "mount -o remount,bind,ro /",
    `echo ${nestedUserNamespaces} > /proc/sys/user/max_user_namespaces`,
    "cd /workspace",
    "unset OLDPWD",
    'exec "$@"',
  ].join("\n");
