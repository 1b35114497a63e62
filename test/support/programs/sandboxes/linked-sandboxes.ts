/**
 * In place of the simulated sandboxes' own modules (linked-hook.ts): each simulated sandbox has a daemon on a unix
 * socket, in the process of daemon-farm.ts. The service speaks to it by HTTP, as it does with a real one.
 */
import { connect } from "node:net";
import path from "node:path";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { SandboxProvider, type SandboxSpec } from "../../../../src/sandbox/port.ts";
import {
  simulatedProvider as withoutDaemons,
  type SimulatedOptions,
} from "../../../../src/sandbox/simulated.ts";
import { CONTROL, type Opening } from "./farm-orders.ts";

export { daemonHttp as simulatedDaemon } from "../../../../src/sandbox/daemon-http.ts";

const farm = process.env["TEST_DAEMON_FARM"] ?? "";

/** Resolves when the sandbox's daemon listens. */
const open = ({ id, sessionId, environment }: SandboxSpec): Promise<void> =>
  new Promise((resolve, reject) => {
    const opening: Opening = { id, sessionId: sessionId ?? id, token: environment["PLATFORM_TOKEN"] ?? "" };
    const socket = connect(path.join(farm, CONTROL));
    socket.on("error", reject);
    socket.on("close", () => resolve());
    socket.resume();
    socket.end(JSON.stringify(opening));
  });

const link = (id: string) => ({ kind: "unix", path: path.join(farm, id) }) as const;

export const simulatedProvider = (options: SimulatedOptions) => {
  return Layer.effectContext(
    Effect.map(Layer.build(withoutDaemons({ ...options, link })), (context) => {
      const provider = Context.get(context, SandboxProvider);
      const create = (spec: SandboxSpec) =>
        Effect.andThen(
          Effect.promise(() => open(spec)),
          provider.create(spec),
        );
      return Context.add(context, SandboxProvider, { ...provider, create });
    }),
  );
};
