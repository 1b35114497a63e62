/** `platform environment` while a build runs, fails, is cancelled, or is begun again. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { SimulatedSite, type SimulatedSitePlan } from "../../src/builder/site/simulated.ts";
import { runHere } from "../support/service/command-line.ts";
import { eventually, fields, makeProject } from "../support/service/requests.ts";
import { startTestService, type TestService } from "../support/service/service.ts";

const AT_ONCE: SimulatedSitePlan = { stepsMs: 0, exportMs: 0, failure: null };
const STEP = "[step 1, line 1] FROM scratch\n";
const ID = "[0-9a-f-]{36}";

const site = new SimulatedSite();
let service: TestService;
let pid: string;

const run = (args: readonly string[], url = service.url) =>
  runHere(["environment", ...args], {
    env: { PLATFORM_API_URL: `${url}/v1`, PLATFORM_CLI_TOKEN: service.token, PLATFORM_PROJECT_ID: pid },
  });

const newest = async () =>
  fields(await service.request("GET", `/v1/projects/${pid}/environment`))["current"] as Readonly<
    Record<string, unknown>
  >;
const reached = (status: string) =>
  eventually(async () => {
    const build = await newest();
    expect(build).toMatchObject({ status });
    return String(build["id"]);
  });

beforeAll(async () => {
  service = await startTestService({}, { site: site.service });
  pid = await makeProject(service, { files: { ".platform/Dockerfile": "FROM debian:13\n" } });
  await reached("ready");
});
afterAll(async () => {
  await service?.close();
});
afterEach(() => {
  site.plan = () => AT_ONCE;
});

it("exits with 1 if the build for which it waits fails, and says why", async () => {
  const failure = { code: "step_failed", step: 2, line: 3, exit: 127, tail: "" } as const;
  site.plan = () => ({ ...AT_ONCE, failure });
  const sentence = "The build failed: step 2 on line 3 failed with exit code 127.";
  expect(await run(["build", pid, "--wait"])).toEqual({
    code: 1,
    stdout: STEP,
    stderr: expect.stringMatching(new RegExp(`^build ${ID} queued\n${sentence}\n$`)) as string,
  });
  const { code, stdout, stderr } = await run(["build", pid, "--wait", "--json"]);
  expect([code, stdout]).toEqual([1, ""]);
  expect(JSON.parse(stderr)).toMatchObject({ error: sentence, code: "build_failed", details: { failure } });
  const log = await run(["logs", pid]);
  expect(log).toMatchObject({ code: 0, stdout: STEP });
  expect(log.stderr).toContain(sentence);
});

it("prints a log until the build is cancelled", async () => {
  site.plan = () => ({ ...AT_ONCE, stepsMs: 3_600_000 });
  expect(await run(["build", pid])).toMatchObject({ code: 0, stderr: "" });
  const bid = await reached("building");
  const log = run(["logs", pid, bid]);
  const cancelled = { code: 0, stdout: `${bid} cancelled\n` };
  expect(await run(["cancel", pid, bid])).toEqual({ ...cancelled, stderr: "" });
  const again = await run(["cancel", pid, bid]);
  expect(again).toEqual({ ...cancelled, stderr: "" });
  expect(await log).toMatchObject({ code: 0, stderr: `build ${bid}: The build was cancelled.\n` });
});

const FILE = ".devcontainer/devcontainer.json";

/** What the command shows of a project with these files, without runs of blanks. */
const shownOf = async (files: Readonly<Record<string, string>>) => {
  const other = await makeProject(service, { files });
  const { stdout } = await run(["show", other]);
  return stdout.replaceAll(/ {2,}/g, ": ");
};

it("shows the devcontainer.json that is used, or that could be", async () => {
  const image = { image: "debian:13", containerEnv: { A: "1", B: "2" }, postCreateCommand: "make" };
  const manifest = { "platform.toml": `[environment]\ndevcontainer = "${FILE}"\n` };
  const used = await shownOf({ ...manifest, [FILE]: JSON.stringify({ ...image, remoteUser: "dev" }) });
  expect(used).toContain(
    `environment: a devcontainer.json\ndevcontainer: ${FILE}\nvariables: A=1 B=2\nignored: remoteUser\n` +
      "base image: docker.io/library/debian:13\ncommit: ",
  );
  expect(used).toContain("\nsetup: postCreateCommand\n");
  expect(await shownOf({ [FILE]: JSON.stringify(image) })).toContain(
    `devcontainer: ${FILE}, not used. To use it, set \`devcontainer\` in [environment] of platform.toml\n`,
  );
  expect(await shownOf({ [FILE]: "{}" })).toContain(
    `devcontainer: not used: ${FILE}, line 1, column 1: The file names neither`,
  );
});

it("shows the base images with their digests, and which of them have changed", async () => {
  const tag = "images.example.com/team/base:1";
  const [first, second] = ["1", "2"].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];
  site.tags.set(tag, first);
  const files = { ".platform/Dockerfile": `FROM ${tag}\n` };
  const other = await makeProject(service, { files });
  const lineOf = () =>
    eventually(async () => {
      const shown = /^made from +(.*)$/m.exec((await run(["show", other])).stdout)?.[1];
      expect(shown).toBeDefined();
      return shown ?? "";
    });
  expect(await lineOf()).toMatch(new RegExp(`^${tag} ${first}, looked up [-0-9: ]+Z$`));
  // Another project's build finds that the tag has moved.
  site.tags.set(tag, second);
  await makeProject(service, { files: { ".platform/Dockerfile": `FROM ${tag}\nRUN true\n` } });
  await eventually(async () =>
    expect(await lineOf()).toMatch(
      new RegExp(`^${tag} ${second}, looked up [-0-9: ]+Z, changed since the build$`),
    ),
  );
});

/** The first piece of a log. */
const piece = (text: string) => [{ number: 1, text }];

it("prints the new log of a build that is begun again", async () => {
  const build = { id: pid, status: "building", step: null, image: null, failure: null };
  // The answers in order: looks at the build, and reads of its log between them.
  const answers: unknown[] = [
    { ...build, tries: 1 },
    { pieces: piece("first"), complete: false },
    // The next try has begun, and its log is not cleared yet. Then it is.
    { ...build, tries: 2, status: "resolving" },
    { ...build, tries: 2 },
    { pieces: piece("second"), complete: false },
    // Another try began and wrote its first pieces between two looks.
    { ...build, tries: 3 },
    { pieces: piece("third"), complete: true },
    { ...build, status: "ready", tries: 3 },
  ];
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answers.shift()));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    const ended = await run(["logs", pid, pid], `http://127.0.0.1:${port}`);
    expect(ended).toEqual({
      code: 0,
      stdout: "first\nsecond\nthird\n",
      stderr: `${"The build begins again.\n".repeat(2)}build ${pid}: ready\n`,
    });
    const starts = asked.filter((url) => url.includes("/log?")).map((url) => /after=(\d+)/.exec(url)?.[1]);
    expect(starts).toEqual(["0", "0", "0"]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
