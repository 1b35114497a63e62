/** Commands that work with this computer: its clone, its browser, its login. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { writeLogin } from "../../src/cli/configuration.ts";
import { CommandLine } from "../support/service/command-line.ts";

const PID = "0190f3b2-0000-7000-8000-0000000000a1";
const OTHER = "0190f3b2-0000-7000-8000-0000000000a2";
const TOKEN_ID = "0190f3b2-0000-7000-8000-0000000000c1";
const TOKEN = `platform_pat_${"a".repeat(43)}`;

type Project = ReturnType<typeof project>;
let server: Server;
let line: CommandLine;
let calls: { readonly call: string; readonly body: unknown }[] = [];
let projects: Project[] = [];

const project = (id: string, name: string, repository: object) => ({
  id,
  name,
  status: "active",
  default_branch: "main",
  deletes_at: null,
  triggers_paused: false,
  manifest: { error: null, commit: null },
  created_at: "2026-11-20T12:00:00.000Z",
  repository,
});

/** A page of the projects. Its cursor is the number of those before it. */
const pageOf = (query: URLSearchParams) => {
  const from = Number(query.get("cursor") ?? 0);
  const to = from + Number(query.get("limit"));
  return { projects: projects.slice(from, to), next_cursor: to < projects.length ? String(to) : null };
};

beforeAll(async () => {
  line = await CommandLine.make();
  server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const body = text === "" ? null : (JSON.parse(text) as { name: string; repository: object });
    const { pathname, searchParams: query } = new URL(request.url ?? "", "http://service");
    const call = `${request.method} ${pathname}`;
    calls.push({ call, body });
    const answer =
      call === "GET /v1/me"
        ? { token: { id: TOKEN_ID } }
        : call === "GET /v1/projects"
          ? pageOf(query)
          : call === "POST /v1/projects" && body !== null
            ? project(PID, body.name, body.repository)
            : (projects.find(({ id }) => call.endsWith(id)) ?? {});
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
beforeEach(() => {
  calls = [];
  projects = [];
  for (const name of [".git", "platform.toml", ".config"])
    rmSync(path.join(line.directory, name), { recursive: true, force: true });
});
afterAll(() => {
  line.remove();
  server.closeAllConnections();
  server.close();
});

const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const run = (...args: readonly string[]) =>
  line.run(args, {
    env: {
      PATH: process.env["PATH"] ?? "",
      GIT_CEILING_DIRECTORIES: path.dirname(line.directory),
      PLATFORM_API_URL: `${origin()}/v1`,
      PLATFORM_CLI_TOKEN: TOKEN,
    },
  });
const clone = (remote?: string): void => {
  execFileSync("git", ["init", "--quiet", line.directory]);
  if (remote !== undefined) execFileSync("git", ["-C", line.directory, "remote", "add", "origin", remote]);
};

it("work on the project of the clone if there are several", async () => {
  projects = [
    project(PID, "one", { kind: "git", url: "https://example.org/team/one" }),
    project(OTHER, "two", { kind: "git", url: "https://example.org/team/two.git" }),
  ];
  expect((await run("projects", "show")).stderr).toContain("Several projects exist");
  clone("git@example.org:team/two.git");
  expect(await run("projects", "show", "--json")).toMatchObject({ code: 0 });
  expect(calls.at(-1)?.call).toBe(`GET /v1/projects/${OTHER}`);
});

it.each([
  ["git@github.com:team/code.git", { kind: "github", owner: "team", name: "code" }],
  ["https://example.org/team/code.git", { kind: "git", url: "https://example.org/team/code.git" }],
  [undefined, { kind: "hosted" }],
])("make a project of a clone of %s", async (remote, repository) => {
  clone(remote);
  const { code, stderr } = await run("init", "code");
  expect(code).toBe(0);
  expect(calls.at(-1)).toEqual({ call: "POST /v1/projects", body: { name: "code", repository } });
  expect(readFileSync(path.join(line.directory, "platform.toml"), "utf8")).toContain("[[triggers]]");
  expect(stderr.includes(`git push ${origin()}/v1/git/${PID}.git HEAD:main`)).toBe(remote === undefined);
});

it("make no second project of a clone, and leave its manifest alone", async () => {
  projects = [project(PID, "code", { kind: "git", url: "https://example.org/team/code" })];
  clone("https://example.org/team/code");
  execFileSync("git", ["-C", line.directory, "config", "-f", "platform.toml", "env.kept", "true"]);
  const before = readFileSync(path.join(line.directory, "platform.toml"), "utf8");
  expect((await run("init")).stdout).toBe(`${PID} code is the project of this directory.\n`);
  expect(calls.some(({ call }) => call.startsWith("POST"))).toBe(false);
  expect(readFileSync(path.join(line.directory, "platform.toml"), "utf8")).toBe(before);
});

it("find the project of the clone among the oldest of many", async () => {
  const others = Array.from({ length: 250 }, (_, at) =>
    project(OTHER, `other ${at}`, { kind: "git", url: `https://example.org/team/other-${at}` }),
  );
  projects = [...others, project(PID, "code", { kind: "git", url: "https://example.org/team/code" })];
  clone("https://example.org/team/code");
  expect((await run("init")).stdout).toBe(`${PID} code is the project of this directory.\n`);
});

it("make no project outside of a clone", async () => {
  expect(await run("init")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("not in a git") as string,
  });
  expect(calls).toEqual([]);
});

it("print the address of the page, and of a session", async () => {
  projects = [project(PID, "code", { kind: "hosted" })];
  expect((await run("open")).stdout).toBe(`${origin()}/\n`);
  expect((await run("open", OTHER)).stdout).toBe(`${origin()}/#/projects/${PID}/sessions/${OTHER}\n`);
});

it.each([
  { isOwn: true, call: `DELETE /v1/tokens/${TOKEN_ID}` },
  { isOwn: false, call: undefined },
])("log out, and delete the token that a login made (own: $isOwn)", async ({ isOwn, call }) => {
  const file = path.join(line.directory, ".config", "platform", "config.json");
  writeLogin(file, { apiUrl: `${origin()}/v1`, token: TOKEN, isOwn });
  expect(await line.run(["logout"])).toMatchObject({ code: 0 });
  expect(existsSync(file)).toBe(false);
  expect(calls.at(-1)?.call).toBe(call);
  expect((await line.run(["logout"])).stdout).toBe("Not logged in.\n");
});
