/** The fake's audit record: rows of each kind of actor and outcome. */
type Json = Readonly<Record<string, unknown>>;

const REQUEST = "8d3a2a5e-5f0b-4a43-9a55-0d3f1c1a7e10";

/** @param now ms since the epoch that the instants stand around */
export const sampleAudit = (now: number, projectId: string): Json[] => {
  let made = 0;
  const event = (action: string, actor: Json, rest: Json = {}): Json => {
    made += 1;
    return {
      id: `a-${String(made)}`,
      at: new Date(now - made * 4_000_000).toISOString(),
      project_id: projectId,
      actor: { id: "u", name: null, token_id: null, ...actor },
      action,
      target: null,
      outcome: "done",
      address: "192.0.2.7",
      user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
      request_id: REQUEST,
      changes: {},
      ...rest,
    };
  };
  const mona = { kind: "person", name: "Mona" };
  const nowhere = { address: null, user_agent: null, request_id: null };
  return [
    event("secret.set", mona, { target: "OPENAI_API_KEY", changes: { new: true } }),
    event("change_request.merge", mona, {
      target: "#7",
      outcome: "begun",
      changes: { number: 7, head_ref: "rename-the-greeting", base_ref: "main" },
    }),
    event(
      "sign_in",
      { kind: "unknown" },
      {
        project_id: null,
        outcome: "refused",
        address: "2001:db8::7",
        user_agent: "curl/8.5.0",
        changes: { by: "token", omitted_before: 3 },
      },
    ),
    event(
      "change_request.opened",
      { kind: "session", name: "Otto von Langenfeld-Hohenschwangau" },
      {
        target: "#7",
      },
    ),
    event("webhook.updated", mona, {
      changes: { events: { from: ["queue.full"], to: ["session.failed", "queue.full"] } },
    }),
    event("request", mona, {
      target: "PUT /v1/projects/:pid/secrets/:name",
      outcome: "refused",
      changes: { why: "forbidden" },
    }),
    event("token.created", { kind: "operator", name: "root" }, { ...nowhere, project_id: null }),
    event("account.created", { kind: "service" }, { ...nowhere, project_id: null }),
  ];
};
