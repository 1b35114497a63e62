/** A project's devcontainer.json through the API (api.md 11). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SimulatedSite } from "../../../src/builder/site/simulated.ts";
import {
  eventually,
  expectStatus,
  fields,
  listOf,
  makeProject,
  mergeFiles,
  type Fields,
} from "../../support/service/requests.ts";
import { startTestService, type Answer, type TestService } from "../../support/service/service.ts";

const FILE = ".devcontainer/devcontainer.json";
const MANIFEST = `[environment]\ndevcontainer = "${FILE}"\n`;
const json = (file: object): string => JSON.stringify({ image: "debian:13", ...file });

let service: TestService;
beforeAll(async () => {
  service = await startTestService({}, { site: new SimulatedSite().service });
});
afterAll(() => service.close());

const at = (pid: string, rest: string): Promise<Answer> =>
  service.request("GET", `/v1/projects/${pid}/${rest}`);
const environment = async (pid: string): Promise<Fields> =>
  fields(expectStatus(await at(pid, "environment"), 200));
const manifestError = async (pid: string): Promise<unknown> =>
  fields(expectStatus(await at(pid, "triggers"), 200))["errors"];
const idOf = (build: unknown): unknown => (build as Fields)["id"];

/** The project's environment, when it is built. */
const settled = (pid: string): Promise<Fields> =>
  eventually(async () => {
    const shown = await environment(pid);
    expect(shown["current"]).toMatchObject({ status: "ready" });
    return shown;
  });

describe("a project with a devcontainer.json", () => {
  it("runs on the image that the file names, and shows what of the file counts", async () => {
    const file = {
      containerEnv: { LEVEL: "1" },
      postCreateCommand: "make",
      remoteUser: "dev",
      customizations: { a: 1 },
    };
    const pid = await makeProject(service, { files: { "platform.toml": MANIFEST, [FILE]: json(file) } });
    const shown = await settled(pid);
    const base = "docker.io/library/debian:13";
    expect(shown).toMatchObject({
      kind: "devcontainer",
      setup: "echo '# postCreateCommand'\nsh -c 'make'\n",
      dockerfile: { path: FILE, devcontainer: FILE, base },
      devcontainer: {
        path: FILE,
        used: true,
        problem: null,
        variables: { LEVEL: "1" },
        commands: ["postCreateCommand"],
        ignored: ["remoteUser"],
      },
      current: { dockerfile: FILE, devcontainer: FILE, base, cause: "manifest" },
    });
    expect(idOf(shown["image_of"])).toBe(idOf(shown["current"]));
    // The build reads neither.
    const changed = { ...file, containerEnv: { LEVEL: "2" }, customizations: { a: 2 } };
    await mergeFiles(service, pid, { [FILE]: json(changed) });
    await eventually(async () => {
      const { devcontainer, current } = await environment(pid);
      expect(devcontainer).toMatchObject({ variables: { LEVEL: "2" } });
      expect(idOf(current)).toBe(idOf(shown["current"]));
    });
    expect(listOf(await at(pid, "environment/builds"), "builds")).toHaveLength(1);
  });

  it("prefers the manifest's own setup command, and names the file's commands as ignored", async () => {
    const pid = await makeProject(service, {
      files: {
        "platform.toml": `${MANIFEST}setup = "npm ci"\n`,
        [FILE]: json({ postCreateCommand: "make" }),
      },
    });
    expect(await environment(pid)).toMatchObject({
      setup: "npm ci",
      devcontainer: { commands: [], ignored: ["postCreateCommand"] },
    });
  });

  it("keeps what was in force while the file cannot be used, and says why [E15]", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": MANIFEST, [FILE]: json({}) } });
    const former = await settled(pid);
    await mergeFiles(service, pid, { [FILE]: json({ features: { go: {} } }) });
    await eventually(async () =>
      expect(await manifestError(pid)).toMatchObject([
        {
          path: "environment.devcontainer",
          message: expect.stringContaining(
            `${FILE}, line 1, column 22: \`features\` is not supported.`,
          ) as string,
        },
      ]),
    );
    expect(await environment(pid)).toEqual(former);
  });
});
