/** Examples of the operations that add a trigger. */
import { changeRequest, LATER, wish } from "./records.ts";

export const TRIGGER_WISH_EXAMPLES = {
  "triggerWishes.draft": {
    summary: "Write a new trigger as lines of platform.toml, and check it. Nothing changes.",
    request: wish,
    response: {
      lines:
        '[[triggers]]\nslug = "nightly"\ntype = "cron"\ncron = "0 30 2 * * *"\nprompt = "Update the dependencies."\n',
      upcoming: [LATER],
      issues: [],
    },
  },
  "triggerWishes.propose": {
    summary: "Open a change request that adds a trigger to platform.toml.",
    request: wish,
    response: {
      ...changeRequest,
      session_id: null,
      head_ref: "add-trigger-nightly-0c5f6d21",
      title: "Add the trigger nightly",
      description: "Adds the cron trigger `nightly` to `platform.toml`.",
    },
  },
} as const;
