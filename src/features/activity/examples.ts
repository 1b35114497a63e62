/** Examples of the operations on what happened (operations.ts). */
import type { Examples } from "../../http/api/examples/example.ts";
import { BEGAN, LATER } from "../../http/api/examples/records.ts";

const own = { session: {}, own: true };

export const ACTIVITY_EXAMPLES: Examples = {
  operations: {
    "activity.list": {
      summary: "List what happened in all projects that you see, newest first.",
      response: {
        entries: [
          { ...own, id: "1842", kind: "change_request.opened", change_request: {} },
          { ...own, id: "1840", kind: "session.turn_ended", at: BEGAN, person: null, state: "completed" },
        ],
        seen_at: BEGAN,
      },
    },
    "activity.see": {
      summary: "Say until when you have seen what happened.",
      request: { at: LATER },
    },
  },
};
