/** Examples of the operations on saved work, and of the stop that makes it. */
import { running, SESSION } from "./records.ts";

export const SAVES_EXAMPLES = {
  "sessions.stop": {
    summary: "Stop a session. Its sandbox saves its work and ends.",
    request: { save: "require" },
    response: running,
  },
  "sessions.deleteSave": {
    summary: "Delete a save of an earlier sandbox.",
  },
  "sessions.saves": {
    summary: "List a project's sessions by the size of their saved work, largest first.",
    response: {
      bytes: 1_572_864,
      sessions: [{ id: SESSION, name: "Fix the checkout", status: "stopped", bytes: 1_572_864 }],
      away: [],
    },
  },
};
