/** What every simulated world begins with. */
import * as Effect from "effect/Effect";
import { sealSecret } from "../../src/domain/secret.ts";
import { GitBackend } from "../../src/git/port.ts";
import { SimulatedRepositories } from "../../src/git/simulated.ts";
import { Identity } from "../../src/store/ports/identity.ts";
import { Projects } from "../../src/store/ports/projects.ts";
import { Secrets } from "../../src/store/ports/secrets.ts";
import { HOOK_SECRET, HOOK_VALUE, manifestOf } from "./manifests.ts";

/** Friday noon. */
export const BEGINNING = Date.UTC(2026, 10, 20, 12);
export const MASTER = { current: { version: 1, bytes: new Uint8Array(32) }, former: [] };
export const numbered = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;

export const ACCOUNTS = [numbered(1), numbered(2)] as const;
export const USERS = [numbered(11), numbered(12)] as const;
/** The account of each project. */
export const PROJECTS = [
  { id: numbered(21), account: 0 },
  { id: numbered(22), account: 0 },
  { id: numbered(23), account: 1 },
] as const;
const FIRST_CAP = 3;
/** The first of two accounts. */
export const settled = Effect.gen(function* () {
  yield* (yield* Identity).bootstrap({
    accountId: ACCOUNTS[0],
    userId: USERS[0],
    tokenId: numbered(31),
    tokenHash: "0".repeat(64),
    tier: "free",
    cap: FIRST_CAP,
    now: BEGINNING,
  });
});

/** Three projects, each with a repository, a manifest and a secret. */
export const withProjects = Effect.gen(function* () {
  for (const [index, project] of PROJECTS.entries()) {
    yield* (yield* GitBackend).create({ projectId: project.id, importFrom: null, defaultBranch: "main" });
    yield* (yield* Projects).create({
      id: project.id,
      accountId: ACCOUNTS[project.account],
      name: `project ${index}`,
      repository: { kind: "hosted" },
      defaultBranch: "main",
      createdBy: USERS[project.account],
      now: BEGINNING,
    });
    yield* (yield* SimulatedRepositories).commit(
      { projectId: project.id },
      { branch: "main", onto: null, files: { "platform.toml": manifestOf(index * 24) }, subject: "manifest" },
    );
    const place = { projectId: project.id, name: HOOK_SECRET, version: 1 };
    const envelope = sealSecret(MASTER, place, { value: HOOK_VALUE, nonce: new Uint8Array(12) });
    yield* (yield* Secrets).put({ ...place, envelope }, { userId: USERS[project.account], now: BEGINNING });
  }
});
