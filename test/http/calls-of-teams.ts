/** The calls of people, connectors and outbound webhooks: see calls.ts. */
import { randomUUID } from "node:crypto";
import { at, WORKERS, type Call } from "./call.ts";
import type { Cast } from "./cast.ts";
import { expectStatus, fields, invitePerson } from "../support/service/requests.ts";

const newProvider = () => ({
  name: `p-${randomUUID().slice(0, 8)}`,
  kind: "anthropic",
  key: "k",
  models: ["m"],
  try: false,
});

const ownSubscription = () => "/v1/me/subscriptions/claude-code";

/** A provider of the owner's own. Others do not see it. */
const notHers = { foreign: 404, projectOwner: 404, member: 404, viewer: 404, outsider: 404 } as const;

export const teamCalls = (cast: Cast): Readonly<Record<string, Call>> => {
  const project = (rest: string) => () => `/v1/projects/${cast.pid}${rest}`;
  const addWebhook = async (): Promise<string> => {
    const body = { url: "https://receiver.example.org/", events: ["queue.full"] };
    const made = await cast.service.request("POST", `/v1/projects/${cast.pid}/webhooks`, { body });
    return String(fields(expectStatus(made, 201))["id"]);
  };
  let shared: Promise<string> | null = null;
  /** A path below an outbound webhook that stays. */
  const inWebhook = (rest: string) => async () =>
    `/v1/projects/${cast.pid}/webhooks/${await (shared ??= addWebhook())}${rest}`;

  const addProvider = async (target = "/v1/model-providers"): Promise<string> => {
    const made = await cast.service.request("POST", target, { body: newProvider() });
    return `${target}/${String(fields(expectStatus(made, 201))["id"])}`;
  };
  let kept: Promise<string> | null = null;
  const keptProvider = () => (kept ??= addProvider());
  let ofProject: Promise<string> | null = null;
  const projectProvider = () => (ofProject ??= addProvider(project("/model-providers")()));
  const otherModels = { body: () => ({ models: ["other"], try: false }) };

  /** The path of a limit that the account has. */
  const keptLimit = async (): Promise<string> => {
    const body = { scope: "each_session", usd: 1_000_000 };
    const made = await cast.service.request("PUT", "/v1/spend-limits", { body });
    return `/v1/spend-limits/${String(fields(expectStatus(made, 200))["id"])}`;
  };

  // The service of these tests offers no runtime with a subscription.
  const subscription = { answers: [404], body: () => ({ content: "a-token" }) };

  // Not a code by its form: guesses of codes are counted, and all tokens here are of few people.
  const noCode = { answers: [400], body: () => ({ code: "none" }) };

  return {
    "POST /v1/device-logins": at("/v1/device-logins", 200),
    "POST /v1/device-logins/token": at("/v1/device-logins/token", 400),
    "POST /v1/device-logins/look": { target: () => "/v1/device-logins/look", ...noCode },
    "POST /v1/device-logins/approve": { target: () => "/v1/device-logins/approve", ...noCode },
    "POST /v1/device-logins/deny": { target: () => "/v1/device-logins/deny", ...noCode },
    "GET /v1/people": at("/v1/people", 200),
    "PATCH /v1/people/:id": {
      target: async () => `/v1/people/${(await invitePerson(cast.service, "Ada")).id}`,
      body: () => ({ name: "Ada L." }),
      answers: [200],
      fates: { foreign: 404 },
    },
    "PATCH /v1/account": { ...at("/v1/account", 204), body: () => ({ name: "Greeters" }) },
    "POST /v1/people/:id/deactivate": {
      target: async () => `/v1/people/${(await invitePerson(cast.service, "Ada")).id}/deactivate`,
      answers: [200],
      fates: { foreign: 404 },
    },
    "POST /v1/people/:id/reactivate": {
      target: async () => `/v1/people/${(await invitePerson(cast.service, "Ada")).id}/reactivate`,
      answers: [200],
      fates: { foreign: 404 },
    },
    "GET /v1/model-providers": at("/v1/model-providers", 200),
    "POST /v1/model-providers": { ...at("/v1/model-providers", 201), body: newProvider },
    "PATCH /v1/model-providers/:id": {
      target: keptProvider,
      body: () => ({ models: ["other"], try: false }),
      answers: [200],
      fates: { foreign: 404 },
    },
    "DELETE /v1/model-providers/:id": {
      target: (kind) => (kind === "user" ? addProvider() : keptProvider()),
      answers: [204],
      fates: { foreign: 404 },
    },
    "GET /v1/me/model-providers": at("/v1/me/model-providers", 200),
    "POST /v1/me/model-providers": { ...at("/v1/me/model-providers", 201), body: newProvider },
    "PATCH /v1/me/model-providers/:id": {
      target: () => addProvider("/v1/me/model-providers"),
      ...otherModels,
      answers: [200],
      fates: notHers,
    },
    "DELETE /v1/me/model-providers/:id": {
      target: () => addProvider("/v1/me/model-providers"),
      answers: [204],
      fates: notHers,
    },
    "GET /v1/me/subscriptions": at("/v1/me/subscriptions", 200),
    "PUT /v1/me/subscriptions/:runtime": { target: ownSubscription, ...subscription },
    "DELETE /v1/me/subscriptions/:runtime": { target: ownSubscription, answers: [404] },
    "GET /v1/me/notices": at("/v1/me/notices", 200),
    // The service of these tests sends no mail, and its people have no chat.
    "PUT /v1/me/notices/mail": {
      target: () => "/v1/me/notices/mail",
      body: () => ({ tells: ["asked"] }),
      answers: [409],
    },
    "PUT /v1/me/notices/chat": {
      target: () => "/v1/me/notices/chat",
      body: () => ({ tells: ["asked"] }),
      answers: [400],
    },
    "DELETE /v1/me/notices/:place": { target: () => "/v1/me/notices/chat", answers: [404] },
    "POST /v1/me/notices/:place/test": { target: () => "/v1/me/notices/chat/test", answers: [404] },
    "POST /v1/projects/:pid/subscription": { target: project("/subscription"), ...subscription },
    "GET /v1/projects/:pid/model-providers": { target: project("/model-providers"), answers: [200] },
    "POST /v1/projects/:pid/model-providers": {
      target: project("/model-providers"),
      body: newProvider,
      answers: [201],
    },
    "PATCH /v1/projects/:pid/model-providers/:id": {
      target: projectProvider,
      ...otherModels,
      answers: [200],
    },
    "DELETE /v1/projects/:pid/model-providers/:id": {
      target: (kind) => (WORKERS.has(kind) ? addProvider(project("/model-providers")()) : projectProvider()),
      answers: [204],
    },
    "GET /v1/spend": at("/v1/spend", 200),
    "PUT /v1/spend-limits": {
      ...at("/v1/spend-limits", 200),
      body: () => ({ scope: "account", usd: 1_000_000 }),
    },
    "DELETE /v1/spend-limits/:id": { target: keptLimit, answers: [204], fates: { foreign: 404 } },
    "GET /v1/audit": at("/v1/audit", 200),
    "GET /v1/projects/:pid/audit": { target: project("/audit"), answers: [200] },
    "GET /v1/invitations": at("/v1/invitations", 200),
    "POST /v1/invitations": { ...at("/v1/invitations", 201), body: () => ({ name: "Ada" }) },
    "DELETE /v1/invitations/:id": {
      target: async () => {
        const invited = await cast.service.request("POST", "/v1/invitations", { body: { name: "Ada" } });
        return `/v1/invitations/${String(fields(expectStatus(invited, 201))["id"])}`;
      },
      answers: [204],
      fates: { foreign: 404 },
    },
    "GET /v1/projects/:pid/members": { target: project("/members"), answers: [200] },
    "PUT /v1/projects/:pid/members/:id": {
      target: async () => project(`/members/${(await invitePerson(cast.service, "Ada")).id}`)(),
      body: () => ({ role: "viewer" }),
      answers: [204],
    },
    "DELETE /v1/projects/:pid/members/:id": {
      target: async () => project(`/members/${(await invitePerson(cast.service, "Ada")).id}`)(),
      answers: [204],
    },
    "GET /v1/projects/:pid/connectors": { target: project("/connectors"), answers: [200] },
    "PUT /v1/projects/:pid/connectors/:slug/credential": {
      target: project("/connectors/none/credential"),
      body: () => ({ value: "by-the-table" }),
      answers: [404],
    },
    "POST /v1/projects/:pid/connectors/:slug/authorize": {
      target: project("/connectors/none/authorize"),
      answers: [404],
    },
    "DELETE /v1/projects/:pid/connectors/:slug/credential": {
      target: project("/connectors/none/credential"),
      answers: [404],
      // She has no own credential there, and the project's is its owners'.
      fates: { member: 403 },
    },
    "GET /v1/projects/:pid/connectors/:slug/catalogue": {
      target: project("/connectors/none/catalogue"),
      answers: [404],
    },
    "POST /v1/projects/:pid/connectors/:slug/catalogue": {
      target: project("/connectors/none/catalogue"),
      body: () => ({ action: "refresh" }),
      answers: [404],
    },
    "GET /v1/projects/:pid/approvals": { target: project("/approvals"), answers: [200] },
    "POST /v1/projects/:pid/approvals/:id/approve": {
      target: project(`/approvals/${randomUUID()}/approve`),
      answers: [404],
    },
    "POST /v1/projects/:pid/approvals/:id/deny": {
      target: project(`/approvals/${randomUUID()}/deny`),
      body: () => ({ reason: "No." }),
      answers: [404],
    },
    "GET /v1/projects/:pid/executor/calls": { target: project("/executor/calls"), answers: [200] },
    "GET /v1/projects/:pid/executor/mcp": {
      target: project("/executor/mcp"),
      headers: { accept: "text/event-stream" },
      answers: [200],
    },
    "POST /v1/projects/:pid/executor/mcp": {
      target: project("/executor/mcp"),
      body: () => ({ jsonrpc: "2.0", id: 1, method: "ping" }),
      headers: { accept: "application/json, text/event-stream" },
      answers: [200],
    },
    "GET /v1/projects/:pid/webhook-refusals": { target: project("/webhook-refusals"), answers: [200] },
    "GET /v1/projects/:pid/webhooks": { target: project("/webhooks"), answers: [200] },
    "POST /v1/projects/:pid/webhooks": {
      target: project("/webhooks"),
      body: () => ({ url: "https://receiver.example.org/", events: ["queue.full"] }),
      answers: [201],
    },
    "GET /v1/projects/:pid/webhooks/:id": { target: inWebhook(""), answers: [200] },
    "PATCH /v1/projects/:pid/webhooks/:id": {
      target: inWebhook(""),
      body: () => ({ events: ["queue.full"] }),
      answers: [200],
    },
    "DELETE /v1/projects/:pid/webhooks/:id": {
      target: async (kind) =>
        WORKERS.has(kind) && kind !== "session"
          ? `/v1/projects/${cast.pid}/webhooks/${await addWebhook()}`
          : await inWebhook("")(),
      answers: [204],
    },
    // The host of the address does not exist.
    "POST /v1/projects/:pid/webhooks/:id/test": { target: inWebhook("/test"), answers: [200] },
    "POST /v1/projects/:pid/webhooks/:id/rotate": {
      target: inWebhook("/rotate"),
      body: () => ({}),
      answers: [200],
    },
    "GET /v1/projects/:pid/webhooks/:id/deliveries": { target: inWebhook("/deliveries"), answers: [200] },
    "POST /v1/projects/:pid/webhooks/:id/deliveries/:did/replay": {
      target: inWebhook(`/deliveries/${randomUUID()}/replay`),
      answers: [404],
    },
  };
};
