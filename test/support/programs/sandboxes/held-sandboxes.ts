/**
 * In place of the simulated sandboxes' own module (held-hook.ts): no sandbox is ever made. With one boot at a time,
 * the first session keeps that place, and all others wait for it: what the service does for them is their acceptance.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { SandboxProvider } from "../../../../src/sandbox/port.ts";
import { simulatedProvider as thatMakes, type SimulatedOptions } from "../../../../src/sandbox/simulated.ts";

export const simulatedProvider = (options: SimulatedOptions) =>
  Layer.effectContext(
    Effect.map(Layer.build(thatMakes(options)), (context) =>
      Context.add(context, SandboxProvider, {
        ...Context.get(context, SandboxProvider),
        create: () => Effect.never,
      }),
    ),
  );
