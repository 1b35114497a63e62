/** `docker` on the machine's own root, with the same cases as `local`, over an engine of the tests' own. */
import { afterAll } from "vitest";
import { TestEngine, lacksEngine } from "../support/machine/container-engine.ts";
import { machineSuites } from "./machine-harness.ts";

const engine = lacksEngine === null ? await TestEngine.open() : null;
afterAll(() => engine?.close());

machineSuites({
  image: null,
  socket: engine?.socket ?? "",
  lacks: lacksEngine,
  forms: ["docker"],
  others: [],
});
