/** Examples of the operations on saved work, and of the stop that makes it. */
import { running, SESSION } from "./records.ts";

export const SAVES_EXAMPLES = {
  "sessions.stop": {
    summary: "Stop a session. Its sandbox saves its work and ends.",
    request: { save: "require" },
    response: running,
  },
  "sessions.turnSaves": {
    summary: "List the turns of a session whose saves are kept.",
    response: {
      turns: [{ id: "0a7c3f52-9c1e-4f6b-8d20-1c6f0b1a7e35", at: "2026-11-20T10:30:00.000Z" }],
    },
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
