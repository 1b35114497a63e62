#!/bin/sh
# PID 1 of a sandbox (spec.md, sandbox layout: /usr/local/bin/platform-entrypoint). It reaps orphans, forwards
# SIGTERM and SIGINT to its child, the daemon, and exits with the daemon's exit code. The kernel then ends all other
# processes in the sandbox. A shell reaps orphans while it waits; Node would not.

# PID 1 ignores signals without a trap. The traps are set first, so that it can be ended from the start.
daemon=
pass() {
  if [ -n "$daemon" ]; then kill -s "$1" "$daemon" 2>/dev/null; else exit 143; fi
}
trap 'pass TERM' TERM
trap 'pass INT' INT

# A provider that waits for PID 1 passes it descriptor 3. If it is missing or closed, continue.
{ echo up >&3; } 2>/dev/null
exec 3>&-

# The provider's files for the daemon: its compiled form, which halves its start time, and the forwarder to the egress
# proxy (api.md 8). The forwarder runs in the daemon's process: a separate Node would cost each sandbox another 40 MB
# and the time of a second start.
# The daemon's Node is here too, because a Node on the PATH may be the agent's.
library=/opt/platform/lib
set -- /usr/local/bin/platform-agent
if [ -e "$library/platform-agent.cache" ]; then set -- "$library/launcher.cjs" "$@"; fi
if [ -e "$library/forwarder.cjs" ]; then set -- --require "$library/forwarder.cjs" "$@"; fi
"$library/node" "$@" &
daemon=$!

# `wait` also returns when a trap has run, so repeat it until the daemon is gone. If a trap interrupted the last wait,
# another one returns the daemon's own code; 127 means that it was returned before.
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
