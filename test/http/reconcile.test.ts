/** A default branch that moved past the service: its manifest is read all the same. */
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gitOk } from "../git/git-client.ts";
import { startTestService, type TestService } from "../support/service.ts";
import {
  deliver,
  eventually,
  fields,
  listOf,
  makeProject,
  makeRepository,
  putSecret,
  SECRET,
  SECRET_NAME,
  webhookEntry,
} from "./world.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ PLATFORM_MANIFEST_SYNC_MS: "100" });
});
afterAll(() => service.close());

const bare = (pid: string): string => path.join(service.dataDir, "repositories", `${pid}.git`);

/** Moves the branch in the repository itself: no hook, no merge, nobody is told. */
const moveFromOutside = async (pid: string, manifest: string): Promise<void> => {
  const work = await makeRepository(service, { "platform.toml": manifest });
  await gitOk(
    work,
    "push",
    "--quiet",
    "--force",
    "--receive-pack=git -c core.hooksPath=/dev/null receive-pack",
    bare(pid),
    "main",
  );
};

const slugs = async (pid: string): Promise<readonly unknown[]> =>
  listOf(await service.request("GET", `/v1/projects/${pid}/triggers`), "triggers").map(({ slug }) => slug);

describe("a manifest that moved past the service", () => {
  it("is in force within the interval, for the listing and for the receiver", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": webhookEntry("before") } });
    await putSecret(service, pid, SECRET_NAME, SECRET);
    expect(await slugs(pid)).toEqual(["before"]);
    await moveFromOutside(pid, webhookEntry("after"));
    await eventually(async () => expect(await slugs(pid)).toEqual(["after"]));
    expect((await deliver(service, `${pid}/after`)).status).toBe(202);
    expect((await deliver(service, `${pid}/before`)).status).toBe(404);
  });

  it("and does not parse leaves the last good one in force, marked stale, with the line of the mistake", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": webhookEntry("before") } });
    await putSecret(service, pid, SECRET_NAME, SECRET);
    await moveFromOutside(pid, "[project]\nname = \n");
    const listing = await eventually(async () => {
      const answer = fields(await service.request("GET", `/v1/projects/${pid}/triggers`));
      expect(answer["manifest"]).toMatchObject({ stale: true });
      return answer;
    });
    expect(listing["errors"]).toMatchObject([{ slug: null, index: null, line: 2 }]);
    expect((listing["triggers"] as readonly object[]).length).toBe(1);
    expect((await deliver(service, `${pid}/before`)).status).toBe(202);
    await moveFromOutside(pid, webhookEntry("mended"));
    await eventually(async () => expect(await slugs(pid)).toEqual(["mended"]));
    const mended = fields(await service.request("GET", `/v1/projects/${pid}/triggers`));
    expect([mended["errors"], mended["manifest"]]).toMatchObject([[], { stale: false }]);
  });
});
