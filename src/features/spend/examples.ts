/** Examples of the operations on limits of spend (operations.ts). */
import type { OperationExample } from "../../http/api/examples/example.ts";
import { PROJECT, SESSION, SPEND_LIMIT, USER } from "../../http/api/examples/records.ts";

const spent = { usd: 31.4, tokens: 4_210_000 };

const limit = {
  id: SPEND_LIMIT,
  scope: "project",
  subject: PROJECT,
  project_id: PROJECT,
  name: "website",
  unit: "usd",
  amount: 100,
  spent,
};

const setLimit = {
  ...limit,
  uncounted_sessions: [
    {
      project_id: PROJECT,
      id: SESSION,
      name: "Fix the login",
      reason:
        "A limit of spend applies to this session, but its calls of models could not be counted: it uses its person's own ChatGPT subscription. Choose a model of a provider (NAME/MODEL), or remove the subscription.",
    },
  ],
};

const ofSession = {
  spent: { usd: 4.02, tokens: 510_000 },
  limits: [{ scope: "session", name: "Fix the login", unit: "usd", amount: 5, spent: 4.02, reserved: 0 }],
};

const ofTrigger = {
  ...limit,
  scope: "trigger",
  subject: `${PROJECT}/nightly`,
  name: "nightly",
  amount: 3,
  spent: { usd: 1.2, tokens: 150_000 },
};

export const SPEND_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  "spend.account": {
    summary: "Show what the account spent on models this month, by person, project and day, and its limits.",
    response: {
      month: "2026-11",
      spent,
      people: [{ id: USER, name: "Mia", spent }],
      projects: [{ id: PROJECT, name: "website", spent }],
      days: [{ day: "2026-11-20", spent }],
      limits: [limit],
    },
  },
  "spend.setLimit": {
    summary:
      "Set a limit of spend of the account, of a project or a person and month, or of each session. It replaces the former one.",
    request: { scope: "project", subject: PROJECT, usd: 100 },
    response: setLimit,
  },
  "spend.removeLimit": { summary: "Remove a limit of spend." },
  "spend.project": {
    summary:
      "Show what a project spent on models this month, and its limits and those of its triggers and sessions.",
    response: { month: "2026-11", spent, limits: [limit, ofTrigger] },
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
  "spend.unlimitSession": { summary: "Remove the limit of spend of a session." },
  "spend.limitTrigger": {
    summary: "Set the limit of what a trigger's sessions may spend in a day.",
    request: { usd: 3 },
    response: { ...ofTrigger, uncounted_sessions: [] },
  },
  "spend.unlimitTrigger": { summary: "Remove the limit of spend of a trigger." },
};
