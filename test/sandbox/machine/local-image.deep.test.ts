/** `local` on the root of an imported image, with the same cases as on the machine's own root. */
import { machineSuites } from "./machine-harness.ts";
import { lacksImage, prepareImage } from "./machine-image.ts";

const FORMS = ["bubblewrap", "namespaces"] as const;

machineSuites({ image: "tools", prepare: prepareImage, lacks: lacksImage, forms: FORMS, others: FORMS });
