/**
 * How long a provider may take: one that never answers is asked anew (threats.md "Faults"), and holds up nobody else's round
 * for longer than this. A boot has its own deadline, and creating ends with it.
 */
import * as Effect from "effect/Effect";
import { SandboxError, type DaemonLink, type SandboxProvider } from "../sandbox/port.ts";

/** For what makes, ends and looks through sandboxes. */
const PROVIDER_TIMEOUT = "1 minute";
/** A link is looked up, no more. */
const LINK_TIMEOUT = "10 seconds";

const within = <A>(
  duration: typeof PROVIDER_TIMEOUT | typeof LINK_TIMEOUT,
  operation: SandboxError["operation"],
  call: Effect.Effect<A, SandboxError>,
): Effect.Effect<A, SandboxError> =>
  Effect.timeoutOrElse(call, {
    duration,
    orElse: () => Effect.fail(new SandboxError({ operation, message: `no answer within ${duration}` })),
  });

/** The call, given up as a failure after a minute. */
export const answeredInTime = <A>(
  operation: SandboxError["operation"],
  call: Effect.Effect<A, SandboxError>,
): Effect.Effect<A, SandboxError> => within(PROVIDER_TIMEOUT, operation, call);

/** How a sandbox's daemon is reached; given up as a failure after 10 s. */
export const linked = (
  provider: SandboxProvider["Service"],
  id: string,
): Effect.Effect<DaemonLink, SandboxError> => within(LINK_TIMEOUT, "link", provider.link(id));
