/** A change request says which mistakes a merge would bring in the files that the service reads. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  expectStatus,
  fields,
  makeProject,
  commitTo,
  webhookEntry,
  type Files,
} from "../../support/service/requests.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";

let service: TestService;
beforeAll(async () => {
  service = await shareService();
});
afterAll(() => service.close());

const BROKEN = webhookEntry("push").replace(/^prompt = .*$/m, "");

/** Proposes the files on a branch. @returns how to read the request, and to merge it */
const propose = async (before: Files, files: Files) => {
  const pid = await makeProject(service, { files: before });
  await commitTo(service, pid, { branch: "work", files });
  const at = `/v1/projects/${pid}/change-requests`;
  const opened = await service.request("POST", at, { body: { head_ref: "work", title: "Work" } });
  const path = `${at}/${String(fields(expectStatus(opened, 201))["number"])}`;
  return {
    warnings: async () => fields(expectStatus(await service.request("GET", path), 200))["warnings"],
    merge: () => service.request("POST", `${path}/merge`, { body: {} }),
  };
};

describe("the warnings of a change request", () => {
  it("name file, line and reason of a platform.toml that cannot be read, until it is merged", async () => {
    const { warnings, merge } = await propose({}, { "platform.toml": "# mine\n[[triggers\n" });
    expect(await warnings()).toEqual([
      { file: "platform.toml", line: 2, message: expect.stringContaining("platform.toml") },
    ]);
    expectStatus(await merge(), 200);
    expect(await warnings()).toEqual([]);
  });

  it("name each mistake of a trigger, at most 20", async () => {
    const one = await propose({}, { "platform.toml": BROKEN });
    expect(await one.warnings()).toMatchObject([
      { file: "platform.toml", message: expect.stringContaining("triggers[0]") },
    ]);
    const slugs = Array.from({ length: 30 }, (_, at) => `s${at}`);
    const many = slugs.map((slug) => `[[triggers]]\nslug = "${slug}"\ntype = "tide"\nprompt = "x"\n`);
    const { warnings } = await propose({}, { "platform.toml": many.join("") });
    const shown = (await warnings()) as readonly unknown[];
    expect(shown).toHaveLength(20);
    expect(shown.at(-1)).toMatchObject({
      file: "platform.toml",
      message: expect.stringMatching(/^\d+ more warnings are not shown/),
    });
  });

  it("name a Dockerfile that cannot be used, and one that [environment] names and that does not exist", async () => {
    const broken = { ".platform/Dockerfile": "FROM scratch\nRUM true\n" };
    expect(await (await propose({}, broken)).warnings()).toEqual([
      { file: ".platform/Dockerfile", line: 2, message: "unknown instruction: RUM." },
    ]);
    const named = '[environment]\ndockerfile = "docker/Dockerfile"\n';
    expect(await (await propose({}, { "platform.toml": named })).warnings()).toEqual([
      { file: "docker/Dockerfile", line: null, message: "The repository has no file docker/Dockerfile." },
    ]);
    const devcontainer = '[environment]\ndevcontainer = "dev/devcontainer.json"\n';
    const files = { "platform.toml": devcontainer, "dev/devcontainer.json": "{" };
    expect(await (await propose({}, files)).warnings()).toMatchObject([{ file: "dev/devcontainer.json" }]);
  });

  it("are none for a good change, and for a mistake that the default branch has already", async () => {
    const good = { "platform.toml": webhookEntry("push"), ".platform/Dockerfile": "FROM scratch\n" };
    expect(await (await propose({}, good)).warnings()).toEqual([]);
    const before = { "platform.toml": BROKEN };
    expect(await (await propose(before, { ...before, "a.txt": "a\n" })).warnings()).toEqual([]);
  });
});
