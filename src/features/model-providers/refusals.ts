/** Keeps what a provider last refused, until a call succeeds (calls.ts L6). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { callRefusal, noVerdict } from "../../domain/sandbox/model-key.ts";
import { Keyring } from "../../services/keyring.ts";
import { openKey } from "./keys.ts";
import { type ModelProvider, ModelProviders } from "./ports/model-providers.ts";
import type { Unreached } from "./ports/model-servers.ts";

/** The same refusal is written again after this time, ms. */
const AGAIN_MS = 60_000;

/** How a call ended. `text`: the beginning of the answer. */
export type CallEnd = { readonly status: number; readonly text: string } | Unreached;

const sentence = (keyring: Keyring["Service"], provider: ModelProvider, end: CallEnd): string | null => {
  const { host } = new URL(provider.baseUrl);
  if ("why" in end) return noVerdict({ host }, end.why).message;
  const key = openKey(keyring, provider);
  return callRefusal({ host }, Result.isSuccess(key) ? key.success : "", end);
};

/** @returns notes how a call ended. It never fails: a note is worth no call. */
export const makeNoting = Effect.gen(function* () {
  const { noteRefusal } = yield* ModelProviders;
  const keyring = yield* Keyring;
  const run = Effect.runPromiseWith(yield* Effect.context());
  const note = Effect.fnUntraced(function* (provider: ModelProvider, end: CallEnd) {
    const { id, refusal } = provider;
    if ("status" in end && end.status < 300)
      return yield* refusal === null ? Effect.void : noteRefusal(id, null);
    const [text, at] = [sentence(keyring, provider, end), yield* Clock.currentTimeMillis];
    if (text === null || (refusal?.text === text && at - refusal.at < AGAIN_MS)) return;
    yield* noteRefusal(id, { at, text });
  });
  let lastLog: { readonly why: string; readonly at: number } | null = null;
  /** The managed gateway has no record. The operator reads the log. */
  const log = Effect.fnUntraced(function* ({ why }: Unreached) {
    const at = yield* Clock.currentTimeMillis;
    if (lastLog?.why === why && at - lastLog.at < AGAIN_MS) return;
    lastLog = { why, at };
    yield* Effect.logWarning("the managed gateway to models cannot be used", { why });
  });
  return (provider: ModelProvider | null, end: CallEnd): Promise<void> =>
    provider !== null
      ? run(Effect.ignore(note(provider, end)))
      : "why" in end
        ? run(log(end))
        : Promise.resolve();
});
