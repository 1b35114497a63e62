/** One service with everybody who may call it: a token of every kind, and what they call for. */
import { randomBytes, randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { makeToken, TOKEN_BYTES, tokenHash } from "../../src/domain/ids.ts";
import { Identity } from "../../src/store/ports/people/identity.ts";
import { visitor } from "../support/service/sessions/preview-setup.ts";
import { startTestService, type TestOptions, type TestService } from "../support/service/service.ts";
import {
  deliver,
  expectStatus,
  fields,
  invitePerson,
  makeAccount,
  makeProject,
  makeUserToken,
  putSecret,
  reached,
  runSession,
  sandboxEnvironment,
  SECRET,
  SECRET_NAME,
  webhookEntry,
} from "../support/service/requests.ts";

export type TokenKind =
  | "none"
  | "unknown"
  | "expired"
  | "revoked"
  /** Without a token, with the cookie of an opened preview. */
  | "preview"
  /** A user's, account-wide. */
  | "user"
  /** Of people of the same account, by their role in the project that is called for. The account's role is `member`. */
  | "projectOwner"
  | "member"
  | "viewer"
  /** The same, without a role in that project. */
  | "outsider"
  /** A user's, bound to the project that is called for. */
  | "bound"
  /** A user's, bound to another project of the account. */
  | "elsewhere"
  /** Another account's user's. */
  | "foreign"
  /** PLATFORM_CLI_TOKEN of a session that a person created. */
  | "session"
  /** PLATFORM_CLI_TOKEN of a session that a webhook spawned. */
  | "trigger"
  /** PLATFORM_TOKEN. */
  | "sandbox";

export interface Cast {
  readonly service: TestService;
  readonly tokens: Readonly<Record<TokenKind, string | null>>;
  /** Of a browser that opened a preview of the session. */
  readonly previewCookie: string;
  /** The project, its running sessions, and another project of the same account. */
  readonly pid: string;
  readonly sid: string;
  readonly triggerSid: string;
  /** The webhook's fire. */
  readonly fireId: string;
  readonly elsewhere: string;
}

const newToken = (): string => makeToken("pat", new Uint8Array(randomBytes(TOKEN_BYTES)));

const makeExpired = async (service: TestService): Promise<string> => {
  const me = fields(await service.request("GET", "/v1/me"));
  const token = newToken();
  await service.inside(
    Effect.flatMap(Identity, (identity) =>
      identity.createToken({
        id: randomUUID(),
        accountId: String((me["account"] as { id: string }).id),
        userId: String((me["user"] as { id: string }).id),
        projectId: null,
        name: "expired",
        hash: tokenHash(token),
        origin: "user",
        expiresAt: 1,
        now: 0,
      }),
    ),
  );
  return token;
};

const makeRevoked = async (service: TestService): Promise<string> => {
  const { id, token } = await makeUserToken(service);
  expectStatus(await service.request("DELETE", `/v1/tokens/${id}`), 204);
  return token;
};

/** A running session with the tokens of its sandbox. */
export const newFeatureSession = async ({ service, pid }: Pick<Cast, "service" | "pid">) => {
  const sid = await runSession(service, pid, { base_ref: "feature" });
  const environment = await sandboxEnvironment(service, sid);
  return {
    sid,
    cliToken: environment["PLATFORM_CLI_TOKEN"] ?? "",
    serviceKey: environment["PLATFORM_TOKEN"] ?? "",
  };
};

/** A person for each role in the project. Its default role is none. */
const castPeople = async (service: TestService, pid: string) => {
  expectStatus(await service.request("PATCH", `/v1/projects/${pid}`, { body: { default_role: null } }), 200);
  const token = async (name: string, role: string | null) =>
    (await invitePerson(service, name, { roles: role === null ? {} : { [pid]: role } })).token;
  return {
    projectOwner: await token("Olga", "owner"),
    member: await token("Mia", "member"),
    viewer: await token("Vera", "viewer"),
    outsider: await token("Otto", null),
  };
};

/** Follows a link to a port of the session. @returns the cookie */
const openPreview = async (
  service: TestService,
  { pid, sid }: Pick<Cast, "pid" | "sid">,
): Promise<string> => {
  const made = await service.request("POST", `/v1/projects/${pid}/sessions/${sid}/preview`, {
    body: { port: 3000 },
  });
  const { host, pathname, search } = new URL(String(fields(expectStatus(made, 201))["url"]));
  const opened = await visitor(service)(host, `${pathname}${search}`);
  const [cookie = ""] = String(opened.headers["set-cookie"]).split(";");
  if (!cookie.startsWith("platform_preview=")) throw new Error(`the link set no cookie: ${opened.status}`);
  return cookie;
};

/** @param options where a daemon is reached, for example */
export const startCast = async (options: TestOptions = {}): Promise<Cast> => {
  const service = await startTestService({}, options);
  const pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
  const elsewhere = await makeProject(service);
  const person = await newFeatureSession({ service, pid });
  const triggerSid = String(fields(expectStatus(await deliver(service, `${pid}/push`), 202))["session_id"]);
  const { fire_id: fireId } = await reached(service, pid, triggerSid, "running");
  const proposal = { title: "A feature", head_ref: "feature" };
  expectStatus(await service.request("POST", `/v1/projects/${pid}/change-requests`, { body: proposal }), 201);
  const people = await castPeople(service, pid);
  const tokens = {
    none: null,
    unknown: newToken(),
    expired: await makeExpired(service),
    revoked: await makeRevoked(service),
    preview: null,
    user: service.token,
    ...people,
    bound: (await makeUserToken(service, { project_id: pid })).token,
    elsewhere: (await makeUserToken(service, { project_id: elsewhere })).token,
    foreign: await makeAccount(service),
    session: person.cliToken,
    trigger: (await sandboxEnvironment(service, triggerSid))["PLATFORM_CLI_TOKEN"] ?? "",
    sandbox: person.serviceKey,
  };
  const previewCookie = await openPreview(service, { pid, sid: person.sid });
  return {
    service,
    tokens,
    previewCookie,
    pid,
    sid: person.sid,
    triggerSid,
    fireId: String(fireId),
    elsewhere,
  };
};
