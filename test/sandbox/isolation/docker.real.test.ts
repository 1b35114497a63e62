/** `docker` on the machine's own root, with the same cases as `local`, over an engine of the tests' own. */
import { TestEngine, lacksEngine } from "../../support/machine/container-engine.ts";
import { isDeep } from "../../support/vitest/rings.ts";
import { machineSuites, SAMPLE_CASES } from "../machine/machine-harness.ts";

const engine = lacksEngine === null ? await TestEngine.open() : null;

machineSuites({
  image: null,
  socket: engine?.socket ?? "",
  lacks: lacksEngine,
  close: async () => engine?.close(),
  forms: ["docker"],
  others: [],
  only: () => (isDeep ? null : SAMPLE_CASES),
});
