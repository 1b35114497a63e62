/** The refs that credentials may write, in a project whose default branch is `main`. */
import * as Effect from "effect/Effect";
import type { Protection, WritePolicy } from "../../../src/git/server/ref-policy.ts";

export const protection: Protection = { defaultBranches: ["main"], mayReplaceInitialCommit: false };

export const policyOf = (writer: WritePolicy["writer"], change: Partial<Protection> = {}): WritePolicy => ({
  writer,
  protection: Effect.succeed({ ...protection, ...change }),
});
export const sessionPolicy = (sessionId: string): WritePolicy => policyOf({ kind: "session", sessionId });
export const userPolicy: WritePolicy = policyOf({ kind: "user" });
export const readerPolicy: WritePolicy = policyOf({ kind: "none" });
