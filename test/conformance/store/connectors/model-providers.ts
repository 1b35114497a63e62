/** Conformance: providers of models of accounts, and what passed to them. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import {
  ModelProviders,
  type NewProvider,
} from "../../../../src/features/model-providers/ports/model-providers.ts";
import { ModelUsage } from "../../../../src/features/model-providers/ports/model-usage.ts";
import type { CountedCall } from "../../../../src/domain/sandbox/spend.ts";
import { Spend } from "../../../../src/features/spend/ports/spend.ts";
import { COUNTED_MODELS_MAX } from "../../../../src/store/ports/projects/project-usage.ts";
import { PROVIDERS_MAX } from "../../../../src/features/model-providers/rules/provider.ts";
import { admitSession, openSandbox, tellSandbox } from "../../../support/world/sessions.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { Accounts } from "../../../../src/store/ports/people/accounts.ts";
import { addProject, hash, makeWorld, NOON } from "../../../support/world/world.ts";
import { reserveFor } from "../../../support/world/spend.ts";
import type { Check } from "../fixture.ts";

const DAY_MS = 86_400_000;
const always = { from: "2000-01-01", to: "2999-12-31" };

const account = (accountId: string) => ({ accountId, projectId: null, userId: null });

const provider = (
  accountId: string,
  name: string,
  fields: Partial<NewProvider> = {},
): NewProvider & { readonly now: number } => ({
  id: randomUUID(),
  ...account(accountId),
  name,
  kind: "openai-compatible",
  baseUrl: "https://models.example.org/v1",
  models: ["b", "a"],
  hasKey: true,
  prices: {},
  sealed: { version: 1, envelope: Buffer.from("sealed") },
  triedAt: null,
  now: NOON,
  ...fields,
});

/** What the calls of the check add up to. */
const row = (model: string, calls: number, untoldCalls = 0) => ({
  model,
  calls: calls + untoldCalls,
  untoldCalls,
  input: 10 * calls,
  cached: 4 * calls,
  output: 2 * calls,
  estimated: 7 * untoldCalls,
  cost: 30 * calls,
});

/** Another account with a project. */
const otherWorld = Effect.gen(function* () {
  const accounts = yield* Accounts;
  const [accountId, userId] = [randomUUID(), randomUUID()];
  yield* accounts.create({ id: accountId, name: "other", tier: "free", cap: 5, now: NOON });
  yield* accounts.createUser({ id: userId, accountId, name: "other", role: "owner", now: NOON });
  return { accountId, userId, tokenHash: hash(), projectId: yield* addProject({ accountId, userId }) };
});

/** A call from its beginning to its end. */
const countCall = Effect.fnUntraced(function* (
  sessionId: string,
  { now, ...counted }: CountedCall & { readonly now: number },
) {
  const { settle } = yield* Spend;
  const id = randomUUID();
  yield* reserveFor({
    id,
    sessionId,
    model: counted.model,
    tokens: 1,
    cost: 1,
    isOwn: false,
    now,
  });
  yield* settle({ id, counted, now });
});

export const checkModelProviders = (check: Check): void => {
  describe("providers of models", () => {
    check(
      "belong to one account, have names of their own there, and keep the order of their models",
      Effect.gen(function* () {
        const [world, other] = [yield* makeWorld(1), yield* otherWorld];
        const { create, list, get, remove } = yield* ModelProviders;
        const wish = provider(world.accountId, "acme");
        const made = yield* create(wish);
        const { now: _now, ...fields } = wish;
        const added = { owner: "account", refusal: null, createdAt: NOON, updatedAt: NOON };
        expect(made).toEqual({ ...fields, ...added });
        expect(yield* Effect.flip(create(provider(world.accountId, "acme")))).toMatchObject({
          _tag: "NameTaken",
          name: "acme",
        });
        yield* create(provider(other.accountId, "acme"));
        const second = yield* create({ ...provider(world.accountId, "beta"), now: NOON + 1 });
        expect(yield* list(account(world.accountId))).toEqual([made, second]);
        expect(yield* get(account(other.accountId), made.id)).toBe(null);
        expect(yield* remove(account(other.accountId), made.id)).toBe(false);
        expect(yield* remove(account(world.accountId), made.id)).toBe(true);
        expect(yield* list(account(world.accountId))).toEqual([second]);
      }),
    );

    check(
      "change one version after the other, and are limited in number",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { create, change, get } = yield* ModelProviders;
        const made = yield* create(provider(world.accountId, "acme"));
        const next = {
          baseUrl: "http://127.0.0.1:1/v1",
          models: ["c"],
          hasKey: false,
          prices: { c: { input: 1.5, cached: 0.1, output: 2 } },
          sealed: { version: 2, envelope: Buffer.from("other") },
          triedAt: NOON,
        };
        const changed = yield* change(account(world.accountId), made.id, { ...next, now: NOON + 5 });
        expect(changed).toEqual({ ...made, ...next, updatedAt: NOON + 5 });
        expect(yield* get(account(world.accountId), made.id)).toEqual(changed);
        const again = change(account(world.accountId), made.id, { ...next, now: NOON + 6 });
        expect(yield* Effect.flip(again)).toMatchObject({ _tag: "Fenced" });
        expect(yield* change(account(world.accountId), randomUUID(), { ...next, now: NOON })).toBe(null);
        for (let count = 1; count < PROVIDERS_MAX; count += 1)
          yield* create(provider(world.accountId, `p${count}`));
        expect(yield* Effect.flip(create(provider(world.accountId, "last")))).toMatchObject({
          _tag: "ProvidersFull",
        });
      }),
    );

    check(
      "of a project, a person and the account may have one name, and a session finds the narrowest first",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { accountId, projectId, userId } = world;
        const { create, list, get, usable, ofSandbox } = yield* ModelProviders;
        const wide = yield* create(provider(accountId, "acme"));
        const second = yield* create(provider(accountId, "beta"));
        const own = yield* create(provider(accountId, "acme", { userId }));
        const place = { accountId, projectId, userId: null };
        const ofProject = yield* create(provider(accountId, "acme", { projectId }));
        const taken = create(provider(accountId, "acme", { projectId }));
        expect(yield* Effect.flip(taken)).toMatchObject({ _tag: "NameTaken" });
        const elsewhere = yield* addProject(world);
        yield* create(provider(accountId, "acme", { projectId: elsewhere }));
        const ada = randomUUID();
        yield* (yield* Accounts).createUser({ id: ada, accountId, name: "ada", role: "member", now: NOON });
        yield* create(provider(accountId, "acme", { userId: ada }));
        expect([own.owner, ofProject.owner, wide.owner]).toEqual(["person", "project", "account"]);
        expect(yield* list(place)).toEqual([ofProject]);
        expect(yield* get(account(accountId), own.id)).toBe(null);
        const wides = [wide, second].toSorted((one, other) => (one.id < other.id ? -1 : 1));
        expect(yield* usable({ accountId, projectId, personId: userId })).toEqual([own, ofProject, ...wides]);
        expect(yield* usable({ accountId, projectId, personId: null })).toEqual([ofProject, ...wides]);
        const { id } = yield* openSandbox(yield* admitSession(world));
        const found = yield* ofSandbox(id, "acme");
        expect(found?.providers).toEqual([own, ofProject, wide]);
      }),
    );

    check(
      "keep their last refusal until a call succeeds or they change, and a person's go with her",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { accountId } = world;
        const { create, list, noteRefusal, change } = yield* ModelProviders;
        const ada = randomUUID();
        yield* (yield* Accounts).createUser({ id: ada, accountId, name: "ada", role: "member", now: NOON });
        const place = { accountId, projectId: null, userId: ada };
        const { id, refusal: _none, ...made } = yield* create(provider(accountId, "acme", { userId: ada }));
        const refusal = { at: NOON + 1, text: "acme.example refuses calls (402)." };
        const refused = Effect.map(list(place), (rows) => rows.map((one) => one.refusal));
        yield* noteRefusal(id, refusal);
        expect(yield* refused).toEqual([refusal]);
        yield* noteRefusal(id, null);
        expect(yield* refused).toEqual([null]);
        yield* noteRefusal(id, refusal);
        const sealed = { version: 2, envelope: Buffer.from("other") };
        yield* change(place, id, { ...made, sealed, now: NOON + 2 });
        expect(yield* refused).toEqual([null]);
        yield* (yield* People).deactivate(accountId, ada, NOON + 3);
        expect(yield* list(place)).toEqual([]);
      }),
    );

    check(
      "are found by a sandbox of the account until it ends",
      Effect.gen(function* () {
        const [world, other] = [yield* makeWorld(1), yield* otherWorld];
        const { create, ofSandbox } = yield* ModelProviders;
        const made = yield* create(provider(world.accountId, "acme"));
        const sessionId = yield* admitSession(world);
        const { id } = yield* openSandbox(sessionId);
        const foreign = yield* openSandbox(yield* admitSession(other));
        const { projectId, userId: createdBy } = world;
        const found = { providers: [made], sessionId, projectId, origin: "session", createdBy };
        expect(yield* ofSandbox(id, "acme")).toEqual(found);
        expect(yield* ofSandbox(id, "beta")).toBe(null);
        expect(yield* ofSandbox(foreign.id, "acme")).toBe(null);
        expect(yield* ofSandbox(randomUUID(), "acme")).toBe(null);
        yield* tellSandbox(id, { type: "daemon.ready" }, NOON);
        expect(yield* ofSandbox(id, "acme")).toEqual(found);
        const failure = { code: "sandbox_lost", message: "gone" } as const;
        yield* tellSandbox(id, { type: "sandbox.lost", failure }, NOON + 1);
        expect(yield* ofSandbox(id, "acme")).toBe(null);
      }),
    );
  });

  describe("what passed to providers", () => {
    check(
      "adds up by session, day and model, also where calls settle at the same time",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { projectId } = world;
        const { days, ofSession } = yield* ModelUsage;
        const [one, other] = [yield* admitSession(world), yield* admitSession(world)];
        const call = (sessionId: string, model: string, now = NOON) =>
          countCall(sessionId, {
            model,
            tokens: { input: 10, cached: 4, output: 2 },
            estimated: 0,
            cost: 30,
            now,
          });
        yield* Effect.all(
          Array.from({ length: 8 }, () => call(one, "acme/b")),
          { concurrency: 8 },
        );
        yield* call(one, "acme/a");
        yield* call(other, "acme/b");
        yield* call(one, "acme/b", NOON + DAY_MS);
        const broken = { model: "acme/b", tokens: null, estimated: 7, cost: 0, now: NOON };
        yield* countCall(one, broken);
        expect(yield* days(projectId, always)).toEqual([
          { day: "2026-11-21", ...row("acme/b", 1) },
          { day: "2026-11-20", ...row("acme/a", 1) },
          { day: "2026-11-20", ...row("acme/b", 9, 1) },
        ]);
        expect(yield* days(projectId, { from: "2026-11-21", to: "2026-11-21" })).toHaveLength(1);
        expect(yield* days(randomUUID(), always)).toEqual([]);
        expect(yield* ofSession(one)).toEqual([row("acme/a", 1), row("acme/b", 9, 1)]);
      }),
    );

    check(
      "has a bounded number of models a day",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { ofSession } = yield* ModelUsage;
        const sessionId = yield* admitSession(world);
        const call = { tokens: { input: 1, cached: 0, output: 1 }, estimated: 0, cost: 0, now: NOON };
        for (let count = 0; count < COUNTED_MODELS_MAX + 5; count += 1)
          yield* countCall(sessionId, { model: `m/${count}`, ...call });
        yield* countCall(sessionId, { model: "m/0", ...call });
        const rows = yield* ofSession(sessionId);
        expect(rows).toHaveLength(COUNTED_MODELS_MAX + 1);
        expect(rows.find(({ model }) => model === "other")).toMatchObject({ calls: 5 });
        expect(rows.find(({ model }) => model === "m/0")).toMatchObject({ calls: 2 });
      }),
    );
  });
};
