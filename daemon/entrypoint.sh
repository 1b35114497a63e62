#!/bin/sh
# PID 1 of a sandbox (spec.md, sandbox layout: /usr/local/bin/platform-entrypoint). It reaps orphans, passes
# SIGTERM and SIGINT on to the daemon, its child, and ends with the daemon's exit code; the kernel then ends
# everything else in the sandbox. A shell reaps whatever it did not start while it waits; Node would not.

# PID 1 is deaf to a signal that it has no trap for: from the first moment on it must hear that it is to end.
daemon=
pass() {
  if [ -n "$daemon" ]; then kill -s "$1" "$daemon" 2>/dev/null; else exit 143; fi
}
trap 'pass TERM' TERM
trap 'pass INT' INT

# A provider that waits for PID 1 hands it descriptor 3. Where there is none, or nobody listens any more, go on.
{ echo up >&3; } 2>/dev/null
exec 3>&-

# What the provider put beside the daemon: its compiled form, with which it starts in half the time, and the forwarder
# to the egress proxy (api.md 8). That one runs in the daemon's process: a Node of its own would cost each sandbox
# another 40 MB and the time of a second start.
# The daemon's Node lies there too: one on the PATH may be the agent's.
library=/opt/platform/lib
set -- /usr/local/bin/platform-agent
if [ -e "$library/platform-agent.cache" ]; then set -- "$library/launcher.cjs" "$@"; fi
if [ -e "$library/forwarder.cjs" ]; then set -- --require "$library/forwarder.cjs" "$@"; fi
"$library/node" "$@" &
daemon=$!

# `wait` also returns when a trap has run: ask again until the daemon is gone. If a trap cut the last wait short, the
# daemon's own code is still to be had; 127 means that it was told before.
while :; do
  wait "$daemon"
  status=$?
  kill -0 "$daemon" 2>/dev/null || break
done
if [ "$status" -gt 128 ]; then
  wait "$daemon"
  last=$?
  [ "$last" -eq 127 ] || status=$last
fi
exit "$status"
