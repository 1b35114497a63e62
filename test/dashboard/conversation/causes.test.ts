/** Who failed a turn, and where a person goes to mend it. */
import { afterAll, afterEach, expect, it, vi } from "vitest";
import { causeOf, keeperOf } from "../../../dashboard/conversation/items/causes.ts";
import { limitReached, NANO } from "../../../src/domain/sandbox/spend.ts";
import { learnRole } from "../../../dashboard/frame/roles.ts";

type Me = Parameters<typeof learnRole>[1];
type Options = Parameters<typeof keeperOf>[1];

const options = { runtimes: [{ provider_models: ["acme/large-2"] }] } as unknown as Options;
const failed = (code: string) =>
  ({ state: "failed", error: { code, message: "No." }, at: "2026-11-20T06:52:05.618Z" }) as const;
const AGAIN = { label: "Try again", does: "again" };
const remediesOf = (code: string) => causeOf(failed(code), { project: "p", keeper: null }).remedies;
const ownerOf = (account: boolean) =>
  ({ user: { id: "ada", role: account ? "owner" : "member" }, terminals: "off" }) as Me;

/** The reader has this role in the project. */
const readAs = async (project: string, role: string): Promise<void> => {
  vi.stubGlobal("fetch", async (url: string) =>
    Response.json(
      url.endsWith("/members") ? { members: [{ user: { id: "ada" }, role }] } : { merge_role: "member" },
    ),
  );
  await learnRole(project, ownerOf(false));
};

afterEach(() => vi.unstubAllGlobals());
afterAll(() => learnRole(undefined, ownerOf(true)));

it("finds who has the key of a model", () => {
  expect(keeperOf(["acme/large-2", "openai/gpt"], options)).toEqual({ account: "acme" });
  // A runtime with models of its own says only their names.
  expect(keeperOf(["large", null, "acme/other"], options)).toEqual({ account: "acme" });
  expect(keeperOf(["managed/default"], options)).toBe("operator");
  expect(keeperOf(["openai/gpt"], options)).toBe("project");
  expect(keeperOf([null, undefined, "acm/x"], options)).toBe("project");
});

// The last one is of older conversations.
it.each(["model_unauthorized", "model_out_of_credit", "model_quota"])(
  "leads to the key of %s where it is, for those who may replace it",
  async (code) => {
    const at = (keeper: Parameters<typeof causeOf>[1]["keeper"]) =>
      causeOf(failed(code), { project: "p", keeper });
    await learnRole(undefined, ownerOf(true));
    expect(at({ account: "acme" })).toMatchObject({
      actor: expect.stringMatching(/^acme /),
      place: "acme is a provider of the account, which has the key.",
      remedies: [{ label: "Replace the key", link: "#/models?change=acme" }, AGAIN],
    });
    expect(at("project").remedies).toEqual([
      { label: "Replace the key", link: "#/projects/p/secrets" },
      AGAIN,
    ]);
    expect(at("operator")).toMatchObject({
      place: expect.stringContaining("Only the operator of this service"),
      remedies: [{ does: "model" }, AGAIN],
    });
    expect(at(null)).toMatchObject({ place: null, remedies: [AGAIN] });
    await readAs(`p-${code}`, "member");
    expect(at({ account: "acme" })).toMatchObject({
      place: expect.stringContaining("An owner of the account can replace it."),
      remedies: [AGAIN],
    });
    expect(at("project")).toMatchObject({
      place: expect.stringContaining("An owner of the project can replace it."),
      remedies: [AGAIN],
    });
  },
);

it("offers nothing but another try to who asks too often", async () => {
  await learnRole(undefined, ownerOf(true));
  expect(causeOf(failed("model_rate_limited"), { project: "p", keeper: { account: "acme" } })).toEqual({
    actor: "The model's provider takes no more requests for now",
    place: null,
    remedies: [AGAIN],
  });
});

/** The service's own words: the page tells a session's limit from the others by them. */
const LIMIT = { unit: "usd", amount: 5 * NANO, name: "", spent: 5.02 * NANO, reserved: 0 } as const;
const causeWith = (code: string, message: string) =>
  causeOf({ ...failed(code), error: { code, message } }, { project: "p", keeper: null });

it("leads to the limit that is reached, and to the price that is missing", async () => {
  const own = causeWith("spend_limit", limitReached({ ...LIMIT, scope: "session" }));
  expect(own.remedies).toEqual([{ label: "Raise the limit", does: "limit" }, AGAIN]);
  await learnRole(undefined, ownerOf(true));
  const month = limitReached({ ...LIMIT, scope: "account" });
  expect(causeWith("spend_limit", month).remedies).toEqual([
    { label: "Raise the limit", link: "#/models?show=limits" },
    AGAIN,
  ]);
  expect(causeWith("model_without_price", "No.").remedies).toEqual([
    { label: "Set its price", link: "#/models?show=prices" },
    AGAIN,
  ]);
  await readAs("read", "viewer");
  expect(causeWith("spend_limit", month)).toMatchObject({
    place: "An owner of the account can raise it.",
    remedies: [AGAIN],
  });
});

it("leads who has no model to where she can add one", async () => {
  await learnRole(undefined, ownerOf(true));
  expect(remediesOf("no_model")).toMatchObject([{ link: "#/models" }, AGAIN]);
  await readAs("owned", "owner");
  expect(remediesOf("no_model")).toMatchObject([{ link: "#/projects/p/secrets" }, AGAIN]);
  await readAs("read", "viewer");
  expect(remediesOf("no_model")).toEqual([AGAIN]);
});

it("offers to try again what it does not know", () => {
  expect(causeOf(failed("new_code"), { project: "p", keeper: null })).toEqual({
    actor: "The agent's turn failed",
    place: null,
    remedies: [AGAIN],
  });
});

it("offers to send again what a lost sandbox did not finish", () => {
  expect(remediesOf("sandbox_lost")).toEqual([{ label: "Send the message again", does: "again" }]);
});
