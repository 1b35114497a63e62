/** Sessions in which their person's own credentials are suspended (domain/connector/own-credential.ts): one of the store's ports, see journal.ts. */
import * as Context from "effect/Context";
import type { SteeringAct, Suspension } from "../../../domain/connector/own-credential.ts";
import type { Stored } from "../journal.ts";

export class Suspensions extends Context.Service<
  Suspensions,
  {
    /** Suspends. The first act stays. */
    readonly suspend: (
      sessionId: string,
      by: { readonly userId: string; readonly act: SteeringAct; readonly now: number },
    ) => Stored<void>;
    /** The suspension of a session, or of the nearest one above it. Null means its person's own credentials work. */
    readonly get: (sessionId: string) => Stored<Suspension | null>;
    /** Ends the suspension of the session itself. @returns whether there was one */
    readonly end: (sessionId: string) => Stored<boolean>;
  }
>()("platform/store/Suspensions") {}
