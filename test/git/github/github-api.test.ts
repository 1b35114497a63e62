/** The code host's API when it is slow, limited, wrong or gone (github/api.ts A1 to A3, limits.ts L1, tokens.ts T1 to T3). */
import { assert, describe, expect, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Schema from "effect/Schema";
import * as Scope from "effect/Scope";
import * as TestClock from "effect/testing/TestClock";
import { randomUUID } from "node:crypto";
import { afterAll, beforeEach } from "vitest";
import { type Api, makeApi } from "../../../src/git/github/api.ts";
import { wantedWait } from "../../../src/git/github/limits.ts";
import { makeAccesses } from "../../../src/git/github/tokens.ts";
import { makeWire } from "../../../src/git/github/wire.ts";
import type { GitError } from "../../../src/git/port.ts";
import { Pause, PAUSED, PauseSwitch } from "../../../src/ground/pause.ts";
import type { ApiFault, Heard } from "./github-host.ts";
import { gitOk } from "../git-client.ts";
import { OWNER } from "./github-host-pulls.ts";
import { asApp, makeGithubWorld } from "./github-setup.ts";

const scope = Effect.runSync(Scope.make());
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));
const world = await Effect.runPromise(Scope.provide(makeGithubWorld({ exchangeMs: 20_000 }), scope));
const { backend, host } = world;
const repository = { projectId: randomUUID() };
await Effect.runPromise(backend.create({ ...repository, importFrom: null, defaultBranch: "main" }));
const bare = `${world.upstreams}/${repository.projectId}.git`;
const tip = await gitOk(bare, "rev-parse", "main");

/** A credential of its own for each test, so that none waits for another's limit. */
beforeEach(() => {
  host.fault = () => null;
  host.protect = () => false;
  host.limit = { remaining: 5000, reset: Math.floor(new Date().getTime() / 1000) + 3600 };
  host.heard.length = 0;
  world.credential = { kind: "token", token: host.token() };
});

const run = <A>(effect: Effect.Effect<A, GitError>): Promise<A> => Effect.runPromise(effect);
const tipOf = (branch = "main"): Promise<string | null> => run(backend.branchTip(repository, branch));
const failure = <A>(effect: Effect.Effect<A, GitError>): Promise<GitError> =>
  Effect.runPromise(Effect.flip(effect));
const statuses = (calls: readonly Heard[]): readonly number[] => calls.map(({ status }) => status);
const ref = `GET /repos/${OWNER}/${repository.projectId}/git/ref/heads/main`;
const refs = `POST /repos/${OWNER}/${repository.projectId}/git/refs`;

/** A client of the host's API with a token of its own. */
const makeClient = Effect.fnUntraced(function* (options: Parameters<typeof makeApi>[1]) {
  const access = {
    host: { api: host.apiUrl, host: "127.0.0.1", git: "" },
    key: "k",
    token: () => Effect.succeed("t"),
  };
  return { api: makeApi(yield* makeWire(["127.0.0.1"]), options), access };
});

/** The fault meets so many calls that begin with `start`, then no more. */
const fail = (start: string, times: number, fault: ApiFault): void => {
  let left = times;
  host.fault = (call) => {
    if (!call.startsWith(start) || left === 0) return null;
    left -= 1;
    return fault;
  };
};

describe("a restored copy that is paused", () => {
  it("reads at the host, as an app, too, and changes nothing there", async () => {
    const pause = new PauseSwitch();
    pause.since = 0;
    world.credential = asApp(host);
    const paused = Effect.provideService(Pause, pause);
    expect(await run(paused(backend.branchTip(repository, "main")))).toBe(tip);
    const refused = await failure(
      paused(backend.createBranch(repository, { branch: "held-back", commit: tip })),
    );
    expect(refused).toMatchObject({ code: "refused", message: PAUSED });
    expect(host.heard.filter(({ call }) => call === refs)).toEqual([]);
    expect(await tipOf("held-back")).toBe(null);
  });

  it.effect.each(["POST", "PATCH", "PUT"] as const)("sends no %s", (method) =>
    Effect.gen(function* () {
      const pause = new PauseSwitch();
      pause.since = 0;
      const { api, access } = yield* makeClient({});
      const call = { method, path: "/changes", body: {}, answer: Schema.Unknown };
      const refused = yield* Effect.flip(Effect.provideService(api(access, call), Pause, pause));
      expect(refused).toMatchObject({ code: "refused", message: PAUSED });
      expect(host.heard).toEqual([]);
    }).pipe(Effect.scoped),
  );
});

describe("a branch's tip", () => {
  it("costs nothing if it did not change, and is read again if it did", async () => {
    const before = await tipOf();
    const { remaining } = host.limit;
    expect(await tipOf()).toBe(before);
    expect(host.limit.remaining).toBe(remaining);
    expect(statuses(host.calls(ref))).toEqual([200, 304]);
    const next = await gitOk(bare, "commit-tree", `${tip}^{tree}`, "-p", tip, "-m", "Next");
    await gitOk(bare, "update-ref", "refs/heads/main", next);
    expect(await tipOf()).toBe(next);
    await gitOk(bare, "update-ref", "refs/heads/main", tip);
    expect(await tipOf()).toBe(tip);
  });

  it("is not given to another credential from the cache of the first one", async () => {
    await tipOf();
    world.credential = { kind: "token", token: host.token() };
    await tipOf();
    expect(statuses(host.calls(ref))).toEqual([200, 200]);
  });

  it.each<[string, ApiFault]>([
    ["a fault of the host's own", { kind: "status", status: 502, body: "<html>canary</html>" }],
    ["a connection that breaks off", { kind: "die" }],
    ["a page instead of JSON", { kind: "status", status: 200, body: "<html>canary</html>" }],
    ["JSON of another form", { kind: "status", status: 200, body: '{"ref":["canary"]}' }],
    ["more bytes than it can have", { kind: "status", status: 200, body: " ".repeat(1_100_000) }],
  ])("is requested again after %s, and given up after three tries", async (_, fault) => {
    fail(ref, 2, fault);
    expect(await tipOf()).toBe(tip);
    expect(host.calls(ref)).toHaveLength(3);
    fail(ref, 9, fault);
    const error = await failure(backend.branchTip(repository, "main"));
    expect(error.code).toBe("unavailable");
    expect(error.message).toMatch(/^The code host 127\.0\.0\.1 [^<>]+\. Try again\.$/);
    expect(error.message).not.toContain("canary");
    expect(host.calls(ref)).toHaveLength(6);
  });

  it.each<[number, string, string, number?]>([
    [401, '{"message":"Bad credentials"}', "rejects the credential (401)"],
    [403, '{"message":"Resource not accessible by integration"}', "Check its permissions"],
    // A missing repository or commit: one more request tells which.
    [404, '{"message":"Not Found"}', "does not have this repository", 2],
    [409, '{"message":"Git Repository is empty."}', "An empty repository needs a first commit"],
    [301, "{}", "has moved (301)"],
    [451, '{"message":"Repository access blocked"}', "It says: Repository access blocked"],
  ])(
    "is refused with a message about %i and without another try",
    async (status, body, sentence, calls = 1) => {
      host.fault = () => ({
        kind: "status",
        status,
        body,
        headers: { location: `${host.origin}/elsewhere` },
      });
      const error = await failure(backend.branchTip(repository, "main"));
      expect(error.code).toBe("refused");
      expect(error.message).toContain(sentence);
      expect(host.heard.every(({ call }) => !call.includes("elsewhere"))).toBe(true);
      expect(host.heard).toHaveLength(calls);
    },
  );

  it("is refused without the token that the host repeats, and without control characters [G05]", async () => {
    const { token } = world.credential as { token: string };
    const message = `No\u001b[31m ${token} here${"!".repeat(500)}`;
    host.fault = () => ({ kind: "status", status: 403, body: JSON.stringify({ message }) });
    const error = await failure(backend.branchTip(repository, "main"));
    expect(error.message).toContain("No [31m [token] here!");
    expect(error.message.length).toBeLessThan(500);
  });
});

describe("the host's limits", () => {
  it("are measured by the host's clock, and never last longer than two hours", () => {
    const noon = Date.UTC(2026, 10, 20, 12);
    const used = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(noon / 1000 + 10) };
    expect(wantedWait({ ...used, date: new Date(noon).toUTCString() }, noon + 3_600_000)).toBe(10_000);
    expect(wantedWait(used, noon + 4_000)).toBe(6_000);
    expect(wantedWait({ ...used, "x-ratelimit-remaining": "1" }, noon)).toBeNull();
    expect(wantedWait({ ...used, "retry-after": "3" }, noon)).toBe(3_000);
    expect(wantedWait({ "retry-after": "999999" }, noon)).toBe(7_200_000);
    expect(wantedWait({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon" }, noon)).toBeNull();
  });

  it("stop all requests when they are used up, until the time that the host names", async () => {
    host.limit = { remaining: 1, reset: Math.floor(new Date().getTime() / 1000) + 3600 };
    expect(await tipOf()).toBe(tip);
    const error = await failure(backend.branchTip(repository, "main"));
    expect(error.code).toBe("unavailable");
    expect(error.message).toMatch(/is used up for this credential\. Try again after \d{4}-\d\d-\d\dT/);
    expect(host.calls(ref)).toHaveLength(1);
    world.credential = { kind: "token", token: host.token() };
    host.limit.remaining = 10;
    expect(await tipOf()).toBe(tip);
  });

  it.each([
    [403, { "retry-after": "1" }, "{}"],
    [429, { "retry-after": "1" }, "{}"],
  ])("are waited for if they end soon, by a call of any kind: %i", async (status, headers, body) => {
    const branch = randomUUID();
    fail(refs, 1, { kind: "status", status, headers, body });
    await run(backend.createBranch(repository, { branch, commit: tip }));
    expect(await tipOf(branch)).toBe(tip);
    expect(host.calls(refs)).toHaveLength(2);
  });

  it.each([
    [429, {}, "{}"],
    [403, {}, '{"message":"You have exceeded a secondary rate limit. Please wait."}'],
    [403, { "retry-after": "60" }, "{}"],
  ])("are reported if they last: %i with %j", async (status, headers, body) => {
    fail(ref, 1, { kind: "status", status, headers, body });
    const error = await failure(backend.branchTip(repository, "main"));
    expect(error.message).toContain("The rate limit of the code host is used up");
    expect(host.calls(ref)).toHaveLength(1);
  });
});

const make = (branch: string, commit = tip) => backend.createBranch(repository, { branch, commit });

describe("a branch", () => {
  it.each<[string, number, ApiFault]>([
    ["the answer was lost", 1, { kind: "mute" }],
    ["every answer was lost", 9, { kind: "mute" }],
    ["the host broke down first", 2, { kind: "status", status: 500 }],
    ["the connection broke first", 1, { kind: "die" }],
  ])("is made once where %s [G12]", async (_, times, fault) => {
    const branch = randomUUID();
    fail(refs, times, fault);
    await run(make(branch));
    expect(await tipOf(branch)).toBe(tip);
  });

  it("is not reported as made if it was not [G12]", async () => {
    const branch = randomUUID();
    fail(refs, 9, { kind: "die" });
    expect((await failure(make(branch))).code).toBe("unavailable");
    expect(await tipOf(branch)).toBeNull();
  });

  it("is refused in the host's words if its rules forbid it, or if the commit does not exist", async () => {
    host.protect = () => true;
    const refused = await failure(make(randomUUID()));
    expect([refused.code, refused.message]).toEqual([
      "refused",
      expect.stringContaining("Reference update failed"),
    ]);
    expect((await failure(make(randomUUID(), "e".repeat(40)))).code).toBe("unknown_ref");
  });
});

describe("a pull request", () => {
  const request = { headRef: "long", baseRef: "main", title: "t".repeat(300), body: "b".repeat(70_000) };

  it("is cut to the host's limits, and a refusal has the host's words", async () => {
    const next = await gitOk(bare, "commit-tree", `${tip}^{tree}`, "-p", tip, "-m", "Long");
    await gitOk(bare, "update-ref", "refs/heads/long", next);
    expect(await run(world.pulls.create(repository, request))).toMatchObject({ number: 1, head: next });
    const [pull] = host.pulls.of(repository.projectId);
    expect([pull?.title.length, pull?.body.length]).toEqual([256, 65_536]);
    expect(await run(world.pulls.create(repository, request))).toBeNull();
    const body = '{"message":"Validation Failed","errors":[{"message":"Drafts are off."}]}';
    host.fault = () => ({ kind: "status", status: 422, body });
    const error = await failure(world.pulls.create(repository, request));
    expect([error.code, error.message]).toEqual(["refused", expect.stringContaining("Drafts are off.")]);
  });

  it("is not opened twice if the answer was lost: it is found by its branch", async () => {
    const next = await gitOk(bare, "commit-tree", `${tip}^{tree}`, "-p", tip, "-m", "Lost");
    await gitOk(bare, "update-ref", "refs/heads/lost", next);
    const calls = `POST /repos/${OWNER}/${repository.projectId}/pulls`;
    fail(calls, 1, { kind: "mute" });
    const lost = { ...request, headRef: "lost" };
    expect((await failure(world.pulls.create(repository, lost))).code).toBe("unavailable");
    expect(host.calls(calls)).toHaveLength(1);
    expect(await run(world.pulls.ofHead(repository, "lost"))).toMatchObject([{ head: next, status: "open" }]);
  });
});

describe("an app's token", () => {
  const calls = "POST /app/installations/";
  beforeEach(() => {
    // Nothing minted before is known: another owner of the key.
    host.minted.length = 0;
    world.credential = asApp(host);
    host.app.installation_id = String(Number(host.app.installation_id) + 1);
    world.credential = asApp(host);
  });

  it("is created once for all concurrent callers, for the one repository", async () => {
    await run(
      Effect.all(
        Array.from({ length: 20 }, () => backend.branchTip(repository, "main")),
        { concurrency: "unbounded" },
      ),
    );
    expect(host.calls(calls)).toHaveLength(1);
    await tipOf();
    expect(host.minted).toHaveLength(1);
    expect(new Set(host.calls(ref).map(({ token }) => token))).toEqual(new Set(host.minted));
  });

  it("is renewed once if the host no longer accepts it, over the API and over git", async () => {
    await tipOf();
    host.tokens.delete(host.minted[0] ?? "");
    expect(await tipOf()).toBe(tip);
    expect(host.minted).toHaveLength(2);
    host.tokens.delete(host.minted[1] ?? "");
    const files = await run(backend.compare(repository, { base: "main", head: "main" }));
    expect([files.commits, host.minted.length]).toEqual([[], 3]);
  });

  it("is not created again and again if the host accepts none", async () => {
    host.fault = (call) => (call.startsWith("GET") ? { kind: "status", status: 401 } : null);
    const error = await failure(backend.branchTip(repository, "main"));
    expect([error.code, host.minted.length]).toEqual(["refused", 2]);
    expect(error.message).toContain("rejects the credential (401)");
  });

  it.each([
    [401, "rejects the app's id and private key"],
    [404, "does not have this installation"],
    [422, "has no access to the repository"],
  ])("is unavailable: %i is reported", async (status, sentence) => {
    fail(calls, 9, { kind: "status", status, body: '{"message":"Because."}' });
    const error = await failure(backend.branchTip(repository, "main"));
    expect([error.code, error.message]).toEqual(["refused", expect.stringContaining(sentence)]);
    expect(error.message).toContain("It says: Because.");
  });
});

/** Calls of a client of its own, with so little patience that the host cannot answer in time. */
const impatient = Effect.gen(function* () {
  const { api, access } = yield* makeClient({ exchangeMs: 100, backoffMs: 1 });
  const call = { path: "/slow", answer: Schema.Unknown };
  return yield* Effect.all([
    Effect.flip(api(access, { ...call, method: "GET" })),
    Effect.flip(api(access, { ...call, method: "POST", body: {} })),
    Effect.flip(api(access, { ...call, method: "POST", body: {}, repeatable: true })),
  ]);
});

it.each(["hang", "slow"] as const)("gives up on a host that does not answer in time: %s", async (kind) => {
  host.fault = () => ({ kind });
  const errors = await Effect.runPromise(Effect.scoped(impatient));
  expect(errors.map(({ code }) => code)).toEqual(Array(3).fill("unavailable"));
  expect(errors[0]?.message).toContain("did not answer within 0.1 s");
  // A request that may have taken effect is not repeated, unless the repetition is harmless.
  expect(["GET", "POST"].map((method) => host.calls(method).length)).toEqual([3, 4]);
});

it.effect("creates a new app token before the old one expires", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 10, 20, 12));
    let mints = 0;
    const api: Api = (_, { answer }) =>
      Effect.gen(function* () {
        mints += 1;
        const now = yield* Clock.currentTimeMillis;
        const expires_at = new Date(now + 3_600_000).toISOString();
        const value = yield* Effect.orDie(
          Schema.decodeUnknownEffect(answer)({ token: `t${mints}`, expires_at }),
        );
        return { ok: true, value } as const;
      });
    const source = { kind: "github", owner: OWNER, name: "n", api_url: host.apiUrl } as const;
    const { token } = yield* makeAccesses(api, ["127.0.0.1"])(source, asApp(host));
    const after = (minutes: number) =>
      Effect.andThen(TestClock.adjust(Duration.minutes(minutes)), token(null));
    expect([yield* after(0), yield* after(49), yield* after(2), yield* after(1)]).toEqual([
      "t1",
      "t1",
      "t2",
      "t2",
    ]);
    expect([yield* token("t1"), yield* token("t2"), yield* token("t2")]).toEqual(["t2", "t3", "t3"]);
  }),
);

describe("a private address that is not allowed", () => {
  it.each([
    ["http", (port: string) => `http://localhost:${port}`],
    ["a literal", () => "https://[::1]"],
    ["the link's own", () => "https://169.254.169.254/api/v3"],
  ])("is refused by its spelling: %s [G03]", async (_, url) => {
    const api_url = url(new URL(host.origin).port);
    const { source, credential } = world.upstreamOf(repository.projectId);
    assert(source.kind === "github");
    const upstream = { source: { ...source, api_url }, credential };
    const request = { projectId: randomUUID(), importFrom: null, defaultBranch: null, upstream };
    expect((await failure(world.bare.create(request))).code).toBe("refused");
    expect(host.heard).toEqual([]);
  });
});
