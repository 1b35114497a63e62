/** The operator is the account of the first start. Any other account is a guest of the installation (api.md 9). */
import * as Effect from "effect/Effect";
import type { Principal } from "../../store/ports/people/identity.ts";
import { Operations } from "../../store/ports/operations.ts";
import { findLack } from "./access.ts";
import { Forbidden } from "../api/errors.ts";

const isOperatorAccount = ({ accountId }: Principal) =>
  Effect.gen(function* () {
    return (yield* (yield* Operations).operatorAccount) === accountId;
  });

/** Whether the caller may see the service itself. */
export const mayOperate = (caller: Principal) =>
  findLack(caller, "operate_service") === null ? isOperatorAccount(caller) : Effect.succeed(false);

/** Fails with 403 for an owner of another account. */
export const requireOperatorAccount = Effect.fnUntraced(function* (caller: Principal) {
  if (yield* isOperatorAccount(caller)) return;
  return yield* new Forbidden({
    error: "Only the account that the first start of this service created may see the service itself.",
    code: "forbidden",
  });
});
