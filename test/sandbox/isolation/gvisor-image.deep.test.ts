/** `gvisor` on the root of an imported image, with the same cases as on the machine's own root. */
import { lacksRunsc, runsc } from "../../support/machine/runsc.ts";
import { machineSuites } from "../machine/machine-harness.ts";
import { lacksImage, prepareImage } from "../machine/machine-image.ts";

machineSuites({
  image: "tools",
  prepare: prepareImage,
  runsc,
  lacks: lacksImage ?? lacksRunsc,
  forms: ["gvisor"],
  others: [],
});
