/** The signed user context with which the service itself calls a sandbox's daemon (api.md 7). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { SERVICE_ROLE, signUserContext } from "../../domain/sandbox/user-context.ts";
import { Keyring } from "../keyring.ts";

/** @returns a function that signs one, valid for a minute from the call. */
export const serviceContext = Effect.map(
  Keyring,
  (keyring) => (sandboxId: string, sessionId: string) =>
    Effect.map(Clock.currentTimeMillis, (nowMs) =>
      signUserContext(
        { userId: "service", sessionId, role: SERVICE_ROLE, nowMs },
        keyring.serviceKey(sandboxId),
      ),
    ),
);
