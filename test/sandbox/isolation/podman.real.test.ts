/** `docker` over Podman that runs as root, with the same cases as over Docker. */
import { TestEngine, lacksPodman } from "../../support/machine/container-engine.ts";
import { isDeep } from "../../support/vitest/rings.ts";
import { machineSuites, SAMPLE_CASES } from "../machine/machine-harness.ts";

const engine = lacksPodman === null ? await TestEngine.openPodman() : null;

machineSuites({
  image: null,
  socket: engine?.socket ?? "",
  lacks: lacksPodman,
  close: async () => engine?.close(),
  forms: ["docker"],
  others: [],
  only: () => (isDeep ? null : SAMPLE_CASES),
});
