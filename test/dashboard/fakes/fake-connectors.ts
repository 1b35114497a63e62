/** The fake's connectors, the tools of one of them, and the agents' calls. */
type Json = Readonly<Record<string, unknown>>;

export interface FakeConnectors {
  connectors: Json[];
  connectorErrors: Json[];
  /** Of every connector. */
  catalogue: Json;
  calls: Json[];
  /** Calls that wait for a person. */
  approvals: Json[];
}

type Answer = Json | null | undefined;

const change = (world: FakeConnectors, slug: string | undefined, rest: Json): Answer => {
  world.connectors = world.connectors.map((one) => (one["slug"] === slug ? { ...one, ...rest } : one));
  return world.connectors.find((one) => one["slug"] === slug);
};

/** @returns undefined also if the request is about something else */
export const connectorsAnswer = (world: FakeConnectors, route: string): Answer => {
  const [method = "", target = ""] = route.split(" ");
  const [, , , , collection, slug, part] = target.split("/");
  if (collection === "approvals") {
    if (method === "GET") return { approvals: world.approvals, next_cursor: null };
    const decided = world.approvals.find((one) => one["id"] === slug);
    world.approvals = world.approvals.filter((one) => one !== decided);
    return decided;
  }
  if (collection === "executor") return { calls: world.calls, next_cursor: null };
  if (collection !== "connectors") return undefined;
  if (slug === undefined)
    return { connectors: world.connectors, default_policy: "ask", errors: world.connectorErrors };
  if (part === "catalogue") return { ...world.catalogue, slug };
  if (part === "authorize") return { url: "/#/projects", expires_at: "2026-11-20T12:10:00.000Z" };
  if (method === "PUT") return change(world, slug, { state: "needs_acceptance", failure: null });
  change(world, slug, { state: "needs_credential", credential: null });
  return null;
};

const schema = (...names: readonly string[]) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
});

/** @param now ms since the epoch that the instants stand around */
export const sampleConnectors = (now: number, sessionId: string): FakeConnectors => {
  const at = (minutes: number) => new Date(now - minutes * 60_000).toISOString();
  const connector = {
    slug: "linear",
    kind: "mcp",
    url: "https://mcp.example.com/mcp",
    auth: "bearer",
    auth_name: null,
    credential_of: "project",
    sessions: ["user"],
    direct: ["list_issues"],
    state: "needs_acceptance",
    credential: { origin: "https://mcp.example.com", updated_at: at(3000), updated_by: "u" },
    sign_in: null,
    usable: 11,
    to_accept: 2,
    left_out: [{ name: "export_all", why: "Its schema is larger than 64 KiB." }],
    left_out_total: 1,
    failure: null,
    refreshed_at: at(40),
  };
  const tool = (name: string, policy: string, rest: Json = {}) => ({
    name,
    shown: `linear_${name}`,
    description: `The tool ${name} of the tracker.`,
    input_schema: schema("team"),
    request: null,
    policy,
    rule: policy === "ask" ? "default" : `match ${name}`,
    state: "accepted",
    accepted: null,
    ...rest,
  });
  const call = (id: string, name: string, outcome: string | null, message: string | null) => ({
    id,
    session_id: sessionId,
    connector: "linear",
    tool: name,
    arguments_preview: `{"team":"GREET"}`,
    at: at(7),
    ended_at: outcome === null ? null : at(6),
    outcome,
    message,
  });
  return {
    connectors: [
      connector,
      {
        ...connector,
        slug: "sentry",
        kind: "openapi",
        url: "https://sentry.example.com/api/0",
        sessions: ["user", "trigger"],
        state: "needs_credential",
        credential: null,
        usable: 0,
        to_accept: 0,
        left_out: [],
        left_out_total: 0,
        refreshed_at: null,
      },
      {
        ...connector,
        slug: "tracker",
        url: "https://tracker.example.com/mcp",
        auth: "oauth",
        state: "ready",
        credential: null,
        sign_in: {
          status: "signed_in",
          issuer: "https://login.example.com",
          at: at(3000),
          by: "u",
          renewed_at: at(20),
          expires_at: at(-40),
          failure: null,
        },
        usable: 4,
        to_accept: 0,
        left_out: [],
        left_out_total: 0,
      },
      {
        ...connector,
        slug: "errors",
        url: "https://errors.example.com/mcp",
        auth: "oauth",
        state: "needs_credential",
        credential: null,
        sign_in: null,
        to_accept: 0,
        left_out: [],
        left_out_total: 0,
        failure:
          "The sign-in of the connector errors has ended: login.example.com says: invalid_grant. A person can sign in again: platform connectors authorize errors.",
      },
      {
        ...connector,
        slug: "mail",
        url: "https://mail.example.com/mcp",
        credential_of: "user",
        state: "needs_credential",
        credential: null,
        usable: 3,
        to_accept: 0,
        left_out: [],
        left_out_total: 0,
      },
      {
        ...connector,
        slug: "calendar",
        url: "https://calendar.example.com/mcp",
        auth: "oauth",
        credential_of: "user",
        state: "needs_credential",
        credential: null,
        usable: 6,
        to_accept: 0,
        left_out: [],
        left_out_total: 0,
        failure: "Your sign-in has ended: calendar.example.com says: invalid_grant. Sign in again.",
      },
      {
        ...connector,
        slug: "docs",
        url: "https://docs.example.com/mcp",
        auth: "none",
        state: "failed",
        credential: null,
        to_accept: 0,
        left_out: [],
        left_out_total: 0,
        failure: "The server answered 503.",
      },
    ],
    connectorErrors: [
      {
        path: "connectors[5].operations[0].path",
        message: 'path names {id}. Add a parameter { name = "id", in = "path" }.',
        line: 31,
      },
    ],
    catalogue: {
      pin: "6f1c0e2d9a",
      refreshed_at: at(40),
      accepted_at: at(3000),
      accepted_by: "u",
      failure: null,
      removed: ["archive_issue"],
      tools: [
        tool("list_issues", "allow"),
        tool("create_issue", "ask", {
          state: "changed",
          description: "Creates an issue in any team.",
          input_schema: schema("team", "title"),
          request: "POST /teams/{team}/issues",
          accepted: {
            description: "Creates an issue.",
            input_schema: schema("team"),
            request: "POST /issues",
          },
        }),
        tool("delete_issue", "deny", { state: "new" }),
      ],
      left_out: [{ name: "export_all", why: "Its schema is larger than 64 KiB." }],
      left_out_total: 1,
    },
    approvals: [],
    calls: [
      call("c-1", "list_issues", null, null),
      call("c-2", "list_issues", "ok", null),
      call("c-3", "delete_issue", "denied", "The tool delete_issue of linear is denied by platform.toml."),
    ],
  };
};

/** A call that waits for a person. */
export const waitingCall = (sessionId: string): Json => ({
  id: "01995f2c-1e5b-7b0e-8a44-b7d15c2a9e11",
  session_id: sessionId,
  connector: "linear",
  tool: "create_issue",
  arguments: { team: "GREET", title: "Say hello in French", api_token: "[hidden, 40 characters]" },
  // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
  expires_at: new Date(Date.now() + 80_000_000).toISOString(),
});
