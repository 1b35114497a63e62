/**
 * The refusal matrix over the service's own address: who may write which ref, and how (threats.md G09, G10, T01 to T03).
 * git/server/ref-policy.test.ts has each ref and course.
 * Pushes are written as they go over the wire, where a force is not to be seen: a client that forces sends the same as one
 * that does not. git/server/smart-http-write.test.ts has native git in their place.
 */
import { randomUUID } from "node:crypto";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tokenHash } from "../../../src/domain/ids.ts";
import { absent } from "../../../src/git/server/ref-policy.ts";
import { CloneCredentials } from "../../../src/store/ports/sessions/clone-credentials.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { gitOk } from "../../git/git-client.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  deliver,
  expectStatus,
  fields,
  makeAccount,
  makeProject,
  makeUserToken,
  mintPassword,
  putSecret,
  reached,
  runSession,
  sandboxEnvironment,
  SECRET,
  SECRET_NAME,
  stopSession,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";
import { onlyDeep } from "../../support/vitest/rings.ts";

/** The effect of a push on a ref: `make` finds none, `delete` leaves none. */
type Course = "make" | "forward" | "rewind" | "delete";
/** Whose credential: `own` in a row is the session's branch, for a person that of a session. */
type Kind = "session" | "person";
type Row = readonly [ref: string, course: Course, mayDo: readonly Kind[]];

const other = randomUUID();
const both = ["session", "person"] as const;
const ROWS: readonly Row[] = [
  ["refs/heads/own", "forward", both],
  ["refs/heads/own", "rewind", []],
  ["refs/heads/own", "delete", []],
  ["refs/heads/own", "make", ["session"]],
  ["refs/wip/own", "make", []],
  ["refs/heads/main", "forward", []],
  ["refs/heads/main", "rewind", []],
  ["refs/heads/main", "delete", []],
  [`refs/heads/${other}`, "forward", ["person"]],
  [`refs/heads/${other}`, "rewind", []],
  [`refs/heads/${other}`, "delete", []],
  [`refs/heads/${other}`, "make", []],
  [`refs/wip/${other}`, "make", []],
  [`refs/wip/${other}`, "rewind", []],
  ["refs/heads/branch", "make", ["person"]],
  ["refs/heads/branch", "forward", ["person"]],
  ["refs/heads/branch", "rewind", ["person"]],
  ["refs/heads/branch", "delete", ["person"]],
  ["refs/heads/-x", "make", []],
  ["refs/tags/v1", "make", ["person"]],
  ["refs/tags/v1", "rewind", ["person"]],
  ["refs/tags/v1", "delete", ["person"]],
  ["refs/notes/commits", "make", []],
  ["refs/replace/x", "make", []],
  ["refs/pull/1/head", "make", []],
];

let service: TestService;
let pid = "";
let bare = "";
/** Two commits, the second one on top of the first. */
let [older, newer] = ["", ""];

interface Caller {
  readonly kind: Kind;
  readonly password: string;
  /** The session whose branch is `own`. */
  readonly sid: string;
}
const callers = new Map<string, Caller>();
/** Who does not get as far as a ref, by what they are told. */
const strangers = new Map<string, { readonly password: string | null; readonly status: number }>();

const triggered = async (): Promise<string> => {
  const answer = expectStatus(await deliver(service, `${pid}/push`), 202);
  const sid = String(fields(answer)["session_id"]);
  await reached(service, pid, sid, "running");
  return sid;
};

/** A token of the first user's and a password of the session's, whose times are over. */
const makeExpired = async (sid: string) => {
  const me = fields(await service.request("GET", "/v1/me"));
  const sandbox = fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}/sandbox`));
  const idOf = (name: string) => String((me[name] as Fields)["id"]);
  const [token, password] = [`platform_pat_${"E".repeat(43)}`, "an expired password"];
  await service.inside(
    Effect.gen(function* () {
      yield* (yield* Identity).createToken({
        id: randomUUID(),
        accountId: idOf("account"),
        userId: idOf("user"),
        projectId: null,
        name: "expired",
        hash: tokenHash(token),
        origin: "user",
        expiresAt: 2,
        now: 1,
      });
      const of = { projectId: pid, sessionId: sid, sandboxId: String(sandbox["id"]) };
      const mint = { ...of, hash: tokenHash(password), expiresAt: 2, now: 1 };
      yield* (yield* CloneCredentials).mint(mint);
    }),
  );
  return { token, password };
};

const inviteCallers = async (): Promise<void> => {
  const [sid, trigger] = [await runSession(service, pid), await triggered()];
  callers.set("a session's credential", {
    kind: "session",
    password: await mintPassword(service, pid, sid),
    sid,
  });
  callers.set("the credential of a trigger's session", {
    kind: "session",
    password: await mintPassword(service, pid, trigger),
    sid: trigger,
  });
  callers.set("an account's token", { kind: "person", password: service.token, sid });
  const { token } = await makeUserToken(service, { project_id: pid });
  callers.set("a project's token", { kind: "person", password: token, sid });
  const [environment, triggers] = [
    await sandboxEnvironment(service, sid),
    await sandboxEnvironment(service, trigger),
  ];
  strangers.set("PLATFORM_TOKEN", { password: environment["PLATFORM_TOKEN"] ?? "", status: 403 });
  strangers.set("PLATFORM_CLI_TOKEN", { password: environment["PLATFORM_CLI_TOKEN"] ?? "", status: 403 });
  strangers.set("a trigger's PLATFORM_CLI_TOKEN", {
    password: triggers["PLATFORM_CLI_TOKEN"] ?? "",
    status: 403,
  });
  const expired = await makeExpired(sid);
  strangers.set("an expired token", { password: expired.token, status: 401 });
  strangers.set("an expired credential", { password: expired.password, status: 401 });
};

const nameStrangers = async (): Promise<void> => {
  const foreign = await makeProject(service);
  const foreignSession = await runSession(service, foreign);
  const bound = await makeUserToken(service, { project_id: foreign });
  const revoked = await makeUserToken(service);
  await service.request("DELETE", `/v1/tokens/${revoked.id}`);
  const ended = await runSession(service, pid);
  const endedPassword = await mintPassword(service, pid, ended);
  await stopSession(service, pid, ended);
  await reached(service, pid, ended, "stopped");
  strangers.set("another account's token", { password: await makeAccount(service), status: 404 });
  strangers.set("a token of another project", { password: bound.token, status: 404 });
  strangers.set("a credential of another project's session", {
    password: await mintPassword(service, foreign, foreignSession),
    status: 404,
  });
  strangers.set("a revoked token", { password: revoked.token, status: 401 });
  strangers.set("an ended session's credential", { password: endedPassword, status: 401 });
  strangers.set("nonsense", { password: "nonsense", status: 401 });
  strangers.set("nothing", { password: null, status: 401 });
};

beforeAll(async () => {
  service = await startTestService();
  pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
  bare = path.join(service.dataDir, "repositories", `${pid}.git`);
  [older, newer] = [await gitOk(bare, "rev-parse", "main"), await gitOk(bare, "rev-parse", "feature")];
  await inviteCallers();
  await nameStrangers();
});
afterAll(() => service.close());

/** The ref before and after. */
const move = (course: Course): readonly [string, string] => {
  if (course === "make") return [absent, newer];
  if (course === "delete") return [newer, absent];
  return course === "forward" ? [older, newer] : [newer, older];
};
const refOf = ([ref]: Row, sid: string): string => ref.replace(/\/own$/, `/${sid}`);

/** Puts the repository's refs, past every hook, where the rows' pushes expect them. */
const place = (rows: readonly Row[], sid: string): void => {
  const lines = rows.map((row) => {
    const [before] = move(row[1]);
    return before === absent ? `delete ${refOf(row, sid)}` : `update ${refOf(row, sid)} ${before}`;
  });
  execFileSync("git", ["update-ref", "--stdin"], { cwd: bare, input: `${lines.join("\n")}\n` });
};
const tips = async (): Promise<ReadonlyMap<string, string>> => {
  const listing = await gitOk(bare, "for-each-ref", "--format=%(refname) %(objectname)");
  return new Map(listing.split("\n").map((line) => line.split(" ") as [string, string]));
};

const packet = (text: string): string => (Buffer.byteLength(text) + 4).toString(16).padStart(4, "0") + text;
/** A pack without objects: the repository has all of them. */
const emptyPack = Buffer.from("5041434b0000000200000000029d08823bd8a8eab510ad6ac75c823cfd3ed31e", "hex");
const authorization = (password: string | null): Record<string, string> =>
  password === null ? {} : { authorization: `Basic ${Buffer.from(`x:${password}`).toString("base64")}` };

interface Push {
  readonly password: string | null;
  readonly sid: string;
  readonly isAtomic?: boolean;
}

const push = (rows: readonly Row[], { password, sid, isAtomic = false }: Push) => {
  const capabilities = ["report-status", "delete-refs", ...(isAtomic ? ["atomic"] : [])].join(" ");
  const commands = rows.map((row, index) => {
    const command = `${move(row[1]).join(" ")} ${refOf(row, sid)}`;
    return packet(index === 0 ? `${command}\0${capabilities}\n` : `${command}\n`);
  });
  const pack = rows.some(([, course]) => course !== "delete") ? emptyPack : Buffer.alloc(0);
  return service.request("POST", `/v1/git/${pid}.git/git-receive-pack`, {
    token: null,
    headers: { ...authorization(password), "content-type": "application/x-git-receive-pack-request" },
    body: Buffer.concat([Buffer.from(`${commands.join("")}0000`), pack]),
  });
};

/** The rows whose refs are after a push where the push wanted them. */
const taken = async (rows: readonly Row[], sid: string): Promise<readonly Row[]> => {
  const now = await tips();
  return rows.filter((row) => {
    const [before, after] = move(row[1]);
    const tip = now.get(refOf(row, sid)) ?? absent;
    expect([before, after], refOf(row, sid)).toContain(tip);
    return tip === after;
  });
};

const callerOf = (who: string): Caller => {
  const caller = callers.get(who);
  if (caller === undefined) throw new Error(`no caller is named ${who}`);
  return caller;
};

/** One row a ref: what a mirror of a repository with nothing but these would push. */
const mirror = (kind: Kind): readonly Row[] => {
  const byRef = Map.groupBy(ROWS, ([ref]) => ref);
  return [...byRef.values()].flatMap((rows) => {
    const mine = rows.filter(([, , may]) => may.includes(kind));
    return (mine.length > 0 ? mine : rows).slice(0, 1);
  });
};

describe.each([
  ["a session's credential"],
  ["the credential of a trigger's session"],
  ["an account's token"],
  ["a project's token"],
])("%s", (who) => {
  it("gets the allowed refs of a push of all refs accepted, and no ref of an atomic one [G09]", async () => {
    const { kind, password, sid } = callerOf(who);
    const rows = mirror(kind);
    const mine = rows.filter(([, , may]) => may.includes(kind));
    expect(mine.length).toBeGreaterThan(0);
    place(rows, sid);
    await push(rows, { password, sid, isAtomic: true });
    expect(await taken(rows, sid)).toEqual([]);
    await push(rows, { password, sid });
    expect(await taken(rows, sid)).toEqual(mine);
    place(rows, sid);
    await push(mine, { password, sid, isAtomic: true });
    expect(await taken(rows, sid)).toEqual(mine);
  });
});

describe("a password", () => {
  it("is in no line of the log and in no file of the repository, whether right or wrong [G05] [S06]", async () => {
    const { sid } = callerOf("a session's credential");
    const passwords = [...callers.values(), ...strangers.values()].flatMap(({ password }) => password ?? []);
    for (const password of passwords) await push(ROWS.slice(0, 1), { password, sid });
    const files = readdirSync(bare, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
    const kept = files.map(({ parentPath, name }) => readFileSync(path.join(parentPath, name), "latin1"));
    const written = [...service.logs, ...kept].join("\n");
    expect(written).toContain(newer);
    for (const password of passwords) expect(written.includes(password)).toBe(false);
  });
});

onlyDeep(() => {
  describe("a client with", () => {
    it.each([
      ["PLATFORM_TOKEN"],
      ["PLATFORM_CLI_TOKEN"],
      ["a trigger's PLATFORM_CLI_TOKEN"],
      ["another account's token"],
      ["a token of another project"],
      ["a credential of another project's session"],
      ["an ended session's credential"],
      ["an expired credential"],
      ["an expired token"],
      ["a revoked token"],
      ["nonsense"],
      ["nothing"],
    ])("%s reads no ref and writes none [G09] [G10] [T01] [T02] [T03]", async (who) => {
      const { password, status } = strangers.get(who) ?? { password: null, status: 0 };
      const { sid } = callerOf("a session's credential");
      const before = await tips();
      for (const name of ["git-upload-pack", "git-receive-pack"]) {
        const target = `/v1/git/${pid}.git/info/refs?service=${name}`;
        const answer = await service.request("GET", target, {
          token: null,
          headers: authorization(password),
        });
        expect([name, answer.status, answer.text.includes(newer)]).toEqual([name, status, false]);
      }
      const pushes = [mirror("person"), ...ROWS.map((row) => [row])];
      for (const rows of pushes) {
        for (const isAtomic of [false, true]) {
          expect((await push(rows, { password, sid, isAtomic })).status).toBe(status);
        }
      }
      expect(await tips()).toEqual(before);
    });
  });
});
