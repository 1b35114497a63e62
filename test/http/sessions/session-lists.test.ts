/** Lists of sessions through the API: their filters, and whose sessions they have (api.md 3). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import { expectStatus, fields, listOf, makeProject, makeUserToken } from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service);
});
afterAll(() => service.close());

const sessions = (rest = ""): string => `/v1/projects/${pid}/sessions${rest}`;
const idsOf = async (target: string): Promise<unknown[]> =>
  listOf(expectStatus(await service.request("GET", target), 200), "sessions").map(({ id }) => id);

describe("lists of sessions", () => {
  it("are narrowed by the query, in a project and over all projects", async () => {
    const other = await makeProject(service);
    const elsewhere = `/v1/projects/${other}/sessions`;
    const made = expectStatus(
      await service.request("POST", elsewhere, { body: { name: "Fix the Gate" } }),
      201,
    );
    const { id, created_by: by } = fields(made);
    expect(await idsOf(`${elsewhere}?search=the%20gate&started_by=person&created_by=${String(by)}`)).toEqual([
      id,
    ]);
    expect(await idsOf(`${elsewhere}?started_by=trigger`)).toEqual([]);
    expect(await idsOf(`${elsewhere}?trigger=nightly`)).toEqual([]);
    expect(await idsOf(`${elsewhere}?turn=idle`)).toEqual([id]);
    expect(await idsOf(`${elsewhere}?activity=starting,working,resting`)).toEqual([id]);
    expect(await idsOf("/v1/sessions?activity=needs_you,done&search=the%20gate")).toEqual([]);
    expect(await idsOf("/v1/sessions?search=the%20gate")).toEqual([id]);
    expect(await idsOf(sessions("?search=the%20gate"))).toEqual([]);
    await service.request("DELETE", `${elsewhere}/${String(id)}`);
    expect(await idsOf("/v1/sessions?search=the%20gate")).toEqual([]);
  });

  it("show a token that is bound to a project that project alone", async () => {
    const other = await makeProject(service);
    const bound = await makeUserToken(service, { project_id: other });
    const seenBy = await service.request("GET", "/v1/sessions", { token: bound.token });
    expect(listOf(expectStatus(seenBy, 200), "sessions")).toEqual([]);
  });

  it("refuse a filter that does not exist, and an empty search", async () => {
    for (const query of [
      "turn=asleep",
      "activity=asleep,tired",
      "activity=",
      "started_by=me",
      "created_by=me",
      "search=",
      "search=%20",
      "serach=x",
    ]) {
      expect([query, (await service.request("GET", sessions(`?${query}`))).status]).toEqual([query, 400]);
    }
  });
});
