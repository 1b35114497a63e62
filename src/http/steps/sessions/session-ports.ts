/** `GET …/sessions/{sid}/ports`: the ports on which programs of the sandbox listen. Reading them is no activity. */
import * as Effect from "effect/Effect";
import { DaemonClient } from "../../../sandbox/daemon.ts";
import { SandboxProvider } from "../../../sandbox/port.ts";
import { withLink } from "../../../services/answered.ts";
import { serviceContext } from "../../../services/sessions/service-context.ts";
import { Sandboxes } from "../../../store/ports/sessions/sandboxes.ts";
import { Caller } from "../../api/access.ts";
import { Conflict } from "../../api/errors.ts";
import { sandboxAway } from "../../answers/refusals.ts";
import { sessionToEnter } from "../../relay/relay.ts";

const notRunning = () =>
  new Conflict({ error: "The session is not running, so nothing listens.", code: "session_not_running" });

const unreachable = () => Effect.fail(sandboxAway());

export const sessionPorts = Effect.fnUntraced(
  function* (params: { readonly pid: string; readonly sid: string }) {
    const session = yield* sessionToEnter(yield* Caller, params, "enter_port");
    const sandbox = yield* (yield* Sandboxes).newest(session.id);
    if (session.status !== "running" || sandbox?.status !== "active") return yield* notRunning();
    const daemon = yield* DaemonClient;
    const link = yield* withLink(yield* SandboxProvider, sandbox.id);
    const context = yield* (yield* serviceContext)(sandbox.id, session.id);
    return { ports: yield* daemon.ports(link, context) };
  },
  Effect.catchTags({ DaemonUnreachable: unreachable, SandboxError: unreachable }),
);
