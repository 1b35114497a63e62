/** Examples of the operations on what happened (operations.ts). */
import type { OperationExample } from "../../http/api/examples/example.ts";
import { BEGAN, LATER, PROJECT, SESSION, USER } from "../../http/api/examples/records.ts";

const none = {
  session: null,
  change_request: null,
  trigger_slug: null,
  fire_id: null,
  person: null,
  reviewer: null,
  state: null,
  code: null,
};
const project = { id: PROJECT, name: "shop" };
const session = { id: SESSION, name: "Fix the checkout" };

export const ACTIVITY_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  "activity.list": {
    summary: "List what happened in all projects that you see, newest first.",
    response: {
      entries: [
        {
          ...none,
          id: "1842",
          kind: "change_request.opened",
          at: LATER,
          project,
          session,
          change_request: { number: 7, title: "Fix the checkout" },
          person: { id: USER, name: "Ada" },
          own: true,
        },
        {
          ...none,
          id: "1840",
          kind: "session.turn_ended",
          at: BEGAN,
          project,
          session,
          state: "completed",
          own: true,
        },
      ],
      seen_at: BEGAN,
      next_cursor: null,
    },
  },
  "activity.see": {
    summary: "Say until when you have seen what happened.",
    request: { at: LATER },
  },
};
