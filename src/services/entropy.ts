/** Randomness as a port. The default is the machine's; tests and simulations provide a seeded one. */
import { randomBytes } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { userCode } from "../domain/person/device-login.ts";
import { makeToken, TOKEN_BYTES, uuidV7 } from "../domain/ids.ts";

export const Entropy = Context.Reference<(bytes: number) => Uint8Array>("platform/services/Entropy", {
  defaultValue: () => (bytes) => randomBytes(bytes),
});

export const UUID_BYTES = 16;

/** A fresh version 7 UUID. */
export const newUuid: Effect.Effect<string> = Effect.gen(function* () {
  const entropy = yield* Entropy;
  return uuidV7(yield* Clock.currentTimeMillis, entropy(UUID_BYTES));
});

/** A fresh personal access token. The caller shows it once and stores only its hash. */
export const newAccessToken: Effect.Effect<string> = Effect.map(Entropy, (entropy) =>
  makeToken("pat", entropy(TOKEN_BYTES)),
);

/** A fresh code of a device login, for a person to type. */
export const newUserCode: Effect.Effect<string> = Effect.map(Entropy, (entropy) =>
  userCode(entropy(UUID_BYTES)),
);

/** A fresh unguessable password of 256 bits, base64url. */
export const newPassword: Effect.Effect<string> = Effect.map(Entropy, (entropy) =>
  Buffer.from(entropy(TOKEN_BYTES)).toString("base64url"),
);
