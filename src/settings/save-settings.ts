/** Settings of saved work. */
import { define, MINUTE } from "./setting.ts";

export const SAVE_SETTINGS = define({
  PLATFORM_SAVE_TIMEOUT_MS: {
    group: "Sessions",
    kind: "duration",
    fallback: MINUTE,
    min: 1,
    about:
      "How long a stop may save unpushed work before the sandbox is removed. The stop request waits for it. A session that the service ends by " +
      "itself has ten minutes.",
  },
  PLATFORM_SAVES_PROJECT_BYTES: {
    group: "Sessions",
    kind: "integer",
    fallback: 5 * 1024 ** 3,
    min: 1024 ** 2,
    max: Number.MAX_SAFE_INTEGER,
    shown: "5 GiB",
    about:
      "How many bytes of the disk the saved work of one project may use, as it is packed. At the limit the saves of earlier turns go first.",
  },
  PLATFORM_SAVES_SESSION_BYTES: {
    group: "Sessions",
    kind: "integer",
    fallback: 2 * 1024 ** 3,
    min: 1024 ** 2,
    max: Number.MAX_SAFE_INTEGER,
    shown: "2 GiB",
    about: "The same for one session. A save beyond it takes the smallest files first, and names the others.",
  },
  PLATFORM_SAVE_EVERY_MS: {
    group: "Sessions",
    kind: "duration",
    fallback: 5 * MINUTE,
    min: 0,
    about:
      "How often unpushed work is saved while an agent works. It is also saved when a turn ends. `0` turns both off: it is saved only before " +
      "the sandbox ends.",
  },
});
