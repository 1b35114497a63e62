/** The tokens and credentials of a sandbox, and whether they are still valid (threats.md I15). */
import * as Effect from "effect/Effect";
import { CloneCredentials } from "../../../src/store/ports/sessions/clone-credentials.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import type { World } from "../world.ts";

/** Longer than any simulated day. */
const LIFE_MS = 30 * 24 * 3_600_000;

/** The password for git that a daemon asks for as it boots, by its sandbox. */
const hashOf = (sandboxId: string): string => `git password of ${sandboxId}`;

/** A sandbox has been made: its daemon asks for its password. */
export const mint = (world: World, of: { readonly sessionId: string; readonly sandboxId: string }): void => {
  const row = world.tables.sessions.get(of.sessionId);
  if (row === undefined) return;
  const now = world.walls.least;
  const credential = { ...of, hash: hashOf(of.sandboxId), projectId: row.record.projectId, now };
  world.ask(
    Effect.flatMap(CloneCredentials, (credentials) =>
      credentials.mint({ ...credential, expiresAt: now + LIFE_MS }),
    ),
  );
};

/** Of each thing that a sandbox was given, whether it opens anything now. */
export const tokensOf = (world: World, sandboxId: string): readonly boolean[] => {
  const now = world.walls.least;
  const minted = world.ask(
    Effect.flatMap(CloneCredentials, (credentials) => credentials.find(hashOf(sandboxId), now)),
  );
  const tokens = [...world.tables.tokens.values()].filter((token) => token.sandboxId === sandboxId);
  const known = tokens.map(({ hash }) =>
    world.ask(Effect.flatMap(Identity, (identity) => identity.authenticate(hash, now))),
  );
  return [minted, ...known].map((found) => found !== null);
};
