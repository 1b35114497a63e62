/** Frequent steps of the tests of the HTTP side: projects with a manifest, sessions, signed webhooks. */
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { makeToken, TOKEN_BYTES, tokenHash } from "../../../src/domain/ids.ts";
import { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { gitOk, importCommit } from "../../git/git-client.ts";
import { eventually } from "./eventually.ts";
import type { Answer, RequestOptions, TestService } from "./service.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** The answer's JSON object. */
export const fields = (answer: Answer): Fields => {
  if (typeof answer.json !== "object" || answer.json === null) throw new Error(`no JSON: ${answer.text}`);
  return answer.json as Fields;
};

/** A list of the answer, by its plural. */
export const listOf = (answer: Answer, plural: string): readonly Fields[] =>
  fields(answer)[plural] as Fields[];

/** The answer, where it has the status; else the test fails with its body. */
export const expectStatus = (answer: Answer, status: number): Answer => {
  if (answer.status !== status) {
    expect.fail(`expected ${status}, got ${answer.status}: ${answer.text.slice(0, 500)}`);
  }
  return answer;
};

export { eventually };

export type Files = Readonly<Record<string, string>>;

/** Writes files into a work tree and commits them. */
export const commitFiles = async (directory: string, files: Files, subject = "Change"): Promise<void> => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), text);
  }
  await gitOk(directory, "add", ".");
  await gitOk(directory, "commit", "--quiet", "-m", subject);
};

const initialRepository = async (directory: string, files: Files): Promise<string> => {
  mkdirSync(directory);
  await gitOk(directory, "init", "--quiet", "--template=", "--initial-branch=main");
  await commitFiles(directory, { "README.md": "one\n", ...files }, "Begin");
  await gitOk(directory, "checkout", "--quiet", "-b", "feature");
  await commitFiles(directory, { "feature.txt": "new\n" }, "Add a feature");
  await gitOk(directory, "checkout", "--quiet", "main");
  return directory;
};

/** The repositories that have been made for a service, by their files. They are copied: git needs seven processes for one. */
const originals = new WeakMap<TestService, Map<string, Promise<string>>>();

/** Makes a repository below the service's import root: `main`, and `feature` one commit ahead of it. @returns its path. */
export const makeRepository = async (service: TestService, files: Files): Promise<string> => {
  const known = originals.get(service) ?? new Map<string, Promise<string>>();
  originals.set(service, known);
  const key = JSON.stringify(files);
  const original = known.get(key) ?? initialRepository(path.join(service.importRoot, randomUUID()), files);
  known.set(key, original);
  const copy = path.join(service.importRoot, randomUUID());
  cpSync(await original, copy, { recursive: true, preserveTimestamps: true });
  return copy;
};

/** Pushes a commit with these files to a branch, as a person whose work began at `from`. */
export const pushFiles = async (
  service: TestService,
  pid: string,
  {
    branch,
    files,
    from = "main",
  }: { readonly branch: string; readonly files: Files; readonly from?: string },
): Promise<void> => {
  const directory = mkdtempSync(path.join(service.importRoot, "work-"));
  const remote = `http://x:${service.token}@127.0.0.1:${service.port}/v1/git/${pid}.git`;
  await gitOk(directory, "clone", "--quiet", "--branch", from, remote, ".");
  await commitFiles(directory, files);
  await gitOk(directory, "push", "--quiet", "origin", `HEAD:refs/heads/${branch}`);
};

/** Commits these files to a branch of a hosted repository, from the tip of `from`. The service does not notice it as a push. */
export const commitTo = async (
  service: TestService,
  pid: string,
  {
    branch,
    files,
    from = "main",
  }: { readonly branch: string; readonly files: Files; readonly from?: string },
): Promise<void> => {
  const repository = path.join(service.dataDir, "repositories", `${pid}.git`);
  await importCommit(repository, { branch, from, files });
};

export interface ProjectWish {
  /** Imported with these files on `main`, and `feature` ahead; none: the platform's own empty commit. */
  readonly files?: Files;
  readonly name?: string;
  readonly token?: string;
}

/** A new hosted project. @returns its id. */
export const makeProject = async (
  service: TestService,
  { files, name = `project ${randomUUID()}`, token }: ProjectWish = {},
): Promise<string> => {
  const source = files === undefined ? {} : { import_from: await makeRepository(service, files) };
  const answer = await service.request("POST", "/v1/projects", {
    body: { name, repository: { kind: "hosted", ...source } },
    ...(token === undefined ? {} : { token }),
  });
  return String(fields(expectStatus(answer, 201))["id"]);
};

/** A session that has reached the status. */
export const reached = (service: TestService, pid: string, sid: string, status: string): Promise<Fields> =>
  eventually(async () => {
    const session = fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`));
    expect(session["status"]).toBe(status);
    return session;
  });

/** A new session. @returns its id, once it runs. */
export const runSession = async (service: TestService, pid: string, body: Fields = {}): Promise<string> => {
  const answer = await service.request("POST", `/v1/projects/${pid}/sessions`, { body });
  const sid = String(fields(expectStatus(answer, 201))["id"]);
  await reached(service, pid, sid, "running");
  return sid;
};

/** Stops a session, whatever it does. */
export const stopSession = async (service: TestService, pid: string, sid: string): Promise<Fields> =>
  fields(expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions/${sid}/stop`), 200));

/** Environment of the newest sandbox of a session, as it was given to the provider. */
export const sandboxEnvironment = (
  service: TestService,
  sid: string,
): Promise<Readonly<Record<string, string | undefined>>> =>
  service.inside(
    Effect.gen(function* () {
      const all = [...(yield* (yield* SimulatedSandboxes).all).values()];
      return all.findLast(({ spec }) => spec.sessionId === sid)?.spec.environment ?? {};
    }),
  );

/** A git password of a session's, minted as its daemon has it minted. */
export const mintPassword = async (service: TestService, pid: string, sid: string): Promise<string> => {
  const token = (await sandboxEnvironment(service, sid))["PLATFORM_TOKEN"] ?? "";
  const answer = await service.request("GET", `/v1/projects/${pid}/git/clone-credential`, { token });
  return (fields(expectStatus(answer, 200))["auth"] as { password: string }).password;
};

/** A token of a user's, in the way of `POST /v1/tokens`. */
export const makeUserToken = async (service: TestService, wish: Fields = {}, token?: string) => {
  const answer = await service.request("POST", "/v1/tokens", {
    body: { name: "test", ...wish },
    ...(token === undefined ? {} : { token }),
  });
  const made = fields(expectStatus(answer, 201));
  return { id: String(made["id"]), token: String(made["token"]) };
};

/** A person who accepts an invitation. `roles` has her own grants, by project. @returns her id and her first token. */
export const invitePerson = async (
  service: TestService,
  name: string,
  {
    role = "member",
    roles = {},
  }: { readonly role?: string; readonly roles?: Readonly<Record<string, string>> } = {},
) => {
  const projects = Object.entries(roles).map(([project_id, own]) => ({ project_id, role: own }));
  const invited = await service.request("POST", "/v1/invitations", { body: { name, role, projects } });
  const code = String(fields(expectStatus(invited, 201))["url"])
    .split("/")
    .at(-1);
  const accepted = await service.request("POST", "/dashboard/invitations/accept", {
    body: { code, name },
    token: null,
  });
  const { user, token } = fields(expectStatus(accepted, 201));
  return { id: (user as { readonly id: string }).id, token: String(token) };
};

const freshToken = (): string => makeToken("pat", new Uint8Array(randomBytes(TOKEN_BYTES)));

/** Another account with a user, as `platform admin` would make it. @returns the user's account-wide token. */
export const makeAccount = async (service: TestService, cap = 50, owner = "mallory"): Promise<string> => {
  const [accountId, userId, token] = [randomUUID(), randomUUID(), freshToken()];
  const at = new Date().toISOString();
  await service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* sql`INSERT INTO accounts (id, name, tier, session_cap, created_at)
        VALUES (${accountId}, 'other', 'free', ${cap}, ${at})`;
      yield* sql`INSERT INTO users (id, account_id, name, role, created_at)
        VALUES (${userId}, ${accountId}, ${owner}, 'owner', ${at})`;
      yield* (yield* Identity).createToken({
        id: randomUUID(),
        accountId,
        userId,
        projectId: null,
        name: "first",
        hash: tokenHash(token),
        origin: "user",
        expiresAt: null,
        now: Date.parse(at),
      });
    }),
  );
  return token;
};

export const putSecret = async (service: TestService, pid: string, name: string, value: string) => {
  const answer = await service.request("PUT", `/v1/projects/${pid}/secrets/${name}`, { body: { value } });
  expect([200, 201]).toContain(answer.status);
};

export const SECRET_NAME = "HOOK_SECRET";
export const SECRET = "a secret of the webhook's";

/** One webhook trigger of a manifest. */
export const webhookEntry = (slug: string, prompt = "Go", more = ""): string =>
  `[[triggers]]\nslug = "${slug}"\ntype = "webhook"\nprompt = ${JSON.stringify(prompt)}\nsecret_env = "${SECRET_NAME}"\n${more}\n`;

/** A project whose manifest has one webhook trigger `push`, its secret set. */
export const makeHookProject = async (service: TestService, manifest = webhookEntry("push")) => {
  const pid = await makeProject(service, { files: { "platform.toml": manifest } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
  return pid;
};

export const hmac = (body: string | Uint8Array, secret = SECRET): string =>
  createHmac("sha256", secret).update(body).digest("hex");

/** Posts a webhook with the signature in the primary header, unless `headers` bring one. */
export const deliver = (
  service: TestService,
  target: string,
  { body = "{}", headers = {} }: RequestOptions = {},
): Promise<Answer> => {
  const bytes = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  const signed = Object.keys(headers).some((name) => /signature/i.test(name));
  return service.request("POST", `/v1/webhooks/projects/${target}`, {
    body: bytes,
    token: null,
    headers: signed ? headers : { "x-platform-signature": `sha256=${hmac(bytes)}`, ...headers },
  });
};

/** Holds the answer to the one shape. @returns its code. */
export const errorCode = (answer: Answer): string => {
  expect(answer.headers["content-type"]).toBe("application/json");
  const { error, code, details, ...more } = fields(answer);
  expect(more).toEqual({});
  expect(error).toMatch(/^[A-Z`].*\.$/s);
  expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
  expect(typeof details).toMatch(/^(object|undefined)$/);
  expect(answer.text).not.toMatch(/node_modules|\.ts:|\n\s+at |SELECT|INSERT|SqlError/);
  return String(code);
};

export const refusal = (answer: Answer): readonly [number, string] => [answer.status, errorCode(answer)];

/** `details.issues` of a 400. */
export const issuesOf = (answer: Answer): readonly { path: string; message: string }[] =>
  (fields(answer)["details"] as { issues: { path: string; message: string }[] }).issues;

/** Changes the default branch, as a person's merge does. */
export const mergeFiles = async (service: TestService, pid: string, files: Files): Promise<void> => {
  const branch = `change-${randomUUID()}`;
  await commitTo(service, pid, { branch, files });
  const target = `/v1/projects/${pid}/change-requests`;
  const opened = await service.request("POST", target, { body: { title: "Change", head_ref: branch } });
  const { number } = fields(expectStatus(opened, 201));
  expectStatus(await service.request("POST", `${target}/${Number(number)}/merge`, { body: {} }), 200);
};
