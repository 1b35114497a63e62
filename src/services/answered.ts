/**
 * Time limits for provider calls. A call that never answers is retried (threats.md "Faults"), and delays another's round
 * by no more than its limit. A boot has its own deadline, which also ends its create.
 */
import * as Effect from "effect/Effect";
import { SandboxError, type DaemonLink, type SandboxProvider } from "../sandbox/port.ts";

/** For calls that create, end or list sandboxes. */
const PROVIDER_TIMEOUT = "1 minute";
/** For a link, which is a lookup only. */
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

/** The call; it fails after a minute. */
export const answeredInTime = <A>(
  operation: SandboxError["operation"],
  call: Effect.Effect<A, SandboxError>,
): Effect.Effect<A, SandboxError> => within(PROVIDER_TIMEOUT, operation, call);

/** The link to a sandbox's daemon; the lookup fails after 10 s. */
export const withLink = (
  provider: SandboxProvider["Service"],
  id: string,
): Effect.Effect<DaemonLink, SandboxError> => within(LINK_TIMEOUT, "link", provider.link(id));
