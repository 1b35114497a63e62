/** One request for each route, that does what the route is for: what the table of routes and tokens sends. */
import { randomUUID } from "node:crypto";
import { teamCalls } from "./calls-of-teams.ts";
import { at, WORKERS, type Call } from "./call.ts";
import type { Cast, TokenKind } from "./cast.ts";
import {
  expectStatus,
  fields,
  makeProject,
  makeUserToken,
  commitTo,
  runSession,
} from "../support/service/requests.ts";

/** The agent of the session that the table names, in its own sandbox. */
const ownRuntime = { session: "in" } as const;
const ownThings = { elsewhere: "in", foreign: "in", outsider: "in" } as const;

/** The calls, by method and pattern of their route. */
export const makeCalls = (cast: Cast): Readonly<Record<string, Call>> => {
  /** A session to lose for a caller with access; other callers name one that must stay. */
  const spare = (kind: TokenKind): Promise<string> =>
    WORKERS.has(kind) ? runSession(cast.service, cast.pid) : Promise.resolve(cast.sid);
  /** A project to lose, in the same way. */
  const spareProject = (kind: TokenKind): Promise<string> =>
    kind === "user" || kind === "bound" || kind === "projectOwner"
      ? makeProject(cast.service)
      : Promise.resolve(cast.pid);
  /** A change request with work of its own, in the same way. */
  const spareRequest = async (kind: TokenKind): Promise<number> => {
    if (!WORKERS.has(kind)) return 1;
    const branch = `spare-${randomUUID()}`;
    await commitTo(cast.service, cast.pid, { branch, files: { [branch]: "x\n" } });
    const opened = await cast.service.request("POST", `/v1/projects/${cast.pid}/change-requests`, {
      body: { title: "Spare", head_ref: branch },
    });
    return Number(fields(expectStatus(opened, 201))["number"]);
  };
  const postMessage = async (): Promise<string> => {
    const id = randomUUID();
    const target = `/v1/projects/${cast.pid}/sessions/${cast.sid}/messages`;
    expectStatus(await cast.service.request("POST", target, { body: { id, text: "Go on." } }), 201);
    return id;
  };
  const attachFile = async (): Promise<string> => {
    const target = `/v1/projects/${cast.pid}/sessions/${cast.sid}/attachments?name=a.txt`;
    const kept = await cast.service.request("POST", target, { body: "the file" });
    return String(fields(expectStatus(kept, 201))["id"]);
  };
  const project = (rest: string) => () => `/v1/projects/${cast.pid}${rest}`;
  const inSession = (rest: string) => () => `/v1/projects/${cast.pid}/sessions/${cast.sid}${rest}`;
  /** A path in the project at which a limit of spend is set. */
  const limited = async (rest: string): Promise<string> => {
    const target = `/v1/projects/${cast.pid}${rest}`;
    expectStatus(await cast.service.request("PUT", target, { body: { usd: 1_000_000 } }), 200);
    return target;
  };
  /** Nothing answers in a simulated sandbox. */
  const inside = (rest: string): Call => ({ target: inSession(rest), answers: [502] });

  return {
    "GET /v1/me": at("/v1/me", 200),
    "GET /v1/tokens": at("/v1/tokens", 200),
    "POST /v1/tokens": { ...at("/v1/tokens", 201), body: () => ({ name: "made by the table" }) },
    "DELETE /v1/tokens/:id": {
      target: async () => `/v1/tokens/${(await makeUserToken(cast.service)).id}`,
      answers: [204],
      // An owner's token, which other people do not see.
      fates: { foreign: 404, projectOwner: 404, member: 404, viewer: 404, outsider: 404 },
    },
    "GET /v1/me/browsers": at("/v1/me/browsers", 200),
    "DELETE /v1/me/browsers": at("/v1/me/browsers", 204),
    "DELETE /v1/me/browsers/:id": at(`/v1/me/browsers/${randomUUID()}`, 404),
    "GET /v1/me/identities": at("/v1/me/identities", 200),
    "DELETE /v1/me/identities/:id": at(`/v1/me/identities/${randomUUID()}`, 404),
    "GET /v1/projects": { ...at("/v1/projects", 200), fates: ownThings },
    "POST /v1/projects": {
      ...at("/v1/projects", 201),
      body: () => ({ name: `made by the table ${randomUUID()}`, repository: { kind: "hosted" } }),
    },
    "GET /v1/projects/:pid": { target: project(""), answers: [200] },
    "PATCH /v1/projects/:pid": { target: project(""), body: () => ({ name: "renamed" }), answers: [200] },
    "DELETE /v1/projects/:pid": {
      target: async (kind) => `/v1/projects/${await spareProject(kind)}`,
      answers: [202],
      // An owner's project, which the token does not reach, and in which the other person is a member.
      fates: { bound: 404, projectOwner: 403 },
    },
    "POST /v1/projects/:pid/restore": { target: project("/restore"), answers: [409] },
    // Nothing but the service's own tokens opens a hosted repository.
    "PUT /v1/projects/:pid/repository/credential": {
      target: project("/repository/credential"),
      body: () => ({ password: "x" }),
      answers: [409],
    },
    "DELETE /v1/projects/:pid/repository/credential": {
      target: project("/repository/credential"),
      answers: [409],
    },
    "POST /v1/projects/:pid/repository/check": { target: project("/repository/check"), answers: [409] },
    "POST /v1/repository-checks": {
      ...at("/v1/repository-checks", 200),
      body: () => ({ repository: { kind: "hosted" } }),
    },
    "GET /v1/projects/:pid/spend": { target: project("/spend"), answers: [200] },
    "GET /v1/projects/:pid/sessions/:sid/spend": { target: inSession("/spend"), answers: [200] },
    "PUT /v1/projects/:pid/sessions/:sid/spend-limit": {
      target: inSession("/spend-limit"),
      body: () => ({ usd: 1_000_000 }),
      answers: [200],
    },
    "DELETE /v1/projects/:pid/sessions/:sid/spend-limit": {
      target: () => limited(`/sessions/${cast.sid}/spend-limit`),
      answers: [204],
    },
    "PUT /v1/projects/:pid/triggers/:slug/spend-limit": {
      target: project("/triggers/push/spend-limit"),
      body: () => ({ usd: 1_000_000 }),
      answers: [200],
    },
    "DELETE /v1/projects/:pid/triggers/:slug/spend-limit": {
      target: () => limited("/triggers/push/spend-limit"),
      answers: [204],
    },
    "GET /v1/projects/:pid/usage": { target: project("/usage"), answers: [200] },
    "GET /v1/projects/:pid/setup": { target: project("/setup"), answers: [200] },
    "GET /v1/projects/:pid/session-options": { target: project("/session-options"), answers: [200] },
    "GET /v1/projects/:pid/paths": { target: project("/paths"), answers: [200] },
    "POST /v1/projects/:pid/sync": { target: project("/sync"), answers: [200] },
    "GET /v1/projects/:pid/events": { target: project("/events"), answers: [200] },
    "GET /v1/triggers": { ...at("/v1/triggers", 200), fates: ownThings },
    "GET /v1/activity": { ...at("/v1/activity", 200), fates: ownThings },
    "POST /v1/activity/seen": {
      ...at("/v1/activity/seen", 204),
      body: () => ({ at: "2026-11-20T12:00:00.000Z" }),
      fates: ownThings,
    },
    "GET /v1/change-requests": { ...at("/v1/change-requests", 200), fates: ownThings },
    "GET /v1/events": { ...at("/v1/events", 200), fates: ownThings },
    "GET /v1/sessions": { ...at("/v1/sessions", 200), fates: ownThings },
    "GET /v1/projects/:pid/sessions": { target: project("/sessions"), answers: [200] },
    "POST /v1/projects/:pid/sessions": { target: project("/sessions"), body: () => ({}), answers: [201] },
    "GET /v1/projects/:pid/sessions/:sid": { target: inSession(""), answers: [200] },
    "PATCH /v1/projects/:pid/sessions/:sid": {
      target: inSession(""),
      body: () => ({ name: "renamed" }),
      answers: [200],
    },
    "POST /v1/projects/:pid/sessions/:sid/stop": {
      target: async (kind) => `/v1/projects/${cast.pid}/sessions/${await spare(kind)}/stop`,
      answers: [200],
    },
    "POST /v1/projects/:pid/sessions/:sid/restart": { target: inSession("/restart"), answers: [409] },
    "DELETE /v1/projects/:pid/sessions/:sid/saves/:id": {
      target: inSession("/saves/0192d3a4-0000-7000-8000-0000000000bb"),
      answers: [404],
    },
    "GET /v1/projects/:pid/sessions/:sid/saves": { target: inSession("/saves"), answers: [200] },
    "GET /v1/projects/:pid/saves": { target: project("/saves"), answers: [200] },
    "DELETE /v1/projects/:pid/sessions/:sid": {
      target: async (kind) => `/v1/projects/${cast.pid}/sessions/${await spare(kind)}`,
      answers: [204],
      // The agent has not started it.
      fates: { session: 403 },
    },
    "GET /v1/projects/:pid/sessions/:sid/model-usage": { target: inSession("/model-usage"), answers: [200] },
    "GET /v1/projects/:pid/sessions/:sid/sandbox": { target: inSession("/sandbox"), answers: [200] },
    "GET /v1/projects/:pid/sessions/:sid/changes": { target: inSession("/changes"), answers: [200] },
    "GET /v1/projects/:pid/sessions/:sid/own-credentials": {
      target: inSession("/own-credentials"),
      answers: [200],
    },
    "POST /v1/projects/:pid/sessions/:sid/own-credentials/give-back": {
      target: inSession("/own-credentials/give-back"),
      answers: [204, 403],
    },
    "GET /v1/projects/:pid/sessions/:sid/diff": { target: inSession("/diff"), answers: [200] },
    "GET /v1/projects/:pid/sessions/:sid/terminal": { target: inSession("/terminal"), answers: [200] },
    "POST /v1/projects/:pid/sessions/:sid/preview": {
      target: inSession("/preview"),
      body: () => ({ port: 3000 }),
      answers: [201],
    },
    "GET /v1/projects/:pid/sessions/:sid/conversation": {
      target: inSession("/conversation"),
      answers: [200],
    },
    "GET /v1/projects/:pid/sessions/:sid/conversation/search": {
      target: inSession("/conversation/search?search=begin"),
      answers: [200],
    },
    // The item is a message, not a tool.
    "GET /v1/projects/:pid/sessions/:sid/items/:id/output": {
      target: inSession(`/items/${cast.sid}/output`),
      answers: [404],
    },
    "GET /v1/projects/:pid/sessions/:sid/items/:id/text": {
      target: inSession(`/items/${cast.pid}/text`),
      answers: [404],
    },
    "GET /v1/projects/:pid/sessions/:sid/conversation/events": {
      target: inSession("/conversation/events"),
      answers: [200],
    },
    "GET /v1/projects/:pid/sessions/:sid/conversation.json": {
      target: inSession("/conversation.json"),
      answers: [200],
    },
    "GET /v1/projects/:pid/sessions/:sid/conversation.md": {
      target: inSession("/conversation.md"),
      answers: [200],
    },
    "POST /v1/projects/:pid/sessions/:sid/seen": { target: inSession("/seen"), answers: [204] },
    "POST /v1/projects/:pid/sessions/:sid/messages": {
      target: inSession("/messages"),
      body: () => ({ id: randomUUID(), text: "Go on." }),
      answers: [201],
    },
    "POST /v1/projects/:pid/attachments": {
      target: project("/attachments?name=notes.txt"),
      body: () => ({ any: "bytes" }),
      answers: [201],
    },
    "POST /v1/projects/:pid/sessions/:sid/attachments": {
      target: inSession("/attachments?name=notes.txt"),
      body: () => ({ any: "bytes" }),
      answers: [201],
    },
    "GET /v1/projects/:pid/sessions/:sid/attachments/:id": {
      target: async () => inSession(`/attachments/${await attachFile()}`)(),
      answers: [200],
    },
    // The agent may have the message already.
    "DELETE /v1/projects/:pid/sessions/:sid/messages/:id": {
      target: async () => inSession(`/messages/${await postMessage()}`)(),
      answers: [204, 409],
    },
    "POST /v1/projects/:pid/sessions/:sid/interrupt": { target: inSession("/interrupt"), answers: [200] },
    "POST /v1/projects/:pid/sessions/:sid/queue/resume": {
      target: inSession("/queue/resume"),
      answers: [204],
    },
    // The item is a message, not a request.
    "POST /v1/projects/:pid/sessions/:sid/requests/:id/answer": {
      target: inSession(`/requests/${cast.sid}/answer`),
      body: () => ({ choice: "once" }),
      answers: [404],
    },
    "GET /v1/projects/:pid/sessions/:sid/workspace/changes": {
      target: inSession("/workspace/changes"),
      answers: [200],
    },
    "GET /v1/projects/:pid/sessions/:sid/workspace/diff": {
      target: inSession("/workspace/diff"),
      answers: [200],
    },
    "GET /v1/projects/:pid/sessions/:sid/workspace/files": {
      target: inSession("/workspace/files"),
      answers: [200],
    },
    "GET /v1/projects/:pid/sessions/:sid/ports": { target: inSession("/ports"), answers: [200] },
    "GET /v1/projects/:pid/sessions/:sid/models": { target: inSession("/models"), answers: [200] },
    "GET /v1/projects/:pid/sessions/:sid/events": { target: inSession("/events"), answers: [200] },
    "GET /v1/projects/:pid/sessions/:sid/logs": { target: inSession("/logs?follow=0"), answers: [200] },
    "POST /v1/projects/:pid/sessions/:sid/refresh": { ...inside("/refresh"), fates: ownRuntime },
    "POST /v1/projects/:pid/sessions/:sid/abort": { ...inside("/abort"), fates: ownRuntime },
    "* /v1/projects/:pid/sessions/:sid/runtime/*": { ...inside("/runtime/session"), fates: ownRuntime },
    "* /v1/projects/:pid/sessions/:sid/ports/:port/*": inside("/ports/3000/"),
    "GET /v1/projects/:pid/secrets": { target: project("/secrets"), answers: [200] },
    "PUT /v1/projects/:pid/secrets/:name": {
      target: project("/secrets/BY_THE_TABLE"),
      body: () => ({ value: "x" }),
      answers: [200, 201],
    },
    "POST /v1/projects/:pid/secrets/:name/try": {
      target: project("/secrets/OPENAI_API_KEY/try"),
      answers: [404],
    },
    "DELETE /v1/projects/:pid/secrets/:name": { target: project("/secrets/NOT_THERE"), answers: [404] },
    "GET /v1/projects/:pid/triggers": { target: project("/triggers"), answers: [200] },
    "POST /v1/projects/:pid/triggers/:slug/fire": {
      target: project("/triggers/push/fire"),
      body: () => ({}),
      answers: [202],
    },
    "POST /v1/projects/:pid/triggers/:slug/preview": {
      target: project("/triggers/push/preview"),
      body: () => ({ kind: "manual" }),
      answers: [200],
    },
    "POST /v1/projects/:pid/triggers/drafts": {
      target: project("/triggers/drafts"),
      body: () => ({ type: "cron" }),
      answers: [200],
    },
    "POST /v1/projects/:pid/triggers/proposals": {
      target: project("/triggers/proposals"),
      body: () => ({ type: "webhook", slug: "by-the-table", secret_env: "S", prompt: "x" }),
      answers: [201],
    },
    "POST /v1/projects/:pid/triggers/:slug/proposals": {
      target: project("/triggers/push/proposals"),
      body: () => ({ action: "pause" }),
      answers: [201],
    },
    "GET /v1/projects/:pid/triggers/:slug/fires": { target: project("/triggers/push/fires"), answers: [200] },
    "GET /v1/projects/:pid/environment": { target: project("/environment"), answers: [200] },
    "POST /v1/projects/:pid/environment/warm": { target: project("/environment/warm"), answers: [202] },
    "GET /v1/projects/:pid/environment/builds": { target: project("/environment/builds"), answers: [200] },
    // The project has no Dockerfile, and no build (environments.test.ts).
    "POST /v1/projects/:pid/environment/builds": { target: project("/environment/builds"), answers: [409] },
    "GET /v1/projects/:pid/environment/builds/:bid": {
      target: project(`/environment/builds/${cast.fireId}`),
      answers: [404],
    },
    "GET /v1/projects/:pid/environment/builds/:bid/log": {
      target: project(`/environment/builds/${cast.fireId}/log`),
      answers: [404],
    },
    "POST /v1/projects/:pid/environment/builds/:bid/cancel": {
      target: project(`/environment/builds/${cast.fireId}/cancel`),
      answers: [404],
    },
    ...teamCalls(cast),
    "GET /v1/projects/:pid/fires": { target: project("/fires"), answers: [200] },
    "GET /v1/projects/:pid/fires/:id": { target: project(`/fires/${cast.fireId}`), answers: [200] },
    "POST /v1/projects/:pid/fires/:id/replay": {
      target: project(`/fires/${cast.fireId}/replay`),
      answers: [202],
    },
    // It does not wait.
    "DELETE /v1/projects/:pid/fires/:id": {
      target: project(`/fires/${cast.fireId}`),
      answers: [409],
      // No person asked for it, so it takes a member.
      fates: { viewer: 403 },
    },
    "GET /v1/operator": at("/v1/operator", 200),
    "POST /v1/operator/resume": at("/v1/operator/resume", 200),
    "POST /v1/operator/doctor": at("/v1/operator/doctor", 200),
    "GET /v1/queue": at("/v1/queue", 200),
    "POST /v1/projects/:pid/change-requests": {
      target: project("/change-requests"),
      body: (kind) => ({
        title: "t",
        ...(kind === "trigger" ? { session_id: cast.triggerSid } : { head_ref: "feature" }),
      }),
      // The branch has its change request already; the trigger's session has committed nothing.
      answers: [409, 422],
    },
    "GET /v1/projects/:pid/change-requests": { target: project("/change-requests"), answers: [200] },
    "GET /v1/projects/:pid/change-requests/:number": {
      target: project("/change-requests/1"),
      answers: [200],
    },
    "GET /v1/machines": { ...at("/v1/machines", 200) },
    "GET /v1/account/machine": at("/v1/account/machine", 200),
    "GET /v1/projects/:pid/sessions/:sid/machine": { target: inSession("/machine"), answers: [200] },
    "GET /v1/projects/:pid/sessions/:sid/sandbox/machine": {
      target: inSession("/sandbox/machine"),
      answers: [200],
    },
    "GET /v1/projects/:pid/sessions/:sid/conversation/machine": {
      target: inSession("/conversation/machine"),
      answers: [200],
    },
    "GET /v1/projects/:pid/triggers/:slug/machine": {
      target: project("/triggers/push/machine"),
      answers: [200],
    },
    "GET /v1/projects/:pid/change-requests/:number/machine": {
      target: project("/change-requests/1/machine"),
      answers: [200],
    },
    "GET /v1/projects/:pid/change-requests/:number/diff": {
      target: project("/change-requests/1/diff"),
      answers: [200],
    },
    "PATCH /v1/projects/:pid/change-requests/:number": {
      target: project("/change-requests/1"),
      body: () => ({ description: "Edited." }),
      answers: [200],
    },
    "GET /v1/projects/:pid/change-requests/:number/remarks": {
      target: project("/change-requests/1/remarks"),
      answers: [200],
    },
    "POST /v1/projects/:pid/change-requests/:number/remarks": {
      target: project("/change-requests/1/remarks"),
      body: () => ({ body: "Why?" }),
      answers: [201],
    },
    "PATCH /v1/projects/:pid/change-requests/:number/remarks/:id": {
      target: project(`/change-requests/1/remarks/${randomUUID()}`),
      body: () => ({ resolved: true }),
      answers: [404],
    },
    "DELETE /v1/projects/:pid/change-requests/:number/remarks/:id": {
      target: project(`/change-requests/1/remarks/${randomUUID()}`),
      answers: [404],
    },
    "PUT /v1/projects/:pid/change-requests/:number/reviewers/:id": {
      target: project(`/change-requests/1/reviewers/${randomUUID()}`),
      answers: [404],
    },
    "DELETE /v1/projects/:pid/change-requests/:number/reviewers/:id": {
      target: project(`/change-requests/1/reviewers/${randomUUID()}`),
      answers: [404],
    },
    "POST /v1/projects/:pid/change-requests/:number/merge": {
      target: async (kind) => `/v1/projects/${cast.pid}/change-requests/${await spareRequest(kind)}/merge`,
      body: () => ({}),
      answers: [200],
    },
    "POST /v1/projects/:pid/change-requests/:number/close": {
      target: async (kind) => `/v1/projects/${cast.pid}/change-requests/${await spareRequest(kind)}/close`,
      answers: [200],
    },
    "GET /v1/projects/:pid/git/clone-credential": {
      target: project("/git/clone-credential"),
      answers: [200],
    },
    "POST /v1/webhooks/projects/:pid/:slug": {
      target: () => `/v1/webhooks/projects/${cast.pid}/push`,
      // Bearer tokens mean nothing here: a fire needs a signature.
      answers: [401],
    },
    "GET /v1/git/:repository/info/refs": {
      target: () => `/v1/git/${cast.pid}.git/info/refs?service=git-upload-pack`,
      answers: [200],
    },
    "POST /v1/git/:repository/git-upload-pack": {
      target: () => `/v1/git/${cast.pid}.git/git-upload-pack`,
      headers: { "content-type": "application/x-git-upload-pack-request" },
      body: () => "0000",
      answers: [200],
    },
    "POST /v1/git/:repository/git-receive-pack": {
      target: () => `/v1/git/${cast.pid}.git/git-receive-pack`,
      headers: { "content-type": "application/x-git-receive-pack-request" },
      body: () => "0000",
      answers: [200],
    },
    "* /v1/nodes/*": { target: () => `/v1/nodes/sandboxes/${randomUUID()}/client/`, answers: [] },
    "GET /healthz": at("/healthz", 200),
    "GET /readyz": at("/readyz", 200),
    "GET /metrics": at("/metrics", 200),
    "GET /openapi.json": at("/openapi.json", 200),
    "GET /docs": at("/docs", 200),
    "GET /docs/guide": at("/docs/guide", 200),
    "GET /docs/guide/:page": at("/docs/guide/nothing", 404),
    "GET /docs/guide/:kind/:page": at("/docs/guide/use/sessions", 200),
    "GET /docs/guide/:kind/:group/:page": at("/docs/guide/use/sessions/nothing", 404),
    "GET /": at("/", 200),
    "GET /dashboard/open": at("/dashboard/open?code=none", 303),
    // Signing in takes a token in the body, and this one is invalid.
    "POST /dashboard/open": at("/dashboard/open", 303),
    "POST /dashboard/session": { ...at("/dashboard/session", 401), body: () => ({ token: "none" }) },
    "GET /dashboard/session": at("/dashboard/session", 401),
    "DELETE /dashboard/session": at("/dashboard/session", 204),
    "POST /dashboard/links": at("/dashboard/links", 201),
    // The code is in the body, and this one is unknown.
    "GET /dashboard/providers": at("/dashboard/providers", 200),
    "GET /dashboard/login/:provider": at("/dashboard/login/oidc", 404),
    "POST /dashboard/login/:provider": { ...at("/dashboard/login/oidc", 404), body: () => ({}) },
    "GET /dashboard/callback/connector": at("/dashboard/callback/connector?code=none&state=none", 400),
    // Only the page's own session opens it.
    "GET /dashboard/connectors/:ticket": at("/dashboard/connectors/none", 401),
    "GET /dashboard/callback/:provider": at("/dashboard/callback/oidc?code=none&state=none", 404),
    "POST /dashboard/invitations/look": {
      ...at("/dashboard/invitations/look", 404),
      body: () => ({ code: "none" }),
    },
    "POST /dashboard/invitations/accept": {
      ...at("/dashboard/invitations/accept", 404),
      body: () => ({ code: "none", name: "Ada" }),
    },
  };
};
