/** `docker` over Podman that runs as root, with the same cases as over Docker. */
import { TestEngine, lacksPodman } from "../support/machine/container-engine.ts";
import { machineSuites } from "./machine-harness.ts";

const engine = lacksPodman === null ? await TestEngine.openPodman() : null;

machineSuites({
  image: null,
  socket: engine?.socket ?? "",
  lacks: lacksPodman,
  close: async () => engine?.close(),
  forms: ["docker"],
  others: [],
});
