/** Environments through the API (api.md 11): what sandboxes boot on, and the builds of a project's Dockerfile. */
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { SimulatedSite, type SimulatedSitePlan } from "../../../src/builder/site/simulated.ts";
import { EnvironmentBuilds } from "../../../src/store/ports/projects/environment-builds.ts";
import { readEvents } from "../../support/service/event-stream.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  refusal,
  type Fields,
  type Files,
} from "../../support/service/requests.ts";
import { NODE, startTestService, type Answer, type TestService } from "../../support/service/service.ts";

const DOCKERFILE: Files = { ".platform/Dockerfile": "FROM debian:13\n" };
const AT_ONCE: SimulatedSitePlan = { stepsMs: 0, exportMs: 0, failure: null };
/** A build that ends only by being cancelled. */
const ENDLESS: SimulatedSitePlan = { ...AT_ONCE, stepsMs: 3_600_000 };

const site = new SimulatedSite();
let service: TestService;
beforeAll(async () => {
  // Builds that a test leaves behind take no place from the next one.
  service = await startTestService({ PLATFORM_BUILDS_AT_ONCE: "20" }, { site: site.service });
});
afterAll(() => service.close());
afterEach(() => {
  site.plan = () => AT_ONCE;
});

const at = (pid: string, rest = ""): string => `/v1/projects/${pid}/environment${rest}`;
const get = (pid: string, rest = ""): Promise<Answer> => service.request("GET", at(pid, rest));
const post = (pid: string, rest = "/builds"): Promise<Answer> => service.request("POST", at(pid, rest));
const environment = async (pid: string): Promise<Fields> => fields(expectStatus(await get(pid), 200));
const buildOf = (value: unknown): Fields => value as Fields;

/** The project's environment, when its newest build has this status. */
const settled = (pid: string, status: string): Promise<Fields> =>
  eventually(async () => {
    const shown = await environment(pid);
    expect(shown["current"]).toMatchObject({ status });
    return shown;
  });

/** A build that somebody asked for. */
const begun = async (pid: string): Promise<string> =>
  String(fields(expectStatus(await post(pid), 201))["id"]);

const built = (pid: string, bid: string, status: string): Promise<Fields> =>
  eventually(async () => {
    const build = fields(expectStatus(await get(pid, `/builds/${bid}`), 200));
    expect(build).toMatchObject({ status });
    return build;
  });

/** What the tag debian:13 stands for. */
const DIGEST = `sha256:${"d".repeat(64)}`;

const nothing = {
  image: null,
  setup: null,
  dockerfile: null,
  devcontainer: null,
  builder: "simulated",
  current: null,
  image_of: null,
  bases: [],
  waiting: { wanted: 0, ready: 0, for_triggers: 0, possible: false },
};

describe("the environment of a project", () => {
  it("is the machine's own files without a Dockerfile, and without a manifest that can be read", async () => {
    for (const files of [{}, { "platform.toml": "not toml" }]) {
      const pid = await makeProject(service, { files });
      expect(await environment(pid)).toEqual({ kind: "machine", ...nothing });
      expect(refusal(await post(pid))).toEqual([409, "no_dockerfile"]);
    }
  });

  it("is the image that the manifest names", async () => {
    const pid = await makeProject(service, {
      files: { ...DOCKERFILE, "platform.toml": '[environment]\nimage = "node-tools"\nsetup = "npm ci"\n' },
    });
    expect(await environment(pid)).toEqual({
      kind: "image",
      ...nothing,
      image: "node-tools",
      setup: "npm ci",
    });
    expect(refusal(await post(pid))).toEqual([409, "no_dockerfile"]);
  });

  it("is the Dockerfile of the default branch, with its build and its events", async () => {
    site.tags.set("docker.io/library/debian:13", DIGEST);
    const pid = await makeProject(service, {
      files: {
        "tools/Dockerfile": "FROM debian:13\n",
        "platform.toml":
          '[environment]\ndockerfile = "tools/Dockerfile"\ntarget = "dev"\nargs = { NODE = "24" }\n',
      },
    });
    const reader = await readEvents(`${service.url}/v1/projects/${pid}/events`, { token: service.token });
    await reader.until(({ event }) => event === "open");
    const shown = await settled(pid, "ready");
    const source = {
      context: "tools",
      target: "dev",
      args: { NODE: "24" },
      secrets: [],
      devcontainer: null,
      base: null,
      commit: expect.stringMatching(/^[0-9a-f]{40}$/) as string,
      key: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    };
    const build = {
      id: expect.any(String) as string,
      project_id: pid,
      node_id: NODE,
      status: "ready",
      cause: "manifest",
      requested_by: null,
      dockerfile: "tools/Dockerfile",
      ...source,
      tries: 1,
      step: { step: 1, line: 1, instruction: "FROM scratch" },
      image: { digest: expect.stringMatching(/^sha256:/) as string, bytes: 0, files: 1 },
      failure: null,
      created_at: expect.stringMatching(/Z$/) as string,
      begun_at: expect.stringMatching(/Z$/) as string,
      ended_at: expect.stringMatching(/Z$/) as string,
    };
    expect(shown).toEqual({
      kind: "dockerfile",
      image: null,
      setup: null,
      dockerfile: { path: "tools/Dockerfile", ...source },
      devcontainer: null,
      builder: "simulated",
      current: build,
      image_of: shown["current"],
      bases: [
        {
          reference: "docker.io/library/debian:13",
          built_digest: DIGEST,
          digest: DIGEST,
          looked_up_at: expect.any(String) as string,
          problem: null,
          due_at: expect.any(String) as string,
        },
      ],
      waiting: { wanted: 0, ready: 0, for_triggers: 0, possible: false },
    });
    const { id } = buildOf(shown["current"]);
    const last = await reader.until(({ event, data }) => {
      const told = (data as { data?: Fields }).data;
      return event === "environment.build" && told?.["build_id"] === id && told?.["status"] === "ready";
    });
    expect(last.data).toMatchObject({ type: "environment.build", data: { previous: "exporting" } });
    reader.close();
  });
});

describe("a build that is asked for", () => {
  it("is a new one, unless one of the same Dockerfile is under way", async () => {
    const pid = await makeProject(service, { files: DOCKERFILE });
    const { current } = await settled(pid, "ready");
    site.plan = () => ENDLESS;
    const first = fields(expectStatus(await post(pid), 201));
    const { user } = fields(await service.request("GET", "/v1/me")) as { user: { id: string } };
    expect(first).toMatchObject({ cause: "asked", requested_by: user.id, ended_at: null });
    expect(first["id"]).not.toBe(buildOf(current)["id"]);
    expect(await begun(pid)).toBe(first["id"]);
    await built(pid, String(first["id"]), "building");
    const shown = await environment(pid);
    expect([shown["current"], shown["image_of"]]).toMatchObject([{ id: first["id"] }, current]);
  });

  it("is what a session without an image waits for, and its state says so", async () => {
    site.plan = () => ENDLESS;
    const pid = await makeProject(service, { files: DOCKERFILE });
    const created = await service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} });
    const path = `/v1/projects/${pid}/sessions/${String(fields(expectStatus(created, 201))["id"])}`;
    const why = async (part: string) =>
      fields(expectStatus(await service.request("GET", `${path}${part}/machine`), 200))["why"];
    const sentence = "The sandbox waits for the build of its environment. Read the build's log.";
    await eventually(async () => expect(await why("")).toContain(sentence));
    expect(await why("/sandbox")).toContain(sentence);
    const { current } = await environment(pid);
    expectStatus(await post(pid, `/builds/${String(buildOf(current)["id"])}/cancel`), 202);
    await eventually(async () => expect(await why("")).not.toContain(sentence));
  });

  it("is refused in an archived project, and on a node that builds nothing", async () => {
    const pid = await makeProject(service, { files: DOCKERFILE });
    expectStatus(
      await service.request("PATCH", `/v1/projects/${pid}`, { body: { status: "archived" } }),
      200,
    );
    expect(refusal(await post(pid))).toEqual([409, "project_not_active"]);
    const other = await startTestService({}, { site: { ...site.service, builder: null } });
    try {
      const there = await makeProject(other, { files: DOCKERFILE });
      expect(refusal(await other.request("POST", at(there, "/builds")))).toEqual([409, "not_built_here"]);
      const shown = await other.request("GET", at(there));
      expect(fields(shown)).toMatchObject({ kind: "dockerfile", builder: null, current: null });
    } finally {
      await other.close();
    }
  });

  it("is cancelled once: a second request changes nothing, and a build that is over stays as it is", async () => {
    const pid = await makeProject(service, { files: DOCKERFILE });
    const { current } = await settled(pid, "ready");
    site.plan = () => ENDLESS;
    const bid = await begun(pid);
    await built(pid, bid, "building");
    expect(site.running).toContain(bid);
    const cancelled = expectStatus(await post(pid, `/builds/${bid}/cancel`), 202);
    expect(fields(cancelled)).toMatchObject({
      id: bid,
      status: "cancelled",
      failure: { code: "cancelled", message: "The build was cancelled." },
      ended_at: expect.any(String) as string,
    });
    await eventually(() => expect(site.running).not.toContain(bid));
    expect(fields(expectStatus(await post(pid, `/builds/${bid}/cancel`), 202))).toEqual(fields(cancelled));
    const ready = String(buildOf(current)["id"]);
    expect(fields(expectStatus(await post(pid, `/builds/${ready}/cancel`), 202))).toEqual(current);
  });
});

describe("the builds of a project", () => {
  it("show their log in pieces, and say when nothing follows", async () => {
    const pid = await makeProject(service, { files: DOCKERFILE });
    await settled(pid, "ready");
    site.plan = () => ENDLESS;
    const bid = await begun(pid);
    const log = async (query: string) => {
      const { pieces, complete } = fields(expectStatus(await get(pid, `/builds/${bid}/log${query}`), 200));
      return [(pieces as readonly Fields[]).map(({ number }) => number), complete];
    };
    await eventually(async () => expect(await log("")).toEqual([[1], false]));
    await service.inside(
      Effect.gen(function* () {
        const { appendLog } = yield* EnvironmentBuilds;
        for (const text of ["one\n", "two\n", "three\n"]) yield* appendLog(bid, text);
      }),
    );
    const all = fields(await get(pid, `/builds/${bid}/log`));
    expect((all["pieces"] as readonly Fields[]).map(({ text }) => text)).toEqual([
      "[step 1, line 1] FROM scratch\n",
      "one\n",
      "two\n",
      "three\n",
    ]);
    expect(await log("?after=2&limit=2")).toEqual([[3, 4], false]);
    expectStatus(await post(pid, `/builds/${bid}/cancel`), 202);
    expect(await log("?limit=2")).toEqual([[1, 2], false]);
    expect(await log("?after=2&limit=2")).toEqual([[3, 4], true]);
    expect(await log("?after=4")).toEqual([[], true]);
    for (const query of ["?limit=0", "?limit=201", "?after=-1", "?after=1.5", "?after=x"])
      expect(refusal(await get(pid, `/builds/${bid}/log${query}`))).toEqual([400, "invalid_request"]);
  });
});
