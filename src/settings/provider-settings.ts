/** Settings of what isolates sandboxes. */
import { define } from "./setting.ts";

export const PROVIDER_SETTINGS = define({
  PLATFORM_SANDBOX_PROVIDER: {
    group: "Sandboxes",
    kind: "choice",
    values: ["auto", "gvisor", "local", "docker", "kubernetes", "simulated"],
    about:
      "`gvisor` gives each sandbox a kernel of its own. It needs root, `runsc` and control groups. `local` uses Linux namespaces, in the form of " +
      "PLATFORM_LOCAL_FORM. `docker` makes each sandbox a container of the engine at PLATFORM_DOCKER_SOCKET; it needs root. `kubernetes` makes each sandbox " +
      "[a Pod of a cluster](kubernetes.md). `auto` is `gvisor` where that starts, and otherwise `local`. `simulated` starts no processes; it is for load tests " +
      "and for trying the API.",
  },
  PLATFORM_RUNSC: {
    group: "Sandboxes",
    kind: "text",
    fallback: null,
    shown: "`runsc` on the PATH",
    about: "The path of gVisor's program. A release of 2023 or later is needed.",
  },
  PLATFORM_DOCKER_SOCKET: {
    group: "Sandboxes",
    kind: "text",
    fallback: "/var/run/docker.sock",
    about:
      "The unix socket of the container engine for `docker`: Docker's, or Podman's. The engine must run on this machine.",
  },
  PLATFORM_DOCKER_RUNTIME: {
    group: "Sandboxes",
    kind: "text",
    fallback: null,
    shown: "the engine's default",
    about: "The engine's runtime for sandboxes, as `docker info` names it.",
  },
  PLATFORM_LOCAL_FORM: {
    group: "Sandboxes",
    kind: "choice",
    values: ["auto", "bubblewrap", "namespaces"],
    about:
      "How the `local` provider isolates a sandbox: with bubblewrap, or with util-linux. `auto` takes the strongest one that works.",
  },
});
