/** The messages of this page on their way to agents, whatever it shows. */
import { Outboxes } from "./outboxes.ts";
import { complain } from "../frame/notices.ts";

export const outboxes = new Outboxes({
  refused: (path, { message, code }) =>
    complain(`A message of yours was not sent. ${message}`, code, [
      "Open its session",
      `#${path.slice("/v1".length)}`,
    ]),
  locks: "locks" in navigator ? navigator.locks : null,
});
