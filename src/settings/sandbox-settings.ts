/** Settings of what one sandbox may use. */
import { define } from "./setting.ts";

export const SANDBOX_LIMIT_SETTINGS = define({
  PLATFORM_WARM_MEMORY_MB: {
    group: "Sandboxes",
    kind: "integer",
    fallback: 1200,
    min: 0,
    max: 10_000_000,
    about:
      "How much memory of each node is for sandboxes that wait for a session, in MiB. Each counts 600. With less than 600, every session starts a " +
      "sandbox of its own.",
  },
  PLATFORM_SANDBOX_MEMORY_MB: {
    group: "Sandboxes",
    kind: "integer",
    fallback: 2048,
    min: 256,
    max: 1_000_000,
    about:
      "How much memory one sandbox may use, in MiB. Beyond it, the session fails with `memory_exceeded`. Where control groups hold the limits of " +
      "memory, processors and processes, a sandbox that runs already keeps its own.",
  },
  PLATFORM_SANDBOX_CPUS: {
    group: "Sandboxes",
    kind: "integer",
    fallback: 4,
    min: 1,
    max: 10_000,
    about:
      "How many processors one sandbox may use. Beyond it, the sandbox waits. `platform doctor` says whether this machine's control groups can hold it.",
  },
  PLATFORM_SANDBOX_PROCESSES: {
    group: "Sandboxes",
    kind: "integer",
    fallback: 512,
    min: 64,
    max: 1_000_000,
    about: "How many processes and threads one sandbox may have.",
  },
  PLATFORM_SANDBOX_DISK_MB: {
    group: "Sandboxes",
    kind: "integer",
    fallback: 8192,
    min: 64,
    max: 10_000_000,
    about:
      "How much one sandbox may write to its workspace, its home and `/tmp` together, in MiB. Beyond it, the session fails with `disk_exceeded`. " +
      "A change counts for sandboxes that run already, too.",
  },
});
