/** `gvisor` on the machine's own root, with the same cases as `local`. */
import { lacksRunsc, runsc } from "../support/machine/runsc.ts";
import { machineSuites } from "./machine-harness.ts";

machineSuites({
  image: null,
  runsc,
  lacks: lacksRunsc,
  forms: ["gvisor"],
  others: [],
});
