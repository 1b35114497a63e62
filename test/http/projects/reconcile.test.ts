/** Branches that moved past the service: a manifest is read all the same, and readers of change requests are told. */
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gitOk } from "../../git/git-client.ts";
import { readEvents } from "../../support/service/event-stream.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  deliver,
  eventually,
  expectStatus,
  listOf,
  makeProject,
  makeRepository,
  putSecret,
  SECRET,
  SECRET_NAME,
  webhookEntry,
} from "../../support/service/requests.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ PLATFORM_MANIFEST_SYNC_MS: "100" });
});
afterAll(() => service.close());

const bare = (pid: string): string => path.join(service.dataDir, "repositories", `${pid}.git`);

/** Moves the branch in the repository itself: no hook, no merge, no notification. */
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

describe("a manifest that changed without notice to the service", () => {
  it("is in force within the interval, for the listing and for the receiver", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": webhookEntry("before") } });
    await putSecret(service, pid, SECRET_NAME, SECRET);
    expect(await slugs(pid)).toEqual(["before"]);
    await moveFromOutside(pid, webhookEntry("after"));
    await eventually(async () => expect(await slugs(pid)).toEqual(["after"]));
    expect((await deliver(service, `${pid}/after`)).status).toBe(202);
    expect((await deliver(service, `${pid}/before`)).status).toBe(404);
  });
});

describe("an open change request whose branch moved without notice to the service", () => {
  it("is updated by the next check, when the branch moved and when it is gone", async () => {
    const pid = await makeProject(service, { files: {} });
    const body = { title: "A feature", head_ref: "feature" };
    expectStatus(await service.request("POST", `/v1/projects/${pid}/change-requests`, { body }), 201);
    const reader = await readEvents(`${service.url}/v1/projects/${pid}/events`, { token: service.token });
    await reader.until(({ event }) => event === "open");
    const news = (head: string | null) =>
      reader.until(
        ({ event, data }) =>
          event === "change_request.updated" &&
          (data as { data: Record<string, unknown> }).data["head_commit"] === head,
      );
    const tip = await gitOk(bare(pid), "rev-parse", "main");
    await gitOk(bare(pid), "update-ref", "refs/heads/feature", tip);
    await news(tip);
    await gitOk(bare(pid), "update-ref", "-d", "refs/heads/feature");
    await news(null);
    // Each news once: looks that find nothing new say nothing.
    expect(reader.events.filter(({ event }) => event === "change_request.updated")).toHaveLength(2);
    reader.close();
  });
});
