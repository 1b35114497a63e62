/**
 * The command line in adverse conditions: no service, an unexpected service, hostile text, a reader that left, and a user
 * at a terminal.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CommandLine, type Running } from "../support/service/command-line.ts";

const TOKEN = `platform_pat_${"a".repeat(43)}`;
const PID = "0190f3b2-0000-7000-8000-000000000001";
const AT = "2026-11-20T12:00:00.000Z";
const ESC = "\u001b";
/** Clears the screen, in both spellings of its introduction; then what shows text backwards. */
const HOSTILE = `${ESC}[2Jx\u009b2J\u202eevil\r\nnext`;

let line: CommandLine;
let server: Server;
let url: string;
/** The requests that the server received, in order. */
const asked: IncomingMessage[] = [];
let answer: RequestListener;

const me = { user: { id: PID, name: "ada" }, account: { id: PID, name: "acme", tier: "free", session_cap: 1, active_sessions: 0, queued_fires: 0 }, token: { id: PID, origin: "user", project_id: null } }; // prettier-ignore
const saying =
  (document: unknown, status = 200): RequestListener =>
  (_, response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(document));

const run = (args: readonly string[], { env = {}, ...rest }: Running = {}) =>
  line.run(args, {
    env: { PLATFORM_API_URL: `${url}/v1`, PLATFORM_CLI_TOKEN: TOKEN, PLATFORM_PROJECT_ID: PID, ...env },
    ...rest,
  });

const session = (id: string) => ({ id, status: "running", created_at: AT, trigger_slug: null, initial_prompt: null, name: HOSTILE, turn: { state: "idle" }, pending_approvals: 0, activity: "working", waits_for: null, saved: null, unsaved: null }); // prettier-ignore
const frame = (data: object): string => `id: 1\nevent: line\ndata: ${JSON.stringify(data)}\n\n`;
/** What `login` keeps. */
const file = (): string => path.join(line.directory, ".config/platform/config.json");

const keep = (mode: number, content: string): void => {
  mkdirSync(path.dirname(file()), { recursive: true });
  writeFileSync(file(), content);
  chmodSync(file(), mode);
};

beforeAll(async () => {
  line = await CommandLine.make();
  server = createServer((request, response) => {
    asked.push(request);
    answer(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  asked.length = 0;
  answer = saying(me);
});
afterEach(() => rmSync(path.join(line.directory, ".config"), { recursive: true, force: true }));
afterAll(() => {
  server.closeAllConnections();
  server.close();
  line.remove();
});

describe("a service that is missing or unexpected", () => {
  it("ends with 6 if nothing listens", async () => {
    const ended = await run(["whoami"], { env: { PLATFORM_API_URL: "http://127.0.0.1:9/v1" } });
    expect(ended).toEqual({
      code: 6,
      stdout: "",
      stderr: "The service at http://127.0.0.1:9 cannot be reached: the connection was refused.\n",
    });
  });

  it("ends with 6 if the connection breaks off during the answer", async () => {
    answer = (_, response) => {
      response.writeHead(200, { "content-length": "1000" }).write("{");
      setImmediate(() => response.destroy());
    };
    expect(await run(["whoami"])).toMatchObject({ code: 6, stdout: "" });
  });

  it("is reported if the answer does not come from the API", async () => {
    answer = (_, response) => response.end("<html>Welcome</html>");
    const page = await run(["whoami"]);
    expect([page.code, page.stderr]).toEqual([
      1,
      expect.stringContaining("is not the platform's API (status 200)"),
    ]);
    answer = (_, response) => response.writeHead(404).end("nothing");
    // Not 4: this server cannot know whether the session exists.
    expect(await run(["sessions", "show", PID])).toMatchObject({ code: 1 });
    answer = (_, response) => response.writeHead(502).end("bad gateway");
    expect(await run(["whoami"])).toMatchObject({ code: 6 });
  });

  it("cannot redirect: the token is only for the address that it was given with", async () => {
    answer = (_, response) => response.writeHead(302, { location: `${url}/elsewhere` }).end();
    const ended = await run(["whoami"]);
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("redirects to")]);
    expect(asked.length).toBe(1);
  });

  it("is asked through the proxy of the environment, except for the hosts in NO_PROXY", async () => {
    const behind = { HTTP_PROXY: url, NO_PROXY: "127.0.0.1,localhost" };
    const through = await run(["whoami"], {
      env: { ...behind, PLATFORM_API_URL: "http://platform.internal/v1" },
    });
    expect(through.code).toBe(0);
    expect(await run(["whoami"], { env: { ...behind, HTTP_PROXY: "http://127.0.0.1:9" } })).toMatchObject({
      code: 0,
    });
    expect(asked.map((request) => request.url)).toEqual(["http://platform.internal/v1/me", "/v1/me"]);
  });
});

describe("the address and the token", () => {
  const login = () => JSON.stringify({ api_url: `${url}/v1`, token: TOKEN });

  it("end with 3 if neither is set", async () => {
    const ended = await line.run(["whoami"]);
    expect([ended.code, ended.stderr]).toEqual([3, expect.stringContaining("platform login")]);
  });

  it.each([`${TOKEN}\n`, `${TOKEN}\r\nx-evil: 1`, "", "platform_pat_short"])(
    "end with 3 for an invalid token, %j, without repeating it",
    async (token) => {
      const ended = await run(["whoami"], { env: { PLATFORM_CLI_TOKEN: token } });
      expect(ended).toMatchObject({ code: 3, stdout: "" });
      if (token !== "") expect(ended.stderr).not.toContain(token.trim());
      expect(asked.length).toBe(0);
    },
  );

  it("go together: a kept token is sent to its own address and to no other", async () => {
    keep(0o600, login());
    expect(await line.run(["whoami"])).toMatchObject({ code: 0 });
    expect(await line.run(["whoami"], { env: { PLATFORM_API_URL: url } })).toMatchObject({ code: 0 });
    asked.length = 0;
    const other = await line.run(["whoami"], {
      env: { PLATFORM_API_URL: url.replace("127.0.0.1", "127.0.0.2") },
    });
    expect([other.code, other.stderr]).toEqual([
      3,
      expect.stringContaining("the saved token is only sent to that service"),
    ]);
    expect(asked.length).toBe(0);
  });

  it("are not read from a file that others can read, or from a broken one", async () => {
    keep(0o644, login());
    expect(await line.run(["whoami"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("0600") as string,
    });
    for (const content of ["{", "[]", '{"api_url": "http://x"}', "null"]) {
      keep(0o600, content);
      const ended = await line.run(["whoami"]);
      expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("platform login")]);
    }
    expect(asked.length).toBe(0);
  });

  it("need a sign-in at times, and the command says where", async () => {
    const error = "Your last sign-in is too long ago. Sign in at https://platform.example/ with GitHub.";
    answer = saying({ error, code: "sign_in_required" }, 401);
    expect(await run(["whoami"])).toMatchObject({ code: 3, stderr: `${error}\n` });
  });

  it("are kept by login after a test of the token, for their owner alone", async () => {
    const input = `${url}/\n${TOKEN}\n`;
    answer = saying({ error: "Unknown token.", code: "unauthorized" }, 401);
    expect(await line.run(["login"], { input })).toMatchObject({ code: 3, stderr: "Unknown token.\n" });
    expect(() => statSync(file())).toThrow("ENOENT");
    answer = saying(me);
    expect(await line.run(["login"], { input })).toMatchObject({
      code: 0,
      stdout: "Logged in as ada of the account acme.\n",
    });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(statSync(path.dirname(file())).mode & 0o777).toBe(0o700);
    expect(JSON.parse(readFileSync(file(), "utf8"))).toEqual({
      api_url: `${url}/v1`,
      token: TOKEN,
      own_token: false,
    });
    expect(asked.every(({ headers }) => headers.authorization === `Bearer ${TOKEN}`)).toBe(true);
  });

  it("are typed at a terminal, which does not show the token", async () => {
    // util-linux' script gives it a terminal of its own.
    const child = spawn(
      "script",
      ["-qec", `"${process.execPath}" ${line.bundle} login --with-token`, "/dev/null"],
      {
        env: { HOME: line.directory, PATH: process.env["PATH"] },
      },
    );
    let shown = "";
    let stage = 0;
    const typed = [`http://mistaken${"\u007f".repeat(8)}${url.slice("http://".length)}\r`, `${TOKEN}\r`];
    child.stdout.on("data", (chunk: Buffer) => {
      shown += chunk.toString();
      const prompts = ["Address of the service: ", "Token (not shown): "];
      if (stage < 2 && shown.endsWith(prompts[stage] ?? "")) child.stdin.write(typed[stage++] ?? "");
    });
    const [code] = (await once(child, "close")) as [number];
    expect([code, shown]).toEqual([0, expect.stringContaining("Logged in as ada")]);
    expect(shown).toContain(url.slice("http://".length));
    expect(shown).not.toContain(TOKEN.slice(20));
    expect(JSON.parse(readFileSync(file(), "utf8"))).toMatchObject({ token: TOKEN });
  });
});

describe("text from other sources", () => {
  // oxlint-disable-next-line no-control-regex -- what a terminal obeys
  const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

  it("reaches a terminal without control characters, in tables and in JSON alike", async () => {
    answer = saying({ sessions: [session(PID)], next_cursor: `more${HOSTILE}` });
    const table = await run(["sessions", "list"]);
    expect(table.stdout.split("\n")[1]).toMatch(/ \\x1b\[2Jx\\x9b2J\\u202eevil next$/);
    expect(table.stdout + table.stderr).not.toMatch(OBEYED);
    const json = await run(["sessions", "list", "--json"]);
    expect(json.stdout).not.toMatch(OBEYED);
    expect(JSON.parse(json.stdout)).toEqual({ sessions: [session(PID)], next_cursor: `more${HOSTILE}` });
  });

  it("is also harmless in the service's error messages", async () => {
    answer = saying(
      { error: `No: ${HOSTILE}`, code: "merge_conflict", details: { paths: [`a${HOSTILE}`, "b"] } },
      409,
    );
    const told = await run(["cr", "merge", "1"]);
    expect(told.code).toBe(5);
    expect(told.stderr).not.toMatch(OBEYED);
    expect(told.stderr.split("\n").slice(1, 3)).toEqual([expect.stringMatching(/^ {2}a\\x1b/), "  b"]);
    const document = await run(["cr", "merge", "1", "--json"]);
    expect(document.stderr).not.toMatch(OBEYED);
    expect(JSON.parse(document.stderr)).toMatchObject({
      code: "merge_conflict",
      details: { paths: [`a${HOSTILE}`, "b"] },
    });
  });

  it("goes into a file byte for byte if it is a diff", async () => {
    const diff = `diff --git a/x b/x\n+${ESC}[31mred\n`;
    answer = (_, response) =>
      response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(diff);
    expect((await run(["cr", "diff", "1"])).stdout).toBe(diff);
  });
});

describe("streams", () => {
  it("end quietly when their reader has seen enough", async () => {
    const log = "one line of the log\n".repeat(500_000);
    answer = (_, response) => response.writeHead(200, { "content-type": "text/plain" }).end(log);
    const child = spawn(process.execPath, [line.bundle, "sessions", "logs", PID], {
      env: { PLATFORM_API_URL: url, PLATFORM_CLI_TOKEN: TOKEN, PLATFORM_PROJECT_ID: PID },
    });
    child.stdout.once("data", () => child.stdout.destroy());
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
    expect([stderr, code]).toEqual(["", 0]);
  });

  it("show a log as it arrives, and one object a line to programs", async () => {
    const first = { sandbox_id: PID, at: AT, source: "runtime", line: `said ${ESC}[1m` };
    const second = { ...first, at: null, line: "and more" };
    let goOn = Promise.withResolvers<undefined>();
    answer = async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      // The second frame is in two pieces: the rest of it comes when the first was printed.
      const [whole, broken] = [frame(first), frame(second)];
      response.write(`event: open\ndata: {}\n\n: keep\n\n${whole}${broken.slice(0, 40)}`);
      await goOn.promise;
      response.end(broken.slice(40));
    };
    const follow = async (...more: readonly string[]) => {
      goOn = Promise.withResolvers();
      const child = spawn(process.execPath, [line.bundle, "sessions", "logs", PID, "--follow", ...more], {
        env: { PLATFORM_API_URL: url, PLATFORM_CLI_TOKEN: TOKEN, PLATFORM_PROJECT_ID: PID },
      });
      child.stdout.once("data", () => goOn.resolve(undefined));
      const [stdout, stderr, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, "close") as Promise<[number]>,
      ]);
      return { code, stdout, stderr };
    };
    expect(await follow()).toEqual({
      code: 6,
      stdout: `${AT} runtime said \\x1b[1m\n- runtime and more\n`,
      stderr: "The service closed the log stream. Run the command again.\n",
    });
    const lines = (await follow("--json")).stdout.trim().split("\n");
    expect(lines.map((document) => JSON.parse(document) as unknown)).toEqual([first, second]);
  });
});

describe("a secret's value", () => {
  const sent = async (): Promise<unknown> => JSON.parse((await bodies.at(-1)) ?? "") as unknown;
  const bodies: Promise<string>[] = [];
  const KEY = {
    name: "KEY",
    unseen: [],
    created_at: AT,
    updated_at: AT,
    updated_by: null,
    previous_valid_until: null,
  };
  let isMasked = true;
  beforeEach(() => {
    isMasked = true;
    answer = (request, response) => {
      bodies.push(text(request));
      saying({ ...KEY, masked: isMasked })(request, response);
    };
  });

  it("comes from standard input or a file without the line end that echo writes, or exactly if one asks", async () => {
    expect(await run(["secrets", "set", "KEY"], { input: "two\nlines\n" })).toMatchObject({ code: 0 });
    expect(await sent()).toEqual({ value: "two\nlines" });
    writeFileSync(path.join(line.directory, "key.pem"), "-----END-----\n");
    expect(await run(["secrets", "set", "KEY", "--file", "key.pem"])).toMatchObject({ code: 0 });
    expect(await sent()).toEqual({ value: "-----END-----" });
    const exactly = await run(["secrets", "set", "KEY", "--file", "key.pem", "--exact"]);
    expect(exactly).toMatchObject({ code: 0 });
    expect(await sent()).toEqual({ value: "-----END-----\n" });
  });

  it("that is too short to be masked in logs is accepted with a warning", async () => {
    isMasked = false;
    const ended = await run(["secrets", "set", "KEY"], { input: "12345\n" });
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stdout).toContain("shorter than 6 bytes, so it is not masked in logs");
  });

  it("is refused as an argument, and is not repeated", async () => {
    const canary = "canary-of-the-secret";
    for (const args of [
      ["KEY", canary],
      ["KEY", `--value=${canary}`],
      ["KEY", "--file", "x", canary],
    ]) {
      const ended = await run(["secrets", "set", ...args], { input: "x" });
      expect(ended).toMatchObject({ code: 2, stdout: "" });
      expect(ended.stderr).not.toContain(canary);
    }
    expect(asked.length).toBe(0);
  });

  it("is refused if it is empty or not text", async () => {
    expect(await run(["secrets", "set", "KEY"], { input: "\n" })).toMatchObject({
      code: 2,
      stderr: "The value is empty.\n",
    });
    const bytes = Uint8Array.from([0xff, 0xfe]);
    expect(await run(["secrets", "set", "KEY"], { input: bytes })).toMatchObject({
      code: 2,
      stderr: "Standard input is not UTF-8 text.\n",
    });
    expect(asked.length).toBe(0);
  });
});

describe("the project", () => {
  it("is the only one that the token reaches if it is not named, and must be named if there are more", async () => {
    const env = { PLATFORM_PROJECT_ID: "" };
    const found =
      (count: number): RequestListener =>
      (request, response) =>
        saying(
          request.url?.startsWith("/v1/projects?") === true
            ? { projects: [{ id: PID }, { id: PID }].slice(0, count), next_cursor: null }
            : { sessions: [], next_cursor: null },
        )(request, response);
    answer = found(1);
    expect(await run(["sessions", "list"], { env })).toMatchObject({ code: 0, stdout: "No sessions.\n" });
    expect(asked.at(-1)?.url).toBe(`/v1/projects/${PID}/sessions`);
    answer = found(2);
    expect(await run(["sessions", "list"], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--project") as string,
    });
    answer = found(0);
    expect(await run(["sessions", "list"], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("projects create") as string,
    });
  });
});

const list = (...options: readonly string[]) => run(["sessions", "list", ...options]);

describe("a list of sessions", () => {
  it("is narrowed to activities, of which --waiting is one", async () => {
    answer = saying({ sessions: [], next_cursor: null });
    await list("--activity", "needs_you,done");
    expect(asked.at(-1)?.url).toBe(`/v1/projects/${PID}/sessions?activity=needs_you%2Cdone`);
    await list("--waiting");
    expect(asked.at(-1)?.url).toBe(`/v1/projects/${PID}/sessions?activity=needs_you`);
    const unknown = await list("--activity", "needs_you,tired");
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringMatching(/^--activity must be one of /)]);
    const both = await list("--activity", "done", "--waiting");
    expect(both).toMatchObject({ code: 2, stderr: "Give --activity or --waiting, not both.\n" });
  });

  it("has a word for each session, and what it waits for", async () => {
    const waits_for = { kind: "permission", id: null, text: "rm -r build" };
    const waiting = { ...session(PID), activity: "needs_you", waits_for };
    answer = saying({ sessions: [waiting], next_cursor: null });
    expect((await list()).stdout.split("\n")[1]).toMatch(/^\S+ +Needs you +a permission +/);
  });
});
