/** `docker` on the root of an imported image, with the same cases as on the machine's own root. */
import { TestEngine, lacksEngine } from "../../support/machine/container-engine.ts";
import { machineSuites } from "../machine/machine-harness.ts";
import { lacksImage, prepareImage } from "../machine/machine-image.ts";

const lacks = lacksEngine ?? lacksImage;
const engine = lacks === null ? await TestEngine.open() : null;

machineSuites({
  image: "tools",
  prepare: prepareImage,
  socket: engine?.socket ?? "",
  lacks,
  close: async () => engine?.close(),
  forms: ["docker"],
  others: [],
});
