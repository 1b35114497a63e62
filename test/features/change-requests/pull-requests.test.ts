/** Change requests and the pull requests beside them, over crashes between any two steps (features/change-requests/pull-requests.ts). */
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { randomUUID } from "node:crypto";
import { Actors } from "../../../src/services/actors.ts";
import type { ChangeRequestEvent } from "../../../src/machines/change-request.ts";
import { settleProject } from "../../../src/features/change-requests/pull-requests.ts";
import { GitBackend, GitError } from "../../../src/git/port.ts";
import { PullRequests, type PullRequestsPort } from "../../../src/git/pull-requests.ts";
import { simulatedPulls } from "../../twins/git/pulls.ts";
import { simulatedBackend, SimulatedRepositories } from "../../twins/git/repositories.ts";
import { ChangeRequests } from "../../../src/features/change-requests/ports/change-requests.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { Projects, type Project } from "../../../src/store/ports/projects/projects.ts";
import { tellRequest } from "../../support/world/change-requests.ts";
import { makeWorld, NOON } from "../../support/world/world.ts";

const OPTIONS = { publicUrl: "https://agents.example.org" };

/** Each call of a port is a step, after which the process may be gone. */
interface Steps {
  left: number;
}

/** The service died: the error is not caught, and nothing after it happens. */
const dead = new Error("the service died");

const counted = <S extends object>(service: S, steps: Steps): S =>
  new Proxy(service, {
    get: (target, name, receiver) => {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== "function") return member;
      return (...args: readonly unknown[]) =>
        Effect.suspend(() => {
          if (steps.left === 0) return Effect.die(dead);
          steps.left -= 1;
          // oxlint-disable-next-line typescript/consistent-type-assertions -- every member of these ports gives an effect
          return Reflect.apply(member, target, args) as Effect.Effect<unknown>;
        });
    },
  });

const world = Effect.gen(function* () {
  yield* TestClock.setTime(NOON);
  const { projectId, userId } = yield* makeWorld(3);
  const git = yield* GitBackend;
  const { commit } = yield* SimulatedRepositories;
  yield* git.create({ projectId, importFrom: null, defaultBranch: "main" });
  const tip = yield* git.resolveBase({ projectId }, "main");
  const write = (branch: string, onto = tip) =>
    commit({ projectId }, { branch, onto, files: { [branch]: `${onto}\n` }, subject: branch });
  const pulls = yield* simulatedPulls;
  const requests = yield* ChangeRequests;
  const kept = yield* (yield* Projects).get(projectId);
  if (kept === null) throw new Error("there is no project");
  const repository = { kind: "github", owner: "acme", name: "greeter", pull_requests: true } as const;
  const project: Project = { ...kept, repository };
  /** Steps a request's machine as its actor does, and reads manifests at once. */
  const actors = {
    changeRequest: Effect.fnUntraced(function* (id: string, event: ChangeRequestEvent) {
      const accepted = (yield* tellRequest(id, event)) !== null;
      yield* tellRequest(id, { type: "manifest.read" });
      return { accepted };
    }),
  } as unknown as Actors["Service"];
  /** A look that dies after so many steps; all of them where none is named. @returns whether it came to its end. */
  const look = (after = Infinity) => {
    const steps = { left: after };
    return settleProject(project, OPTIONS).pipe(
      Effect.provideService(Actors, counted(actors, steps)),
      Effect.provideService(ChangeRequests, counted(requests, steps)),
      Effect.provideService(PullRequests, counted<PullRequestsPort>(pulls, steps)),
      Effect.as(true),
      Effect.catchDefect((defect) => (defect === dead ? Effect.succeed(false) : Effect.die(defect))),
    );
  };
  const ids = new Map<number, string>();
  const open = Effect.fnUntraced(function* (headRef: string) {
    const title = `Add ${headRef}`;
    const fields = { id: randomUUID(), projectId, sessionId: null, headRef, baseRef: "main", title };
    const opened = yield* requests.open({
      ...fields,
      description: "",
      createdBy: userId,
      tips: { base: null, head: null },
      now: NOON,
    });
    ids.set(opened.number, opened.id);
  });
  const tell = (number: number, event: ChangeRequestEvent) =>
    Effect.provideService(tellRequest(ids.get(number) ?? "", event), ChangeRequests, requests);
  const there = (headRef = "work") =>
    Effect.map(pulls.ofHead({ projectId }, headRef), (all) => all.map(({ status }) => status));
  const here = (number = 1) =>
    Effect.map(requests.get(projectId, number), (request) => [request?.status, request?.pull?.status]);
  return {
    projectId,
    userId,
    git,
    pulls,
    requests,
    write,
    look,
    open,
    there,
    here,
    tip,
    tell,
  };
});
type World = Effect.Success<typeof world>;

/** What happens on one of the sides when a pull request stands beside the request. */
const courses: readonly (readonly [
  string,
  (world: World) => Effect.Effect<unknown, unknown>,
  { readonly here: readonly unknown[]; readonly there: readonly string[] },
])[] = [
  ["nothing more", () => Effect.void, { here: ["open", "open"], there: ["open"] }],
  [
    "it is closed here",
    ({ tell }) => tell(1, { type: "close.requested" }),
    { here: ["closed", "closed"], there: ["closed"] },
  ],
  [
    "it is closed there",
    ({ pulls, projectId }) => pulls.closeThere({ projectId }, 1),
    { here: ["closed", "closed"], there: ["closed"] },
  ],
  [
    "it is merged there",
    ({ pulls, projectId }) => pulls.mergeThere({ projectId }, 1),
    { here: ["merged", "merged"], there: ["merged"] },
  ],
  [
    "it is closed here and merged there",
    ({ pulls, tell, projectId }) =>
      Effect.andThen(pulls.mergeThere({ projectId }, 1), tell(1, { type: "close.requested" })),
    { here: ["merged", "merged"], there: ["merged"] },
  ],
];

const live = (name: string, test: Effect.Effect<void, unknown, never>) => it.effect(name, () => test);
const over = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.provide(test, [memoryStore, simulatedBackend], { local: true });

describe("a pull request beside a change request", () => {
  for (const [name, happen, ends] of courses) {
    live(
      `is created once and ends once with it, wherever the service dies: ${name}`,
      Effect.gen(function* () {
        let finished = false;
        for (let after = 0; !finished; after += 1) {
          finished = yield* over(
            Effect.gen(function* () {
              const played = yield* world;
              yield* played.write("work");
              yield* played.open("work");
              const first = yield* played.look(after);
              yield* played.look();
              yield* happen(played);
              const second = yield* played.look(after);
              yield* played.look();
              expect([after, yield* played.here(), yield* played.there()]).toEqual([
                after,
                ends.here,
                ends.there,
              ]);
              return first && second;
            }),
          );
          expect(after).toBeLessThan(30);
        }
      }),
    );
  }

  live(
    "is found by the request's id if the service died before it was noted, even if it has ended since",
    over(
      Effect.gen(function* () {
        const played = yield* world;
        yield* played.write("work");
        yield* played.open("work");
        // withPulls, open, recordPull, ofHead, create: then the end.
        expect(yield* played.look(5)).toBe(false);
        expect([yield* played.here(), yield* played.there()]).toEqual([["open", "wanted"], ["open"]]);
        yield* played.pulls.mergeThere({ projectId: played.projectId }, 1);
        yield* played.look();
        expect(yield* played.here()).toEqual(["merged", "merged"]);
        expect(yield* played.requests.get(played.projectId, 1)).toMatchObject({
          merged: { by: null },
          mergeSides: { base: played.tip },
        });
      }),
    ),
  );

  live(
    "that a user opened is reused, but not one that belongs to another request",
    over(
      Effect.gen(function* () {
        const played = yield* world;
        const { projectId, pulls, tell } = played;
        yield* played.write("work");
        yield* pulls.create(
          { projectId },
          { headRef: "work", baseRef: "main", title: "Mine", body: "By hand." },
        );
        yield* played.open("work");
        yield* played.look();
        expect([yield* played.here(), yield* played.there()]).toEqual([["open", "open"], ["open"]]);
        yield* tell(1, { type: "close.requested" });
        yield* played.open("work");
        const { close } = pulls;
        const away = new GitError({ code: "unavailable", message: "Not now." });
        Object.assign(pulls, { close: () => Effect.fail(away) });
        yield* played.look();
        expect([yield* played.here(1), yield* played.here(2)]).toEqual([
          ["closed", "open"],
          ["open", "wanted"],
        ]);
        Object.assign(pulls, { close });
        yield* played.look();
        expect([yield* played.here(1), yield* played.here(2), yield* played.there()]).toEqual([
          ["closed", "closed"],
          ["open", "open"],
          ["open", "closed"],
        ]);
      }),
    ),
  );

  live(
    "of a request that was merged here shows merged; if its branch has newer commits it is closed",
    over(
      Effect.gen(function* () {
        const played = yield* world;
        const { projectId, userId, git, tell } = played;
        const merge = Effect.fnUntraced(function* (number: number, head: string) {
          const made = yield* git.merge({ projectId }, { branch: "main", head, message: "Merge", at: 0 });
          const commit = made.outcome === "merged" ? made.commit : "";
          const sides = { base: made.base, head };
          yield* tell(number, { type: "merge.requested", by: userId, message: null });
          yield* tell(number, { type: "merged.in_git", sides, commit });
          yield* tell(number, { type: "manifest.read" });
        });
        const [one, two] = [yield* played.write("one"), yield* played.write("two")];
        yield* played.open("one");
        yield* played.open("two");
        yield* played.look();
        yield* played.write("two", two);
        yield* merge(1, one);
        yield* merge(2, two);
        yield* played.look();
        expect([yield* played.here(1), yield* played.there("one")]).toEqual([
          ["merged", "merged"],
          ["merged"],
        ]);
        expect([yield* played.here(2), yield* played.there("two")]).toEqual([
          ["merged", "closed"],
          ["closed"],
        ]);
      }),
    ),
  );

  live(
    "that is unavailable does not affect the others",
    over(
      Effect.gen(function* () {
        const played = yield* world;
        yield* played.write("one");
        yield* played.write("two");
        yield* played.open("one");
        yield* played.open("two");
        const { create } = played.pulls;
        const refuse = new GitError({ code: "refused", message: "Not this one." });
        Object.assign(played.pulls, {
          create: (...[repository, request]: Parameters<typeof create>) =>
            request.headRef === "one" ? Effect.fail(refuse) : create(repository, request),
        });
        expect(yield* played.look()).toBe(true);
        expect([yield* played.here(1), yield* played.here(2)]).toEqual([
          ["open", "wanted"],
          ["open", "open"],
        ]);
      }),
    ),
  );
});
