/** Planted bugs (plants.ts) about change requests and their merges. */
import type { Plant } from "../plants.ts";

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
    file: "src/features/change-requests/actor.ts",
    find: "    const tip = yield* Effect.result(tipWith(git, request, { sides, ...squashOption }));\n",
    put: "    if (sides !== null) return refusedByGit(failure, true);\n    const tip = yield* Effect.result(tipWith(git, request, { sides, ...squashOption }));\n",
    seed: 41,
  },
  {
    name: "change-request-fence-forgotten",
    file: "test/twins/store/actor-memory.ts",
    find: "row.version !== change.version",
    put: '(kind !== "change_request" && row.version !== change.version)',
    seed: 62,
  },
];
