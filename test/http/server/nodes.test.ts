/** What a node answers to the others (src/nodes/endpoint.ts), over the real service: what holds, and what does not. */
import { randomBytes, randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Keyring } from "../../../src/services/keyring.ts";
import {
  NODE_HEADER,
  openNodeMessage,
  sealNodeMessage,
  signNodeRequest,
  type NodeKeys,
} from "../../../src/domain/service/node-credential.ts";
import { BARE_SPEC, type SandboxSpec } from "../../../src/sandbox/port.ts";
import { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { NODE, type Answer, type TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  expectStatus,
  fields,
  makeProject,
  runSession,
  type Fields,
} from "../../support/service/requests.ts";
import { PLAIN_RUNTIME } from "../../support/machine/plain-runtime.ts";

const CALL = "/v1/nodes/call";

let service: TestService;
let keys: NodeKeys;
let project = "";
/** Of a running session. */
let sandbox: Fields;

beforeAll(async () => {
  service = await shareService();
  keys = await service.inside(Effect.map(Keyring, ({ nodes }) => nodes));
  project = await makeProject(service);
  const session = await runSession(service, project);
  const target = `/v1/projects/${project}/sessions/${session}/sandbox`;
  sandbox = fields(expectStatus(await service.request("GET", target), 200));
});
afterAll(() => service.close());

const now = (): number => Math.round(performance.timeOrigin + performance.now());

const credentialFor = (target: string, method = "POST", to = NODE): string =>
  signNodeRequest({ to, method, target }, { from: "another", at: now() }, keys);

interface Asking {
  readonly credential?: string;
  /** The credential that encrypts the message, if it differs from the request's own. */
  readonly sealedWith?: string;
}

/** Asks as another node does. */
const ask = async (
  operation: string,
  given: unknown,
  asking: Asking = {},
): Promise<Answer & { readonly said: unknown }> => {
  const { credential = credentialFor(CALL), sealedWith = credential } = asking;
  const body = sealNodeMessage(
    JSON.stringify({ operation, given }),
    { envelope: { credential: sealedWith, way: "question" }, iv: randomBytes(12) },
    keys,
  );
  const answer = await fetch(`${service.url}${CALL}`, {
    method: "POST",
    headers: { [NODE_HEADER]: credential },
    body,
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  const opened = openNodeMessage(bytes, { credential, way: "answer" }, keys);
  const text = bytes.toString("utf8");
  return {
    status: answer.status,
    headers: {},
    text,
    json: answer.ok ? null : JSON.parse(text),
    said: opened === null ? null : JSON.parse(opened),
  };
};

const spec = (id: string): SandboxSpec => ({
  ...BARE_SPEC,
  id,
  sessionId: randomUUID(),
  environment: {},
  runtime: PLAIN_RUNTIME,
  bootDeadlineMs: 1000,
});

describe("a request from another node", () => {
  it("is answered with the operation's result, or with its own error", async () => {
    expect((await ask("git.branchTip", [{ projectId: project }, "main"])).said).toEqual({
      ok: true,
      value: expect.stringMatching(/^[0-9a-f]{40}$/),
    });
    expect((await ask("git.resolveBase", [{ projectId: project }, "nowhere"])).said).toMatchObject({
      ok: false,
      error: { _tag: "GitError", code: "unknown_ref" },
    });
    expect((await ask("sandbox.logs", sandbox["id"])).said).toMatchObject({ ok: true });
    expect(await ask("sandbox.list", null)).toMatchObject({ status: 404, said: null });
  });

  it("is refused if it came with another credential than it was encrypted with", async () => {
    const answer = await ask("git.branchTip", [{ projectId: project }, "main"], {
      sealedWith: credentialFor(`${CALL}?`),
    });
    expect([answer.status, fields(answer)["code"]]).toEqual([400, "malformed_request"]);
  });

  it("creates no sandbox without a live record that names this node [I9]", async () => {
    const nobodys = randomUUID();
    expect((await ask("sandbox.create", spec(nobodys))).said).toMatchObject({
      ok: false,
      error: { operation: "create" },
    });
    const there = await service.inside(Effect.flatMap(SimulatedSandboxes, ({ all }) => all));
    expect(there.has(nobodys)).toBe(false);
  });
});

describe("a request to a daemon, by another node", () => {
  it("is passed on with the node's credential, and refused without", async () => {
    const target = `/v1/nodes/sandboxes/${String(sandbox["id"])}/client/session`;
    // Nothing listens behind a simulated sandbox: the answer is the proxy's.
    const passed = await service.request("GET", target, {
      token: null,
      headers: { [NODE_HEADER]: credentialFor(target, "GET") },
    });
    expect([passed.status, fields(passed)["code"]]).toEqual([502, "upstream_unreachable"]);
    const refused = await service.request("GET", target, {
      headers: { [NODE_HEADER]: credentialFor(`${target}/other`, "GET") },
    });
    expect([refused.status, fields(refused)["code"]]).toEqual([401, "unauthorized"]);
  });

  it("of a missing sandbox is answered with 404", async () => {
    const target = `/v1/nodes/sandboxes/${randomUUID()}/service/platform/health`;
    const answer = await service.request("GET", target, {
      headers: { [NODE_HEADER]: credentialFor(target, "GET") },
    });
    expect(answer.status).toBe(404);
  });
});

it("serves git that another node passed on as any other, and still requires its token", async () => {
  const target = `/v1/git/${project}.git/info/refs?service=git-upload-pack`;
  const headers = { [NODE_HEADER]: credentialFor(target, "GET") };
  expect((await service.request("GET", target, { token: null, headers })).status).toBe(401);
  const authorization = `Basic ${Buffer.from(`x:${service.token}`).toString("base64")}`;
  expect(
    (await service.request("GET", target, { token: null, headers: { ...headers, authorization } })).status,
  ).toBe(200);
});
