/** `docker` with the runtime `runsc`, on the machine's own root, with the same cases as `local`. */
import { TestEngine, lacksEngine } from "../../support/machine/container-engine.ts";
import { lacksRunsc, runsc } from "../../support/machine/runsc.ts";
import { machineSuites } from "../machine/machine-harness.ts";

const lacks = lacksEngine ?? lacksRunsc;
const engine = lacks === null ? await TestEngine.open(runsc) : null;

machineSuites({
  image: null,
  socket: engine?.socket ?? "",
  runtime: "runsc",
  lacks,
  close: async () => engine?.close(),
  forms: ["docker"],
  others: [],
});
