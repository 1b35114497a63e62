/** What an account and a session spent on models, with limits of spend. */
/** As in sample-project.ts, which needs this file. */
const PROJECT_ID = "01995f10-77aa-7c31-9f21-3d0c64b2a910";

const sums = (usd: number, tokens: number) => ({ usd, tokens });

const limit = (id: string, fields: object) => ({
  id,
  subject: "",
  project_id: null,
  name: "",
  unit: "usd",
  spent: null,
  ...fields,
});

export const SPEND = {
  month: "2026-11",
  spent: sums(212.4, 41_200_000),
  people: [
    { id: "u", name: "Mona", spent: sums(150.1, 30_000_000) },
    {
      id: "u-otto",
      name: "Otto with a rather long name that must not push the table aside",
      spent: sums(0, 90),
    },
  ],
  projects: [{ id: PROJECT_ID, name: "website", spent: sums(212.4, 41_200_000) }],
  days: [
    { day: "2026-11-21", spent: sums(12.25, 2_300_000) },
    { day: "2026-11-20", spent: sums(0.0042, 9_000) },
  ],
  limits: [
    limit("l-1", { scope: "account", amount: 500, spent: sums(212.4, 41_200_000) }),
    limit("l-2", {
      scope: "project",
      subject: PROJECT_ID,
      project_id: PROJECT_ID,
      name: "website",
      amount: 250,
      spent: sums(212.4, 41_200_000),
    }),
    limit("l-3", {
      scope: "person",
      subject: "u-otto",
      name: "Otto",
      unit: "tokens",
      amount: 5_000_000,
      spent: sums(0, 90),
    }),
    limit("l-4", { scope: "each_session", amount: 5 }),
    limit("l-5", {
      scope: "trigger",
      subject: `${PROJECT_ID}/nightly`,
      project_id: PROJECT_ID,
      name: "nightly",
      amount: 3,
      spent: sums(3.1, 400_000),
    }),
  ],
};

export const SESSION_SPEND = {
  spent: sums(4.02, 510_000),
  limits: [
    { scope: "session", name: "", unit: "usd", amount: 5, spent: 4.02, reserved: 0.42 },
    { scope: "project", name: "website", unit: "usd", amount: 250, spent: 212.4, reserved: 0.42 },
  ],
};

/** A limit that was just set, with the running sessions that it does not count. */
export const SET_LIMIT = {
  ...SPEND.limits[0],
  uncounted_sessions: [
    {
      project_id: PROJECT_ID,
      id: "01995f2c-1e5b-7b0e-8a44-b7d15c2a90de",
      name: "Fix the login of a very long name that-has-a-word-without-any-blank-in-it-and-must-not-push-the-page-aside",
      reason:
        "A limit of spend applies to this session, but its calls of models could not be counted: the project's secret ANTHROPIC_API_KEY is a key of a model provider. An owner can add the provider to the account, and then delete the secret.",
    },
    {
      project_id: PROJECT_ID,
      id: "01995f2c-1e5b-7b0e-8a44-b7d15c2a90df",
      name: null,
      reason:
        "A limit of spend applies to this session, but its calls of models could not be counted: it uses its person's own Claude subscription. Choose a model of a provider (NAME/MODEL), or remove the subscription.",
    },
  ],
};
