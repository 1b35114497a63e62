/** The change request's actor over crashes between any two of its steps, and over answers of git that are lost. */
import { describe, expect, it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { randomUUID } from "node:crypto";
import { Actors } from "../../../src/services/actors.ts";
import { changeRequestActors } from "../../../src/features/change-requests/actor.ts";
import { actorsLayer, singleRunner } from "../../../src/actors/cluster.ts";
import { RequestBranches } from "../../../src/services/triggers/request-branches.ts";
import { Manifests } from "../../../src/services/projects/manifests.ts";
import { recover } from "../../../src/duties/recovery.ts";
import { GitBackend, GitError } from "../../../src/git/port.ts";
import { simulatedBackend, SimulatedRepositories } from "../../twins/git/repositories.ts";
import { proposedWorkLayer } from "../../../src/features/change-requests/proposed-work.ts";
import { askToClose, askToMerge } from "../../../src/features/change-requests/merging.ts";
import { PullMirror } from "../../../src/features/change-requests/pull-requests.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { ChangeRequests } from "../../../src/features/change-requests/ports/change-requests.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";
import { makeWorld, NOON } from "../../support/world/world.ts";
import { answered, opened, until } from "../../support/world/actors.ts";

/** A life of the service ends after so many calls of its ports: before the call is made, or before its answer comes. */
interface Death {
  left: number;
  readonly when: "before" | "after";
  isDead: boolean;
}
const never = (): Death => ({ left: Infinity, when: "before", isDead: false });

/** A dead life writes nothing any more, and hears nothing. */
const mortal = <S extends object>(service: S, death: Death, silence: Effect.Effect<never, unknown>): S => {
  const wrapped = (call: Effect.Effect<unknown, unknown, unknown>) =>
    Effect.suspend(() => {
      if (death.isDead) return silence;
      death.left -= 1;
      if (death.left >= 0) return call;
      death.isDead = true;
      return death.when === "before" ? silence : Effect.andThen(call, silence);
    });
  const copy = Object.entries(service).map(([name, part]: readonly [string, unknown]) => {
    if (Effect.isEffect(part)) return [name, wrapped(part)] as const;
    if (typeof part !== "function") return [name, mortal(part as object, death, silence)] as const;
    const call = part as (...given: readonly unknown[]) => Effect.Effect<unknown>;
    return [name, (...given: readonly unknown[]) => wrapped(call(...given))] as const;
  });
  return Object.fromEntries(copy) as S;
};
const cut = Effect.fail(new StoreError({ operation: "any", cause: new Error("the service is dead") }));

const world = Effect.gen(function* () {
  yield* TestClock.setTime(NOON);
  const ports = yield* Layer.build(Layer.fresh(Layer.mergeAll(memoryStore, simulatedBackend)));
  const inPorts = Effect.provideContext(ports);
  const { projectId, userId } = yield* inPorts(makeWorld(3));
  const git = Context.get(ports, GitBackend);
  const requests = Context.get(ports, ChangeRequests);
  const { commit } = Context.get(ports, SimulatedRepositories);
  yield* git.create({ projectId, importFrom: null, defaultBranch: "main" });
  const root = yield* git.resolveBase({ projectId }, "main");
  const write = (branch: string, file: string, onto: string) =>
    commit({ projectId }, { branch, onto, files: { [file]: `${branch}\n` }, subject: branch });
  const head = yield* write("work", "work", root);
  const main = yield* write("main", "main", root);
  const { id } = yield* requests.open({
    id: randomUUID(),
    projectId,
    sessionId: null,
    headRef: "work",
    baseRef: "main",
    title: "Work",
    description: "",
    createdBy: userId,
    tips: { base: null, head: null },
    now: NOON,
  });
  /** Commits of the base branch at each reading of its manifest. */
  const read: (string | null)[] = [];
  const moved: string[] = [];
  const manifests = {
    current: () => Effect.die(new Error("it is not asked")),
    sync: () => Effect.map(git.branchTip({ projectId }, "main"), (tip) => void read.push(tip)),
    reconcile: Effect.void,
  } as unknown as Manifests["Service"];
  const mirror = { look: () => Effect.void } satisfies PullMirror["Service"];
  const branches = {
    moved: (project: string) => Effect.sync(() => void moved.push(project)),
    signals: Effect.never,
  } satisfies RequestBranches["Service"];

  /** A life of the service's actors; `git` stands between them and the repository. */
  const begin = Effect.fnUntraced(function* (death = never(), through = git) {
    const mortals = ports.pipe(
      Context.add(ChangeRequests, mortal(requests, death, cut)),
      Context.add(GitBackend, mortal(through, death, Effect.never)),
      Context.add(Manifests, mortal(manifests, death, Effect.never)),
      Context.add(PullMirror, mortal(mirror, death, Effect.never)),
      Context.add(RequestBranches, branches),
    );
    const layer = changeRequestActors({ maxIdleMs: 60_000 }).pipe(
      Layer.provideMerge(Layer.merge(actorsLayer, proposedWorkLayer)),
      Layer.provideMerge(singleRunner),
      Layer.provide(Layer.succeedContext(mortals)),
    );
    const { context, end } = yield* opened(layer);
    const inLife = Effect.provideContext(Context.merge(mortals, context));
    const which = { id, projectId };
    return {
      end,
      recover: inLife(recover),
      tell: (event: Parameters<Actors["Service"]["changeRequest"]>[1]) =>
        Context.get(context, Actors).changeRequest(id, event),
      merge: inLife(askToMerge(which, { by: userId, message: null })),
      close: inLife(askToClose(which)),
    };
  });
  const loaded = Effect.flatMap(requests.memory.load(id), (found) =>
    found === null ? Effect.die(new Error("not there")) : Effect.succeed(found),
  );
  /** The state at rest. */
  const rest = Effect.gen(function* () {
    yield* until(Effect.map(loaded, ({ pending }) => pending.length === 0));
    const row = yield* requests.byId(id);
    const base = yield* git.compare({ projectId }, { base: main, head: "main" });
    const { commits } = yield* git.compare({ projectId }, { base: "main", head });
    return {
      status: row?.status,
      state: (yield* loaded).snapshot.state,
      row,
      /** The base branch has the work. */
      hasWork: commits.length === 0,
      commits: base.commitsTotal,
      tip: base.head,
    };
  });
  return { git, requests, loaded, rest, begin, read, moved, write, head, main, userId, projectId };
});

const merging = (when: Death["when"]) =>
  Effect.gen(function* () {
    let finished = false;
    let merged = 0;
    for (let left = 0; !finished; left += 1) {
      finished = yield* Effect.scoped(
        Effect.gen(function* () {
          const played = yield* world;
          const death: Death = { left, when, isDead: false };
          const first = yield* played.begin(death);
          const asked = yield* Effect.forkScoped(Effect.ignore(first.merge));
          const isSettled = Effect.map(
            played.loaded,
            ({ pending }) => asked.pollUnsafe() !== undefined && pending.length === 0,
          );
          yield* until(Effect.map(isSettled, (settled) => settled || death.isDead));
          yield* first.end;
          // The next life finishes the request only if the first one saved it.
          const wasAsked = (yield* played.loaded).snapshot.state !== "open";
          const second = yield* played.begin();
          yield* answered(second.recover);
          const { status, hasWork, commits, tip, row } = yield* played.rest;
          expect([left, status, hasWork]).toEqual([left, wasAsked ? "merged" : "open", wasAsked]);
          if (wasAsked) {
            merged += 1;
            // The work's commit and one merge commit, however often git was asked.
            expect([commits, row?.merged?.commit, row?.merged?.by]).toEqual([2, tip, played.userId]);
            expect([played.read.at(-1), played.moved.length > 0]).toEqual([tip, true]);
          }
          yield* second.end;
          return !death.isDead;
        }),
      );
      expect(left).toBeLessThan(60);
    }
    expect(merged).toBeGreaterThan(10);
  });

describe("a merge", () => {
  it.effect("is finished by the next life, wherever the service dies before a step [I17]", () =>
    merging("before"),
  );
  it.effect("is finished by the next life, wherever the service dies after a step [I17]", () =>
    merging("after"),
  );
});

/** A repository whose next merge is answered by this error, with or without having been made. `later`: the error of every call after that. */
const failing = (
  git: GitBackend["Service"],
  code: GitError["code"],
  { isMade, later = code }: { readonly isMade: boolean; readonly later?: GitError["code"] },
) => {
  let isNext = true;
  let isSilent = false;
  const lost = new GitError({ code, message: "The answer was lost." });
  const error = new GitError({ code: later, message: "Not now." });
  const through: GitBackend["Service"] = {
    ...git,
    merge: (...given) =>
      Effect.suspend(() => {
        if (!isNext) return isSilent && later !== code ? Effect.fail(error) : git.merge(...given);
        isNext = false;
        isSilent = true;
        return Effect.andThen(isMade ? Effect.asVoid(git.merge(...given)) : Effect.void, Effect.fail(lost));
      }),
    compare: (...given) => Effect.suspend(() => (isSilent ? Effect.fail(error) : git.compare(...given))),
  };
  return { through, answerAgain: () => (isSilent = false) };
};

/** Comparisons that wait at a gate. */
const gated =
  (gate: Latch.Latch, { compare }: GitBackend["Service"]): GitBackend["Service"]["compare"] =>
  (...given) =>
    gate.whenOpen(compare(...given));

describe("a merge whose answer is lost", () => {
  it.effect("is asked of git again while its repository is away, and is made once", () =>
    Effect.gen(function* () {
      const played = yield* world;
      const { through } = failing(played.git, "away", { isMade: true });
      const life = yield* played.begin(never(), through);
      expect(yield* answered(life.merge)).toEqual({ outcome: "merged" });
      expect(yield* played.rest).toMatchObject({ status: "merged", hasWork: true, commits: 2 });
    }),
  );

  const doubtful = Effect.fnUntraced(function* (isMade: boolean) {
    const played = yield* world;
    const { through, answerAgain } = failing(played.git, "git_failed", { isMade });
    const life = yield* played.begin(never(), through);
    expect(yield* answered(life.merge)).toMatchObject({
      outcome: "refused",
      refusal: { because: "git", code: "git_failed" },
    });
    expect(yield* played.rest).toMatchObject({ status: "open", hasWork: isMade });
    expect((yield* played.loaded).snapshot.context.sides).toMatchObject({ head: played.head });
    // A close cannot be decided while git does not answer.
    expect(yield* answered(life.close)).toMatchObject({ outcome: "refused" });
    answerAgain();
    return { ...played, ...life };
  });

  it.effect("and that git has made is finished by the next look", () =>
    Effect.gen(function* () {
      const { tell, rest, userId } = yield* doubtful(true);
      yield* tell({ type: "look.requested" });
      const left = yield* rest;
      expect(left).toMatchObject({ status: "merged", row: { merged: { by: userId } } });
    }),
  );

  it.effect("and that git has made is finished by a close, which it refuses", () =>
    Effect.gen(function* () {
      const { close, rest } = yield* doubtful(true);
      expect(yield* answered(close)).toEqual({ outcome: "merged" });
      expect(yield* rest).toMatchObject({ status: "merged", hasWork: true });
    }),
  );

  it.effect("and that git has made is finished by the next merge, of which the request is", () =>
    Effect.gen(function* () {
      const { merge, rest } = yield* doubtful(true);
      expect(yield* answered(merge)).toEqual({ outcome: "merged" });
      expect(yield* rest).toMatchObject({ status: "merged", commits: 2 });
    }),
  );

  it.effect("and that git has made is finished by the next merge, though the branch now conflicts", () =>
    Effect.gen(function* () {
      const { merge, rest, write, head } = yield* doubtful(true);
      yield* write("work", "main", head);
      expect(yield* answered(merge)).toEqual({ outcome: "merged" });
      expect(yield* rest).toMatchObject({ status: "merged", commits: 2, row: { mergeSides: { head } } });
    }),
  );

  it.effect("stays in doubt when the next try is refused and the branch cannot be seen", () =>
    Effect.gen(function* () {
      const played = yield* world;
      const { through, answerAgain } = failing(played.git, "unavailable", { isMade: true, later: "refused" });
      const life = yield* played.begin(never(), through);
      expect(yield* answered(life.merge)).toMatchObject({ refusal: { code: "refused" } });
      expect((yield* played.loaded).snapshot.context.sides).toMatchObject({ head: played.head });
      answerAgain();
      expect(yield* answered(life.close)).toEqual({ outcome: "merged" });
      expect(yield* played.rest).toMatchObject({ status: "merged", hasWork: true });
    }),
  );

  it.effect("and that git has not made is closed by two closes at once, and both are told so", () =>
    Effect.gen(function* () {
      const played = yield* world;
      const { through, answerAgain } = failing(played.git, "git_failed", { isMade: false });
      const gate = yield* Latch.make(true);
      const slow = { ...through, compare: gated(gate, through) };
      const life = yield* played.begin(never(), slow);
      yield* answered(life.merge);
      answerAgain();
      yield* gate.close;
      const first = yield* Effect.forkScoped(life.close);
      yield* until(Effect.map(played.loaded, ({ snapshot }) => snapshot.state === "merging"));
      const second = yield* Effect.forkScoped(life.close);
      // Enough for an answer that does not wait for git.
      for (let turn = 0; turn < 200; turn += 1) yield* Effect.yieldNow;
      yield* gate.open;
      const both = yield* answered(Effect.all([Fiber.join(first), Fiber.join(second)]));
      expect(both).toEqual([{ outcome: "closed" }, { outcome: "closed" }]);
      expect(yield* played.rest).toMatchObject({ status: "closed", hasWork: false });
    }),
  );

  it.effect("and that git has not made is open after a look, and is closed or merged as any other", () =>
    Effect.gen(function* () {
      const { tell, rest, loaded, close } = yield* doubtful(false);
      yield* tell({ type: "look.requested" });
      expect(yield* rest).toMatchObject({ status: "open", hasWork: false, row: { mergeSides: null } });
      expect((yield* loaded).snapshot.state).toBe("open");
      expect(yield* answered(close)).toEqual({ outcome: "closed" });
      expect(yield* rest).toMatchObject({ status: "closed", hasWork: false });
    }),
  );

  it.effect("and that git has not made is closed by a close", () =>
    Effect.gen(function* () {
      const { close, rest } = yield* doubtful(false);
      expect(yield* answered(close)).toEqual({ outcome: "closed" });
      expect(yield* rest).toMatchObject({ status: "closed", hasWork: false });
    }),
  );
});
