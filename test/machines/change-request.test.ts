import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { expect } from "vitest";
import {
  changeRequest,
  changeRequestMachine,
  type ChangeRequestCommand,
  type ChangeRequestEvent,
  type ChangeRequestSnapshot,
} from "../../src/machines/change-request.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { ChangeRequests } from "../../src/features/change-requests/ports/change-requests.ts";
import { makeWorld, NOON } from "../support/world/world.ts";
import { describeModel, everyStep, type Seen } from "./model.ts";

const sides = { base: "b1", head: "h1" } as const;
const refusal = { because: "no_changes" } as const;

const events: ChangeRequestEvent[] = [
  { type: "merge.requested", by: "user", message: null },
  { type: "close.requested" },
  { type: "look.requested" },
  { type: "sides.noted", sides, at: NOON },
  { type: "merged.in_git", sides, commit: "m1" },
  { type: "merge.missed" },
  { type: "merge.refused", refusal, isSure: true },
  { type: "merge.refused", refusal, isSure: false },
  { type: "manifest.read" },
  { type: "manifest.failed" },
  { type: "pull.merged", sides: { base: "b2", head: "h2" }, commit: "m2" },
  { type: "pull.closed" },
];

type Step = Seen<ChangeRequestSnapshot, ChangeRequestEvent, ChangeRequestCommand>;
const commanded = (commands: readonly ChangeRequestCommand[], type: ChangeRequestCommand["type"]) =>
  commands.filter((command) => command.type === type);
const hasGitIt = ({ type }: ChangeRequestEvent) => type === "merged.in_git" || type === "pull.merged";
const isEnd = ({ type }: ChangeRequestEvent) => type === "manifest.read" || type === "manifest.failed";
const isMove = ({ before, snapshot }: Step) => before.state !== snapshot.state;

describeModel<ChangeRequestSnapshot, ChangeRequestEvent, ChangeRequestCommand>(
  {
    machine: changeRequest,
    definition: changeRequestMachine,
    events,
    memory: Effect.gen(function* () {
      const world = yield* makeWorld(3);
      const { memory, open } = yield* ChangeRequests;
      const { id } = yield* open({
        id: randomUUID(),
        projectId: world.projectId,
        sessionId: null,
        headRef: "work",
        baseRef: "main",
        title: "Work",
        description: "",
        createdBy: world.userId,
        tips: { base: null, head: null },
        now: NOON,
      });
      return { id, memory };
    }).pipe(Effect.provide(memoryStore, { local: true }), Effect.orDie),
  },
  {
    "C1: merged after git has the work and the manifest was read from there": everyStep((seen) => {
      const { before, event, snapshot, past } = seen;
      if (snapshot.state !== "merged" || !isMove(seen)) return;
      expect([before.state, isEnd(event), past.some(hasGitIt)]).toEqual(["merging", true, true]);
      expect(snapshot.context.sides).not.toBe(null);
      expect(snapshot.context.commit).not.toBe(null);
    }),
    "C1: the manifest is read each time that git has the work, and only then": everyStep(
      ({ event, accepted, commands }) => {
        expect(commanded(commands, "readManifest")).toHaveLength(accepted && hasGitIt(event) ? 1 : 0);
      },
    ),
    "C2: git merges what is noted in the same step, and it stays noted until git's answer": everyStep(
      ({ before, event, snapshot, commands }) => {
        for (const command of commanded(commands, "mergeInGit"))
          expect(command).toEqual({
            type: "mergeInGit",
            sides: snapshot.context.sides,
            message: null,
            at: NOON,
          });
        if (before.context.sides === null || snapshot.context.sides !== null) return;
        expect(["merge.refused", "merge.missed"]).toContain(event.type);
        if (event.type === "merge.refused") expect(event.isSure).toBe(true);
      },
    ),
    "C3: one merge at a time; a close during a merge is refused": everyStep(
      ({ before, event, accepted, commands }) => {
        if (before.state !== "merging") return;
        expect([commanded(commands, "noteSides"), commanded(commands, "lookForMerge")]).toEqual([[], []]);
        if (event.type === "merge.requested") expect(accepted).toBe(false);
        if (event.type === "close.requested" || event.type === "pull.closed")
          expect(accepted).toBe(before.context.aim === "look" && before.context.commit === null);
      },
    ),
    "C4: a merge that git has made is not refused, missed or made again": everyStep(
      ({ before, event, accepted, snapshot }) => {
        if (before.state !== "merging" || before.context.commit === null) return;
        expect(accepted).toBe(isEnd(event));
        if (accepted) expect(snapshot.state).toBe("merged");
      },
    ),
    "C5: a request in doubt is closed, or taken out of doubt, after a look": everyStep((seen) => {
      const { before, event, snapshot, commands } = seen;
      if (before.state !== "open" || before.context.sides === null || !isMove(seen)) return;
      expect(snapshot.state).toBe("merging");
      const looks = event.type !== "merge.requested" && event.type !== "pull.merged";
      expect(commanded(commands, "lookForMerge")).toHaveLength(looks ? 1 : 0);
    }),
    "C6: merged is final, and a closed request moves by the host's merge alone": everyStep(
      ({ before, event, accepted }) => {
        if (before.state === "merged") expect(accepted).toBe(false);
        if (before.state === "closed") expect(accepted).toBe(event.type === "pull.merged");
      },
    ),
    "C7: the pull request is brought in line at each end": everyStep((seen) => {
      const { snapshot, commands } = seen;
      const ends = isMove(seen) && (snapshot.state === "merged" || snapshot.state === "closed");
      expect(commanded(commands, "mirrorPull")).toHaveLength(ends ? 1 : 0);
      expect(commanded(commands, "refreshOthers")).toHaveLength(ends && snapshot.state === "merged" ? 1 : 0);
    }),
    "a merging request has something under way that ends it": everyStep((seen) => {
      const { before, snapshot, commands, accepted } = seen;
      if (snapshot.state !== "merging" || before.state === "merging") return;
      expect([accepted, commands.length]).toEqual([true, 1]);
    }),
    "a request that is not merging knows no aim": everyStep(({ snapshot }) => {
      expect(snapshot.context.aim === null).toBe(snapshot.state !== "merging");
    }),
  },
);
