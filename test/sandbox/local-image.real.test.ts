/** `local` on the root of an imported image, with the same cases as on the machine's own root. */
import { sampled } from "../support/vitest/rings.ts";
import { machineSuites } from "./machine-harness.ts";
import { lacksImage, prepareImage } from "./machine-image.ts";

const FORMS = sampled(["bubblewrap", "namespaces"] as const, ["bubblewrap"]);

machineSuites({ image: "tools", prepare: prepareImage, lacks: lacksImage, forms: FORMS, others: FORMS });
