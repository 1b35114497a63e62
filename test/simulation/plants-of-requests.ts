/** Planted bugs (plants.ts) about change requests and their merges. */
import type { Plant } from "./plants.ts";

export const PLANTS_OF_REQUESTS: readonly Plant[] = [
  {
    name: "recovery-forgets-merges",
    file: "src/duties/recovery.ts",
    find: '  yield* load("changeRequest", yield* changeRequests);\n',
    put: "",
    seed: 24,
  },
  {
    name: "merge-with-a-lost-answer-taken-for-refused",
    file: "src/actors/change-request.ts",
    find: 'if (seen._tag === "Failure") return refusedByGit(failure, false);',
    put: 'if (seen._tag === "Failure") return refusedByGit(failure, true);',
    seed: 1,
  },
  {
    name: "merge-without-a-look-at-the-base-branch",
    file: "src/actors/change-request.ts",
    find: "const seen = yield* Effect.result(tipWith(git, request, sides));",
    put: "const seen = yield* Effect.result(Effect.succeed(sides.base === sides.head ? sides.base : null));",
    seed: 1,
  },
  {
    name: "closed-during-its-merge",
    file: "src/machines/change-request.ts",
    find: '        "close.requested": closeInstead,\n',
    put: '        "close.requested": { guard: "isUnmade", target: "closed", actions: ["settle"] },\n',
    seed: 1,
  },
  {
    name: "closed-without-a-look",
    file: "src/machines/change-request.ts",
    find: '        "close.requested": close,\n',
    put: '        "close.requested": { target: "closed", actions: "mirrorPull" },\n',
    seed: 1,
  },
  {
    name: "change-request-fence-forgotten",
    file: "src/store/memory/change-requests.ts",
    find: "row === undefined || row.version !== version",
    put: "row === undefined",
    seed: 1,
  },
];
