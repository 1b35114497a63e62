/** Who acts in an operator's command, for the audit record: this machine's user, by name. */
import { userInfo } from "node:os";
import * as Effect from "effect/Effect";
import { Acting, actAs } from "../../services/audit.ts";

/** A user of the machine can lack a name, for example in a container. */
const nameOfUser = (): string | null => {
  try {
    return userInfo().username;
  } catch {
    return null;
  }
};

/** The changes of this effect are the operator's. */
export const asOperator = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, Acting, actAs("operator", nameOfUser()));
