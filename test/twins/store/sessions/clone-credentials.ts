/** Passwords for git in memory: see postgres/sessions/clone-credentials.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { CloneCredentials } from "../../../../src/store/ports/sessions/clone-credentials.ts";
import { Tables } from "../tables.ts";

export const layer = Layer.effect(
  CloneCredentials,
  Effect.map(Tables, (tables) => ({
    mint: (credential) =>
      Effect.sync(() => {
        tables.cloneCredentials.set(credential.hash, credential);
      }),
    find: (hash, now) =>
      Effect.sync(() => {
        const credential = tables.cloneCredentials.get(hash);
        if (credential === undefined || credential.expiresAt <= now) return null;
        const { sandboxId, sessionId } = credential;
        return tables.isSandboxLive(sandboxId) && tables.isSessionLive(sessionId) ? credential : null;
      }),
  })),
);
