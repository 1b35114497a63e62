/** Examples of the operations on limits of spend (operations.ts). */
import type { Examples } from "../../http/api/examples/example.ts";
import { PROJECT } from "../../http/api/examples/records.ts";

const ofSession = {
  spent: { usd: 4.02, tokens: 510_000 },
  limits: [{ scope: "session", name: "Fix the checkout", amount: 5, spent: 4.02, reserved: 0 }],
};

const ofTrigger = {
  scope: "trigger",
  subject: `${PROJECT}/nightly`,
  name: "nightly",
  amount: 3,
  spent: { usd: 1.2, tokens: 150_000 },
};

export const SPEND_EXAMPLES: Examples = {
  nouns: { spendlimit: { scope: "project", subject: PROJECT, name: "shop", amount: 100, spent: {} } },
  operations: {
    "spend.account":
      "Show what the account spent on models this month, by person, project and day, and its limits.",
    "spend.setLimit": {
      summary:
        "Set a limit of spend of the account, of a project or a person and month, or of each session. It replaces the former one.",
      request: { scope: "project", subject: PROJECT, usd: 100 },
      response: {
        uncounted_sessions: [
          {
            name: "Fix the login",
            reason:
              "A limit of spend applies to this session, but its calls of models could not be counted: it uses its person's own ChatGPT subscription. Choose a model of a provider (NAME/MODEL), or remove the subscription.",
          },
        ],
      },
    },
    "spend.removeLimit": "Remove a limit of spend.",
    "spend.project": {
      summary:
        "Show what a project spent on models this month, and its limits and those of its triggers and sessions.",
      response: { limits: [{}, ofTrigger] },
    },
    "spend.session": {
      summary: "Show what a session spent on models, and the limits that apply to it.",
      response: ofSession,
    },
    "spend.limitSession": {
      summary: "Set or raise the limit of spend of a session. Then a message lets its agent go on.",
      request: { usd: 5 },
      response: ofSession,
    },
    "spend.unlimitSession": "Remove the limit of spend of a session.",
    "spend.limitTrigger": {
      summary: "Set the limit of what a trigger's sessions may spend in a day.",
      request: { usd: 3 },
      response: { ...ofTrigger, uncounted_sessions: [] },
    },
    "spend.unlimitTrigger": "Remove the limit of spend of a trigger.",
  },
};
